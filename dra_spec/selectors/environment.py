"""The CEL environments of device selectors on cel-expr-python (the C++ runtime).

There are two: one only type-checks, with the types that Kubernetes declares; the other only evaluates, on unchecked trees with dynamic
values, because the runtime cannot tell two message types apart when it picks an overload. Source: k8s.io/apiserver
pkg/cel/environment, k8s.io/dynamic-resource-allocation cel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from dra_spec.resources.quantity import Quantity
from dra_spec.resources.semver import SemVer
from dra_spec.selectors import values
from dra_spec.selectors.device import CelAttribute, SelectorDevice

DOMAIN = "dra_domain"  # looks up a domain; a missing one is an empty map
COMPARABLE = "dra_comparable"  # true, or an error where `==` of Kubernetes' values is one
FIELDS = ("driver", "attributes", "capacity", "allowMultipleAllocations")

# Functions and macros that Kubernetes has and that are not encoded here: their use is undecided, not an error.
_NOT_ENCODED_TEXT = """
    sets sets.contains sets.equivalent sets.intersects
    lists lists.range isSorted sum min max indexOf lastIndexOf sort sortBy distinct reverse slice flatten first last
    find findAll
    isInteger asInteger optional optional.unwrap unwrapOpt
    url isURL getScheme getHost getHostname getPort getEscapedPath getQuery
    ip isIP ip.isCanonical family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast
    cidr isCIDR containsIP containsCIDR masked prefixLength
    format format.named validate
    authorizer
    all exists exists_one existsOne filter map transformList transformMap transformMapEntry
"""
NOT_ENCODED = frozenset(_NOT_ENCODED_TEXT.split())

_T = cel.Type
_QUANTITY = _T("kubernetes.Quantity")
_SEMVER = _T("kubernetes.Semver")

# name, member?, Python function, [(parameter types, result type)] as Kubernetes declares them
_Signatures = list[tuple[list[Any], Any]]
_FUNCTIONS: list[tuple[str, bool, Callable[..., Any], _Signatures]] = [
    ("quantity", False, values.quantity, [([_T.STRING], _QUANTITY)]),
    ("isQuantity", False, values.is_quantity, [([_T.STRING], _T.BOOL)]),
    ("semver", False, values.semver, [([_T.STRING], _SEMVER), ([_T.STRING, _T.BOOL], _SEMVER)]),
    ("isSemver", False, values.is_semver, [([_T.STRING], _T.BOOL), ([_T.STRING, _T.BOOL], _T.BOOL)]),
    ("compareTo", True, values.compare, [([_QUANTITY, _QUANTITY], _T.INT), ([_SEMVER, _SEMVER], _T.INT)]),
    ("isGreaterThan", True, values.is_greater, [([_QUANTITY, _QUANTITY], _T.BOOL), ([_SEMVER, _SEMVER], _T.BOOL)]),
    ("isLessThan", True, values.is_less, [([_QUANTITY, _QUANTITY], _T.BOOL), ([_SEMVER, _SEMVER], _T.BOOL)]),
    ("add", True, values.add, [([_QUANTITY, _QUANTITY], _QUANTITY), ([_QUANTITY, _T.INT], _QUANTITY)]),
    ("sub", True, values.sub, [([_QUANTITY, _QUANTITY], _QUANTITY), ([_QUANTITY, _T.INT], _QUANTITY)]),
    ("sign", False, values.sign, [([_QUANTITY], _T.INT)]),
    ("asApproximateFloat", True, values.as_float, [([_QUANTITY], _T.DOUBLE)]),
    ("major", True, values.version_part("major"), [([_SEMVER], _T.INT)]),
    ("minor", True, values.version_part("minor"), [([_SEMVER], _T.INT)]),
    ("patch", True, values.version_part("patch"), [([_SEMVER], _T.INT)]),
    ("includes", True, values.includes, [([_T.DYN, _T.DYN], _T.BOOL)]),
]


def _domain(domains: Any, name: Any) -> Any:
    return domains.get(name, {})


def _comparable(left: Any, right: Any) -> bool:
    """A version or quantity on the left of `==` takes nothing but its own kind on the right."""
    try:
        values.unpack(left)
    except TypeError:
        return True
    if type(left) is not type(right):
        raise TypeError("no such overload")
    return True


def _extensions(typed: bool) -> list[Any]:
    declarations = []
    for name, member, function, signatures in _FUNCTIONS:
        overloads = []
        if typed:
            for i, (parameters, result) in enumerate(signatures):
                overloads.append(cel.Overload(f"{name}_{i}", result, parameters, member))
        else:
            for arity in sorted({len(parameters) for parameters, _ in signatures}):
                overloads.append(cel.Overload(f"{name}_{arity}", _T.DYN, [_T.DYN] * arity, member, function))
        declarations.append(cel.FunctionDecl(name, overloads))
    if not typed:
        for name, function in ((DOMAIN, _domain), (COMPARABLE, _comparable)):
            declarations.append(cel.FunctionDecl(name, [cel.Overload(name, _T.DYN, [_T.DYN, _T.DYN], False, function)]))
    return [ext_strings.ExtStrings(2), ext_optional.ExtOptional(), ext_bindings.ExtBindings(), cel.CelExtension("dra", declarations)]


def _checker() -> Any:
    domain = _T.Map(_T.STRING, _T.DYN)
    variables = {
        "device.driver": _T.STRING,
        "device.attributes": _T.Map(_T.STRING, domain),
        "device.capacity": _T.Map(_T.STRING, _T.Map(_T.STRING, _QUANTITY)),
        "device.allowMultipleAllocations": _T.BOOL,
    }
    return cel.NewEnv(descriptor_pool=values.POOL, variables=variables, extensions=_extensions(True))


CHECKER = _checker()
EVALUATOR = cel.NewEnv(descriptor_pool=values.POOL, variables={"device": _T.DYN}, extensions=_extensions(False))


def variables(device: SelectorDevice) -> dict[str, Any]:
    """The variables of an evaluation."""
    return {
        "device": {
            "driver": device.driver,
            "attributes": {domain: {k: _attribute(v) for k, v in ids.items()} for domain, ids in device.attributes.items()},
            "capacity": {domain: {k: values.pack_quantity(v) for k, v in ids.items()} for domain, ids in device.capacity.items()},
            "allowMultipleAllocations": device.allow_multiple_allocations,
        }
    }


def _attribute(value: CelAttribute) -> Any:
    if isinstance(value, tuple):
        return [_attribute(item) for item in value]
    return values.pack_semver(value) if isinstance(value, SemVer) else value


def plain(value: Any) -> Any:
    """A result for a message: messages of ours as quantity or version."""
    try:
        inner = values.unpack(value)
    except TypeError:
        return value
    return f"the quantity {inner}" if isinstance(inner, Quantity) else f"the version {inner}"
