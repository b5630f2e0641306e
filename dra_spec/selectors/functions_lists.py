"""Functions on lists, sets and optional values by overload: cel-go extensions lists v3 and sets, optional library, Kubernetes' lists."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from dra_spec.resources.quantity import Quantity
from dra_spec.resources.semver import SemVer
from dra_spec.selectors import functions_standard as standard
from dra_spec.selectors.functions_standard import FUNCTIONS
from dra_spec.selectors.parser import Unsigned
from dra_spec.selectors.runtime import NONE, Duration, Fault, Map, Optional, Timestamp, compare, includes_item, no_overload, type_name

MAX_RANGE = 10_000_000
_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ADD: dict[str, tuple[Any, str]] = {
    "int": (0, "add_int64"),
    "uint": (Unsigned(0), "add_uint64"),
    "double": (0.0, "add_double"),
    "duration": (Duration(0), "add_duration_duration"),
}


def _is_sorted(items: list[Any]) -> bool:
    for item in items:
        _ordered(item)
    return not any(_greater(a, b) for a, b in itertools.pairwise(items))


def _greater(a: Any, b: Any) -> bool:
    """Values without an order between them do not disturb the order."""
    try:
        return compare(a, b) > 0
    except Fault:
        return False


def _ordered(item: Any) -> None:
    if isinstance(item, list | Map | Optional | Quantity | SemVer) or item is None:
        raise no_overload("compare", item)


def _sum(kind: str) -> Callable[[list[Any]], Any]:
    zero, overload = _ADD[kind]

    def total(items: list[Any]) -> Any:
        result = zero
        for item in items:
            if type_name(item) != type_name(zero):
                raise no_overload("_+_", result, item)
            result = FUNCTIONS[overload](result, item)
        return result

    return total


def _extreme(name: str) -> Callable[[list[Any]], Any]:
    wanted = 1 if name == "min" else -1

    def pick(items: list[Any]) -> Any:
        if not items:
            raise Fault("empty-list", f"{name}() of an empty list")
        best = items[0]
        _ordered(best)
        for item in items[1:]:
            try:
                best = item if compare(best, item) == wanted else best
            except Fault:
                _ordered(item)  # values without an order between them: the first stays
        return best

    return pick


def _index_of(items: list[Any], wanted: Any) -> int:
    return next((i for i, item in enumerate(items) if includes_item(item, wanted)), -1)


def _last_index_of(items: list[Any], wanted: Any) -> int:
    return next((i for i in reversed(range(len(items))) if includes_item(items[i], wanted)), -1)


def includes(target: Any, wanted: Any, limit: int | None = None) -> bool:
    """Membership for a list, equality for anything else; what cannot be compared is not included."""
    if not isinstance(target, list):
        return includes_item(target, wanted)
    if limit is not None and len(target) > limit:
        raise Fault("includes-too-long", f"includes() takes at most {limit} values")
    return any(includes_item(item, wanted) for item in target)


def _contains_all(items: list[Any], wanted: list[Any]) -> bool:
    return all(any(includes_item(item, w) for item in items) for w in wanted)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0 or start > end or end > len(items):
        raise Fault("invalid-argument", f"slice from {start} to {end} of {len(items)} values")
    return items[start:end]


def _flatten(items: Any, depth: int = 1) -> list[Any]:
    if not isinstance(items, list):
        raise no_overload("flatten", items)
    if depth < 0:
        raise Fault("invalid-argument", "flatten() to a negative depth")
    out: list[Any] = []
    for item in items:
        out.extend(_flatten(item, depth - 1) if isinstance(item, list) and depth else [item])
    return out


def _range(count: int) -> list[int]:
    if not 0 <= count <= MAX_RANGE:
        raise Fault("invalid-argument", f"lists.range({count}): expected 0 to {MAX_RANGE}")
    return list(range(count))


def _distinct(items: list[Any]) -> list[Any]:
    out: list[Any] = []
    for item in items:
        if not any(includes_item(item, seen) for seen in out):
            out.append(item)
    return out


def _sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    if len(items) != len(keys):
        raise Fault("invalid-argument", f"{len(items)} values and {len(keys)} keys to sort by")
    for key in keys[:1]:
        if isinstance(key, list | Map | Optional | Quantity | SemVer) or key is None:
            raise Fault("invalid-argument", "the values to sort by have no order")
    if len({type_name(k) for k in keys}) > 1:
        raise Fault("invalid-argument", "the values to sort by have several types")

    def by_key(a: int, b: int) -> int:
        return compare(keys[a], keys[b])

    order = sorted(range(len(items)), key=functools.cmp_to_key(by_key))
    return [items[i] for i in order]


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise Fault("optional-none", "the optional value is absent")
    return optional.value


def _unwrap(items: list[Any]) -> list[Any]:
    if wrong := [i for i in items if not isinstance(i, Optional)]:
        raise Fault("invalid-argument", f"a {type_name(wrong[0])} is not optional")
    return [i.value for i in items if i.present]


def _of_non_zero(value: Any) -> Optional:
    if isinstance(value, Duration | Timestamp):
        zero = value.nanos == 0 if isinstance(value, Duration) else value.nanos == standard.to_timestamp(-62135596800 * 10**9).nanos
    else:
        zero = value is None or (isinstance(value, bool | int | float | str | bytes | list | Map) and not value)
    return NONE if zero else Optional(value, True)


FUNCTIONS.update(
    {
        "list_a_index_of_int": _index_of,
        "list_a_last_index_of_int": _last_index_of,
        "list_includes_dyn_dyn": includes,
        "list_sets_contains_list": _contains_all,
        "list_sets_equivalent_list": lambda a, b: _contains_all(a, b) and _contains_all(b, a),
        "list_sets_intersects_list": lambda a, b: any(includes_item(x, y) for x in a for y in b),
        "list_slice": _slice,
        "list_flatten": _flatten,
        "list_flatten_int": _flatten,
        "lists_range": _range,
        "list_reverse": lambda items: items[::-1],
        "list_distinct": _distinct,
        "list_first": lambda items: Optional(items[0], True) if items else NONE,
        "list_last": lambda items: Optional(items[-1], True) if items else NONE,
        "optional_of": lambda value: Optional(value, True),
        "optional_ofNonZeroValue": _of_non_zero,
        "optional_none": lambda: NONE,
        "optional_unwrap": _unwrap,
        "optional_unwrapOpt": _unwrap,
        "optional_value": _value,
        "optional_hasValue": lambda optional: optional.present,
    }
)
for _kind in _ORDERED:
    FUNCTIONS[f"list_{_kind}_is_sorted_bool"] = _is_sorted
    for _name in ("min", "max"):
        FUNCTIONS[f"list_{_kind}_{_name}_{_kind}"] = _extreme(_name)
    _long = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}.get(_kind, _kind)
    FUNCTIONS[f"list_{_long}_sort"] = lambda items: _sort_by(items, items)
    FUNCTIONS[f"list_{_long}_sortByAssociatedKeys"] = _sort_by
for _kind in _ADD:
    FUNCTIONS[f"list_{_kind}_sum_{_kind}"] = _sum(_kind)
