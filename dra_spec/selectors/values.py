"""Values of Kubernetes' CEL libraries that the CEL runtime does not have: Quantity and Semver, as small messages.

The text inside a message is equal exactly for equal values, so that `==` of messages is `==` of quantities.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from google.protobuf import (  # type: ignore[import-untyped, unused-ignore]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

from dra_spec.resources.quantity import Quantity
from dra_spec.resources.semver import SemVer

HIDDEN_FIELD = "dra_canonical"  # no expression may name it


def _messages() -> tuple[Any, Any, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="dra_spec_cel_values.proto", package="kubernetes", syntax="proto3")
    for name in ("Quantity", "Semver"):
        file.message_type.add(name=name).field.add(name=HIDDEN_FIELD, number=1, type=9, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    quantity, semver = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"kubernetes.{name}")) for name in ("Quantity", "Semver")
    )
    return pool, quantity, semver


POOL, _QUANTITY, _SEMVER = _messages()


def pack_quantity(quantity: Quantity) -> Any:
    return _QUANTITY(dra_canonical=f"{quantity.value.numerator}/{quantity.value.denominator}")


def pack_semver(version: SemVer) -> Any:
    return _SEMVER(dra_canonical=str(SemVer(version.major, version.minor, version.patch, version.pre)))


def unpack(value: Any) -> Quantity | SemVer:
    """The value in a message. Raises TypeError for anything else."""
    if isinstance(value, _QUANTITY):
        return Quantity(Fraction(value.dra_canonical))
    if isinstance(value, _SEMVER):
        return SemVer.parse(value.dra_canonical)
    raise TypeError("no such overload")


def quantity(text: str) -> Any:
    return pack_quantity(Quantity.parse(text))


def is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except ValueError:
        return False
    return True


def semver(text: str, normalize: bool = False) -> Any:
    return pack_semver(SemVer.parse(_normalized(text) if normalize else text))


def is_semver(text: str, normalize: bool = False) -> bool:
    try:
        SemVer.parse(_normalized(text) if normalize else text)
    except ValueError:
        return False
    return True


def _normalized(text: str) -> str:
    """Without a leading v, with minor and patch filled in, without leading zeros."""
    match = re.fullmatch(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(.*)", text, re.ASCII | re.DOTALL)
    if not match or (match.group(3) is None and match.group(4)):
        return text  # what was shortened must not carry a pre-release or build part
    return ".".join(str(int(part or "0")) for part in match.groups()[:3]) + match.group(4)


def compare(left: Any, right: Any) -> int:
    a, b = unpack(left), unpack(right)
    if isinstance(a, Quantity) and isinstance(b, Quantity):
        return (a > b) - (a < b)
    if isinstance(a, SemVer) and isinstance(b, SemVer):
        return (a > b) - (a < b)
    raise TypeError("no such overload")


def is_greater(left: Any, right: Any) -> bool:
    return compare(left, right) > 0


def is_less(left: Any, right: Any) -> bool:
    return compare(left, right) < 0


def _quantity(value: Any) -> Quantity:
    inner = unpack(value)
    if not isinstance(inner, Quantity):
        raise TypeError("no such overload")
    return inner


def add(left: Any, right: Any) -> Any:
    return pack_quantity(_quantity(left) + (Quantity.of(right) if type(right) is int else _quantity(right)))


def sub(left: Any, right: Any) -> Any:
    return pack_quantity(_quantity(left) - (Quantity.of(right) if type(right) is int else _quantity(right)))


def sign(value: Any) -> int:
    number = _quantity(value).value
    return (number > 0) - (number < 0)


def as_float(value: Any) -> float:
    return float(_quantity(value).value)


def version_part(name: str) -> Any:
    """The function `major`, `minor` or `patch` of a Semver."""

    def part(value: Any) -> int:
        inner = unpack(value)
        if not isinstance(inner, SemVer):
            raise TypeError("no such overload")
        return int(getattr(inner, name))

    return part


def includes(target: Any, wanted: Any) -> bool:
    """Membership for a list, equality for anything else."""
    if not isinstance(target, list):
        return _same(target, wanted)
    return any(_same(item, wanted) for item in target)


def _same(left: Any, right: Any) -> bool:
    # in CEL true is not 1, in Python it is
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
