"""Explores a scenario."""

from __future__ import annotations

from collections.abc import Callable

from dra_spec.explorer import Limits, explore
from dra_spec.explorer.result import Progress, PropertyResult, Result
from dra_spec.scenario.scenario import Report, Scenario

_MEGABYTE = 1_000_000


def run(scenario: Scenario, engine: str = "explicit", progress: Callable[[Progress], None] | None = None, audit: bool = False) -> Report:
    """Explores within the limits of the scenario's model file.

    `audit`: also audits what was learned; raises `EngineError` if that fails.
    """
    spec = scenario.file.limits
    if scenario.not_encoded:
        return Report(scenario, _nothing(scenario, engine))
    limits = Limits(
        max_states=spec.max_states,
        time_limit=spec.time_limit,
        memory=None if spec.memory is None else spec.memory * _MEGABYTE,
        depth=spec.depth,
    )
    return Report(scenario, explore(scenario.model, limits, engine, progress, audit=audit))


def _nothing(scenario: Scenario, engine: str) -> Result:
    """The result of a search that was not begun, because its model would leave something out."""
    reason = "not encoded"
    promises = [PropertyResult(name, "undecided", reason=reason) for name in scenario.invariants]
    return Result(engine, 0, 0, 0, 0.0, 0, 0.0, False, reason, promises, [], [])
