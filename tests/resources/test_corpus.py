"""The real manifests of a corpus outside the repository: all load that should, and the awkward ones get the right message."""

# ruff: noqa: E501 - messages and table rows stand on one line

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dra_spec.resources import ManifestError, load, load_checked

CORPUS = os.environ.get("DRA_SPEC_CORPUS", "")
pytestmark = pytest.mark.skipif(not CORPUS, reason="no corpus")
ROOT = Path(CORPUS) / "manifests" if CORPUS else Path()

PLACEHOLDERS = {
    f"kubernetes-scheduler-perf/{name}.yaml"
    for name in (
        "pod-in-podgroup-with-claim-template",
        "podgroup-with-claim-template",
        "resourceclaim-partitionable-backtracking",
        "resourceslice-compatibilitygroups-devices",
        "resourceslice-partitionable-backtracking-countersets",
        "resourceslice-partitionable-backtracking-devices",
        "resourceslice-partitionable-countersets",
    )
}
INCOMPLETE = {"published-slices/amd-gpu-trimmed.yaml", "published-slices/dranet-quick-start.yaml"}
AWKWARD = {
    "intel/gpu/examples/pod-inline-aligned-gpus.yaml",
    "dra-example-driver/device-taint-pod-noschedule/4-pod-not-scheduled.yaml",
    "dra-driver-nvidia-gpu/selectors/claims.yaml",
    "dra-driver-nvidia-gpu/bats/pods-shared-gpu.yaml",
}


def problems(*names: str, checked: bool = False) -> list[str]:
    with pytest.raises(ManifestError) as error:
        (load_checked if checked else load)([ROOT / name for name in names])
    return [str(p).replace(f"{ROOT}/", "") for p in error.value.problems]


def test_all_files_that_are_manifests_load() -> None:
    files = sorted(str(p.relative_to(ROOT)) for p in ROOT.rglob("*.yaml") if p.relative_to(ROOT).parts[0] != "templates")
    assert len(files) > 130
    failed = set()
    unplaced: list[str] = []
    for file in files:
        try:
            load([ROOT / file])
        except ManifestError as error:
            failed.add(file)
            unplaced += [file for p in error.problems if p.where.line <= 0 or not p.code]
    assert unplaced == []
    assert failed == PLACEHOLDERS | INCOMPLETE | AWKWARD


def test_templates_are_called_templates() -> None:
    files = sorted((ROOT / "templates").rglob("*.yaml"))
    assert len(files) == 9
    for file in files:
        (message,) = problems(str(file.relative_to(ROOT)))
        assert message.endswith("this is a Helm or Go template, not a manifest: render it first (helm template ...)"), message


@pytest.mark.parametrize("file", sorted(PLACEHOLDERS))
def test_placeholders_that_parse_are_recognised_too(file: str) -> None:
    assert all(m.endswith("it looks like a template that was not rendered") for m in problems(file))


def test_lower_case_keys() -> None:
    assert problems("intel/gpu/examples/pod-inline-aligned-gpus.yaml") == [
        "intel/gpu/examples/pod-inline-aligned-gpus.yaml:15: apiversion: unknown field 'apiversion', did you mean 'apiVersion'?",
        "intel/gpu/examples/pod-inline-aligned-gpus.yaml:20: spec.restartpolicy: unknown field 'restartpolicy', did you mean 'restartPolicy'?",
        "intel/gpu/examples/pod-inline-aligned-gpus.yaml:31: spec.resourceclaims: unknown field 'resourceclaims', did you mean 'resourceClaims'?",
    ]


def test_missing_api_version() -> None:
    name = "dra-example-driver/device-taint-pod-noschedule/4-pod-not-scheduled.yaml"
    assert problems(name) == [f"{name}:2: apiVersion: 'apiVersion' is missing in Pod pod-no-schedule"]


def test_classic_dra() -> None:
    found = problems("dra-driver-nvidia-gpu/selectors/claims.yaml")
    assert len(found) == 2
    assert all("is classic DRA, an API that no longer exists in Kubernetes" in m for m in found)


def test_a_template_in_another_namespace() -> None:
    name = "dra-driver-nvidia-gpu/quickstart/v1beta1/gpu-test-vfiopci.yaml"
    found = problems(name, checked=True)
    assert any(
        "ResourceClaimTemplate 'single-gpu', which is not among the manifests in namespace 'gpu-test-vfiopci'; there is one in namespace gpu-test-vfio"
        in m
        for m in found
    )


def test_an_impossible_name_and_a_claim_that_is_not_loaded() -> None:
    found = problems("dra-driver-nvidia-gpu/bats/pods-shared-gpu.yaml", checked=True)
    assert "found 'stress-pod-__INDEX__', expected a DNS subdomain" in found[0]
    assert "which is not among the manifests in namespace" in found[1]


def test_a_wrapper_in_v1_and_each_missing_field() -> None:
    found = problems("published-slices/dranet-quick-start.yaml")
    assert [m.split(": ")[1] for m in found] == ["spec.devices[0].basic", "spec", "spec.driver", "spec.pool"]
    assert "the field 'basic' belongs to v1beta1" in found[0]
    assert "no node selection" in found[1]


def test_a_published_list_is_converted() -> None:
    (read,) = load([ROOT / "published-slices/tpu-v1beta1.yaml"]).slices
    one, two = (d.attributes["uuid"] for d in read.spec.devices)
    assert one == two


def test_published_quantities_stay_exact() -> None:
    slices = load([ROOT / "published-slices/intel-gpu.yaml"]).slices
    assert {s.spec.pool.generation for s in slices} == {0}
    values = {c.value.value for s in slices for d in s.spec.devices for c in d.capacity.values()}
    assert {0, 1000, 24480 * 2**20} <= values


def test_slices_that_disagree_are_pointed_at() -> None:
    folder = ROOT / "kubernetes-scheduler-perf"
    with pytest.raises(ManifestError) as error:
        load([folder / f"resourceslice-partitionable-backtracking-{part}.yaml" for part in ("countersets", "devices")])
    (warning,) = error.value.warnings
    assert "countersets.yaml:" in warning.message
    assert warning.where.file.endswith("devices.yaml")


def test_block_scalar_expressions_keep_their_lines() -> None:
    (template,) = load([ROOT / "dra-driver-nvidia-gpu/quickstart/v1/gpu-test6.yaml"]).templates
    request = template.spec.spec.requests[0].exactly
    assert request is not None
    assert len(request.selectors[0].expression.splitlines()) == 6
    assert request.selectors[0].at.text_line == 27
