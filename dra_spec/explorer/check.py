"""The entry: explore a model with one of the engines."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from dra_spec.explorer.audit import Auditor, scouted
from dra_spec.explorer.auto import choose
from dra_spec.explorer.control import Control
from dra_spec.explorer.model import Model
from dra_spec.explorer.report import assemble
from dra_spec.explorer.result import Explored, Limits, Progress, Result
from dra_spec.explorer.trees import Trees

ENGINES = ("explicit", "plain", "symbolic", "auto")
_NO_LIMITS = Limits()


def explore(
    model: Model,
    limits: Limits = _NO_LIMITS,
    engine: str = "explicit",
    progress: Callable[[Progress], None] | None = None,
    interrupted: Callable[[], bool] | None = None,
    audit: bool = False,
) -> Result:
    """Explores the reachable states of a model breadth first and judges its promises.

    `engine`: "explicit" (compiled, decision trees), "symbolic" (decision diagrams, from the same trees), "plain" (the oracle, slow), or
    "auto" (explicit or symbolic, by what the trees look like; `Result.choice` says why). `progress` is called about ten times a second;
    `audit`: afterwards run the model's functions again in random surroundings of what they read (audit.py).
    `interrupted` is asked between pieces of work, and the first Ctrl-C counts as a yes: the result then says what was found so far.
    Raises `ModelError` for a mistake in the model's text, `EngineError` if a trace does not run again through the plain semantics,
    or if the audit fails.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine {engine!r}: expected one of {', '.join(ENGINES)}")
    with Control(limits, progress, interrupted) as control:
        engine, why = choose(model) if engine == "auto" else (engine, "")
        explored, trees = _search(model, engine, control)
        result = attrs.evolve(assemble(model, explored, control.seconds), choice=why)
        return attrs.evolve(result, audit=str(Auditor(trees()).run())) if audit else result


def _search(model: Model, engine: str, control: Control) -> tuple[Explored, Callable[[], Trees]]:
    """What was found, and the trees that were learned. An engine is loaded when it is asked for: its libraries take their time."""
    if engine == "plain":
        from dra_spec.explorer.plain import PlainSearch

        return PlainSearch(model, control).run(), lambda: scouted(model)
    if engine == "symbolic":
        from dra_spec.explorer.symbolic import SymbolicSearch

        symbolic = SymbolicSearch(model, control)
        return symbolic.run(), lambda: symbolic.trees
    from dra_spec.explorer.explicit import ExplicitSearch

    explicit = ExplicitSearch(model, control)
    return explicit.run(), lambda: explicit.machine.trees
