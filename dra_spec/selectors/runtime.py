"""Values at run time, their equality and order, and errors.

bool, int, float, str, bytes, None, list stand for themselves; the rest has classes here. Errors travel as exceptions inside an
evaluation and become values at its border. Source: the CEL language definition, sections Values, Equality, Runtime Errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Any
from urllib.parse import SplitResult

import attrs

from dra_spec.resources.quantity import Quantity
from dra_spec.resources.semver import SemVer
from dra_spec.selectors.parser import Unsigned

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1


class Fault(Exception):
    """A run-time error of an expression. `kind`: its class, for example no-such-key."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message


class CostLimit(Exception):
    """The evaluation costs more than it may. Nothing absorbs this."""


def no_overload(function: str = "", *values: object) -> Fault:
    shown = f" for {function}({', '.join(type_name(v) for v in values)})" if function else ""
    return Fault("no-such-overload", f"no such overload{shown}")


@attrs.frozen
class Duration:
    """Nanoseconds."""

    nanos: int


@attrs.frozen
class Timestamp:
    """Nanoseconds since 1970. `offset`: of the time zone that it was written with, in seconds, for printing only."""

    nanos: int
    offset: int = attrs.field(default=0, eq=False)


@attrs.frozen(eq=False)
class Optional:
    """A value that may be absent."""

    value: Any = None
    present: bool = False


NONE = Optional()


@attrs.frozen
class TypeValue:
    """A type as a value."""

    name: str


@attrs.frozen
class Format:
    """A named format; `regex` is the length that the cost model assumes for it."""

    name: str
    regex: int


@attrs.frozen
class Url:
    """A parsed URL; `host` as written, with its port."""

    text: str
    parts: SplitResult
    path: str


Ip = IPv4Address | IPv6Address
Cidr = IPv4Interface | IPv6Interface


class Map(Mapping[Any, Any]):
    """A CEL map: numbers of all kinds are one key if they are equal, and true is not 1. `default`: what a missing key gives."""

    __slots__ = ("_items", "default")

    def __init__(self, items: list[tuple[Any, Any]] | Mapping[Any, Any] = (), default: Map | None = None) -> None:  # type: ignore[assignment]
        pairs = items.items() if isinstance(items, Mapping) else items
        self._items: dict[Any, tuple[Any, Any]] = {key_of(k): (k, v) for k, v in pairs}
        self.default = default

    def __getitem__(self, key: Any) -> Any:
        found = self._items.get(key_of(key))
        if found is not None:
            return found[1]
        if self.default is not None:
            return self.default
        raise Fault("no-such-key", f"no such key: {show(key)}")

    def __contains__(self, key: Any) -> bool:
        try:
            return key_of(key) in self._items
        except Fault:
            return False

    def __iter__(self) -> Iterator[Any]:
        return (k for k, _ in self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def insert(self, key: Any, value: Any) -> None:
        """For a map under construction. Raises Fault for a key that is there already."""
        stands = key_of(key)
        if stands in self._items:
            raise Fault("duplicate-key", f"the key {show(key)} is there already")
        self._items[stands] = (key, value)


def key_of(key: Any) -> Any:
    """A hashable stand-in that is equal for equal keys."""
    if isinstance(key, bool):
        return ("bool", key)
    if isinstance(key, int):
        return ("number", int(key))
    if isinstance(key, float):
        return ("number", int(key)) if key.is_integer() else ("double", key)
    if isinstance(key, str):
        return key
    raise Fault("unsupported-key-type", f"a {type_name(key)} is no key of a map")


_NAMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "bool"),
    (Unsigned, "uint"),
    (int, "int"),
    (float, "double"),
    (str, "string"),
    (bytes, "bytes"),
    (list, "list"),
    (Map, "map"),
    (Quantity, "kubernetes.Quantity"),
    (SemVer, "kubernetes.Semver"),
    (Duration, "google.protobuf.Duration"),
    (Timestamp, "google.protobuf.Timestamp"),
    (Optional, "optional_type"),
    (TypeValue, "type"),
    ((IPv4Interface, IPv6Interface), "net.CIDR"),
    ((IPv4Address, IPv6Address), "net.IP"),
    (Url, "kubernetes.URL"),
    (Format, "kubernetes.NamedFormat"),
)


def type_name(value: object) -> str:
    return next((name for python, name in _NAMES if isinstance(value, python)), "null_type" if value is None else "error")


def show(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# Values whose comparison with another type is an error; all others are just unequal to it.
_STRICT = (Quantity, SemVer, IPv4Address, IPv6Address, Url, Format)


def equal(left: Any, right: Any) -> bool:
    """`left == right`. Raises Fault where the left value does not know the right one."""
    if left is None or right is None:
        return left is right
    if is_number(left) and is_number(right):
        return bool(left == right) if isinstance(left, int) == isinstance(right, int) else float(left) == float(right)
    if isinstance(left, (*_STRICT, IPv4Interface, IPv6Interface)):
        if type_name(left) != type_name(right):
            raise no_overload("_==_", left, right)
        if isinstance(left, IPv4Interface | IPv6Interface):
            return bool(left.with_prefixlen == right.with_prefixlen)
        return bool(left.text == right.text if isinstance(left, Url) else left == right)
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(_not_unequal(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, Map):
        return isinstance(right, Map) and len(left) == len(right) and all(k in right and _not_unequal(v, right[k]) for k, v in left.items())
    if isinstance(left, Optional):
        if not isinstance(right, Optional) or left.present != right.present:
            return False
        return not left.present or equal(left.value, right.value)
    return type_name(left) == type_name(right) and bool(left == right)


def _not_unequal(left: Any, right: Any) -> bool:
    """Inside lists and maps only a clear no makes a difference: upstream takes an error there for equal."""
    try:
        return equal(left, right)
    except Fault:
        return True


def _quietly(left: Any, right: Any) -> bool:
    """For membership an error counts as unequal."""
    try:
        return equal(left, right)
    except Fault:
        return False


includes_item = _quietly


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1. Raises Fault for values without an order between them."""
    if type(left) is int and type(right) is int:
        return (left > right) - (left < right)
    if is_number(left) and is_number(right):
        if math.isnan(left) or math.isnan(right):
            raise Fault("invalid-argument", "NaN values cannot be ordered")
        if isinstance(left, int) != isinstance(right, int) and max(abs(left), abs(right)) < 2.0**64:
            left, right = float(left), float(right)  # as upstream compares them, which loses the last digits
        return int(left > right) - int(left < right)
    if type_name(left) == type_name(right):
        if isinstance(left, bool | str | bytes):
            a, b = (left.encode(), right.encode()) if isinstance(left, str) else (left, right)
            return int(a > b) - int(a < b)
        if isinstance(left, Duration | Timestamp):
            return int(left.nanos > right.nanos) - int(left.nanos < right.nanos)
    raise no_overload("compare", left, right)


def size_of(value: object) -> int:
    """Size as the cost model sees it: 1 for what has none."""
    if isinstance(value, str | bytes | list | Map):
        return len(value)
    if isinstance(value, IPv4Interface | IPv6Interface):
        return -(-value.network.prefixlen // 8)
    if isinstance(value, IPv4Address | IPv6Address):
        return -(-value.max_prefixlen // 8)
    return 1
