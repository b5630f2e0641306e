"""The entry: explore a model with one of the engines."""

from __future__ import annotations

from collections.abc import Callable

from dra_spec.explorer.control import Control
from dra_spec.explorer.explicit import ExplicitSearch
from dra_spec.explorer.model import Model
from dra_spec.explorer.plain import PlainSearch
from dra_spec.explorer.report import assemble
from dra_spec.explorer.result import Limits, Progress, Result

ENGINES = ("explicit", "plain")
_NO_LIMITS = Limits()


def explore(
    model: Model,
    limits: Limits = _NO_LIMITS,
    engine: str = "explicit",
    progress: Callable[[Progress], None] | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> Result:
    """Explores the reachable states of a model breadth first and judges its promises.

    `engine`: "explicit" (compiled, decision trees) or "plain" (the oracle, slow). `progress` is called about ten times a second;
    `interrupted` is asked between pieces of work, and the first Ctrl-C counts as a yes: the result then says what was found so far.
    Raises `ModelError` for a mistake in the model's text, `EngineError` if a trace does not run again through the plain semantics.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine {engine!r}: expected one of {', '.join(ENGINES)}")
    with Control(limits, progress, interrupted) as control:
        search = PlainSearch(model, control) if engine == "plain" else ExplicitSearch(model, control)
        explored = search.run()
        return assemble(model, explored, control.seconds)
