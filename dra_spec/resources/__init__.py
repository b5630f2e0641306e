"""API objects of Dynamic Resource Allocation, read from manifests.

Public API
----------
load(paths) -> Loaded                     files and directories as one set of objects; `load_text(text)` for one text
load_checked(paths) -> Loaded             the same, and cross references checked (`check(loaded)`): what scenarios should use
Loaded                                    .objects, .warnings, and by kind: .classes .slices .claims .templates .pods .nodes ...
ManifestError                             all that is wrong: .problems, .warnings (each a Problem: code, message, where, found, expected)
Where, Problem                            file, line, column, field path
DeviceClass, ResourceSlice, ResourceClaim, ResourceClaimTemplate, DeviceTaintRule, Pod, PodGroup, Node, Namespace
                                          frozen attrs classes (keyword arguments), each with .metadata, .name, .namespace, .spec,
                                          .where("spec.devices.requests[0]") and .label for messages; parts have .at (a Where)
dump(obj) -> dict                         an object as plain data, v1 form
Quantity, SemVer                          exact values

Codes: DRA101-109 text, DRA110-119 fields, DRA120-123 objects, DRA130 CEL, DRA140 refused by an API server,
DRA201-209 cross references, DRA301-319 warnings.
"""

from dra_spec.resources.check import check, load_checked
from dra_spec.resources.claims import (
    AllocationResult,
    ClaimSpec,
    Constraint,
    DeviceRequest,
    ExactRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    SubRequest,
)
from dra_spec.resources.core import Namespace, Node, Pod, PodClaim, PodGroup
from dra_spec.resources.dump import dump
from dra_spec.resources.meta import CelSelector, DeviceConfig, Metadata, NodeSelector, Toleration
from dra_spec.resources.problems import NOWHERE, ManifestError, Problem, Where
from dra_spec.resources.quantity import Quantity, QuantityError
from dra_spec.resources.reader import MAX_REPLICAS, Loaded, load, load_text
from dra_spec.resources.semver import SemVer
from dra_spec.resources.slices import ApiObject, AttributeValue, Capacity, Device, DeviceClass, DeviceTaintRule, ResourceSlice, Taint

__all__ = [
    "MAX_REPLICAS",
    "NOWHERE",
    "AllocationResult",
    "ApiObject",
    "AttributeValue",
    "Capacity",
    "CelSelector",
    "ClaimSpec",
    "Constraint",
    "Device",
    "DeviceClass",
    "DeviceConfig",
    "DeviceRequest",
    "DeviceTaintRule",
    "ExactRequest",
    "Loaded",
    "ManifestError",
    "Metadata",
    "Namespace",
    "Node",
    "NodeSelector",
    "Pod",
    "PodClaim",
    "PodGroup",
    "Problem",
    "Quantity",
    "QuantityError",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "SemVer",
    "SubRequest",
    "Taint",
    "Toleration",
    "Where",
    "check",
    "dump",
    "load",
    "load_checked",
    "load_text",
]
