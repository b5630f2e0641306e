"""Attributes that a request computes from a device for its constraints (KEP-6080)."""

from __future__ import annotations

from dra_spec.allocation.errors import FatalAllocation
from dra_spec.resources.semver import SemVer
from dra_spec.resources.slices import AttributeValue
from dra_spec.selectors import (
    STORED,
    CelAttribute,
    Environment,
    SelectorDevice,
    SelectorError,
    SelectorSyntaxError,
    compile_derived,
)


def derived(name: str, expression: str, device: SelectorDevice, environment: Environment = STORED) -> AttributeValue:
    """The value for a device.

    Raises FatalAllocation if there is none: upstream aborts the attempt (the KEP's text says that only the device is passed over).
    """
    try:
        value = compile_derived(expression, environment=environment).value(device)
    except SelectorSyntaxError as error:
        raise FatalAllocation(f"derived attribute {name}: {error}") from None
    if isinstance(value, SelectorError):
        raise FatalAllocation(f"derived attribute {name} on device {device.name}: {value.message}")
    return as_attribute(value)


def as_attribute(value: CelAttribute) -> AttributeValue:
    """The attribute that a slice would hold; an empty list is a list of strings."""
    if isinstance(value, tuple):
        return AttributeValue(_kind(value[0] if value else "") + "s", tuple(_plain(v) for v in value))  # type: ignore[arg-type]
    return AttributeValue(_kind(value), _plain(value))


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    return "int" if isinstance(value, int) else "version" if isinstance(value, SemVer) else "string"


def _plain(value: int | bool | str | SemVer) -> int | bool | str:
    return str(value) if isinstance(value, SemVer) else value
