"""The audit of dead values and of symmetry: a search without the reduction beside the one with it; and what each declaration saves.

Both keep verdicts, lengths of shortest runs, and whether there are stuck states. The search beside has the other reductions that were
asked for, and ends when it has become `narrowed.TIMES` times as large as the reduced one; what it decided by then is compared.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from dra_spec.explorer import dead, symmetry
from dra_spec.explorer.model import Model
from dra_spec.explorer.narrowed import TIMES
from dra_spec.explorer.reductions import Reductions
from dra_spec.explorer.report import consistent
from dra_spec.explorer.result import EngineError, Limits, Result

Search = Callable[[Model, Limits, Reductions], Result]
_LEAST_SECONDS = 5.0
_LEAST_STATES = 10_000


def audited(model: Model, result: Result, limits: Limits, reductions: Reductions, search: Search) -> Result:
    """The result with the factors of dead values (also per declaration) and of symmetry, as far as they were applied.

    Raises `EngineError` if a search without one of them contradicts the result.
    """
    most = attrs.evolve(
        limits,
        max_states=max(_LEAST_STATES, TIMES * result.states),
        time_limit=max(_LEAST_SECONDS, TIMES * (result.seconds - result.startup)),
    )
    reports = []
    for report in result.reductions:
        if report.applied and report.name in (dead.NAME, symmetry.NAME):
            without = attrs.evolve(reductions, dead=False) if report.name == dead.NAME else attrs.evolve(reductions, symmetry=False)
            full = search(model, most, without)
            compare(report.name, result, full, reductions)
            factor = _factor(full, result)
            if report.name == dead.NAME and full.stopped is None:
                factor += _alone(model, full, most, reductions, search)
            report = attrs.evolve(report, factor=factor)
        reports.append(report)
    return attrs.evolve(result, reductions=reports)


def compare(name: str, result: Result, full: Result, reductions: Reductions) -> None:
    """Raises `EngineError` if the search without a reduction says something else."""
    consistent(result, full, f"with {name}", "without it")
    if result.stopped is not None or full.stopped is not None or reductions.por:
        return  # stubborn sets keep no lengths, and one of their modes no stuck states
    for reduced, other in zip(result.properties, full.properties, strict=True):
        one, another = (None if p.trace is None else len(p.trace) for p in (reduced, other))
        if one != another:
            raise EngineError(f"audit: {reduced.promise}: violated in {one} steps with {name}, and in {another} without it")
    if bool(result.stuck) != bool(full.stuck):
        raise EngineError(f"audit: {result.stuck} stuck states with {name}, and {full.stuck} without it")


def _factor(full: Result, reduced: Result) -> str:
    times = full.states / max(1, reduced.states)
    if full.stopped is None and reduced.stopped is None:
        return f"factor {times:.2f}"
    return f"factor at least {times:.2f}, the search without it was stopped" if reduced.stopped is None and times > 1 else "factor unknown"


def _alone(model: Model, full: Result, limits: Limits, reductions: Reductions, search: Search) -> str:
    """What each declaration saves by itself."""
    told = []
    for live in model.live:
        found = search(attrs.evolve(model, live=[live]), limits, reductions)
        if found.stopped is None and any(report.name == dead.NAME and report.applied for report in found.reductions):
            told.append(f"{live}: {full.states / max(1, found.states):.2f}")
    return f" (each declaration alone: {', '.join(told)})" if told else ""
