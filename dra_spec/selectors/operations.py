"""Operators and other small parts of an evaluation that are no library functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from dra_spec.selectors.dispatch import resolver
from dra_spec.selectors.frame import Growing
from dra_spec.selectors.functions_standard import to_int
from dra_spec.selectors.parser import Unsigned
from dra_spec.selectors.runtime import Fault, Map, Optional, includes_item, no_overload
from dra_spec.selectors.tree import Call
from dra_spec.selectors.types import Type

ORDERS = {"_<_": (-1,), "_<=_": (-1, 0), "_>_": (1,), "_>=_": (0, 1)}
_INT_ARITHMETIC: dict[str, Callable[[int, int], int]] = {"_+_": operator.add, "_-_": operator.sub, "_*_": operator.mul}
ZERO_OF: dict[str, Any] = {"bool": False, "int": 0, "uint": Unsigned(0), "double": 0.0, "string": "", "bytes": b""}


def quick(node: Call) -> Callable[[list[Any]], Any]:
    """The resolved function, with a short way for the arithmetic of ints."""
    resolved = resolver(node)
    arithmetic = _INT_ARITHMETIC.get(node.function)
    if arithmetic is None:
        return resolved

    def apply(args: list[Any]) -> Any:
        if len(args) == 2 and type(args[0]) is int and type(args[1]) is int:
            return to_int(arithmetic(args[0], args[1]))
        return resolved(args)

    return apply


def runtime_name(constant: Type) -> str:
    return constant.kind if constant.kind in ("list", "map", "type") else constant.name or str(constant)


def new_map(pairs: list[tuple[Any, Any]]) -> Map:
    return Map(pairs)  # of equal keys the last one counts


def concatenate(args: list[Any]) -> list[Any]:
    left, right = args
    if not isinstance(left, list) or not isinstance(right, list):
        raise no_overload("_+_", left, right)
    if isinstance(left, Growing):
        left.extend(right)
        return left
    return left + right


def insert(args: list[Any]) -> Map:
    """In place: only transformMap() and transformMapEntry() insert, and only into the map that they build."""
    into: Map = args[0]
    if len(args) == 2 and not isinstance(args[1], Map):
        raise no_overload("cel.@mapInsert", *args)
    for key, value in [(args[1], args[2])] if len(args) == 3 else list(args[1].items()):
        into.insert(key, value)
    return into


def present(value: Any) -> list[Any]:
    if not isinstance(value, Optional):
        raise Fault("invalid-argument", "expected an optional value")
    return [value.value] if value.present else []


def is_in(element: Any, container: Any) -> bool:
    if isinstance(container, Map):
        return element in container
    if isinstance(container, list):
        return any(includes_item(item, element) for item in container)
    raise no_overload("@in", element, container)


def elements(value: Any, pairs: bool) -> list[tuple[Any, Any]]:
    if isinstance(value, Map):
        return list(value.items())
    if isinstance(value, list):
        return list(enumerate(value)) if pairs else [(item, None) for item in value]
    raise Fault("not-iterable", "only lists and maps can be iterated")
