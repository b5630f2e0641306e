"""A generic explicit-state model checker: the modelling API, the engines, their results. It knows no word of Kubernetes."""

from typing import TYPE_CHECKING, Any

from dra_spec.explorer.model import ModelError
from dra_spec.explorer.result import ActionResult, EngineError, Limits, Progress, PropertyResult, Result, Step, Trace

if TYPE_CHECKING:
    from dra_spec.explorer.check import explore
else:

    def __getattr__(name: str) -> Any:
        """`explore` is loaded when it is asked for: who only looks at models and results needs no NumPy."""
        if name != "explore":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from dra_spec.explorer.check import explore

        return explore


__all__ = [
    "ActionResult",
    "EngineError",
    "Limits",
    "ModelError",
    "Progress",
    "PropertyResult",
    "Result",
    "Step",
    "Trace",
    "explore",
]
