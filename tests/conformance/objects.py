"""JSON objects to the project's classes without any of the API server's rules: the cases hold objects that no server would accept."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from dra_spec.resources.decode import camel
from dra_spec.resources.meta import CelSelector
from dra_spec.resources.quantity import Quantity
from dra_spec.resources.slices import AttributeValue

T = TypeVar("T")


@functools.cache
def _fields(cls: Any) -> list[tuple[str, str, Any]]:
    """(attribute, key in JSON, type) of what can be read."""
    hints = typing.get_type_hints(cls)
    return [(a.name, a.metadata["key"] or camel(a.name), hints[a.name]) for a in attrs.fields(cls) if "read" in a.metadata]


def build(cls: type[T], data: Mapping[str, Any]) -> T:
    """The object. A field that is absent or null gets its default. Raises ValueError or TypeError for what cannot be read."""
    declared: Any = cls
    fields = _fields(declared)
    values = {name: _convert(hint, data[key]) for name, key, hint in fields if data.get(key) is not None}
    required = {a.name for a in attrs.fields(declared) if a.default is attrs.NOTHING} - set(values)
    return cls(**values, **{name: _zero(hint) for name, _, hint in fields if name in required})


def _zero(hint: Any) -> Any:
    """What Go has for a required field that is absent."""
    origin = typing.get_origin(hint)
    if origin is tuple:
        return ()
    if origin is not None and issubclass(origin, Mapping):
        return {}
    if hint is Quantity:
        return Quantity.of(0)
    if hint is Any:
        return None
    return build(hint, {}) if attrs.has(hint) else hint()


def _convert(hint: Any, value: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _convert(next(a for a in typing.get_args(hint) if a is not type(None)), value)
    if origin is tuple:
        return tuple(_convert(typing.get_args(hint)[0], item) for item in value)
    if origin is not None and issubclass(origin, Mapping):
        return {key: _convert(typing.get_args(hint)[1], item) for key, item in value.items()}
    if hint is Quantity:
        return Quantity.parse(str(value["value"] if isinstance(value, dict) else value))
    if hint is AttributeValue:
        kind, content = next(iter(value.items()), ("", ""))
        return AttributeValue(kind, tuple(content) if isinstance(content, list) else content)
    if hint is CelSelector:
        return CelSelector(expression=value.get("cel", {}).get("expression", ""))
    if isinstance(hint, type) and attrs.has(hint):
        return build(hint, value)
    return value
