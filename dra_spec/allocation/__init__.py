"""The structured-parameters allocator in upstream's order (Kubernetes 1.37.2, default feature gates).

Public API
----------
Inventory.of(classes, slices, nodes, taint_rules=())     what never changes; Inventory.of_loaded(loaded)
Allocator.classes_without_devices()                      class names that no device matches, for warnings
Allocator(inventory).allocate(claims, node, in_use) -> tuple[ClaimResult, ...]
    claims: ClaimSpec in the pod's order; node: Node or name; in_use: driver/pool/device names held by other claims.
    Raises DoesNotFit, FatalAllocation, UnsupportedFeature.
ClaimResult.results -> Result(request, driver, pool, device, admin, binding_conditions, ..., .name), .node_selector, .nodes
features_used(objects) -> Feature(name, where)           what is used and not encoded: the verdict is undecided
check_allocation(loaded) -> warnings                     classes without devices, broken pools; raises ManifestError for bad CEL

Encoded: exact requests (count, All), prioritized lists, admin access, selectors, match and distinct constraints on scalars, capacity
of ordinary devices, counters, taints and tolerations (rules hold from the start), node selection by slice or device, binding
conditions, generations and incomplete or invalid pools. Not encoded: consumable capacity, list and derived attributes, compatibility
groups, optional node operations, extended resources, pod groups, node-allocatable resources.
"""

from dra_spec.allocation.allocator import Allocator, ClaimResult, Result
from dra_spec.allocation.check import check_allocation
from dra_spec.allocation.errors import DoesNotFit, FatalAllocation, UnsupportedFeature
from dra_spec.allocation.features import Feature, check_selectors, features_used
from dra_spec.allocation.inventory import Inventory

__all__ = [
    "Allocator",
    "ClaimResult",
    "DoesNotFit",
    "FatalAllocation",
    "Feature",
    "Inventory",
    "Result",
    "UnsupportedFeature",
    "check_allocation",
    "check_selectors",
    "features_used",
]
