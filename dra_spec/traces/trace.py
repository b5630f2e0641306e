"""A trace: a run of a model that breaks a promise (or reaches a state), step by step, with everything a reviewer wants to see.

A trace is data only. `record` makes one from states and moves, `tracefile` reads and writes it, `replay` runs it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from dra_spec.explorer.model import Model, Storage
from dra_spec.explorer.semantics import Move, Semantics, State
from dra_spec.explorer.values import Version
from dra_spec.traces.plain import Plain, differences, plain

SCHEMA = "dra-spec/trace/v1"


@attrs.frozen
class Change:
    """A slot that a step changed; for records only the fields that differ."""

    slot: str
    before: Plain
    after: Plain


@attrs.frozen
class Belief:
    """A copy of an API object in some writer's memory or on its way to it that differs from the object: in which slot, and how."""

    slot: str
    object: str
    believed: Plain
    actual: Plain


@attrs.frozen
class Step:
    """One transition. `because`: what the action read before it acted, in order; `believed`: copies that were out of date then."""

    number: int
    who: str
    action: str
    step: str
    what: str
    params: Mapping[str, str]
    outcome: str
    because: Sequence[tuple[str, Plain]] = ()
    changes: Sequence[Change] = ()
    believed: Sequence[Belief] = ()

    @property
    def title(self) -> str:
        return f"{self.action}({', '.join(f'{k}={v}' for k, v in self.params.items())})"


@attrs.frozen
class ModelRef:
    """Which model a trace is a run of: its name or path, what was changed on the command line, the variants applied."""

    name: str
    bounds: Mapping[str, int] = attrs.field(factory=dict)
    budgets: Mapping[str, int] = attrs.field(factory=dict)
    variants: tuple[str, ...] = ()
    repaired: bool = False
    assertions: tuple[str, ...] = ()  # CEL of promises that were given on the command line
    files: tuple[str, ...] = ()  # the model file, or the manifests, of a model that does not ship
    allocation: str = ""  # "upstream" or "any" if the command line said so


@attrs.frozen
class Trace:
    """A run with the promise that it breaks. `broken`: why the promise is false at the end, a line each.

    Of a leads-to promise: after `due` steps the goal is owed; the steps behind step `loop` lead back to the state after it and may go on
    for ever (none: the run may end there).
    """

    model: ModelRef
    promise: str
    steps: Sequence[Step]
    statement: str = ""
    command: str = ""
    kubernetes: str = ""
    binding: Mapping[str, str] = attrs.field(factory=dict)
    broken: Sequence[str] = ()
    believed: Sequence[Belief] = ()  # at the end
    due: int | None = None
    loop: int | None = None


def record(semantics: Semantics, start: State, moves: Sequence[Move]) -> tuple[Step, ...]:
    """The steps of a run, from its first state and its moves."""
    steps, state = [], start
    for number, move in enumerate(moves, 1):
        steps.append(step_of(semantics, number, state, move))
        state = move.after
    return tuple(steps)


def step_of(semantics: Semantics, number: int, before: State, move: Move) -> Step:
    """One step of a trace, from the state before it and the move taken."""
    action = move.action
    reads = semantics.observe(action, before).reads
    changes = [
        Change(slot.name, *differences(old, new))
        for slot, old, new in zip(semantics.model.slots, before, move.after, strict=True)
        if old != new
    ]
    return Step(
        number=number,
        who=action.type.writer,
        action=action.name,
        step=action.type.step,
        what=_sentence(action.type.fn.__doc__ or ""),
        params={name: str(value) for name, value in action.params.items()},
        outcome=move.label,
        because=tuple((f"{slot.name}{_shown(what)}", plain(found)) for slot, what, found in reads),
        changes=tuple(changes),
        believed=tuple(beliefs(semantics.model, before)),
    )


def _sentence(docstring: str) -> str:
    """The first sentence, on one line."""
    paragraph = " ".join(docstring.strip().partition("\n\n")[0].split())
    head, dot, _ = paragraph.partition(". ")
    return head + dot.strip()


def _shown(what: Any) -> str:
    text = str(what)
    return text if not text or text.startswith(".") else f":{text}"


def beliefs(model: Model, state: State) -> Iterator[Belief]:
    """The copies of API objects that differ in content from the object, wherever a writer keeps one. Versions tell whose copy it is."""
    current: dict[str, Any] = {}
    unversioned: dict[str, Any] = {}  # such as pods: a copy is the slot of the same name in another room
    for slot, value in zip(model.slots, state, strict=True):
        if slot.storage is Storage.API and isinstance(getattr(value, "rv", None), Version):
            current[value.rv.of] = value
        elif slot.storage is Storage.API:
            unversioned[slot.name.partition("/")[2]] = value
    for slot, value in zip(model.slots, state, strict=True):
        if slot.storage in (Storage.API, Storage.CHANNEL, Storage.BUDGET):
            continue
        what = slot.name.partition("/")[2]
        if what in unversioned and type(value) is type(unversioned[what]) and value != unversioned[what]:
            yield Belief(slot.name, what, *differences(value, unversioned[what]))
        for copy in _copies(value):
            actual = current.get(copy.rv.of)
            if actual is not None and copy.rv != actual.rv:
                names = [name for name in _names(copy) if name != "rv" and name in _names(actual)]
                names = [name for name in names if getattr(copy, name) != getattr(actual, name)]
                if names:  # an older version with the same content deceives nobody
                    believed, real = ({name: plain(getattr(each, name)) for name in names} for each in (copy, actual))
                    yield Belief(slot.name, copy.rv.of.removeprefix("rv/"), believed, real)


def _names(record: Any) -> list[str]:
    return [field.name for field in attrs.fields(type(record))]


def _copies(value: Any) -> Iterator[Any]:
    if isinstance(value, Version):
        return
    if isinstance(value, (tuple, frozenset)):
        for item in value:
            yield from _copies(item)
    elif attrs.has(type(value)):
        names = _names(value)
        if "rv" in names and isinstance(value.rv, Version):
            yield value
        else:
            for name in names:
                yield from _copies(getattr(value, name))
