"""Slot values as plain data (text, numbers, lists, mappings), for trace files, JSON and stories.

The mapping is one way and deterministic: two values are compared by comparing their plain forms.
"""

from __future__ import annotations

import enum
import re
from typing import Any

import attrs

from dra_spec.explorer.values import Version

Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]


def plain(value: object) -> Plain:
    """The value as plain data; fields of records that have their default are left out."""
    if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, Version):
        return str(value)
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, (frozenset, set)):
        return sorted((plain(item) for item in value), key=repr)
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if attrs.has(type(value)):
        return {name: plain(item) for name, item in _told(value)}
    return str(value)


def _told(value: Any) -> list[tuple[str, Any]]:
    told = []
    for field in attrs.fields(type(value)):
        item = getattr(value, field.name)
        default = field.default
        if hasattr(default, "factory"):  # attrs.Factory
            default = attrs.NOTHING if default.takes_self else default.factory()
        if default is attrs.NOTHING or type(item) is not type(default) or item != default:
            told.append((field.name.lstrip("_"), item))
    return told


def differences(before: object, after: object) -> tuple[Plain, Plain]:
    """The plain forms of two values, reduced to the fields that differ if both are records of one kind."""
    if attrs.has(type(before)) and type(before) is type(after) and not isinstance(before, Version):
        kind: Any = type(before)
        changed = [f.name for f in attrs.fields(kind) if getattr(before, f.name) != getattr(after, f.name)]
        return (
            {name: plain(getattr(before, name)) for name in changed},
            {name: plain(getattr(after, name)) for name in changed},
        )
    return plain(before), plain(after)


_VERSION = re.compile(r"(?:rv|uid)/.*@(\d+)")


def is_version(value: Plain) -> bool:
    """Whether it is the plain form of a version."""
    return isinstance(value, str) and _VERSION.fullmatch(value) is not None


def short(value: Plain) -> str:
    """One-line text of plain data, without quotes and with little punctuation, for stories."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "{" + ", ".join(short(item) for item in value) + "}" if value else "nothing"
    if isinstance(value, dict) and isinstance(value.get("results"), list):
        return _allocation(value)
    if isinstance(value, dict):
        return "(" + ", ".join(f"{name} {short(item)}" for name, item in value.items()) + ")" if value else "(default)"
    if isinstance(value, str) and (version := _VERSION.fullmatch(value)):
        return f"v{version[1]}"
    return str(value)


def _allocation(value: dict[str, Plain]) -> str:
    """The devices of an allocation, and the nodes where they can be used."""
    results = value["results"]
    assert isinstance(results, list)
    devices = ", ".join(short(r["device"]) if isinstance(r, dict) and "device" in r else short(r) for r in results)
    nodes = value.get("nodes")
    return f"{devices or 'no device'}{f' on {short(nodes)}' if nodes else ''}"
