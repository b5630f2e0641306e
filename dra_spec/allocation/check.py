"""What can be said about manifests before anything is allocated: selectors that do not compile, classes and pools without use."""

from __future__ import annotations

from dra_spec.allocation.allocator import Allocator
from dra_spec.allocation.errors import FatalAllocation
from dra_spec.allocation.features import check_selectors
from dra_spec.allocation.inventory import Inventory
from dra_spec.resources.problems import ManifestError, Problem
from dra_spec.resources.reader import Loaded
from dra_spec.selectors import UnsupportedFeature


def check_allocation(loaded: Loaded) -> tuple[Problem, ...]:
    """Warnings: DRA315 a class that no device matches, DRA316 a pool that some node sees incomplete or invalid.

    Raises ManifestError for selectors that do not compile (DRA130), all of them at once.
    """
    errors = check_selectors(loaded.objects)
    if errors:
        raise ManifestError([p for e in errors for p in e.problems], loaded.warnings)
    inventory = Inventory.of_loaded(loaded)
    empty = set(Allocator(inventory).classes_without_devices())
    warnings = [Problem("DRA315", f"no device matches {c.label}", c.where("metadata.name")) for c in loaded.classes if c.name in empty]
    return (*warnings, *broken_pools(loaded, inventory))


def broken_pools(loaded: Loaded, inventory: Inventory) -> tuple[Problem, ...]:
    """Warnings DRA316: pools of which some node sees too few or too many slices of the newest generation, or slices that contradict."""
    warnings: list[Problem] = []
    seen: set[str] = set()
    for node in loaded.nodes:
        try:
            pools = inventory.pools(node)
        except (UnsupportedFeature, FatalAllocation):
            continue  # features_used names the one, reading refuses the other
        for pool in pools:
            if pool.problem and pool.problem not in seen:
                seen.add(pool.problem)
                newest = max((s for s in loaded.slices if s.pool_id == (pool.driver, pool.name)), key=lambda s: s.spec.pool.generation)
                where = newest.where("spec.pool")
                warnings.append(Problem("DRA316", f"{pool.problem}: node {node.name} gets no device of it", where))
    return tuple(warnings)
