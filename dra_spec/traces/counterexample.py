"""From a violated promise of a search to a trace: recorded, explained, replayed through the model and on the reference."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import attrs

from dra_spec.explorer.result import EngineError, PropertyResult
from dra_spec.explorer.semantics import Move, Semantics
from dra_spec.scenario.content import shipped
from dra_spec.scenario.scenario import Report, Scenario
from dra_spec.traces.explain import explain
from dra_spec.traces.replay import Run, StepFailed, breaks, follow
from dra_spec.traces.trace import ModelRef, Trace, beliefs, record

KUBERNETES = "1.37.2"


@attrs.frozen
class Counterexample:
    """A trace and what replaying it said: `confirmed`, `spurious (step k: ...)`, or that only the model could judge."""

    trace: Trace
    verdict: str

    @property
    def spurious(self) -> bool:
        return self.verdict.startswith("spurious")


def counterexamples(report: Report) -> list[Counterexample]:
    """One for each violated promise, replayed. Raises `EngineError` if a trace does not run through its own model."""
    return [counterexample(report.scenario, p) for p in report.result.properties if p.verdict == "violated" and p.trace is not None]


def weighed(report: Report, found: Sequence[Counterexample]) -> Report:
    """The report with the promises undecided whose trace does not replay, if the search had more runs than the reference may take.

    Elsewhere a trace that does not replay is no verdict but a doubt: the report stays as it is.
    """
    if not report.scenario.any_allocation:
        return report
    return attrs.evolve(report, spurious={each.trace.promise: each.verdict for each in found if each.spurious})


def counterexample(scenario: Scenario, found: PropertyResult) -> Counterexample:
    """The trace of a violated promise, checked before anybody sees it."""
    trace = make_trace(scenario, found)
    semantics = Semantics(scenario.model)
    try:
        run = follow(trace, semantics)
    except StepFailed as error:
        raise EngineError(f"{scenario.name}: the trace to {found.promise} does not run through the model: {error}") from None
    if breaks(trace, semantics, run) is False:
        raise EngineError(f"{scenario.name}: {found.promise} is not broken at the end of its trace")
    from dra_spec.traces.reference_replay import confirm  # the concrete implementation is loaded when there is something to replay

    return Counterexample(trace, confirm(scenario, trace, run))


def make_trace(scenario: Scenario, found: PropertyResult) -> Trace:
    """The trace of a violated promise as data."""
    assert found.trace is not None
    semantics = Semantics(scenario.model)
    moves = [
        Move(step.action, step.outcome, step.label, after) for step, after in zip(found.trace.steps, found.trace.states[1:], strict=True)
    ]
    run = Run(found.trace.states, moves)
    overrides = scenario.overrides
    reference = ModelRef(
        scenario.name,
        dict(overrides.bounds),
        dict(overrides.budgets),
        overrides.variants,
        overrides.repaired,
        overrides.assertions,
        files(scenario),
        overrides.allocation,
    )
    return Trace(
        model=reference,
        promise=found.promise,
        believed=tuple(beliefs(scenario.model, run.end)),
        steps=record(semantics, found.trace.states[0], moves),
        statement=scenario.invariants[found.promise].statement,
        command=command(scenario, found.promise),
        kubernetes=KUBERNETES,
        binding=dict(found.binding),
        due=found.trace.due,
        loop=found.trace.loop,
        broken=tuple(explain(scenario.invariants[found.promise], scenario.instance, semantics, run, found.binding)),
    )


def files(scenario: Scenario) -> tuple[str, ...]:
    """The model file or the manifests of a scenario that does not ship; empty for one that does."""
    path = scenario.file.path
    if path is None:
        return tuple(str(manifest) for manifest in scenario.file.manifests)
    return () if shipped("models").get(scenario.name) == path else (str(path),)


def command(scenario: Scenario, promise: str) -> str:
    """The command that finds this counterexample again."""
    overrides = scenario.overrides
    words = ["dra-spec", "check", *(files(scenario) or [scenario.name])]
    for variant in overrides.variants:
        words += ["--variant", variant]
    words += ["--repaired"] if overrides.repaired else []
    words += ["--allocation", overrides.allocation] if overrides.allocation else []
    for name, value in overrides.bounds.items():
        words += ["--bound", f"{name}={value}"]
    for name, value in overrides.budgets.items():
        words += ["--fault", f"{name}={value}"]
    for text in overrides.assertions:
        words += ["--assert", text]
    if not overrides.assertions:
        words += ["--invariant", promise]
    return shlex.join(words)
