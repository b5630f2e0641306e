"""Partial-order reduction as a part of a search: whether it may be used, whether it pays, what it saved."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from dra_spec.explorer.audit_independence import MOST_STATES, audit, walked
from dra_spec.explorer.completion import MOST_RUNS, RUNS_OF_AUTO
from dra_spec.explorer.explicit import ExplicitSearch
from dra_spec.explorer.footprints import footprints
from dra_spec.explorer.independence import Independence
from dra_spec.explorer.model import DeadlockFree, Model
from dra_spec.explorer.native import Kernels
from dra_spec.explorer.reductions import ReductionReport, Reductions, refused
from dra_spec.explorer.report import consistent
from dra_spec.explorer.result import EngineError, Limits, PropertyResult, Result
from dra_spec.explorer.stubborn import Mode, StubbornSets, refusal

kernels_stubborn = Kernels("kernels_stubborn")

NAME = "por"
_PREFIX = 3_000  # states of the short search that says whether it pays
_PAYS = 0.5  # the share of the enabled actions that it may take at most: a state costs several times what it costs without
_TIMES = 20  # the search beside it stores so many times the states at most
_LEAST_SECONDS = 1.0  # that the search beside it gets


def independence(model: Model, most_runs: int = MOST_RUNS) -> Independence | str:
    """The relations of the model's actions, or why there are none worth looking at. `most_runs`: as in `footprints`."""
    found = footprints(model, most_runs)
    if found.actions and not any(footprint.exact for footprint in found.actions):
        return f"no action's footprint is known in all states: {found.cause}"
    return Independence(found)


def attach(search: ExplicitSearch, relations: Independence | str, mode: Mode) -> ReductionReport:
    """Makes a search use stubborn sets, if it may."""
    why = refusal(search.model, mode, search.control.limits)
    if why or isinstance(relations, str):
        return refused(NAME, why or str(relations))
    search.stubborn = StubbornSets(search.machine, relations, mode)
    inexact = sum(not f.exact for f in relations.footprints.actions)
    more = f", footprints of {inexact} of {len(search.model.actions)} actions as wide as their rooms" if inexact else ""
    kept = {"safety": "keeps promises about states and steps", "stuck": "keeps stuck states"}[mode]
    return ReductionReport(NAME, True, f"mode {mode}: {kept}{more}")


def taken(report: ReductionReport, search: ExplicitSearch) -> ReductionReport:
    """The report after the search: which share of the enabled actions it took."""
    return attrs.evolve(report, reason=f"{report.reason}; {share(search):.0%} of the enabled actions taken") if report.applied else report


def share(search: ExplicitSearch) -> float:
    """The share of the enabled actions that were taken."""
    if search.stubborn is None:
        return 1.0
    numbers = search.stubborn.looked_at
    return float(numbers[kernels_stubborn.TAKEN]) / max(1, int(numbers[kernels_stubborn.ENABLED]))


def attached(search: ExplicitSearch, make: Callable[[Limits], ExplicitSearch], reductions: Reductions) -> ReductionReport:
    """Makes a search use stubborn sets, if it may. With `auto` only if a short search with them (`make`) says that this pays."""
    assert reductions.por
    relations = independence(search.model, RUNS_OF_AUTO if reductions.auto else MOST_RUNS)
    if reductions.auto and not isinstance(relations, str):
        prefix = make(Limits(max_states=_PREFIX, expand_violating=True))
        if attach(prefix, relations, reductions.por).applied:
            prefix.run()
            if (taken := share(prefix)) > _PAYS:
                told = f"it would take {taken:.0%} of the enabled actions in the first {prefix.machine.states:,} states"
                return refused(NAME, f"{told}, too many to pay")
    return attach(search, relations, reductions.por)


def audited(search: ExplicitSearch) -> str:
    """Audits what the reduction of a finished search rested on. Raises `EngineError`."""
    assert search.stubborn is not None
    count = search.machine.states
    sample = range(0, count, max(1, count // MOST_STATES))
    relations = search.stubborn.independence
    beside = audit(relations, walked(search.model))  # states that the reduced search may have left out
    return f"{audit(relations, [search.state(number) for number in sample])}; beside the reduced search: {beside}"


def told(result: Result, mode: Mode, model: Model) -> Result:
    """The result of a reduced search, with what it must not say left out.

    In the mode for stuck states a promise that was not seen to break is undecided, unless it is about stuck states; and what was never
    seen in the reduced search may well be there in the full one.
    """
    kept = {p.promise for p in model.properties if isinstance(p, DeadlockFree)}
    about = "partial-order reduction in the mode for stuck states says nothing about it"

    def judged(found: PropertyResult) -> PropertyResult:
        if mode == "safety" or found.verdict != "holds" or found.promise in kept:
            return found
        return attrs.evolve(found, verdict="undecided", reason=about)

    where = " in the part that was explored"
    warnings = [text if text.endswith(where) else text + where for text in result.warnings]
    return attrs.evolve(result, properties=[judged(found) for found in result.properties], warnings=warnings)


def beside(result: Result, limits: Limits, mode: Mode, search: Callable[[Limits], Result]) -> Result:
    """The result with the factor of the reduction: how many times the states a search without it has. That one is stopped when it has
    become much larger, or took as long as the reduced one. Raises `EngineError` if it contradicts the reduced one."""
    if result.stopped is not None and not result.stopped.startswith("beyond bounds"):
        return _with_factor(result, "factor unknown, the search with it was stopped")
    seconds = max(_LEAST_SECONDS, result.seconds - result.startup)
    full = search(attrs.evolve(limits, max_states=max(1, _TIMES * result.states), time_limit=seconds))
    _compare(result, full, mode)
    times = full.states / max(1, result.states)
    if full.stopped in ("time", "max-states", "memory", "interrupted"):
        factor = (
            f"factor at least {times:.1f}, the search without it was stopped"
            if times > 1
            else "factor unknown, the search without it was stopped"
        )
    else:
        factor = f"factor {times:.1f}"
    return _with_factor(result, factor)


def _with_factor(result: Result, factor: str) -> Result:
    reports = [attrs.evolve(report, factor=factor) if report.name == NAME and report.applied else report for report in result.reductions]
    return attrs.evolve(result, reductions=reports)


def _compare(result: Result, full: Result, mode: Mode) -> None:
    consistent(result, full, f"with partial-order reduction (mode {mode})", "without it")
    if mode == "stuck" and result.complete and full.complete and result.stuck != full.stuck:
        raise EngineError(f"audit: {result.stuck} stuck states with partial-order reduction (mode stuck), {full.stuck} without it")
