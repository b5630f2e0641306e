"""Replay: runs a trace again through the plain semantics of its model, and says at which step it stops being a run of it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dra_spec.explorer import lasso
from dra_spec.explorer.model import Action, LeadsTo, StateInvariant, StepInvariant, Truth
from dra_spec.explorer.semantics import Move, Semantics, State
from dra_spec.explorer.values import key
from dra_spec.scenario.strict import nearest
from dra_spec.traces.plain import Plain, short
from dra_spec.traces.trace import Step, Trace, step_of


class StepFailed(Exception):
    """Step `number` of a trace is not what the model does; `reason` says how. Number 0: the trace as a whole."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"step {number}: {reason}" if number else reason)
        self.number, self.reason = number, reason


@attrs.frozen
class Run:
    """A run of a model: `states[i]` is the state before `moves[i]`, the last state is the end."""

    states: Sequence[State]
    moves: Sequence[Move]

    @property
    def end(self) -> State:
        return self.states[-1]


def follow(trace: Trace, semantics: Semantics) -> Run:
    """The run that a trace describes. Raises `StepFailed` with the first step that the model does not take in this way."""
    failure: StepFailed | None = None
    for start in semantics.initial_states():
        try:
            return _follow(trace, semantics, start)
        except StepFailed as error:  # with several initial states the run that gets furthest explains most
            if failure is None or error.number > failure.number:
                failure = error
    assert failure is not None
    raise failure


def _follow(trace: Trace, semantics: Semantics, start: State) -> Run:
    by_name: dict[str, list[Action]] = {}
    for action in semantics.model.actions:
        by_name.setdefault(action.name, []).append(action)
    states, moves = [start], []
    for step in trace.steps:
        move = _take(step, semantics, states[-1], by_name)
        moves.append(move)
        states.append(move.after)
    return Run(states, moves)


def _take(step: Step, semantics: Semantics, state: State, by_name: dict[str, list[Action]]) -> Move:
    if step.action not in by_name:
        raise StepFailed(step.number, f"the model has no action {step.action!r}{nearest(step.action, by_name)}")
    action = next((a for a in by_name[step.action] if {k: str(v) for k, v in a.params.items()} == dict(step.params)), None)
    if action is None:
        raise StepFailed(step.number, f"the model has no {step.title}")
    outcomes = semantics.observe(action, state).outcomes
    if not outcomes:
        raise StepFailed(step.number, f"{step.title} is not enabled in this state")
    inside = [(i, o) for i, o in enumerate(outcomes) if o.beyond is None]
    fitting = [(i, o) for i, o in inside if o.label == step.outcome]
    if not fitting:
        labels = sorted({o.label for _, o in inside})
        raise StepFailed(step.number, f"{step.title} cannot end as {step.outcome!r} here, only as {', '.join(labels) or 'nothing'}")
    reasons = []
    for index, outcome in fitting:
        move = Move(action, index, outcome.label, semantics.apply(action, outcome, state))
        reason = _difference(step, step_of(semantics, step.number, state, move))
        if reason is None:
            return move
        reasons.append(reason)
    raise StepFailed(step.number, min(reasons, key=len))


def _difference(told: Step, done: Step) -> str | None:
    """How a step of the file differs from what the model does, or None. The words of `what` may change freely."""
    if (told.who, told.step) != (done.who, done.step):
        return f"{told.title} is step {done.step!r} of {done.who}, the trace says {told.step!r} of {told.who}"
    expected, found = {c.slot: (c.before, c.after) for c in told.changes}, {c.slot: (c.before, c.after) for c in done.changes}
    for slot in sorted(expected.keys() | found.keys()):
        if slot not in found:
            return f"{told.title} does not change {slot}"
        if slot not in expected:
            return f"{told.title} also changes {slot}: {_change(found[slot])}"
        if expected[slot] != found[slot]:
            return f"{told.title} changes {slot}: {_change(found[slot])}; the trace says {_change(expected[slot])}"
    for what, believed, real in (("reads", told.because, done.because), ("beliefs", told.believed, done.believed)):
        if list(believed) != list(real):
            return f"the {what} of {told.title} differ: {_first_difference(believed, real)}"
    return None


def _change(change: tuple[Plain, Plain]) -> str:
    return f"{short(change[0])} -> {short(change[1])}"


def _first_difference(told: Sequence[object], done: Sequence[object]) -> str:
    for a, b in zip(told, done, strict=False):
        if a != b:
            return f"the trace says {a}, the model {b}"
    return f"the trace has {len(told)}, the model {len(done)}"


def breaks(trace: Trace, semantics: Semantics, run: Run) -> bool | None:
    """Whether the promise of the trace is false at the end of the run: its last state, its last step, or when its loop goes on for ever.

    None: this cannot be told from a run alone (a promise about what stays possible), or the model does not have the promise.
    """
    judged = False
    for promise in semantics.model.properties:
        if promise.promise != trace.promise:
            continue
        if isinstance(promise, StateInvariant):
            judged = True
            if promise.fn(semantics.view(run.end)) is Truth.FALSE:
                return True
        elif isinstance(promise, StepInvariant) and run.moves:
            judged = True
            last = run.moves[-1]
            before, after = semantics.view(run.states[-2]), semantics.view(run.end)
            if promise.applies(last.action) and promise.fn(before, after, last.action, last.label) is Truth.FALSE:
                return True
        elif isinstance(promise, LeadsTo):
            judged = True
            if (not trace.binding or dict(promise.binding) == dict(trace.binding)) and _goes_on(trace, promise, semantics, run):
                return True
    return False if judged else None


def _goes_on(trace: Trace, promise: LeadsTo, semantics: Semantics, run: Run) -> bool:
    """Whether the run is a lasso: the goal is owed and not reached, its loop closes and is fair to what the promise counts on."""
    if trace.due is None or trace.loop is None or not trace.due <= trace.loop < len(run.states):
        return False
    loop = run.states[trace.loop :]
    if lasso.owed(promise, semantics, run.states[trace.due :]) != 0 or key(loop[0]) != key(loop[-1]):
        return False
    return lasso.not_fair(promise, semantics, loop, [move.action for move in run.moves[trace.loop :]]) is None
