"""What objects say about each other."""

# ruff: noqa: E501 - messages and table rows stand on one line

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from dra_spec.resources import Loaded, ManifestError, check, load, load_checked, load_text

DATA = Path(__file__).parent.parent / "data" / "manifests"


def load_and_check(text: str, file: str = "m.yaml") -> tuple[list[str], list[str]]:
    errors, warnings = check(load_text(text, file=file))
    return [str(e) for e in errors], [str(w) for w in warnings]


def failure(*names: str) -> list[str]:
    with pytest.raises(ManifestError) as error:
        load_checked([DATA / name for name in names])
    return [str(p).replace(f"{DATA}/", "") for p in error.value.problems]


def test_a_good_directory_has_nothing_to_say() -> None:
    loaded = load_checked([DATA / "good"])
    assert [o.label for o in loaded.objects] == [
        "Node node-a",
        "DeviceClass gpu.example.com",
        "ResourceSlice node-a-gpus",
        "ResourceClaimTemplate work/large-gpu",
        "Pod work/trainer",
    ]
    assert loaded.warnings == ()


def test_a_pod_that_names_a_missing_claim() -> None:
    assert failure("good/cluster.yaml", "bad/missing-claim.yaml") == [
        "bad/missing-claim.yaml:7: spec.resourceClaims[0]: Pod work/p uses ResourceClaim 'shared', which is not among the manifests in namespace 'work'; "
        "there is one in namespace other, but a pod uses those of its own namespace"
    ]


def test_a_claim_that_names_a_missing_class() -> None:
    assert failure("good", "bad/missing-class.yaml") == [
        "bad/missing-class.yaml:9: spec.devices.requests[0].firstAvailable[0]: ResourceClaim default/one: request 'any/big' names DeviceClass 'big.example.com', "
        "which is not among the manifests (there are: gpu.example.com)"
    ]


def test_problems_of_reading_and_of_references_come_together() -> None:
    text = (DATA / "bad" / "missing-claim.yaml").read_text().replace("name: p,", "name: p__INDEX__,").split("---")[0]
    with pytest.raises(ManifestError) as error:
        load_text(text, file="m.yaml")
    assert isinstance(error.value.partial, Loaded)
    assert [e.code for e in check(error.value.partial)[0]] == ["DRA202"]


def test_an_object_that_could_not_be_read_is_not_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {nam: c}\n---\n"
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: one}\n"
        "spec: {devices: {requests: [{name: a, exactly: {deviceClassName: c}}]}}\n"
    )
    with pytest.raises(ManifestError) as error:
        load_checked([tmp_path])
    assert [p.code for p in error.value.problems] == ["DRA110"]


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: main
    resources: {claims: [{name: gpu, request: big}]}
  resourceClaims:
  - {name: gpu, resourceClaimTemplateName: one}
"""
TEMPLATE = """\
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: small, exactly: {deviceClassName: c}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: c}
"""


def test_a_container_that_picks_a_missing_request() -> None:
    errors, _ = load_and_check(POD + TEMPLATE)
    assert errors == [
        "m.yaml:7: spec.containers[0].resources.claims[0]: Pod default/p: container 'main' uses request 'big', expected one of small"
    ]


def test_a_missing_template_is_said_once_for_all_pods_of_a_workload() -> None:
    body = "\n".join(f"    {line}" for line in POD.replace(", request: big", "").splitlines()[3:])
    text = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 3\n  template:\n{body}\n"
    errors, _ = load_and_check(text)
    assert errors == [
        "m.yaml:12: spec.template.spec.resourceClaims[0]: Deployment web uses ResourceClaimTemplate 'one', which is not among the manifests in namespace 'default'"
    ]


def test_a_missing_pod_group() -> None:
    text = POD.replace(", request: big", "") + "  schedulingGroup: {podGroupName: g}\n" + TEMPLATE
    assert load_and_check(text)[0] == ["m.yaml:5: spec: Pod default/p belongs to PodGroup 'g', which is not among the manifests"]


def test_things_that_nobody_uses_are_warnings(claim: str) -> None:
    errors, warnings = load_and_check(
        claim + TEMPLATE.replace("name: c}", "name: gpu.example.com}").replace("deviceClassName: c", "deviceClassName: gpu.example.com")
    )
    assert errors == []
    assert warnings == [
        "m.yaml:4: metadata.name: no pod uses ResourceClaim default/one",
        "m.yaml:14: metadata.name: no pod uses ResourceClaimTemplate default/one",
    ]


ADMIN = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one, namespace: watch}
spec: {devices: {requests: [{name: a, exactly: {deviceClassName: c, adminAccess: true}}]}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: c}
"""


@pytest.mark.parametrize(
    ("namespace", "errors", "warnings"),
    [
        ("", 0, ["DRA310", "DRA313"]),
        ("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: watch}\n", 1, ["DRA310"]),
        (
            "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: watch, labels: {resource.kubernetes.io/admin-access: 'false'}}\n",
            1,
            ["DRA310"],
        ),
        (
            "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: watch, labels: {resource.kubernetes.io/admin-access: 'true'}}\n",
            0,
            ["DRA310"],
        ),
    ],
)
def test_admin_access_needs_the_label_of_the_namespace(namespace: str, errors: int, warnings: list[str]) -> None:
    found = check(load_text(ADMIN + namespace))
    assert [e.code for e in found[0]] == ["DRA206"] * errors
    assert sorted(w.code for w in found[1]) == warnings


def test_a_slice_for_an_unknown_node_is_a_warning() -> None:
    loaded = load([DATA / "good" / "cluster.yaml"])
    renamed = attrs.evolve(
        loaded,
        objects=tuple(o for o in loaded.objects if o.KIND != "Node") + load_text("apiVersion: v1\nkind: Node\nmetadata: {name: b}").objects,
    )
    assert [w.message for w in check(renamed)[1]] == ["ResourceSlice node-a-gpus is for node 'node-a', which is not among the manifests"]


def test_slices_of_a_pool_that_disagree_about_nodes() -> None:
    one = (DATA / "good" / "cluster.yaml").read_text().split("---")[2]
    two = one.replace("name: node-a-gpus", "name: more").replace("nodeName: node-a", "allNodes: true").replace("name: gpu-", "name: xpu-")
    loaded = load_text(one + "---" + two, file="m.yaml")
    assert [str(w) for w in loaded.warnings] == [
        "m.yaml:30: spec: pool node-a of gpu.example.com: slice more has allNodes, but slice node-a-gpus (m.yaml:7) has nodeName node-a; "
        "the slices of a pool must agree about its nodes"
    ]
    newer = two.replace("generation: 3", "generation: 4")
    assert load_text(one + "---" + newer).warnings == ()
