"""Objects to the fixed part of a model: names, generated claims, nodes, devices, and what is not encoded."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_spec.resources.problems import ManifestError
from dra_spec.scenario.cluster import LONE_NODE, Cluster, cluster
from dra_spec.scenario.objects import read

CLASS = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: k}\nspec: {}\n"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s1}
spec:
  driver: d.example.org
  nodeName: n1
  pool: {name: pool, generation: 2, resourceSliceCount: 1}
  devices: [{name: b}, {name: a}]
"""


def claim(name: str, namespace: str = "default") -> str:
    return (
        f"apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
        "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: k}}]}}\n"
    )


TEMPLATE = (
    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t}\n"
    "spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: k}}]}}}\n"
)


def pod(name: str, claims: str, namespace: str = "default", more: str = "") -> str:
    meta = f"{{name: {name}, namespace: {namespace}}}"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {meta}\nspec:\n  resourceClaims: [{claims}]\n{more}"


def named(name: str) -> str:
    return f"{{name: c, resourceClaimName: {name}}}"


def made(*documents: str, **options: object) -> Cluster:
    return cluster(read([], [("m.yaml", "---\n".join(documents))]).loaded, **options)  # type: ignore[arg-type]


def test_a_pod_with_a_named_and_a_generated_claim() -> None:
    found = made(CLASS, NODE, SLICE, TEMPLATE, claim("c1"), pod("p1", named("c1") + ", {name: g, resourceClaimTemplateName: t}"))
    (one,) = found.pods
    assert [(ref.entry, ref.claim, ref.template) for ref in one.claims] == [("c", "c1", None), ("g", "p1-g", "t")]
    assert [(c.name, c.pod, c.requests) for c in found.claims] == [("c1", None, ("r",)), ("p1-g", "p1", ("r",))]
    assert found.nodes == ["n1"]
    assert [(d.name, d.node) for d in found.devices] == [("d.example.org/pool/a", "n1"), ("d.example.org/pool/b", "n1")]


def test_a_generated_name_gives_way_to_a_named_claim() -> None:
    found = made(CLASS, NODE, TEMPLATE, claim("p1-g"), pod("p1", named("p1-g") + ", {name: g, resourceClaimTemplateName: t}"))
    assert [ref.claim for ref in found.pods[0].claims] == ["p1-g", "p1-g-x"]


def test_equal_names_in_two_namespaces_are_told_apart() -> None:
    found = made(CLASS, NODE, claim("c", "blue"), claim("c", "red"), pod("p", named("c"), "blue"), pod("p", named("c"), "red"))
    assert [(p.name, p.claims[0].claim) for p in found.pods] == [("blue/p", "blue/c"), ("red/p", "red/c")]


def test_nodes_are_those_of_the_slices_where_no_node_object_is() -> None:
    assert made(CLASS, SLICE, claim("c"), pod("p", named("c"))).nodes == ["n1"]
    lone = made(CLASS, claim("c"), pod("p", named("c")))
    assert lone.nodes == [LONE_NODE]
    assert any(LONE_NODE in warning for warning in lone.warnings)


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old = SLICE.replace("s1", "s0").replace("generation: 2", "generation: 1").replace("{name: b}, {name: a}", "{name: gone}")
    found = made(CLASS, NODE, SLICE, old, claim("c"), pod("p", named("c")))
    assert [d.name for d in found.devices] == ["d.example.org/pool/a", "d.example.org/pool/b"]


def test_bounds_cut_pods_and_say_when_there_are_too_few() -> None:
    documents = [CLASS, NODE, claim("c"), pod("p1", named("c")), pod("p2", named("c"))]
    assert [p.name for p in made(*documents, pods=1).pods] == ["p1"]
    with pytest.raises(ManifestError, match="pods=3"):
        made(*documents, pods=3)


def test_schedulers_are_those_that_the_pods_name_or_are_dealt_out() -> None:
    other = pod("p2", named("c"), more="  schedulerName: other\n")
    assert made(CLASS, NODE, claim("c"), pod("p1", named("c")), other).schedulers == ("scheduler", "other")
    dealt = made(CLASS, NODE, claim("c"), pod("p1", named("c")), pod("p2", named("c")), schedulers=2)
    assert [p.scheduler for p in dealt.pods] == ["scheduler", "scheduler-2"]


def test_a_template_in_another_namespace_is_not_taken() -> None:
    text = TEMPLATE.replace("{name: t}", "{name: t, namespace: there}")
    with pytest.raises(ManifestError, match=r"m\.yaml:\d+.*'t' is missing; the one in namespace there"):
        made(CLASS, NODE, text, pod("p", "{name: g, resourceClaimTemplateName: t}"))


@pytest.mark.parametrize(
    ("more", "feature"),
    [
        ("  nodeSelector: {zone: a}\n", "node selector"),
        ("  schedulingGates: [{name: wait}]\n", "scheduling gates"),
        ("  affinity: {nodeAffinity: {}}\n", "affinity"),
        ("  containers: [{name: m, resources: {limits: {deviceclass.resource.kubernetes.io/k: 1}}}]\n", "extended resource"),
    ],
)
def test_what_is_not_encoded_is_named_with_its_line(more: str, feature: str) -> None:
    found = made(CLASS, NODE, claim("c"), pod("p", named("c"), more=more))
    (only,) = found.notes
    assert only.startswith("m.yaml:")
    assert feature in only


def test_pods_that_are_done_take_no_part() -> None:
    done = pod("p2", named("c"), more="status: {phase: Succeeded}\n")
    assert [p.name for p in made(CLASS, NODE, claim("c"), pod("p1", named("c")), done).pods] == ["p1"]


def test_the_same_object_in_two_files_counts_once_and_another_one_is_a_note(tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text(claim("c") + "---\n" + NODE)
    two.write_text(claim("c"))
    same = read([one, two])
    assert len(same.loaded.claims) == 1
    assert not same.clashes
    assert any("counts once" in str(warning) for warning in same.loaded.warnings)
    two.write_text(claim("c").replace("name: r", "name: other"))
    (clash,) = read([one, two]).clashes
    assert str(two) in clash
    assert str(one) in clash


def test_the_same_object_twice_in_one_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(claim("c") + "---\n" + claim("c"))
    with pytest.raises(ManifestError, match="occurs twice"):
        read([path])
