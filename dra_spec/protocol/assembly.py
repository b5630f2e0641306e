"""Puts a model together: the slots and actions of the writers that take part, with variants applied.

A writer's module offers `slots(instance)` and `actions(instance)`. A variant replaces the function of an action type by name; everything
else of the type (writer, step, kind) stays, so that traces and tables still say which step it is.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from dra_spec.explorer.model import Action, ActionFunction, LiveWhen, ModelError, Slot
from dra_spec.protocol.instance import Instance

MODULES = {
    "apiserver": "dra_spec.protocol.apiserver",
    "scheduler": "dra_spec.protocol.scheduler",
    "claim-controller": "dra_spec.protocol.claim_controller",
    "driver-controller": "dra_spec.protocol.driver_controller",
    "kubelet": "dra_spec.protocol.kubelet",
    "plugin": "dra_spec.protocol.plugin",
    "workload": "dra_spec.protocol.workload",
}

ABSTRACTION = "dra_spec.protocol.abstract_scheduler"  # stands for the scheduler, and the claim controller, of a model without scheduler


class Replacement(Protocol):
    """What `assemble` needs of a variant."""

    @property
    def replaces(self) -> Mapping[str, ActionFunction]: ...


@attrs.frozen(eq=False)
class Assembly:
    """Slots and actions of a model; `unused`: names of actions that a variant replaces but that no writer of this model takes; `live`: what
    the writers say about where their memory is needed."""

    slots: Sequence[Slot[Any]]
    actions: Sequence[Action]
    unused: frozenset[str] = frozenset()
    live: Sequence[LiveWhen] = ()


def assemble(instance: Instance, variants: Iterable[Replacement] = ()) -> Assembly:
    """The model parts of an instance. The API server's objects are always there; its garbage collector only if it takes part.

    Raises `ModelError` for an unknown writer, and if two variants replace one action.
    """
    unknown = sorted(instance.writers - MODULES.keys())
    if unknown:
        raise ModelError(f"unknown writer {unknown[0]!r}; known: {', '.join(MODULES)}")
    replaces: dict[str, ActionFunction] = {}
    for variant in variants:
        for name, fn in variant.replaces.items():
            if name in replaces:
                raise ModelError(f"two variants replace the action {name}")
            replaces[name] = fn
    slots: list[Slot[Any]] = []
    actions: list[Action] = []
    live: list[LiveWhen] = []
    for writer, path in MODULES.items():
        if writer == "apiserver" or writer in instance.writers:
            module = importlib.import_module(path)
            slots.extend(module.slots(instance))
            actions.extend(module.actions(instance))
            if hasattr(module, "live"):
                live.extend(module.live(instance))
    actions.extend(importlib.import_module(ABSTRACTION).actions(instance))
    replaced = [attrs.evolve(a, type=attrs.evolve(a.type, fn=replaces[a.name])) if a.name in replaces else a for a in actions]
    return Assembly(slots, replaced, frozenset(replaces) - {a.name for a in actions}, live)
