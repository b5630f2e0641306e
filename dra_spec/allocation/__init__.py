"""The structured-parameters allocator in upstream's order (Kubernetes 1.34 to 1.37, target 1.37.2).

Public API
----------
Inventory.of(classes, slices, nodes, taint_rules=())     what never changes; Inventory.of_loaded(loaded)
Settings.of(version, gates, defects)                     a Kubernetes release: features, variant of the code, known defects
AllocatedState(devices, shares, consumed)                what other claims hold; AllocatedState.of_claims(claims)
Allocator(inventory, settings).allocate(claims, node, in_use) -> tuple[ClaimResult, ...]
    claims: ClaimSpec in the pod's order; node: Node or name; in_use: an AllocatedState, or a set of driver/pool/device names.
    Raises DoesNotFit (InvalidPools: an error for this node only), FatalAllocation (the attempt aborts), UnsupportedFeature (undecided).
    Without settings: 1.37, default gates, for callers that know whole devices only: shared devices are UnsupportedFeature.
ClaimResult.results -> Result(request, driver, pool, device, admin, share_id, consumed_capacity, ..., .name), .config, .node_selector,
    .nodes, .allocation (as it is written to the claim's status)
Allocator.classes_without_devices()                      class names that no device matches, for warnings
features_used(objects, settings) -> Feature(name, where) what is used and not encoded: the verdict is undecided
check_allocation(loaded) -> warnings                     classes without devices, broken pools; raises ManifestError for bad CEL
variants.VARIANTS                                        upstream's known wrong answers, by name, for Settings.of(defects=...)
z3_manifests, z3_solve.one/first/every/best, z3_place.place   the same rules in Z3: one, upstream's first, all, the best node; joint
validator.broken_rules(problem, solution)                which rules a solution breaks, in words; shares no code with either allocator
extended, extended_nodes, extended_answer                 extended resources: by a device plugin or a special claim, and what is left
explain, relax, whatif                                   why nothing fits, what would help, how many more nodes
z3_verdict.verdict(problem, node)                        fits, no fit, fatal or unknown, by the solver and upstream's order
explain_selectors.insights(problem, call)                selectors that cannot work, whatever is free
admission.ApiServer.of(version, gates).admit(loaded)     what an API server keeps of new objects, with warnings
nodeallocatable.claimed_resources(...), ledger.Ledger    what allocated devices cost of a node's ordinary resources, and whether it has them
in_turn.place_call(...)                                  a pod on the first node where it fits

Encoded: exact requests (count, All), prioritized lists, admin access, selectors, match and distinct constraints (scalars and lists),
derived attributes, consumable capacity with policies and shares, counters, compatibility groups, taints and tolerations (rules hold from
the start), node selection by slice or device, optional node operations, binding conditions, generations, incomplete and invalid pools,
configuration and node selector of the result. Not encoded: pod groups.
"""

from dra_spec.allocation.allocator import Allocator, ClaimResult, Result
from dra_spec.allocation.check import check_allocation
from dra_spec.allocation.errors import DoesNotFit, FatalAllocation, InvalidPools, UnsupportedFeature
from dra_spec.allocation.features import Feature, check_selectors, features_used
from dra_spec.allocation.inventory import Inventory
from dra_spec.allocation.settings import Settings
from dra_spec.allocation.state import AllocatedState

__all__ = [
    "AllocatedState",
    "Allocator",
    "ClaimResult",
    "DoesNotFit",
    "FatalAllocation",
    "Feature",
    "InvalidPools",
    "Inventory",
    "Result",
    "Settings",
    "UnsupportedFeature",
    "check_allocation",
    "check_selectors",
    "features_used",
]
