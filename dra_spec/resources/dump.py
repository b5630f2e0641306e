"""Objects back to plain data in v1 form; reading what this writes gives an equal object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dra_spec.resources.decode import camel
from dra_spec.resources.meta import CelSelector
from dra_spec.resources.quantity import Quantity
from dra_spec.resources.slices import ApiObject, AttributeValue, CounterConsumption, CounterSet, DeviceClass, DeviceTaintRule, ResourceSlice

_GROUPS = {"DeviceClass", "ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceTaintRule"}


def dump(obj: ApiObject) -> dict[str, Any]:
    """The manifest of an object, as far as its fields are read. Fields at their default are left out."""
    version = "resource.k8s.io/v1" if obj.KIND in _GROUPS else "scheduling.k8s.io/v1beta1" if obj.KIND == "PodGroup" else "v1"
    fields = _object(obj)
    fields.setdefault("metadata", {})
    if isinstance(obj, (DeviceClass, ResourceSlice, DeviceTaintRule)):
        fields.setdefault("spec", {})
    return {"apiVersion": version, "kind": obj.KIND} | fields


def _object(obj: Any) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for attribute in attrs.fields(type(obj)):
        if "read" not in attribute.metadata:
            continue
        value = getattr(obj, attribute.name)
        default = attribute.default.factory() if isinstance(attribute.default, attrs.Factory) else attribute.default  # type: ignore[arg-type]
        if attribute.metadata["required"] or value != default:
            key = attribute.metadata["key"] or camel(attribute.name)
            if key == "counters" and isinstance(obj, (CounterSet, CounterConsumption)):
                result[key] = {k: {"value": str(q)} for k, q in value.items()}
            else:
                result[key] = _value(value)
    return result


def _value(value: Any) -> Any:
    if isinstance(value, CelSelector):
        return {"cel": {"expression": value.expression}}
    if isinstance(value, AttributeValue):
        return {value.kind: list(value.value) if isinstance(value.value, tuple) else value.value}
    if isinstance(value, Quantity):
        return str(value)
    if attrs.has(type(value)):
        return _object(value)
    if isinstance(value, Mapping):
        return {k: _value(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_value(v) for v in value]
    return value
