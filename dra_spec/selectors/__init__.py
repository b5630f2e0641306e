"""CEL selectors of devices, in a minimal form behind the final interface.

Public API
----------
compile_selector(expression, where) -> Selector
    raises SelectorSyntaxError (a ManifestError: file, line, CEL line and column, caret) or UnsupportedFeature
Selector.matches(SelectorDevice) -> bool | SelectorError     run-time errors are values
SelectorDevice.of(driver, pool, device)                      a device of a slice as selectors see it
SelectorError, UnsupportedFeature

Encoded: standard CEL, strings, optionals, cel.bind, quantity and semver libraries, includes(); a missing domain is an empty map, a
missing identifier is an error, `&&` and `||` absorb errors. Other libraries of Kubernetes raise UnsupportedFeature. Cost limits are
not encoded.
"""

from dra_spec.selectors.compiler import Selector, compile_selector
from dra_spec.selectors.device import SelectorDevice
from dra_spec.selectors.errors import SelectorError, SelectorSyntaxError, UnsupportedFeature

__all__ = ["Selector", "SelectorDevice", "SelectorError", "SelectorSyntaxError", "UnsupportedFeature", "compile_selector"]
