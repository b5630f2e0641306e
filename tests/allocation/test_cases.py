"""Complete cases of a corpus outside the repository: real manifests with inventories whose answer is known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dra_spec.allocation import Allocator, DoesNotFit, Inventory, check_allocation, features_used
from dra_spec.resources import Loaded, load_checked

CORPUS = os.environ.get("DRA_SPEC_CORPUS", "")
pytestmark = pytest.mark.skipif(not CORPUS, reason="no corpus")
ROOT = Path(CORPUS) / "manifests" if CORPUS else Path()


def loaded_case(inventory: str, *manifests: str) -> Loaded:
    return load_checked([ROOT / "inventories" / f"{inventory}.yaml", *(ROOT / m for m in manifests)])


def answers(loaded: Loaded) -> dict[tuple[str, str], list[str] | None]:
    """(pod, node) -> its devices as request=device on an empty cluster, None where they do not fit."""
    claims = {(c.namespace, c.name): c.spec for c in loaded.claims} | {
        (t.namespace, "template " + t.name): t.spec.spec for t in loaded.templates
    }
    allocator = Allocator(Inventory.of(loaded.classes, loaded.slices, loaded.nodes))
    found: dict[tuple[str, str], list[str] | None] = {}
    for pod in loaded.pods:
        specs = [
            claims[pod.namespace, e.resource_claim_name or "template " + e.resource_claim_template_name] for e in pod.spec.resource_claims
        ]
        for node in loaded.nodes:
            try:
                results = allocator.allocate(specs, node)
                found[pod.name, node.name] = [f"{r.request}={r.device}" for c in results for r in c.results]
            except DoesNotFit:
                found[pod.name, node.name] = None
    return found


EXAMPLE = "dra-example-driver/"
ALIGNED = ["gpu=gpu-0", "efa=pci-0000-10-1b-0"]
CASES: list[tuple[str, list[str], dict[tuple[str, str], list[str] | None]]] = [
    (
        "single-gpu-pod",
        ["kubernetes-website/driver-install/example/resourceclaim.yaml", "kubernetes-website/driver-install/example/pod.yaml"],
        {("pod0", "node-a"): ["some-gpu=gpu-1"]},
    ),
    (
        "template-two-pods",
        [EXAMPLE + "basic-resourceclaimtemplate.yaml"],
        {(p, n): ["gpu=gpu-0"] for p in ("pod0", "pod1") for n in ("node-a", "node-b")},
    ),
    ("two-claims-two-pods", [], {(p, n): ["gpu=gpu-0", "gpu=gpu-1"] for p in ("pod-ab", "pod-ba") for n in ("node-a", "node-b")}),
    (
        "mig-partition",
        ["dra-driver-nvidia-gpu/bats/gpu-multiple-mig.yaml"],
        {("pod-2mig", "node-a"): ["mig1=gpu-0-mig-1g5gb-19-4", "mig2=gpu-0-mig-4g20gb-5-0"]},
    ),
    (
        "prioritized-list",
        [EXAMPLE + "prioritized-alternatives.yaml"],
        {("pod0", "node-a"): ["gpu/older-gpu=gpu-0"], ("pod1", "node-a"): ["gpu/latest-gpu=gpu-0"]},
    ),
    ("binding-conditions", [EXAMPLE + "binding-conditions.yaml"], {("pod0", "node-a"): ["gpu=gpu-0"]}),
    ("admin-access", [EXAMPLE + "admin-access.yaml"], {("pod0", "node-a"): ["admin-gpu=gpu-0", "admin-gpu=gpu-1"]}),
    (
        "gpu-nic-aligned",
        ["dranet/aws_eks_examples/gpu-efa/device-class.yaml", "dranet/aws_eks_examples/gpu-efa/resource-claim-template.yaml"],
        {
            ("worker-0", "node-a"): ALIGNED,
            ("worker-0", "node-b"): None,
            ("worker-1", "node-a"): ALIGNED,
            ("worker-1", "node-b"): None,
            ("worker-2", "node-a"): ALIGNED,
            ("worker-2", "node-b"): ["gpu=gpu-0", "efa=pci-0000-20-1b-0"],
        },
    ),
]


@pytest.mark.parametrize(("inventory", "manifests", "expected"), CASES, ids=[c[0] for c in CASES])
def test_cases_that_are_encoded(inventory: str, manifests: list[str], expected: dict[tuple[str, str], list[str] | None]) -> None:
    loaded = loaded_case(inventory, *manifests)
    assert features_used(loaded.objects) == ()
    assert check_allocation(loaded) == ()
    assert answers(loaded) == expected


@pytest.mark.parametrize(
    ("inventory", "manifests", "feature"),
    [
        ("shared-capacity-gpu", [EXAMPLE + "gpu-allow-multiple-allocations.yaml"], "allowMultipleAllocations"),
        ("shared-capacity-nic", [EXAMPLE + "net-consumable-capacity.yaml"], "allowMultipleAllocations"),
        (
            "cpu-grouped",
            ["dra-driver-cpu/pod_with_resource_claim_grouped_mode.yaml", "dra-driver-cpu/deviceclass-dracpu.part.yaml"],
            "allowMultipleAllocations",
        ),
        ("extended-resource", [EXAMPLE + "extended-resource-request.yaml"], "extended resources"),
        ("taint-toleration", [EXAMPLE + "device-taint-configurable-pod-eviction-time/1-basic-resourceclaimtemplate.yaml"], "eviction"),
    ],
)
def test_cases_that_are_not_encoded_name_the_feature(inventory: str, manifests: list[str], feature: str) -> None:
    found = features_used(loaded_case(inventory, *manifests).objects)
    assert found
    assert all(feature in f.name and f.where.line > 0 for f in found)


def test_both_amd_claims_together_do_not_fit() -> None:
    loaded = loaded_case(
        "amd-partitions", "amd-gpu/example-partitions-same-parent.yaml", "amd-gpu/example-partitions-distinct-parents.yaml"
    )
    allocator = Allocator(Inventory.of_loaded(loaded))
    specs = [c.spec for c in loaded.claims]
    assert len(specs) == 2
    for spec in specs:
        assert len(allocator.allocate([spec], loaded.nodes[0])[0].results) == 2
    with pytest.raises(DoesNotFit):
        allocator.allocate(specs, loaded.nodes[0])
