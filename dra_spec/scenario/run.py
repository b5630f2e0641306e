"""Explores a scenario."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from dra_spec.explorer.model import StateInvariant, StepInvariant
from dra_spec.explorer.reductions import NONE, Reductions
from dra_spec.explorer.result import Limits, Progress, PropertyResult, Result
from dra_spec.scenario.scenario import Report, Scenario

_MEGABYTE = 1_000_000
NOT_KEPT = "held with any allocation, but the way to the goal may need a choice that upstream's allocator does not make"


def run(
    scenario: Scenario,
    engine: str = "explicit",
    progress: Callable[[Progress], None] | None = None,
    audit: bool = False,
    reductions: Reductions = NONE,
    fingerprints: bool = False,
    threads: int = 0,
    expand_violating: bool = False,
) -> Report:
    """Explores within the limits of the scenario's model file.

    `audit`: also audits what was learned; raises `EngineError` if that fails. `fingerprints`, `threads`,
    `expand_violating`: see `Limits`.
    """
    spec = scenario.file.limits
    if scenario.not_encoded:
        return Report(scenario, _nothing(scenario, engine))
    from dra_spec.explorer import explore  # the engines take their time to load

    limits = Limits(
        max_states=spec.max_states,
        time_limit=spec.time_limit,
        memory=None if spec.memory is None else spec.memory * _MEGABYTE,
        depth=spec.depth,
        fingerprints=fingerprints,
        threads=threads,
        expand_violating=expand_violating,
    )
    result = explore(scenario.model, limits, engine, progress, audit=audit, reductions=reductions)
    choices = scenario.instance.any_allocation
    return Report(scenario, _for_upstream(scenario, result) if choices is not None and choices.departed else result)


def _for_upstream(scenario: Scenario, result: Result) -> Result:
    """What a search with any allocation says of upstream's: that a state or step promise holds in all its runs, and so in fewer.

    A promise that something stays possible may owe it to a choice that upstream does not make; that it holds says nothing. (Where no call
    had a choice both models are the same.)
    """
    of_runs = {p.promise for p in scenario.model.properties if isinstance(p, (StateInvariant, StepInvariant))}
    kept = [
        attrs.evolve(found, verdict="undecided", reason=NOT_KEPT) if found.verdict == "holds" and found.promise not in of_runs else found
        for found in result.properties
    ]
    return attrs.evolve(result, properties=kept)


def _nothing(scenario: Scenario, engine: str) -> Result:
    """The result of a search that was not begun, because its model would leave something out."""
    reason = "not encoded"
    promises = [PropertyResult(name, "undecided", reason=reason) for name in scenario.invariants]
    return Result(engine, 0, 0, 0, 0.0, 0, 0.0, False, reason, promises, [], [])
