"""Which overload of a function the values at run time ask for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dra_spec.selectors.declarations import Overload, functions
from dra_spec.selectors.functions_standard import FUNCTIONS
from dra_spec.selectors.runtime import Map, Optional, no_overload, type_name
from dra_spec.selectors.tree import Call
from dra_spec.selectors.types import Type

_UNGUARDED = frozenset(["flatten"])  # these look at their arguments themselves
_KIND_OF_NAME = {"google.protobuf.Duration": "duration", "google.protobuf.Timestamp": "timestamp", "null_type": "null"}


_EXACT: dict[str, type] = {"bool": bool, "int": int, "double": float, "string": str, "bytes": bytes}


@functools.cache
def _candidates(function: str, count: int, method: bool) -> tuple[tuple[Overload, Callable[..., Any]], ...]:
    return tuple(
        (overload, FUNCTIONS[overload.id])
        for overload in functions()[function]
        if overload.method == method and len(overload.args) == count and overload.id in FUNCTIONS
    )


def resolver(node: Call) -> Callable[[list[Any]], Any]:
    """What a call does with its arguments. It raises Fault: that of the function, or no-such-overload."""
    candidates = _candidates(node.function, len(node.args) + (node.target is not None), node.target is not None)
    # the checker's choice first
    ordered = sorted(candidates, key=lambda c: c[0].id not in node.overloads)
    unguarded = node.function in _UNGUARDED
    tests = [([_test(a) for a in overload.args], function) for overload, function in ordered]

    def apply(args: list[Any]) -> Any:
        for expected, function in tests:
            if unguarded or all(test(value) for test, value in zip(expected, args, strict=True)):
                return function(*args)
        raise no_overload(node.function, *args)

    return apply


def _test(expected: Type) -> Callable[[Any], bool]:
    python = _EXACT.get(expected.kind)
    return (lambda value: type(value) is python) if python is not None else (lambda value: _is(value, expected))


def _is(value: Any, expected: Type) -> bool:
    """As far as upstream looks: of a list or map at the first element only."""
    if expected.kind in ("param", "dyn"):
        return True
    if expected.kind == "list":
        return isinstance(value, list) and (not value or _is(value[0], expected.params[0]))
    if expected.kind == "map":
        return isinstance(value, Map)
    if expected.kind == "opaque" and expected.params:
        return isinstance(value, Optional)
    name = type_name(value)
    return _KIND_OF_NAME.get(name, name) == (expected.name or expected.kind)
