"""CEL selectors of devices, in the environment that Kubernetes gives them.

Public API
----------
compile_selector(expression, where, environment) -> Selector
    raises SelectorSyntaxError (a ManifestError: file, line, CEL line and column, caret)
admit_selector(expression, where, environment) -> Selector
    as the API server writes it: length and estimated cost are limited too; admit_derived likewise
Selector.matches(SelectorDevice) -> bool | SelectorError     run-time errors are values
Selector.max_cost                                            the estimate of the API server
compile_derived(expression, where, environment) -> DerivedAttribute; .value(SelectorDevice) -> value | SelectorError
SelectorDevice.of(driver, pool, device)                      a device of a slice as selectors see it
Environment, STORED                                          what the feature gates allow; what the scheduler uses
SelectorError, SelectorSyntaxError                           each with a `kind`: the class of the error
dra_spec.selectors.analysis                                  what a selector reads, and what can satisfy it

Kubernetes 1.37 is the reference. An absent domain is an empty map, an absent identifier is an error, `&&` and `||` absorb errors.
"""

from dra_spec.selectors.compiler import (
    DerivedAttribute,
    Selector,
    admit_derived,
    admit_selector,
    compile_derived,
    compile_selector,
)
from dra_spec.selectors.device import CelAttribute, SelectorDevice
from dra_spec.selectors.environments import STORED, Environment
from dra_spec.selectors.errors import SelectorError, SelectorSyntaxError, UnsupportedFeature

__all__ = [
    "STORED",
    "CelAttribute",
    "DerivedAttribute",
    "Environment",
    "Selector",
    "SelectorDevice",
    "SelectorError",
    "SelectorSyntaxError",
    "UnsupportedFeature",
    "admit_derived",
    "admit_selector",
    "compile_derived",
    "compile_selector",
]
