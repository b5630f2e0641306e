"""The modelling API: slots, actions, the view through which an action looks, and the outcomes it yields.

A model is a list of slots (the variables of the state) and a list of actions (its atomic steps). Nothing is declared about
what an action reads or writes: the view records it. An action is a guard-first generator function

    def bind(v: View, world: Instance, pod: str) -> Iterator[Outcome]:
        if v[world.slots.pod(pod)].node is not None:
            return                                   # disabled
        ok = v.outcome("ok")
        ok[world.slots.pod(pod)] = ...
        yield ok                                     # one outcome per nondeterministic result

It must be a deterministic function of what it reads through the view, and total: any combination of slot values
yields outcomes or nothing, never an exception.

`v[slot]` is a proxy: reading one of its fields or properties records that field only, so that `v[claim].deleting` depends
on nothing else of the claim. `v.value(slot)` reads (and records) the whole value; `v.project(slot, fn, *args)` records just
the result of a pure function of the value.

An effect on many objects is written as *parts*: `outcome.part(fn, *args)` adds a small deterministic function
`fn(p: PartView, *args)` that reads the state *before* the action and writes with `p.write(slot, value)`. All parts and all
constants of an outcome are applied together; nobody sees what is between them. A part has a decision tree of its own, so that an
action with parts has a tree that is a sum and not a product.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Generic, TypeVar, cast

import attrs

from dra_spec.explorer.values import identity

T = TypeVar("T")
R = TypeVar("R")


class ModelError(Exception):
    """A mistake in the text of a model, found while it ran: names action, parameters, slot and state."""


class Storage(enum.Enum):
    """Where a slot lives: what a crash of its writer does to it."""

    MEMORY = "memory"  # lost at a crash of its writer
    DISK = "disk"  # survives a crash of the process
    API = "api"  # an object in the API server
    CHANNEL = "channel"  # undelivered watch events, requests on the wire
    DEVICE = "device"  # the hardware, containers: what a process crash does not touch
    BUDGET = "budget"  # how many more faults or environment events may happen


class Kind(enum.Enum):
    """Who takes an action; a way to a goal may use some kinds only."""

    PROTOCOL = "protocol"  # a writer's own step
    TIMEOUT = "timeout"  # a clock ran out; may fire whenever somebody waits for it
    WORKLOAD = "workload"  # a container ends by itself
    USER = "user"  # somebody creates, deletes, edits
    FAULT = "fault"  # a crash, a lost answer, a refused write: has a budget


@attrs.frozen(eq=False)
class Slot(Generic[T]):
    """One variable of the state. Identity is by object; names are unique in a model.

    `room` says whose variable it is: an action may touch only slots of rooms that it was given.
    """

    name: str
    initial: T
    room: str
    storage: Storage = Storage.MEMORY

    def __repr__(self) -> str:
        return self.name


def _exactly(thing: Any) -> tuple[Any, Any]:
    """What tells arguments apart: `True` is not `1`."""
    return thing, identity(thing)


@attrs.frozen(cache_hash=True)
class Projection:
    """What of a slot's value is read: the whole, a field or property, or a pure function of it."""

    name: str = ""  # "" whole, ".field" a field, else the function's name
    fn: Callable[..., Any] | None = attrs.field(default=None, eq=_exactly)
    args: tuple[Any, ...] = attrs.field(default=(), eq=_exactly)

    def of(self, value: Any) -> Any:
        if self.fn is not None:
            return self.fn(value, *self.args)
        return value if not self.name else getattr(value, self.name[1:])

    def __str__(self) -> str:
        return self.name + (_arguments(self.args) if self.fn is not None else "")


def _arguments(args: tuple[Any, ...]) -> str:
    """Arguments in words that are the same in each process: a function by its name, not by its address."""
    return f"({', '.join(getattr(arg, '__qualname__', None) or str(arg) for arg in args)})"


WHOLE = Projection()


@cache
def _field(name: str) -> Projection:
    return Projection("." + name)


class _Proxy:
    """Stands for a slot's value; attribute access records the field that was read."""

    __slots__ = ("_slot", "_view")

    def __init__(self, view: View, slot: Slot[Any]) -> None:
        object.__setattr__(self, "_view", view)
        object.__setattr__(self, "_slot", slot)

    def __getattr__(self, name: str) -> Any:
        return self._view.read(self._slot, _field(name))

    def __setattr__(self, name: str, value: Any) -> None:
        raise ModelError(f"{self._slot}: values are immutable; set the slot in an outcome")

    def _refuse(self, *_: Any) -> Any:
        raise ModelError(f"{self._slot}: compare a field, or read the whole with v.value(slot)")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __iter__ = __len__ = __contains__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class View:
    """How an action looks at the state. The engine gives `read`, which records each look."""

    def __init__(self, read: Callable[[Slot[Any], Projection], Any]) -> None:
        self.read = read

    def __getitem__(self, slot: Slot[T]) -> T:
        """A proxy of the slot's value: its fields are read, and recorded, one by one."""
        return cast(T, _Proxy(self, slot))

    def value(self, slot: Slot[T]) -> T:
        """The slot's whole value."""
        return cast(T, self.read(slot, WHOLE))

    def project(self, slot: Slot[T], fn: Callable[..., R], *args: Any) -> R:
        """`fn(value, *args)`, recorded as one observation; `fn` must be pure and its arguments hashable."""
        return cast(R, self.read(slot, Projection(getattr(fn, "__qualname__", "projection"), fn, args)))

    def outcome(self, label: str = "ok") -> Outcome:
        """A new outcome of this action, to be filled and yielded."""
        return Outcome(label)


class PartView(View):
    """The view of a part: it reads the state before the action and writes its own share of the effect."""

    def __init__(self, read: Callable[[Slot[Any], Projection], Any]) -> None:
        super().__init__(read)
        self.updates: dict[Slot[Any], Any] = {}

    def write(self, slot: Slot[T], value: T) -> None:
        """Sets a slot; a part may set a slot once."""
        if slot in self.updates:
            raise ModelError(f"{slot}: written twice by one part")
        self.updates[slot] = value


PartFunction = Callable[..., None]  # (p: PartView, *args)


@attrs.frozen
class Part:
    """A small deterministic piece of an effect; `args` are hashable."""

    fn: PartFunction
    args: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return self.fn.__qualname__ + _arguments(self.args)


class Outcome:
    """One result of an action: constants for slots, and parts. `label` names it in traces ("ok", "conflict", ...)."""

    __slots__ = ("beyond", "label", "parts", "updates")

    def __init__(self, label: str = "ok") -> None:
        self.label = label
        self.updates: dict[Slot[Any], Any] = {}
        self.parts: list[Part] = []
        self.beyond: str | None = None

    def __setitem__(self, slot: Slot[T], value: T) -> None:
        if slot in self.updates:
            raise ModelError(f"{slot}: written twice by one outcome")
        if isinstance(value, _Proxy):
            raise ModelError(f"{slot}: set to a proxy; read the whole value with v.value(slot)")
        self.updates[slot] = value

    def part(self, fn: PartFunction, *args: Any) -> Outcome:
        """Adds a part; returns the outcome."""
        self.parts.append(Part(fn, args))
        return self

    def beyond_bounds(self, reason: str) -> Outcome:
        """Marks an outcome that leaves the bounds of the model (a full channel, a used-up pool of names).

        The engine does not follow it and reports the promises as undecided; a bound never silently disables a step.
        """
        self.beyond = reason
        return self


ActionFunction = Callable[..., Iterable[Outcome]]  # (v: View, context, **parameters)


@attrs.frozen
class ActionType:
    """A writer's atomic step: its function, and where the step is documented.

    `name` is unique in a model ("scheduler.write_allocation"); `step` is the row of the protocol's table of atomic steps ("P4"); `source`
    cites the upstream function or KEP section.
    """

    name: str
    fn: ActionFunction
    writer: str
    step: str = ""
    source: str = ""
    kind: Kind = Kind.PROTOCOL

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (self.fn.__doc__ or "").strip().partition("\n")[0]


def action(
    name: str, *, writer: str, step: str = "", source: str = "", kind: Kind = Kind.PROTOCOL
) -> Callable[[ActionFunction], ActionType]:
    """Decorator: makes an `ActionType` of a function."""

    def wrap(fn: ActionFunction) -> ActionType:
        return ActionType(name, fn, writer, step, source, kind)

    return wrap


@attrs.frozen(eq=False)
class Action:
    """An action instance: a type with its parameters, the rooms it may enter and the context it was made for."""

    type: ActionType
    params: Mapping[str, Any]
    rooms: frozenset[str]
    context: Any = None

    def run(self, view: View) -> list[Outcome]:
        """All outcomes in the state that the view shows; empty if disabled."""
        return list(self.type.fn(view, self.context, **self.params))

    @property
    def name(self) -> str:
        return self.type.name

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v}' for k, v in self.params.items())})"


class Truth(enum.IntEnum):
    """What an invariant says of a state. TRIVIAL: true because what it speaks of does not occur in this state."""

    FALSE = 0
    TRIVIAL = 1
    TRUE = 2


@attrs.frozen(eq=False)
class StateInvariant:
    """Must be true in every reachable state. Several instances (one per object) may share the name of one promise."""

    promise: str
    fn: Callable[[View], Truth]
    binding: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(eq=False)
class StepInvariant:
    """Must be true of every transition of the actions that `applies` accepts. Called with the views before and after
    the step, the action and the label of the outcome. The view after shows versions as the action wrote them, not yet renumbered, so
    that they can be compared with those of the view before."""

    promise: str
    applies: Callable[[Action], bool]
    fn: Callable[[View, View, Action, str], Truth]
    binding: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(eq=False)
class AlwaysPossible:
    """From every reachable state some run reaches a state where `goal` holds, by actions that `allowed` accepts (AG EF)."""

    promise: str
    goal: Callable[[View], Truth]
    allowed: Callable[[Action], bool]
    binding: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(eq=False)
class DeadlockFree:
    """Each reachable state without a successor satisfies `final`."""

    promise: str
    final: Callable[[View], Truth]
    binding: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(eq=False)
class LeadsTo:
    """Every run that is weakly fair and reaches a state where `when` holds reaches, then or later, one where `goal` holds.

    Weakly fair: no action that `fair` accepts is enabled for ever from some point on without being taken (by any of its outcomes).
    All other actions may happen or not, so a run may also end where none of the fair ones is enabled.
    """

    promise: str
    when: Callable[[View], Truth]
    goal: Callable[[View], Truth]
    fair: Callable[[Action], bool]
    binding: Mapping[str, str] = attrs.field(factory=dict)


Property = StateInvariant | StepInvariant | AlwaysPossible | DeadlockFree | LeadsTo


@attrs.frozen(eq=False)
class LiveWhen:
    """Says where slots are still needed: where `predicate`, a pure function of other slots, is false nobody reads them before writing them.

    The engine then may give them their initial values (dead.py, which also checks it). A slot is in one declaration at most.
    """

    slots: Sequence[Slot[Any]]
    predicate: Callable[[View], bool]

    def __str__(self) -> str:
        """The first slot names the declaration."""
        return self.slots[0].name


@attrs.frozen(eq=False)
class Model:
    """A transition system with the promises to be checked. `initial` lists overrides of the slots' initial values, one per initial
    state; empty means the one state in which every slot has its initial value. `names`: the names of the objects that it speaks of, by sort
    ("pod", ...); where they are interchangeable, a search may use that (symmetry.py). `live`: where slots are needed."""

    name: str
    slots: Sequence[Slot[Any]]
    actions: Sequence[Action]
    properties: Sequence[Property] = ()
    initial: Sequence[Mapping[Slot[Any], Any]] = ({},)
    names: Mapping[str, Sequence[str]] = attrs.field(factory=dict)
    live: Sequence[LiveWhen] = ()

    def initial_states(self) -> Iterator[tuple[Any, ...]]:
        """The initial states: one value per slot, in the order of `slots`."""
        for override in self.initial:
            yield tuple(override.get(slot, slot.initial) for slot in self.slots)
