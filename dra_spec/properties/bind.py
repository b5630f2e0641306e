"""Binds an invariant to the slots of a model: the properties that the explorer checks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import attrs

from dra_spec.explorer.model import (
    Action,
    AlwaysPossible,
    DeadlockFree,
    LeadsTo,
    ModelError,
    Projection,
    Property,
    Slot,
    StateInvariant,
    StepInvariant,
    Truth,
    View,
)
from dra_spec.properties import nodes as n
from dra_spec.properties.assumptions import ASSUMPTIONS
from dra_spec.properties.errors import EvaluationError, InvariantError, NotInWorld, pointed
from dra_spec.properties.grade import grader
from dra_spec.properties.invariant import Head, Invariant, Promise
from dra_spec.properties.model_world import STATIC, ModelWorld, Sources
from dra_spec.properties.split import Instance as Part
from dra_spec.properties.split import split
from dra_spec.properties.values import Thing
from dra_spec.protocol.instance import Instance


def missing_writers(invariant: Head, instance: Instance) -> frozenset[str]:
    """The writers that a model lacks for the invariant to be meaningful."""
    return invariant.needs - instance.writers


def unmet_assumptions(invariant: Head, instance: Instance) -> tuple[str, ...]:
    """The assumptions of the invariant that the instance does not meet: a violation there is an accepted one."""
    return tuple(name for name in invariant.assumptions if not ASSUMPTIONS[name](instance))


def bind(invariant: Invariant, instance: Instance) -> list[Property]:
    """The properties of an invariant, one per object that it speaks about; at least one.

    Raises `InvariantError` if the instance lacks a writer that the invariant needs. The properties raise `ModelError` if the expression
    has no value in a state.
    """
    missing = sorted(missing_writers(invariant, instance))
    if missing:
        raise InvariantError(f"{invariant.name} needs the writer {missing[0]}, which does not take part in the model")
    sources = Sources.of(instance)
    try:
        parts = _parts(invariant, sources)
    except NotInWorld as error:
        raise InvariantError(f"{invariant.name} reads {error.path}, which the model does not have") from None
    return [_property(invariant, sources, part) for part in parts] or [_nothing(invariant)]


def _parts(invariant: Invariant, sources: Sources) -> list[Part]:
    static = ModelWorld(sources, STATIC, STATIC if invariant.kind is Promise.STEP else None)
    if invariant.kind in (Promise.ALWAYS_POSSIBLE, Promise.LEADS_TO):
        return split(invariant.program, static, invariant.quantifiers)
    return split(invariant.program, static)


def _property(invariant: Invariant, sources: Sources, part: Part) -> Property:
    def judge(view: View) -> Truth:
        return _guarded(invariant, part, lambda look: ModelWorld(sources, look(view)))

    if invariant.kind is Promise.STEP:

        def judge_step(before: View, after: View, action: Action, label: str) -> Truth:
            return _guarded(invariant, part, lambda look: ModelWorld(sources, look(after), look(before), (action, label)))

        return StepInvariant(invariant.name, _applies(invariant), judge_step, part.binding)
    if invariant.kind is Promise.ALWAYS_POSSIBLE:
        return AlwaysPossible(invariant.name, judge, _allowed(invariant), part.binding)
    if invariant.kind is Promise.DEADLOCK_FREE:
        return DeadlockFree(invariant.name, judge, part.binding)
    if invariant.kind is Promise.LEADS_TO:
        return LeadsTo(invariant.name, _when(invariant, sources, part), judge, _fair(invariant), part.binding)
    return StateInvariant(invariant.name, judge, part.binding)


def _nothing(invariant: Invariant) -> Property:
    """The property of an invariant whose objects cannot occur in the model: trivially true."""
    if invariant.kind is Promise.STEP:
        return StepInvariant(invariant.name, _applies(invariant), lambda *_: Truth.TRIVIAL)
    if invariant.kind is Promise.ALWAYS_POSSIBLE:
        return AlwaysPossible(invariant.name, lambda _: Truth.TRIVIAL, _allowed(invariant))
    if invariant.kind is Promise.DEADLOCK_FREE:
        return DeadlockFree(invariant.name, lambda _: Truth.TRIVIAL)
    if invariant.kind is Promise.LEADS_TO:
        return LeadsTo(invariant.name, lambda _: Truth.FALSE, lambda _: Truth.TRIVIAL, _fair(invariant))
    return StateInvariant(invariant.name, lambda _: Truth.TRIVIAL)


def _applies(invariant: Invariant) -> Callable[[Action], bool]:
    return lambda action: invariant.applies_to(action.name)


def _allowed(invariant: Invariant) -> Callable[[Action], bool]:
    return lambda action: action.type.kind not in invariant.without


def _fair(invariant: Invariant) -> Callable[[Action], bool]:
    return lambda action: invariant.is_fair_to(action.name, action.type.kind)


def _when(invariant: Invariant, sources: Sources, goal: Part) -> Callable[[View], Truth]:
    """Where the goal of an instance is owed: never while one of its objects is absent."""
    assert invariant.when is not None
    if len(goal.binding) < invariant.quantifiers:
        raise InvariantError(f"{invariant.name}: per: the objects have no fixed names in this model, expected lists of named objects")
    node = invariant.when.root
    for _ in range(invariant.quantifiers):
        assert isinstance(node, n.Macro)
        node = node.body
    when = attrs.evolve(invariant, program=invariant.when)
    part = attrs.evolve(goal, node=node, size=invariant.when.size, grade=grader(node))

    def there(world: Thing) -> Truth:
        return Truth.FALSE if part.environment(world) is None else part.truth(world)

    return lambda view: _guarded(when, part, lambda look: ModelWorld(sources, look(view)), there)


def _guarded(
    invariant: Invariant, part: Part, world: Callable[[Callable[[View], View]], Thing], truth: Callable[[Thing], Truth] | None = None
) -> Truth:
    """The truth; an expression without a value becomes a `ModelError` that names invariant, place, objects and what was read."""
    try:
        return (truth or part.truth)(world(lambda view: view))
    except EvaluationError as error:
        program, span = invariant.program, error.span
        where = pointed(error.message, program.text, program.origin, span.line, span.column)
        objects = ", ".join(f"{variable} = {name}" for variable, name in part.binding.items())
        read = "\n".join(f"  {line}" for line in _reads(part, world))
        raise ModelError(
            f"invariant {invariant.name} has no value{f' for {objects}' if objects else ''}: {where}\nin a state where\n{read}"
        ) from None
    except NotInWorld as error:
        raise ModelError(f"invariant {invariant.name} reads {error.path}, which the model does not have") from None


def _reads(part: Part, world: Callable[[Callable[[View], View]], Thing]) -> list[str]:
    """What an instance reads of a state on its way to an error, in order."""
    found: dict[str, None] = {}

    def look(view: View) -> View:
        def read(slot: Slot[Any], what: Projection) -> Any:
            value = view.read(slot, what)
            found[f"{slot} {what} = {value!r}"] = None
            return value

        return View(read)

    with contextlib.suppress(EvaluationError):
        part.truth(world(look))
    return list(found)
