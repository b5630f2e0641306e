"""A generic explicit-state model checker: the modelling API, the engines, their results. It knows no word of Kubernetes."""

from dra_spec.explorer.check import explore
from dra_spec.explorer.model import ModelError
from dra_spec.explorer.result import ActionResult, EngineError, Limits, Progress, PropertyResult, Result, Step, Trace

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
