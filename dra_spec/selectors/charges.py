"""What evaluating costs, step by step, and the run-time limit. Numbers: k8s.io/apiserver pkg/cel/library cost, cel-go v0.29 runtime cost.

Units are CEL cost units. An error as an argument counts as a value of size 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dra_spec.resources.quantity import Quantity
from dra_spec.resources.semver import SemVer
from dra_spec.selectors.runtime import Cidr, CostLimit, Format, Ip, Map, Optional, Url, size_of

LIMIT = 1_000_000  # resource.k8s.io/v1 CELSelectorExpressionMaxCost
RUNTIME_LIMIT = 1_000_000
LIST_BASE, MAP_BASE, STRUCT_BASE = 10, 30, 40
STRING_FACTOR, REGEX_FACTOR = 0.1, 0.25


class Meter:
    """Counts, and stops the evaluation at the limit. Raises CostLimit from charge()."""

    __slots__ = ("cost", "limit")

    def __init__(self, limit: int = RUNTIME_LIMIT) -> None:
        self.cost = 0
        self.limit = limit

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimit


def scan(value: object, times: float = 1) -> int:
    """Reading a text once, or so many times."""
    return math.ceil(size_of(value) * (times * STRING_FACTOR))


def _traversal(value: Any) -> int:
    if isinstance(value, str):
        return int(len(value.encode()) * STRING_FACTOR)
    if isinstance(value, bytes):
        return int(len(value) * STRING_FACTOR)
    if isinstance(value, list):
        return sum(_traversal(v) for v in value)
    if isinstance(value, Map):
        return sum(_traversal(k) + _traversal(v) for k, v in value.items())
    return 1


def _regex(text: object, pattern_length: int) -> int:
    return math.ceil((1 + size_of(text)) * STRING_FACTOR) * math.ceil(pattern_length * REGEX_FACTOR)


_TRAVERSING = frozenset(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"])
_SCANNING = frozenset(
    ["url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"]
)
_ALLOCATING = {"list_slice": 1, "lists_range": 1, "list_reverse": 1}
_UNIT_EQUALITY = (Quantity, SemVer, Format, Url)


def call_cost(function: str, overload: str, args: Sequence[Any], result: Any) -> int:
    """`overload`: "" if the checker left several open."""
    found = _list_cost(overload, args, result)
    if found is None:
        found = _kubernetes_cost(function, overload, args, result)
    return found if found is not None else _standard_cost(overload, args)


def _list_cost(overload: str, args: Sequence[Any], result: Any) -> int | None:
    if overload in _ALLOCATING:
        return size_of(result) + 1 + LIST_BASE
    if overload in ("list_flatten", "list_flatten_int"):
        depth = args[1] if len(args) == 2 and isinstance(args[1], int) else 1
        return size_of(args[0]) * (depth if depth >= 0 else 1) + 1 + LIST_BASE
    if overload == "list_distinct" or overload.endswith("_sort"):
        return size_of(args[0]) ** 2 * 2 + 1 + LIST_BASE
    if overload.endswith("_sortByAssociatedKeys"):
        return size_of(args[1]) ** 2 * 2 + 1 + LIST_BASE
    if overload.startswith("list_sets_"):
        return 1 + size_of(args[0]) * size_of(args[1]) * (2 if "equivalent" in overload else 1)
    return None


def _kubernetes_cost(function: str, overload: str, args: Sequence[Any], result: Any) -> int | None:
    if function in _TRAVERSING:
        return _traversal(args[0])
    if function in _SCANNING:
        return scan(args[0])
    if function in ("replace", "split", "ip.isCanonical"):
        return scan(args[0], 2)
    if function == "join":
        return scan(result, 2)
    if function in ("find", "findAll"):
        return _regex(args[0], size_of(args[1]))
    if function == "ip":
        return 1 if overload == "cidr_ip" else scan(args[0])
    if function in ("containsIP", "containsCIDR"):
        cost = math.ceil(2 * size_of(args[0]) * STRING_FACTOR)
        if function == "containsCIDR":
            cost += scan(args[0]) + 1
        return cost + (scan(args[1]) if overload.endswith("_string") else 0)
    if function == "validate" and isinstance(args[0], Format):
        return _regex(args[1], args[0].regex)
    if function == "_==_" and isinstance(args[0], (*_UNIT_EQUALITY, Ip, Cidr)):
        return 1
    return None


def _standard_cost(overload: str, args: Sequence[Any]) -> int:
    if overload in ("starts_with_string", "ends_with_string"):
        return scan(args[1])
    if overload in ("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"):
        return scan(args[0])
    if overload == "in_list":
        return _size(args[1])
    if overload in ("equals", "not_equals") or (overload.endswith(("_string", "_bytes")) and overload.startswith(("less_", "greater_"))):
        return math.ceil(min(_size(args[0]), _size(args[1])) * STRING_FACTOR)
    if overload in ("add_string", "add_bytes"):
        return math.ceil((_size(args[0]) + _size(args[1])) * STRING_FACTOR)
    if overload in ("matches", "matches_string"):
        return _regex(args[0], size_of(args[1]))
    if overload == "contains_string":
        return scan(args[0]) * scan(args[1])
    return 1


def _size(value: object) -> int:
    return _size(value.value) if isinstance(value, Optional) and value.present else size_of(value)
