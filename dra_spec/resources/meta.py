"""Parts that several kinds share: metadata, node selectors, CEL selectors, tolerations, opaque configuration."""

# ruff: noqa: RUF009 - f() and at() make attrs fields, they do not give defaults

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from dra_spec.resources import names
from dra_spec.resources.decode import at, boolean, checked, f, integer, items, mapping, obj, raw, string
from dra_spec.resources.problems import Where
from dra_spec.resources.tree import Node

MAX_EXPRESSION = 10 * 1024
_INTEGER = re.compile(r"[-+]?\d+", re.ASCII)


@attrs.frozen(eq=False)
class Source:
    """The text that an object was read from: file and tree (after conversion to v1)."""

    file: str
    node: Node

    def where(self, path: str = "") -> Where:
        """Where a field path such as `spec.devices.requests[0]` stands; the nearest thing around it if it is not written."""
        node = self.node.at(path)
        return Where(self.file, node.line, node.column, path, node.block)

    def line(self, path: str = "") -> int:
        return self.where(path).line


@attrs.frozen(kw_only=True)
class OwnerReference:
    api_version: str = f(string(), default="")
    kind: str = f(string(), default="")
    name: str = f(string(), default="")
    uid: str = f(string(), default="")
    controller: bool = f(boolean, default=False)
    block_owner_deletion: bool = f(boolean, default=False)


@attrs.frozen(kw_only=True)
class Metadata:
    """ObjectMeta, as far as DRA reads it. `name` is "" only where `generate_name` stands for it."""

    KNOWN: ClassVar[tuple[str, ...]] = ("managedFields", "selfLink", "deletionGracePeriodSeconds")

    name: str = f(string(names.dns_subdomain), default="")
    namespace: str = f(string(names.dns_label), default="")
    generate_name: str = f(string(lambda text: names.dns_subdomain(text + "x")), default="")
    labels: Mapping[str, str] = f(mapping(string(names.label_value), key=names.label_key), default=attrs.Factory(dict))
    annotations: Mapping[str, str] = f(mapping(string()), default=attrs.Factory(dict))
    uid: str = f(string(), default="")
    resource_version: str = f(string(), default="")
    generation: int = f(integer(0), default=0)
    creation_timestamp: str = f(string(), default="")
    deletion_timestamp: str = f(string(), default="")
    finalizers: tuple[str, ...] = f(items(string()), default=())
    owner_references: tuple[OwnerReference, ...] = f(items(obj(OwnerReference)), default=())


@attrs.frozen(kw_only=True)
class Requirement:
    """One expression of a node selector term. Operators: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str = f(string(), required=True)
    operator: str = f(string(choices=("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")), required=True)
    values: tuple[str, ...] = f(items(string()), default=())
    at: Where = at()


def requirement_rule(requirement: Requirement) -> str | None:
    """Which values an operator takes. Source: core validation, ValidateNodeSelectorRequirement."""
    operator, values = requirement.operator, requirement.values
    found = ", ".join(values) or "no value"
    if operator in ("In", "NotIn") and not values:
        return f"{operator} needs at least one value"
    if operator in ("Exists", "DoesNotExist") and values:
        return f"{operator} takes no values, found {found}"
    if operator in ("Gt", "Lt") and (len(values) != 1 or not _INTEGER.fullmatch(values[0])):
        return f"{operator} takes one integer, found {found}"
    return None


_REQUIREMENTS = items(checked(obj(Requirement), requirement_rule))


@attrs.frozen(kw_only=True)
class NodeSelectorTerm:
    match_expressions: tuple[Requirement, ...] = f(_REQUIREMENTS, default=())
    match_fields: tuple[Requirement, ...] = f(_REQUIREMENTS, default=())
    at: Where = at()


@attrs.frozen(kw_only=True)
class NodeSelector:
    """Terms are alternatives; inside a term everything must hold; an empty term holds nowhere."""

    terms: tuple[NodeSelectorTerm, ...] = f(items(obj(NodeSelectorTerm), low=1), key="nodeSelectorTerms", required=True)
    at: Where = at()


@attrs.frozen(kw_only=True)
class CelSelector:
    """A device selector: the text of its expression, and where the text stands."""

    expression: str
    at: Where = at()


@attrs.frozen(kw_only=True)
class _Cel:
    expression: str = f(string(max_bytes=MAX_EXPRESSION), required=True)


@attrs.frozen(kw_only=True)
class _Selector:
    cel: _Cel = f(obj(_Cel), required=True)


def selector(node: Node, path: str, ctx: Any) -> CelSelector:
    read: _Selector = obj(_Selector)(node, path, ctx)
    expression = node.value["cel"].value["expression"]
    return CelSelector(expression=read.cel.expression, at=ctx.where(expression, f"{path}.cel.expression"))


@attrs.frozen(kw_only=True)
class Toleration:
    """A device toleration. An empty effect means all effects, an empty key (with Exists) all keys."""

    key: str = f(string(), default="")
    operator: str = f(string(choices=("Exists", "Equal", "")), default="Equal")
    value: str = f(string(names.label_value), default="")
    effect: str = f(string(choices=("None", "NoSchedule", "NoExecute", "")), default="")
    toleration_seconds: int | None = f(integer(None))
    at: Where = at()


toleration = checked(obj(Toleration), lambda t: "operator Exists takes no value" if t.operator == "Exists" and t.value else None)


def _parameters(node: Node, path: str, ctx: Any) -> Any:
    if node.kind != "map":
        raise ctx.mismatch("a mapping (the driver's own configuration object)", node, path)
    return node.plain()


@attrs.frozen(kw_only=True)
class Opaque:
    """Configuration that only the driver reads."""

    driver: str = f(string(names.driver_name), required=True)
    parameters: Any = f(_parameters, required=True)


@attrs.frozen(kw_only=True)
class DeviceConfig:
    """One entry of `config`; `requests` empty: for all requests."""

    requests: tuple[str, ...] = f(items(string(), high=32, unique=""), default=())
    opaque: Opaque | None = f(obj(Opaque))
    source: str = f(string(choices=("FromClass", "FromClaim")), default="")
    at: Where = at()


__all__ = [
    "CelSelector",
    "DeviceConfig",
    "Metadata",
    "NodeSelector",
    "NodeSelectorTerm",
    "Opaque",
    "OwnerReference",
    "Requirement",
    "Source",
    "Toleration",
    "raw",
    "selector",
    "toleration",
]
