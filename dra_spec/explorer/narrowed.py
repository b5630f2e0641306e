"""A search in models made of the model: sub-models per promise (cone.py), merged steps (merge.py); its result is told of the full model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import attrs

from dra_spec.explorer import cone, merge
from dra_spec.explorer.audit_independence import audit, walked
from dra_spec.explorer.completion import MOST_RUNS, RUNS_OF_AUTO
from dra_spec.explorer.fingerprints import together
from dra_spec.explorer.footprints import Footprints, footprints
from dra_spec.explorer.independence import Independence
from dra_spec.explorer.model import Action, LeadsTo, Model, StateInvariant, StepInvariant
from dra_spec.explorer.reductions import ReductionReport, Reductions, refused
from dra_spec.explorer.report import confirmed, consistent
from dra_spec.explorer.result import ActionResult, EngineError, Limits, PropertyResult, Result, Step, Trace
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.values import key

Search = Callable[[Model], Result]
TIMES = 20  # an audit's search of the full model has so many times the states at most


def explore(model: Model, limits: Limits, reductions: Reductions, search: Search) -> Result:
    """The result of `search` in each sub-model, put together. Raises `EngineError` if a trace does not run in the full model.

    Of what `reductions` says, `cone` and `merge` are used here; `search` has the rest. The smallest sub-model comes first, so that a limit
    that a large one meets ends no other search.
    """
    most_runs = RUNS_OF_AUTO if reductions.auto else MOST_RUNS
    found = footprints(model, most_runs)
    parts, report = _parts(model, found, reductions)
    results = []
    for part in reversed(parts):
        if not reductions.merge:
            result = search(part.model)
        elif limits.depth is not None:
            result = _with(search(part.model), refused(merge.NAME, "merged steps count as one, so it does not go with a depth"))
        else:
            result = _merged(part.model, found if part.whole else footprints(part.model, most_runs), search)
        results.append(result if part.whole else _told(model, part, result))
    return _together(model, results[::-1], [report] if reductions.cone else [])


def audited(model: Model) -> str:
    """Audits the footprints, and what follows from them, on which all this rests. Raises `EngineError`."""
    return audit(Independence(footprints(model)), walked(model))


def compare(result: Result, full: Result) -> None:
    """Raises `EngineError` if a search of the full model contradicts the one of its parts."""
    consistent(result, full, "in a sub-model, or with merged steps", "in the full model")


# sub-models


def _parts(model: Model, found: Footprints, reductions: Reductions) -> tuple[list[cone.SubModel], ReductionReport]:
    whole = [cone.whole(model, model.properties)]
    parts = cone.cones(model, found) if reductions.cone else whole
    if reductions.auto and len(parts) > 1 and not all(part.fewer_writers(model) for part in parts):
        return whole, refused(cone.NAME, f"{len(parts)} searches of parts that are nearly the whole model do not pay")
    return parts, _report(model, parts)


def _report(model: Model, parts: Sequence[cone.SubModel]) -> ReductionReport:
    if all(part.whole for part in parts):
        return refused(cone.NAME, "everything in the model can influence each promise")
    told = []
    for part in parts:
        names = dict.fromkeys(promise.promise for promise in part.model.properties)
        told.append(f"{', '.join(names)}: {part.left_out(model)}")
    return ReductionReport(cone.NAME, True, "; ".join(told) if len(told) > 1 else told[0].partition(": ")[2])


def _told(model: Model, part: cone.SubModel, result: Result) -> Result:
    """The result of a sub-model with traces of the full one."""

    def lift(trace: Trace) -> Trace:
        steps = [(part.original[step.action], step.outcome) for step in trace.steps]
        return _run(model, cone.full_initial(model, part, trace.states[0]), steps)

    return attrs.evolve(result, properties=[_lifted(model, found, lift) for found in result.properties])


# merged steps


def _merged(model: Model, known: Footprints, search: Search) -> Result:
    if any(isinstance(promise, LeadsTo) for promise in model.properties):
        return _with(search(model), refused(merge.NAME, "whether an action must happen hangs on every step"))
    found = merge.merged(Independence(known))
    if found is None:
        return _with(search(model), refused(merge.NAME, "no step is invisible to all others in all states"))
    names = sorted({action.name for action in found.merged})
    report = ReductionReport(
        merge.NAME, True, f"{len(found.merged)} actions go with the step before them ({', '.join(names)}); traces need not be shortest"
    )
    result = search(found.model)

    properties = [_lifted(model, p, partial(_unmerged, model, found, p.promise)) for p in result.properties]
    actions = [attrs.evolve(a, never_enabled=a.never_enabled and a.name not in names) for a in result.actions]
    unseen = {f"action {name} is never enabled" for name in names}  # nobody counts how often a step was taken together with another one
    warnings = [text for text in result.warnings if text.removesuffix(" in the part that was explored") not in unseen]
    return _with(attrs.evolve(result, properties=properties, actions=actions, warnings=warnings), report)


def _unmerged(model: Model, found: merge.Merged, promise: str, trace: Trace) -> Trace:
    """The trace with each step by itself. What follows the last step is left out if the promise is about that, or the state after it."""
    semantics = Semantics(found.model)
    steps: list[tuple[Action, int]] = []
    last = 0
    for state, step in zip(trace.states, trace.steps, strict=False):
        steps.append((found.original[step.action], step.outcome))
        last = len(steps)
        outcome = semantics.observe(step.action, state).outcomes[step.outcome]
        if isinstance(outcome, merge.MergedOutcome):
            steps += [(action, 0) for action in outcome.followed]
    lifted = _run(model, trace.states[0], steps)
    if key(lifted.states[-1]) != key(trace.states[-1]):
        raise EngineError("a trace with merged steps ends in another state than the search saw")
    kind = next(type(p) for p in model.properties if p.promise == promise)
    if kind in (StateInvariant, StepInvariant):
        lifted = Trace(lifted.states[: last + 1], lifted.steps[:last])
    return lifted


def _with(result: Result, report: ReductionReport) -> Result:
    return attrs.evolve(result, reductions=[*result.reductions, report])


# traces and results


def _run(model: Model, state: State, steps: Sequence[tuple[Action, int]]) -> Trace:
    """A run of the full model by the plain semantics."""
    semantics = Semantics(model)
    states = [state]
    taken: list[Step] = []
    for action, index in steps:
        outcome = semantics.outcome(action, index, states[-1])
        if outcome is None:
            raise EngineError(f"step {len(taken) + 1} of a trace cannot be taken in the full model: {action}, outcome {index}")
        taken.append(Step(action, index, outcome.label))
        states.append(semantics.apply(action, outcome, states[-1]))
    return Trace(tuple(states), tuple(taken))


def _lifted(model: Model, found: PropertyResult, lift: Callable[[Trace], Trace]) -> PropertyResult:
    if found.trace is None:
        return found
    trace = lift(found.trace)
    confirmed(model, found, trace)
    return attrs.evolve(found, trace=trace)


def _together(model: Model, results: Sequence[Result], reports: Sequence[ReductionReport]) -> Result:
    """One result out of those of the sub-models, which have different promises."""
    verdicts = {p.promise: p for result in results for p in result.properties}
    actions: dict[str, ActionResult] = {}
    for result in results:
        for action in result.actions:
            before = actions.get(action.name, ActionResult(action.name, 0, True))
            actions[action.name] = ActionResult(action.name, before.taken + action.taken, before.never_enabled and action.never_enabled)
    first = results[0]
    prints = [result.fingerprints for result in results if result.fingerprints]
    said = dict.fromkeys(report for result in results for report in result.reductions)
    return attrs.evolve(
        first,
        states=sum(result.states for result in results),
        transitions=sum(result.transitions for result in results),
        depth=max(result.depth for result in results),
        seconds=sum(result.seconds for result in results),
        python_calls=sum(result.python_calls for result in results),
        bytes_per_state=max(result.bytes_per_state for result in results),
        memory=max(result.memory for result in results),
        startup=sum(result.startup for result in results),
        unexpanded=sum(result.unexpanded for result in results),
        stuck=first.stuck if len(results) == 1 else 0,
        complete=all(result.complete for result in results),
        stopped=next((result.stopped for result in results if result.stopped), None),
        properties=[verdicts[name] for name in dict.fromkeys(p.promise for p in model.properties)],
        actions=list(actions.values()),
        warnings=list(dict.fromkeys(text for result in results for text in result.warnings)),
        reductions=[*reports, *said],
        fingerprints=together(prints) if prints else None,
        audit="; ".join(dict.fromkeys(result.audit for result in results if result.audit)),
    )
