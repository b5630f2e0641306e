"""Constraints across devices of a claim, and tolerations. Scalar attributes only (the list gate is alpha and off).

Source: k8s.io/dynamic-resource-allocation v0.37.2, structured/internal/incubating constraint.go; resourceclaim/devicetoleration.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from dra_spec.allocation.errors import UnsupportedFeature
from dra_spec.allocation.inventory import PoolDevice
from dra_spec.resources.claims import Constraint
from dra_spec.resources.meta import Toleration
from dra_spec.resources.slices import AttributeValue, Taint

BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


def attribute(device: PoolDevice, name: str) -> AttributeValue | None:
    """The attribute with a fully qualified name; the driver's own domain may be left out in the slice."""
    found = device.device.attributes.get(name)
    domain, _, ident = name.partition("/")
    if found is None and domain == device.driver:
        found = device.device.attributes.get(ident)
    if found is not None and found.is_list:
        raise UnsupportedFeature(f"a constraint on the list attribute {name}", device.device.at)
    return found


def accepts(constraint: Constraint, chosen: Sequence[PoolDevice], device: PoolDevice) -> bool:
    """Whether the device may join the covered devices chosen so far. A device without the attribute never may."""
    name = constraint.match_attribute or constraint.distinct_attribute
    value = attribute(device, name)
    if value is None:
        return False
    others = [attribute(c, name) for c in chosen]
    if constraint.match_attribute:
        return all(_same(o, value) for o in others)
    return not any(_same(o, value) for o in others)


def _same(left: AttributeValue | None, right: AttributeValue) -> bool:
    # versions are compared as texts up to 1.37
    return left is not None and left.kind == right.kind and left.value == right.value


def tolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> bool:
    """Whether every taint that blocks allocation is tolerated."""
    return all(any(tolerates(t, taint) for t in tolerations) for taint in taints if taint.effect in BLOCKING_EFFECTS)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (toleration.operator in ("Equal", "") and toleration.value == taint.value)
