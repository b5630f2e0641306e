"""Constraints across the devices of a claim, and tolerations.

Source: k8s.io/dynamic-resource-allocation v0.37.2, structured/internal/experimental, allocator (matchAttributeConstraint) and
constraint.go (distinctAttributeConstraint); resourceclaim/devicetoleration.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs

from dra_spec.allocation.inventory import PoolDevice
from dra_spec.resources.claims import Constraint
from dra_spec.resources.meta import Toleration
from dra_spec.resources.slices import AttributeValue, Taint

BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


def attribute(device: PoolDevice, name: str) -> AttributeValue | None:
    """The attribute with a fully qualified name; the driver's own domain may be left out in the slice."""
    found = device.device.attributes.get(name)
    domain, slash, ident = name.partition("/")
    if found is None and slash and domain == device.driver:
        found = device.device.attributes.get(ident)
    return found


def values(attribute: AttributeValue) -> tuple[str, frozenset[object]] | None:
    """The values as a set with their type; a scalar counts as one value. None for an empty list or an unknown type."""
    if not attribute.kind:
        return None
    items = attribute.value if isinstance(attribute.value, tuple) else (attribute.value,)
    return (attribute.kind.removesuffix("s"), frozenset(items)) if items else None


def covers(constraint: Constraint, main: str, name: str) -> bool:
    """Whether the constraint is about the leaf request (by its own and its full name)."""
    return not constraint.requests or main in constraint.requests or name in constraint.requests


class Tracker(Protocol):
    """The devices of a claim that a constraint covers, as far as the search has got. `request`: the main request's name."""

    def add(self, request: str, value: AttributeValue) -> bool:
        """Take a device with this value; False, and nothing taken, if the constraint forbids it."""

    def remove(self, request: str) -> None:
        """Give back the device that was taken last."""


@attrs.define
class ScalarMatch:
    """All values are equal. Versions are compared as texts up to 1.37."""

    first: AttributeValue | None = None
    devices: int = 0

    def add(self, request: str, value: AttributeValue) -> bool:
        if self.devices == 0:
            self.first = value
        elif value.is_list or not value.kind or value != self.first:
            return False
        self.devices += 1
        return True

    def remove(self, request: str) -> None:
        self.devices -= 1


@attrs.define
class ListMatch:
    """There is a value that all devices have. The intersections are stacked, so that taking a device back widens them again."""

    stack: list[tuple[str, frozenset[object]]] = attrs.field(factory=list)

    def add(self, request: str, value: AttributeValue) -> bool:
        found = values(value)
        if found is None:
            return False
        if self.stack:
            kind, common = self.stack[-1]
            found = (kind, common & found[1]) if kind == found[0] else (kind, frozenset())
            if not found[1]:
                return False
        self.stack.append(found)
        return True

    def remove(self, request: str) -> None:
        self.stack.pop()


@attrs.define
class Distinct:
    """No two devices have a value in common. `lists`: lists count as sets of values; without, a list is no value that can be compared."""

    lists: bool
    seen: list[AttributeValue] = attrs.field(factory=list)

    def add(self, request: str, value: AttributeValue) -> bool:
        if not self.differs(value, self.seen):
            return False
        self.seen.append(value)
        return True

    def remove(self, request: str) -> None:
        self.seen.pop()

    def differs(self, value: AttributeValue, others: Sequence[AttributeValue]) -> bool:
        """Whether the value has nothing in common with the others."""
        if not self.lists:
            # a list can be the first of the covered devices only
            return not others or (bool(value.kind) and not value.is_list and value not in others)
        new = values(value)
        if new is None:
            return False
        known = [v for o in others if (v := values(o)) is not None]
        return not any(kind == new[0] and common & new[1] for kind, common in known)


def tolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> bool:
    """Whether every taint that blocks allocation is tolerated."""
    return all(any(tolerates(t, taint) for t in tolerations) for taint in taints if taint.effect in BLOCKING_EFFECTS)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (toleration.operator in ("Equal", "") and toleration.value == taint.value)
