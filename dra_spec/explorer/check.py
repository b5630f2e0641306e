"""The entry: explore a model with one of the engines. What only some searches need is loaded by them: it takes its time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs

from dra_spec.explorer.control import Control, expands_all
from dra_spec.explorer.fingerprints import unused
from dra_spec.explorer.model import LiveWhen, Model
from dra_spec.explorer.reductions import NAMES, NONE, Reductions, Refuted, refused
from dra_spec.explorer.report import assemble
from dra_spec.explorer.result import Explored, Limits, Progress, Result
from dra_spec.explorer.trees import Trees

if TYPE_CHECKING:
    from dra_spec.explorer.dead import Plan
    from dra_spec.explorer.symmetry import Group

ENGINES = ("explicit", "plain", "symbolic", "auto")
_NO_LIMITS = Limits()


def explore(
    model: Model,
    limits: Limits = _NO_LIMITS,
    engine: str = "explicit",
    progress: Callable[[Progress], None] | None = None,
    interrupted: Callable[[], bool] | None = None,
    audit: bool = False,
    reductions: Reductions = NONE,
) -> Result:
    """Explores the reachable states of a model breadth first and judges its promises.

    `engine`: "explicit" (compiled, decision trees), "symbolic" (decision diagrams, from the same trees), "plain" (the oracle, slow), or
    "auto" (explicit or symbolic, by what the trees look like; `Result.choice` says why). `progress` is called about ten times a second;
    `audit`: afterwards run the model's functions again in random surroundings of what they read (audit.py).
    `reductions`: what may be left out; `Result.reductions` says what became of each.
    `interrupted` is asked between pieces of work, and the first Ctrl-C counts as a yes: the result then says what was found so far.
    Raises `ModelError` for a mistake in the model's text, `EngineError` if a trace does not run again through the plain semantics,
    or if the audit fails.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine {engine!r}: expected one of {', '.join(ENGINES)}")
    if reductions.por == "stuck":  # its ways to a stuck state may lead through violating states where others do not
        limits = attrs.evolve(limits, expand_violating=True)
    if reductions.cone or reductions.merge:
        return _narrowed(model, limits, engine, progress, interrupted, audit, reductions)
    with Control(limits, progress, interrupted) as control:
        engine, why = _chosen(model) if engine == "auto" else (engine, "")
        explored, trees = _reduced(model, engine, control, reductions)
        result = attrs.evolve(assemble(model, explored, control.seconds), choice=why)
        if audit:
            from dra_spec.explorer.audit import Auditor
            from dra_spec.explorer.audit_independence import versions_audited

            tried = [str(Auditor(trees()).run()), versions_audited(model), *(tell() for tell in explored.audits)]
            result = attrs.evolve(result, audit="; ".join(text for text in tried if text))
    if audit:
        from dra_spec.explorer import beside

        def search(other: Model, most: Limits, used: Reductions) -> Result:
            return explore(other, most, engine, None, interrupted, False, used)

        result = beside.audited(model, result, limits, reductions, search)
    if reductions.por:
        from dra_spec.explorer import por

        if any(report.name == por.NAME and report.applied for report in result.reductions):
            without = attrs.evolve(reductions, por="")
            result = por.told(result, reductions.por, model)
            search = partial(explore, model, engine=engine, interrupted=interrupted, reductions=without)
            result = por.beside(result, limits, reductions.por, search)
    return result


def _chosen(model: Model) -> tuple[str, str]:
    from dra_spec.explorer.auto import choose

    return choose(model)


def _narrowed(
    model: Model,
    limits: Limits,
    engine: str,
    progress: Callable[[Progress], None] | None,
    interrupted: Callable[[], bool] | None,
    audit: bool,
    reductions: Reductions,
) -> Result:
    """A search in sub-models, and with steps merged; the limits are for all of it. With `audit` one without that beside it."""
    from dra_spec.explorer import narrowed

    rest = attrs.evolve(reductions, cone=False, merge=False)
    limits = attrs.evolve(limits, expand_violating=expands_all(model, limits))  # a part need not have the promise that asks for it
    control = Control(limits)
    ended, states = False, 0

    def stop() -> bool:
        return ended or (interrupted is not None and interrupted())

    def search(part: Model) -> Result:
        nonlocal ended, states
        seconds = None if limits.time_limit is None else max(0.0, limits.time_limit - control.seconds)
        most = None if limits.max_states is None else max(0, limits.max_states - states)
        found = explore(part, attrs.evolve(limits, time_limit=seconds, max_states=most), engine, progress, stop, audit, rest)
        states += found.states
        ended = ended or found.stopped == "interrupted"  # for the parts that follow, too
        return found

    result = narrowed.explore(model, limits, reductions, search)
    if audit:
        most = attrs.evolve(limits, max_states=max(10_000, narrowed.TIMES * result.states), time_limit=max(1.0, result.seconds))
        narrowed.compare(result, explore(model, most, engine, None, stop, False, rest))
        result = attrs.evolve(result, audit="; ".join([result.audit, narrowed.audited(model)]))
    return attrs.evolve(result, seconds=control.seconds)


def _reduced(model: Model, engine: str, control: Control, reductions: Reductions) -> tuple[Explored, Callable[[], Trees]]:
    """A search with the reductions that go with it; it begins again without what it found not to be as it was taken to be."""
    if engine != "explicit":
        explored, trees = _search(model, engine, control)
        if control.limits.fingerprints:
            explored.fingerprints = unused(f"the {engine} engine does not have them")
        explored.reductions = [refused(name, f"the {engine} engine does not have it") for name in reductions]
        return explored, trees
    excluded: dict[str, dict[Hashable, str]] = {name: {} for name in NAMES}
    while True:
        plan = _plan(model, excluded) if reductions.dead else None
        live = plan.live if plan else ()
        group = _group(model, excluded, live) if reductions.symmetry else None
        try:
            explored, trees = _search(model, engine, control, group if group and group.generators else None, live, reductions)
        except Refuted as error:
            excluded[error.name][error.what] = str(error)
            continue
        explored.reductions = [*(used.report for used in (plan, group) if used), *explored.reductions]
        return explored, trees


def _plan(model: Model, excluded: Mapping[str, Mapping[Hashable, str]]) -> Plan:
    from dra_spec.explorer import dead

    return dead.find(model, excluded[dead.NAME])


def _group(model: Model, excluded: Mapping[str, Mapping[Hashable, str]], live: Sequence[LiveWhen]) -> Group:
    from dra_spec.explorer import symmetry

    return symmetry.find(model, excluded[symmetry.NAME], live)


def _search(
    model: Model,
    engine: str,
    control: Control,
    group: Group | None = None,
    live: Sequence[LiveWhen] = (),
    reductions: Reductions = NONE,
) -> tuple[Explored, Callable[[], Trees]]:
    """What was found, and the trees that were learned."""
    if engine == "plain":
        from dra_spec.explorer.audit import scouted
        from dra_spec.explorer.plain import PlainSearch

        return PlainSearch(model, control).run(), lambda: scouted(model)
    if engine == "symbolic":
        from dra_spec.explorer.symbolic import SymbolicSearch

        symbolic = SymbolicSearch(model, control)
        return symbolic.run(), lambda: symbolic.trees
    from dra_spec.explorer.explicit import ExplicitSearch

    explicit = ExplicitSearch(model, control, group, live)
    if not reductions.por:
        return explicit.run(), lambda: explicit.machine.trees
    from dra_spec.explorer import por

    report = por.attached(explicit, lambda most: ExplicitSearch(model, Control(most), group, live), reductions)
    explored = explicit.run()
    explored.reductions = [por.taken(report, explicit)]
    if report.applied:
        explored.audits = [*explored.audits, lambda: por.audited(explicit)]
    return explored, lambda: explicit.machine.trees
