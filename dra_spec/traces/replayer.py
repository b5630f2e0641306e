"""Replays a trace file: builds its model again, follows the trace, asks the reference."""

from __future__ import annotations

import attrs

from dra_spec.explorer.model import AlwaysPossible
from dra_spec.explorer.result import Limits
from dra_spec.explorer.semantics import Semantics
from dra_spec.reference.errors import Divergence
from dra_spec.reference.world import World
from dra_spec.scenario.modelfile import Overrides
from dra_spec.scenario.scenario import Scenario
from dra_spec.scenario.strict import InputError
from dra_spec.scenario.targets import scenarios
from dra_spec.traces.choices import choice
from dra_spec.traces.reference_replay import confirm
from dra_spec.traces.replay import Run, StepFailed, breaks, follow
from dra_spec.traces.trace import Trace

_MOST_STATES = 2_000_000  # of the search behind the end of a trace


@attrs.frozen
class Replayed:
    """How a replay ended.

    `step`: the first step that failed, None if none did (0: none in particular); `judges`: what the trace was run on.
    """

    verdict: str
    step: int | None = None
    judges: str = "model"

    @property
    def confirmed(self) -> bool:
        return self.verdict.startswith("confirmed")


def replay(trace: Trace) -> Replayed:
    """Runs a trace through its model, then on the reference. Raises `InputError` if the model cannot be built."""
    scenario = scenario_of(trace)
    semantics = Semantics(scenario.model)
    try:
        run = follow(trace, semantics)
    except StepFailed as error:
        return Replayed(f"spurious ({_refusal(trace, scenario, error) or error})", error.number)
    if breaks(trace, semantics, run) is False or _possible_again(trace, scenario, run):
        return Replayed(f"spurious ({trace.promise} is not broken at the end)", 0)
    if not _promised(trace, scenario):
        return Replayed(f"spurious (the model does not have the promise {trace.promise!r})", 0)
    verdict = confirm(scenario, trace, run)
    return Replayed(verdict, None if verdict.startswith("confirmed") else 0, "model and reference")


def _refusal(trace: Trace, scenario: Scenario, error: StepFailed) -> str:
    """Why the allocation that the failed step chose is none, as the reference's validator says; "" if that is not what failed."""
    if not scenario.any_allocation or not error.number or choice(trace.steps[error.number - 1]) is None:
        return ""
    with World(scenario.instance, scenario.variants) as world:
        try:
            for step in trace.steps[: error.number]:
                world.step(step.action, step.params, step.outcome)
        except Divergence as refused:
            return f"step {error.number}: {refused}"
    return ""


def _possible_again(trace: Trace, scenario: Scenario, run: Run) -> bool:
    """Whether what the trace says is not possible any more at its end is possible: the search is made again from there."""
    wanted = [p for p in scenario.model.properties if p.promise == trace.promise and isinstance(p, AlwaysPossible)]
    wanted = [p for p in wanted if not trace.binding or dict(p.binding) == dict(trace.binding)]
    if not wanted:
        return False
    from dra_spec.explorer import explore  # the engines take their time to load

    rest = attrs.evolve(scenario.model, properties=wanted, initial=(dict(zip(scenario.model.slots, run.end, strict=True)),))
    found = explore(rest, Limits(max_states=_MOST_STATES)).property(trace.promise)
    return found.verdict == "holds" or (found.trace is not None and len(found.trace) > 0)


def _promised(trace: Trace, scenario: Scenario) -> bool:
    return any(p.promise == trace.promise for p in scenario.model.properties)


def scenario_of(trace: Trace) -> Scenario:
    """The scenario that a trace is a run of. Raises `InputError`."""
    model = trace.model
    overrides = Overrides(
        bounds=dict(model.bounds),
        budgets=dict(model.budgets),
        variants=model.variants,
        repaired=model.repaired,
        allocation=model.allocation,
        assertions=model.assertions,
        invariants=() if model.assertions else (trace.promise,),
    )
    found = scenarios(model.files or (model.name,), overrides)
    for scenario in found:
        if scenario.name == model.name or len(found) == 1:
            return scenario
    raise InputError(f"the files {', '.join(model.files)} make no model called {model.name!r}")
