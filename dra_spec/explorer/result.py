"""What a search is asked and what it answers: limits, traces, verdicts, statistics."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import attrs

from dra_spec.explorer.model import Action
from dra_spec.explorer.reductions import ReductionReport
from dra_spec.explorer.semantics import State

if TYPE_CHECKING:
    from dra_spec.explorer.fingerprints import Fingerprints

Verdict = Literal["holds", "violated", "undecided"]
NEAREST = "; it is a nearest such state"
NO_GOAL = f"from the last state no goal can be reached by the allowed actions{NEAREST}"


class EngineError(Exception):
    """The engine contradicts the plain semantics of the model, or itself. Never a verdict (exit code 4)."""


class Stopped(Exception):
    """A search ends before it is complete; the text is the reason."""


@attrs.frozen
class Limits:
    """Where a search gives up; None means without limit.

    `max_states`: most states stored. `time_limit`: seconds. `memory`: bytes of the whole process (resident). `depth`: most steps of a run.
    `expand_violating`: also look behind states that violate a state invariant. It is implied when the model has an `AlwaysPossible`,
    `DeadlockFree` or `LeadsTo` property, because those are about all states. `fingerprints`: the explicit engine may keep fingerprints of
    128 bits of states whose rows are wider than 256 bits (`Result.fingerprints`). `threads` of the explicit engine; 0: as many as there
    are cores for this process; what is found does not depend on it.
    """

    max_states: int | None = None
    time_limit: float | None = None
    memory: int | None = None
    depth: int | None = None
    expand_violating: bool = False
    fingerprints: bool = False
    threads: int = 0


@attrs.frozen(eq=False)
class Step:
    """One step of a trace: the action, which of the outcomes that it yields (from 0), and that outcome's label."""

    action: Action
    outcome: int
    label: str

    def __str__(self) -> str:
        return f"{self.action} -> {self.label}"


@attrs.frozen(eq=False)
class Trace:
    """A run from an initial state: one state more than steps; a state is one value per slot of the model, in order.

    Of a leads-to promise it is a lasso. `due`: the number of steps after which the goal is owed (a smallest one). `loop`: the steps
    behind this number lead from a state back to it and may go on for ever; if there are none, the run may end there.
    """

    states: Sequence[State]
    steps: Sequence[Step]
    due: int | None = None
    loop: int | None = None

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.steps)


@attrs.frozen(eq=False)
class PropertyResult:
    """The answer about one promise (all instances that share its name).

    `trace` is a shortest one: to a state that violates it, through a step that violates it, to a stuck state, (always-possible) to a
    nearest state from which no goal can be reached, or (leads-to) a lasso whose first part, up to `due`, is shortest. `binding` is that
    of the violated instance. `vacuous`: no instance was ever true other than trivially; of an always-possible promise: its goal held
    everywhere, so that it was never ahead; of a leads-to promise: its goal was never owed. `reason`: why undecided, what exactly the
    trace shows, or with what probability something was overlooked.
    """

    promise: str
    verdict: Verdict
    trace: Trace | None = None
    binding: Mapping[str, str] = attrs.field(factory=dict)
    reason: str = ""
    vacuous: bool = False


@attrs.frozen
class ActionResult:
    """Statistics of one action type: transitions taken, and whether no state enabled it (not even beyond the bounds)."""

    name: str
    taken: int
    never_enabled: bool


@attrs.frozen(eq=False)
class Result:
    """What a search found.

    `depth`: most steps that a shortest run to a stored state has; -1 where the engine did not need
    to know (symbolic, without a trace). `stuck`: expanded states without a successor. `unexpanded`: violating
    states that were not expanded (Limits). `complete`: every reachable state was stored and expanded. `stopped`: the limit that ended
    the search, or which bound of the model was met, else None. `python_calls`: calls of the model's Python code during the search
    (actions, parts, properties, projections). `bytes_per_state`: rows, parents and table together; `memory`: bytes of all arrays of
    the engine. `startup`: seconds of `seconds` before the first state was expanded (loading compiled code).
    `audit`: what an audit tried, if one was asked for. `choice`: why this engine, if the choice was left to the tool. `reductions`: what
    became of each reduction that was asked for; with them `states`, `transitions` and `stuck` count what is left. `fingerprints`: what
    became of them, if they were asked for.
    """

    engine: str
    states: int
    transitions: int
    depth: int
    seconds: float
    python_calls: int
    bytes_per_state: float
    complete: bool
    stopped: str | None
    properties: Sequence[PropertyResult]
    actions: Sequence[ActionResult]
    warnings: Sequence[str]
    stuck: int = 0
    unexpanded: int = 0
    memory: int = 0
    startup: float = 0.0
    audit: str = ""
    choice: str = ""
    reductions: Sequence[ReductionReport] = ()
    fingerprints: Fingerprints | None = None

    def property(self, promise: str) -> PropertyResult:
        """The result of one promise; `KeyError` if the model does not have it."""
        for found in self.properties:
            if found.promise == promise:
                return found
        raise KeyError(promise)

    @builtins.property
    def verdict(self) -> Verdict:
        """Of all promises together: violated if one is, else undecided if one is, or if there is none and the search is not complete."""
        verdicts = {found.verdict for found in self.properties}
        if "violated" in verdicts:
            return "violated"
        if "undecided" in verdicts or (not self.complete and not verdicts):
            return "undecided"
        return "holds"


@attrs.frozen
class Progress:
    """A glance at a running search: rate in states per second, memory in bytes of the engine's arrays."""

    states: int
    frontier: int
    rate: float
    depth: int
    memory: int


@attrs.frozen
class Lasso:
    """How a run goes on for ever: steps (action, outcome) that lead to a loop, and the steps of the loop; none: it ends there."""

    stem: tuple[tuple[int, int], ...] = ()
    loop: tuple[tuple[int, int], ...] = ()


@attrs.define
class Found:
    """What an engine found about one property instance: a witness (state, and the step out of it that violates), and what it saw."""

    state: int | None = None
    step: tuple[int, int] | None = None  # index of the action, of the outcome
    tested: bool = False  # somewhere it said more than "what I speak of is not here"
    note: str = ""
    lasso: Lasso | None = None  # of leads-to: how the run goes on from `state`
    unjudged: str = ""  # why the engine cannot say anything about it


def _as_it_is(state: State) -> State:
    return state


@attrs.define
class Explored:
    """What an engine hands over to `report.assemble`. States are numbered from 0 in the order of their discovery."""

    engine: str
    states: int
    transitions: int
    depth: int
    stuck: int
    unexpanded: int
    exhausted: bool  # nothing left to expand (apart from violating states)
    stopped: str | None
    beyond: list[str]  # reasons of the bounds that were met
    taken: list[int]  # per action of the model
    enabled: list[bool]
    found: list[Found]  # per property of the model
    python_calls: int
    bytes_per_state: float
    memory: int
    path: Callable[[int], tuple[State, list[tuple[int, int]]]]  # (state) -> initial state, steps as (action, outcome)
    state: Callable[[int], State]
    startup: float = 0.0
    reductions: Sequence[ReductionReport] = ()
    audits: Sequence[Callable[[], str]] = ()  # of what reductions rested on: what was tried; they raise `EngineError`
    normal: Callable[[State], State] = _as_it_is  # what the engine stores for a state of the full model
    # a step out of a stored state, as a state of the full model takes it (another instance may be violated there); None: the same step
    twin: Callable[[int, State, tuple[int, int]], tuple[int, int]] | None = None
    fingerprints: Fingerprints | None = None
