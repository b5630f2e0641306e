"""The abstraction function: the concrete world as a state of the model, every slot of it.

Versions are taken as they are in the world; two states are equal up to the order of the versions of each object, so both are renumbered
before they are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dra_spec.explorer.model import Slot
from dra_spec.reference.apiserver import POD
from dra_spec.reference.world import World
from dra_spec.traces import abstract_objects as objects
from dra_spec.traces.abstract_controller import controller
from dra_spec.traces.abstract_nodes import nodes
from dra_spec.traces.abstract_objects import Values
from dra_spec.traces.abstract_schedulers import scheduler


def abstract(world: World) -> Values:
    """The value of each slot of the model, by its name."""
    found: Values = {f"api/claim/{spec.name}": objects.stored_claim(world.api, spec.name) for spec in world.instance.claims}
    found.update({f"api/pod/{spec.name}": objects.pod(world.api.find(POD, spec.name)) for spec in world.instance.pods})
    found.update({f"budget/{name}": n for name, n in world.budgets.items() if n >= 0})
    for one in world.schedulers.values():
        found.update(scheduler(one))
    found.update(nodes(world))
    if world.controller is not None:
        found.update(controller(world.controller))
    if world.workload is not None:
        found.update({f"workload/created/{name}": done for name, done in world.workload.created.items()})
    return found


def state_of(world: World, slots: Sequence[Slot[Any]]) -> tuple[Any, ...]:
    """The world as a state of a model with these slots; not renumbered. Raises KeyError for a slot that the abstraction does not know."""
    values = abstract(world)
    return tuple(values[slot.name] for slot in slots)


def differences(slots: Sequence[Slot[Any]], expected: Sequence[Any], found: Sequence[Any]) -> list[str]:
    """One line for each slot that differs: its name, the model's value, the world's."""
    return [f"{s.name}: the model has {e}, the reference {f}" for s, e, f in zip(slots, expected, found, strict=True) if e != f]
