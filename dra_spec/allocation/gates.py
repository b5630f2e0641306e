"""Feature gates by Kubernetes version, the allocator's features that follow from them, and which allocator variant they select.

Source: kube_features.go of each release; dynamicresources.go, AllocatorFeatures; structured/allocator.go, NewAllocator.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from dra_spec.resources.decode import nearest

VERSIONS = ("1.34", "1.35", "1.36", "1.37")
DEFAULT_VERSION = "1.37"

# allocator feature -> the feature gates that must all be on
GATES: Mapping[str, tuple[str, ...]] = {
    "AdminAccess": ("DRAAdminAccess",),
    "PrioritizedList": ("DRAPrioritizedList",),
    "PartitionableDevices": ("DRAPartitionableDevices",),
    "DeviceTaints": ("DRADeviceTaints",),
    "DeviceBindingAndStatus": ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    "ConsumableCapacity": ("DRAConsumableCapacity",),
    "FractionalCapacityRange": ("DRAFractionalCapacityRange",),
    "ListTypeAttributes": ("DRAListTypeAttributes",),
    "OptionalNodeOperations": ("DRAOptionalNodeOperations",),
    "DerivedAttributes": ("DRADerivedAttributes",),
    "CompatibilityGroups": ("DRADeviceCompatibilityGroups",),
}
_ON_OFF = {"+": True, "-": False}
# gate -> per version: on, off by default, or " " where the release does not know it
_DEFAULTS = {
    "DRAAdminAccess": "++++",
    "DRAPrioritizedList": "++++",
    "DRAResourceClaimDeviceStatus": "++++",
    "DRAPartitionableDevices": "--++",
    "DRADeviceTaints": "--++",
    "DRADeviceTaintRules": " --+",
    "DRADeviceBindingConditions": "--++",
    "DRAConsumableCapacity": "--++",
    "DRAFractionalCapacityRange": "   +",
    "DRAExtendedResource": "--++",
    "DRAListTypeAttributes": "  --",
    "DRANodeAllocatableResources": "  --",
    "DRAOptionalNodeOperations": "   -",
    "DRADeviceCompatibilityGroups": "   -",
    "DRADerivedAttributes": "   -",
}
_ALWAYS = {
    ("1.36", "DRAAdminAccess"),
    ("1.37", "DRAAdminAccess"),
    ("1.37", "DRAPrioritizedList"),
    ("1.37", "DRAResourceClaimDeviceStatus"),
    ("1.37", "DRAExtendedResource"),
}
_BASE = ("AdminAccess", "PrioritizedList", "PartitionableDevices", "DeviceTaints")
_SHARING = ("DeviceBindingAndStatus", "ConsumableCapacity")
_LATEST = ("ListTypeAttributes", "OptionalNodeOperations", "DerivedAttributes", "CompatibilityGroups")
# version -> variant -> the features it supports, in the order in which they are tried. 1.35 is taken to be as 1.34.
_EARLY = {"stable": frozenset[str](), "incubating": frozenset(_BASE), "experimental": frozenset((*_BASE, *_SHARING))}
SUPPORTED: Mapping[str, Mapping[str, frozenset[str]]] = {
    "1.34": _EARLY,
    "1.35": _EARLY,
    "1.36": {
        "stable": frozenset(_BASE),
        "incubating": frozenset((*_BASE, *_SHARING)),
        "experimental": frozenset((*_BASE, *_SHARING, "ListTypeAttributes")),
    },
    "1.37": {
        "stable": frozenset(_BASE),
        "incubating": frozenset((*_BASE, *_SHARING, "FractionalCapacityRange")),
        "experimental": frozenset((*_BASE, *_SHARING, "FractionalCapacityRange", *_LATEST)),
    },
}


def gates_of(version: str, changed: Mapping[str, bool] | None = None) -> dict[str, bool]:
    """The gates of a version with their defaults, changed as asked.

    Raises ValueError for a version or gate that is not known, and for a locked gate that is set to its other value.
    """
    if version not in VERSIONS:
        raise ValueError(f"found Kubernetes version {version!r}, expected one of {', '.join(VERSIONS)}")
    column = VERSIONS.index(version)
    gates = {gate: _ON_OFF[row[column]] for gate, row in _DEFAULTS.items() if row[column] != " "}
    for gate, on in (changed or {}).items():
        if gate not in gates:
            raise ValueError(f"Kubernetes {version} has no feature gate {gate!r} for allocation{_hint(gate, gates)}")
        if not on and (version, gate) in _ALWAYS:
            raise ValueError(f"the feature gate {gate} is locked to true in Kubernetes {version}")
        gates[gate] = on
    return gates


def _hint(gate: str, known: Mapping[str, bool]) -> str:
    if gate in _DEFAULTS:
        having = [v for v, mark in zip(VERSIONS, _DEFAULTS[gate], strict=True) if mark != " "]
        return f", which is one of Kubernetes {' and '.join(having)}"
    close = nearest(gate, known)
    return f"; did you mean {close}?" if close else f", expected one of {', '.join(sorted(known))}"


def features_of(gates: Mapping[str, bool]) -> frozenset[str]:
    """The allocator's features that these gates switch on."""
    return frozenset(feature for feature, needed in GATES.items() if all(gates.get(gate) for gate in needed))


def variant_for(version: str, features: AbstractSet[str]) -> str:
    """The allocator variant that the scheduler picks: the first that supports all features. Raises ValueError if none does."""
    for name, supported in SUPPORTED[version].items():
        if features <= supported:
            return name
    raise ValueError(f"no allocator of Kubernetes {version} supports {', '.join(sorted(features))} together")


DEFAULT_FEATURES = features_of(gates_of(DEFAULT_VERSION))
