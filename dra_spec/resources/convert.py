"""Older versions of resource.k8s.io to v1, on the tree, so that every value keeps its line.

v1beta2 has the form of v1. v1beta1 wraps a device in `basic:` and writes an exact request flat; v1alpha3 does so too and writes a
capacity as a bare quantity. The classic API (v1alpha1, v1alpha2) is gone.
"""

from __future__ import annotations

from dra_spec.resources.decode import Context
from dra_spec.resources.problems import Problem, Where
from dra_spec.resources.tree import Node

GROUP = "resource.k8s.io"
VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha3")
CLASSIC = ("v1alpha2", "v1alpha1")
_FLAT = ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity", "derivedAttributes")


def to_v1(node: Node, kind: str, version: str, ctx: Context) -> Node:
    """The object in v1 form. Reports old forms in an object that says v1 (DRA119), and converts them all the same."""
    if kind == "ResourceSlice":
        return _replace(node, ["spec"], lambda spec, path: _each(spec, "devices", path, lambda d, p: _device(d, p, version, ctx)))
    if kind == "ResourceClaim":
        return _replace(
            node, ["spec", "devices"], lambda devices, path: _each(devices, "requests", path, lambda r, p: _request(r, p, version, ctx))
        )
    if kind == "ResourceClaimTemplate":
        return _replace(
            node,
            ["spec", "spec", "devices"],
            lambda devices, path: _each(devices, "requests", path, lambda r, p: _request(r, p, version, ctx)),
        )
    if kind == "DeviceTaintRule":
        return _replace(node, ["spec", "deviceSelector"], lambda s, path: _taint_selector(s, path, ctx))
    return node


def _replace(node: Node, keys: list[str], change: object, path: str = "") -> Node:
    if not keys:
        return change(node, path)  # type: ignore[operator, no-any-return]
    inner = node.get(keys[0])
    if inner is None:
        return node
    value = dict(node.value)
    value[keys[0]] = _replace(inner, keys[1:], change, f"{path}.{keys[0]}" if path else keys[0])
    return node.with_value(value)


def _each(node: Node, key: str, path: str, change: object) -> Node:
    inner = node.get(key)
    if inner is None or inner.kind != "list":
        return node
    changed = tuple(change(item, f"{path}.{key}[{i}]") if item.kind == "map" else item for i, item in enumerate(inner.value))  # type: ignore[operator]
    value = dict(node.value)
    value[key] = Node("list", changed, inner.line, inner.column)
    return node.with_value(value)


def _device(device: Node, path: str, version: str, ctx: Context) -> Node:
    basic = device.get("basic")
    if basic is not None and basic.kind == "map":
        if version in ("v1", "v1beta2"):
            text = (
                f"the field 'basic' belongs to v1beta1: in {version} what it holds ({', '.join(basic.value)}) stands in the device itself"
            )
            ctx.problems.append(Problem("DRA119", text, _key(device, "basic", path, ctx), "basic", ", ".join(basic.value)))
        device = device.with_value({k: v for k, v in device.value.items() if k != "basic"} | basic.value, basic.keys)
    capacity = device.get("capacity")
    if version == "v1alpha3" and capacity is not None and capacity.kind == "map":
        wrapped = {
            k: v if v.kind == "map" else Node("map", {"value": v}, v.line, v.column, keys={"value": (v.line, v.column)})
            for k, v in capacity.value.items()
        }
        device = device.with_value(dict(device.value) | {"capacity": capacity.with_value(wrapped)})
    return device


def _request(request: Node, path: str, version: str, ctx: Context) -> Node:
    flat = {k: v for k, v in request.value.items() if k in _FLAT}
    if not flat or "exactly" in request.value:
        return request
    if version in ("v1", "v1beta2"):
        for key in flat:
            text = f"the field {key!r} stands under 'exactly' in {version} (the flat form belongs to v1beta1)"
            ctx.problems.append(Problem("DRA119", text, _key(request, key, path, ctx), key, f"exactly.{key}"))
    first = next(iter(flat.values()))
    exactly = Node("map", flat, first.line, first.column, keys={k: request.keys[k] for k in flat})
    return request.with_value({k: v for k, v in request.value.items() if k not in flat} | {"exactly": exactly})


def _taint_selector(selector: Node, path: str, ctx: Context) -> Node:
    if selector.kind != "map":
        return selector
    gone = [k for k in ("deviceClassName", "selectors") if k in selector.value]
    for key in gone:
        text = f"the field {key!r} was removed in Kubernetes 1.35: a rule selects devices by driver, pool and device"
        ctx.problems.append(Problem("DRA119", text, _key(selector, key, path, ctx), key, "driver, pool, device"))
    return selector.with_value({k: v for k, v in selector.value.items() if k not in gone})


def _key(node: Node, key: str, path: str, ctx: Context) -> Where:
    line, column = node.keys[key]
    return Where(ctx.file, line, column, f"{path}.{key}")
