"""From what an engine found to a `Result`: verdicts, traces that are run again through the plain semantics, warnings."""

from __future__ import annotations

from collections.abc import Sequence

from dra_spec.explorer import lasso
from dra_spec.explorer.model import AlwaysPossible, DeadlockFree, LeadsTo, Model, StateInvariant, StepInvariant, Truth
from dra_spec.explorer.result import NEAREST, ActionResult, EngineError, Explored, Found, PropertyResult, Result, Step, Trace
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.values import key


def assemble(model: Model, explored: Explored, seconds: float) -> Result:
    """The result of a search. Raises `EngineError` if a trace does not run through the plain semantics."""
    semantics = Semantics(model)
    stopped = explored.stopped
    if stopped is None and explored.beyond:
        stopped = "beyond bounds: " + "; ".join(sorted(explored.beyond))
    complete = explored.exhausted and not explored.beyond and not explored.unexpanded
    properties = [_judge(semantics, explored, promise, stopped, complete) for promise in dict.fromkeys(p.promise for p in model.properties)]
    actions = _statistics(model, explored)
    return Result(
        engine=explored.engine,
        states=explored.states,
        transitions=explored.transitions,
        depth=explored.depth,
        seconds=seconds,
        python_calls=explored.python_calls,
        bytes_per_state=explored.bytes_per_state,
        complete=complete,
        stopped=stopped,
        properties=properties,
        actions=actions,
        warnings=_warnings(properties, actions, complete),
        stuck=explored.stuck,
        unexpanded=explored.unexpanded,
        memory=explored.memory,
        startup=explored.startup,
        reductions=explored.reductions,
        fingerprints=explored.fingerprints,
    )


def _judge(semantics: Semantics, explored: Explored, promise: str, stopped: str | None, complete: bool) -> PropertyResult:
    instances = [(i, p) for i, p in enumerate(semantics.model.properties) if p.promise == promise]
    vacuous = not any(isinstance(p, DeadlockFree) or _said(explored.found[i]) for i, p in instances)
    shortest: tuple[int, int] | None = None
    for i, _ in instances:
        found = explored.found[i]
        if found.state is not None and (shortest is None or _length(explored, found) < shortest[0]):
            shortest = _length(explored, found), i
    if shortest is not None:
        i = shortest[1]
        trace = rerun(semantics, explored, explored.found[i])
        if explored.twin is not None:
            i = next((j for j, _ in instances if _agrees(semantics, j, trace)), i)
        _confirm(semantics, i, trace)
        note = explored.found[shortest[1]].note
        if explored.stopped is not None:  # from a nearer one a goal may be reached through states that were not expanded
            note = note.removesuffix(NEAREST)
        return PropertyResult(promise, "violated", trace, semantics.model.properties[i].binding, note, vacuous)
    unjudged = next((explored.found[i].unjudged for i, _ in instances if explored.found[i].unjudged), "")
    if unjudged:
        return PropertyResult(promise, "undecided", reason=unjudged, vacuous=vacuous)
    if not complete:
        reason = stopped or f"{explored.unexpanded} violating states were not expanded, so nothing is known of what lies behind them"
        return PropertyResult(promise, "undecided", reason=reason, vacuous=vacuous)
    doubt = str(explored.fingerprints) if explored.fingerprints and explored.fingerprints.bits else ""
    return PropertyResult(promise, "holds", reason=doubt, vacuous=vacuous)


def _said(found: Found) -> bool:
    """Whether there is more to say of a promise than that what it speaks of does not occur, or nothing is known of that."""
    return found.tested or found.state is not None or bool(found.unjudged)


def _length(explored: Explored, found: Found) -> int:
    assert found.state is not None
    return len(explored.path(found.state)[1]) + (found.step is not None)


def rerun(semantics: Semantics, explored: Explored, found: Found) -> Trace:
    """The trace to a witness, run through the plain semantics; each state must be the one that the engine stored."""
    assert found.state is not None
    initial, path = explored.path(found.state)
    if key(initial) not in {key(state) for state in semantics.initial_states()}:
        raise EngineError(f"a trace begins in a state that is not initial:\n{semantics.describe(initial)}")
    states: list[State] = [initial]
    steps: list[Step] = []
    tail = [found.step] if found.step is not None else [*found.lasso.stem, *found.lasso.loop] if found.lasso is not None else []
    for number, (action_index, outcome_index) in enumerate([*path, *tail]):
        if explored.twin is not None and number == len(path) and found.step is not None:
            action_index, outcome_index = explored.twin(found.state, states[-1], found.step)
        action = semantics.model.actions[action_index]
        outcome = semantics.outcome(action, outcome_index, states[-1])
        if outcome is None:
            raise EngineError(f"step {len(steps) + 1} of a trace cannot be taken again: {action}, outcome {outcome_index}")
        steps.append(Step(action, outcome_index, outcome.label))
        states.append(semantics.apply(action, outcome, states[-1]))
    reached = states[len(path)]
    if key(explored.normal(reached)) != key(explored.state(found.state)):
        raise EngineError(f"a trace of {len(steps)} steps meets another state than the engine stored:\n{semantics.describe(reached)}")
    if found.lasso is None:
        return Trace(tuple(states), tuple(steps))
    loop = len(path) + len(found.lasso.stem)
    if key(states[loop]) != key(states[-1]):
        raise EngineError(f"the loop of a trace does not lead back to where it began:\n{semantics.describe(states[-1])}")
    return Trace(tuple(states), tuple(steps), len(path), loop)


def confirmed(model: Model, found: PropertyResult, trace: Trace) -> None:
    """Asks the plain semantics of a model whether a trace breaks the promise that it was found for. Raises `EngineError` if not."""
    semantics = Semantics(model)
    if not any(p.promise == found.promise and _agrees(semantics, i, trace) for i, p in enumerate(model.properties)):
        raise EngineError(f"{found.promise}: the plain semantics does not confirm the violation at the end of the trace")


def consistent(result: Result, full: Result, here: str, there: str) -> None:
    """Raises `EngineError` if two searches decide a promise differently. `here`, `there`: how they searched, for the text."""
    for one, other in zip(result.properties, full.properties, strict=True):
        if {one.verdict, other.verdict} == {"holds", "violated"}:
            raise EngineError(f"audit: {one.promise}: {one.verdict} {here}, and {other.verdict} {there}")


def _confirm(semantics: Semantics, index: int, trace: Trace) -> None:
    """Asks the property itself about the end of its trace."""
    if not _agrees(semantics, index, trace):
        promise = semantics.model.properties[index].promise
        raise EngineError(f"{promise}: the plain semantics does not confirm the violation at the end of the trace")


def _agrees(semantics: Semantics, index: int, trace: Trace) -> bool:
    """Whether the plain semantics finds the property violated at the end of the trace."""
    wrong = semantics.model.properties[index]
    last = trace.states[-1]
    if isinstance(wrong, StateInvariant):
        agreed = wrong.fn(semantics.view(last)) == Truth.FALSE
    elif isinstance(wrong, StepInvariant):
        step, before = trace.steps[-1], trace.states[-2]
        raw = semantics.apply_raw(step.action, semantics.observe(step.action, before).outcomes[step.outcome], before)
        agreed = wrong.fn(semantics.view(before), semantics.view(raw), step.action, step.label) == Truth.FALSE
    elif isinstance(wrong, DeadlockFree):
        agreed = wrong.final(semantics.view(last)) == Truth.FALSE and next(semantics.moves(last), None) is None
    elif isinstance(wrong, LeadsTo):
        assert trace.due is not None
        assert trace.loop is not None
        taken = [step.action for step in trace.steps[trace.loop :]]
        owed = lasso.owed(wrong, semantics, trace.states[trace.due :]) == 0
        agreed = owed and lasso.not_fair(wrong, semantics, trace.states[trace.loop :], taken) is None
    else:
        assert isinstance(wrong, AlwaysPossible)
        agreed = wrong.goal(semantics.view(last)) == Truth.FALSE
    return agreed


def _statistics(model: Model, explored: Explored) -> list[ActionResult]:
    taken: dict[str, int] = {}
    enabled: dict[str, bool] = {}
    for action, count, ever in zip(model.actions, explored.taken, explored.enabled, strict=True):
        taken[action.name] = taken.get(action.name, 0) + count
        enabled[action.name] = enabled.get(action.name, False) or ever
    return [ActionResult(name, count, not enabled[name]) for name, count in taken.items()]


def _warnings(properties: Sequence[PropertyResult], actions: Sequence[ActionResult], complete: bool) -> list[str]:
    where = "" if complete else " in the part that was explored"
    return [f"action {a.name} is never enabled{where}" for a in actions if a.never_enabled] + [
        f"promise {p.promise} is never true other than trivially{where}" for p in properties if p.vacuous
    ]
