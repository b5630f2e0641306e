"""Node labels that are taken for device attributes, and attributes that are taken for labels.

Node Feature Discovery labels nodes; it publishes no devices, so no CEL selector sees what it finds. A label is asked for by the pod's node
selector or node affinity, an attribute by the claim.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.allocation.errors import UnsupportedFeature
from dra_spec.resources.claims import ResourceClaim, ResourceClaimTemplate
from dra_spec.resources.core import Pod
from dra_spec.resources.meta import CelSelector
from dra_spec.resources.reader import Loaded
from dra_spec.selectors import SelectorSyntaxError, compile_selector
from dra_spec.selectors.analysis import reads
from dra_spec.selectors.tree import Call, Ident, Literal, Node, Select, walk

_LABEL_DOMAINS = ("node.kubernetes.io", ".nfd.k8s-sigs.io")


def node_label_hints(loaded: Loaded) -> tuple[str, ...]:
    """Both directions, each with its place."""
    names = set(_published(loaded))
    found = dict.fromkeys(_in_selectors(loaded, names))
    for pod in loaded.pods:
        found |= dict.fromkeys(attribute_as_label(loaded, pod, names))
    return tuple(found)


def attribute_as_label(loaded: Loaded, pod: Pod, names: set[tuple[str, str]] | None = None) -> Iterator[str]:
    """The labels by which the pod chooses nodes that no node has, though devices publish an attribute of that name."""
    names = set(_published(loaded)) if names is None else names
    for place, key in _label_keys(pod):
        domain, _, ident = key.rpartition("/")
        if (domain, ident) in names and not any(key in n.labels for n in loaded.nodes):
            yield (
                f"{place}pod {pod.name} chooses nodes by the label {key}, which no node has; it is an attribute or a capacity of devices. "
                "Ask for it in the claim, with a CEL selector"
            )


def _label_keys(pod: Pod) -> Iterator[tuple[str, str]]:
    for key in pod.spec.node_selector:
        yield _before(pod.where("spec.nodeSelector").place), key
    affinity = pod.spec.affinity or {}
    wanted = affinity.get("nodeAffinity") if isinstance(affinity, dict) else None
    if isinstance(wanted, dict):
        for key in _keys(wanted):
            yield _before(pod.where("spec.affinity").place), key


def _keys(part: object) -> Iterator[str]:
    """The label names of all requirements in a node affinity, wherever they stand."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name == "matchExpressions" and isinstance(value, list):
                yield from (str(r["key"]) for r in value if isinstance(r, dict) and "key" in r)
            elif name != "matchFields":
                yield from _keys(value)
    elif isinstance(part, list):
        for each in part:
            yield from _keys(each)


def _before(place: str) -> str:
    return f"{place}: " if place else ""


def _published(loaded: Loaded) -> Iterator[tuple[str, str]]:
    """(domain, name) of all attributes and capacities."""
    for each in loaded.slices:
        for device in each.spec.devices:
            for key in (*device.attributes, *device.capacity):
                domain, slash, ident = key.rpartition("/")
                yield (domain, ident) if slash else (each.spec.driver, key)


def _in_selectors(loaded: Loaded, names: set[tuple[str, str]]) -> Iterator[str]:
    for selector, owner in _selectors(loaded):
        for domain, ident in _read(selector):
            known = (domain, ident) in names if ident else any(domain == d for d, _ in names)
            if known:
                continue
            label = f"{domain}/{ident}"
            having = next((n for n in loaded.nodes if any(k == label if ident else k.startswith(label) for k in n.labels)), None)
            if having is None and not domain.endswith(_LABEL_DOMAINS):
                continue
            what = f"the device attribute {label}" if ident else f"device attributes of the domain {domain}"
            whose = f"a label of node {having.name}" if having is not None else "the name of a node label (Node Feature Discovery)"
            yield (
                f"{_before(selector.at.place)}{owner} reads {what}, which no device has; it is {whose}. "
                "Labels describe nodes: ask for them with the pod's nodeSelector or node affinity"
            )


def _read(selector: CelSelector) -> Iterator[tuple[str, str]]:
    """(domain, name) that the expression looks up; name "" where it only asks whether there is the domain."""
    try:
        compiled = compile_selector(selector.expression, selector.at)
    except (SelectorSyntaxError, UnsupportedFeature):
        return
    looked_up = sorted({(r.domain, r.name) for r in reads(compiled)[0]})
    yield from looked_up
    for node in walk(compiled.tree):
        if isinstance(node, Call) and node.function == "@in" and isinstance(node.args[0], Literal) and _is_map(node.args[1]):
            domain = node.args[0].value
            if isinstance(domain, str) and not any(domain == d for d, _ in looked_up):
                yield domain, ""


def _is_map(node: Node) -> bool:
    return isinstance(node, Select) and isinstance(node.operand, Ident) and node.operand.name == "device"


def _selectors(loaded: Loaded) -> Iterator[tuple[CelSelector, str]]:
    for device_class in loaded.classes:
        for selector in device_class.spec.selectors:
            yield selector, f"class {device_class.name}"
    owners: tuple[ResourceClaim | ResourceClaimTemplate, ...] = (*loaded.claims, *loaded.templates)
    for each in owners:
        spec = each.spec if isinstance(each, ResourceClaim) else each.spec.spec
        for request in spec.requests:
            for name, leaf in request.leaves:
                for selector in leaf.selectors:
                    yield selector, f"request {name} of {each.name}"
