"""Extended resources on nodes: who serves them, what is left, several pods, what would help, more nodes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import attrs
import pytest
from extended_build import GPU, IMPLICIT, NIC, device_class, load, node, pod, slice_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_spec.allocation.explain import Explanation, explain
from dra_spec.allocation.explain_upstream import Upstream
from dra_spec.allocation.extended import totals
from dra_spec.allocation.extended_answer import served
from dra_spec.allocation.relax import apply
from dra_spec.allocation.settings import Settings
from dra_spec.allocation.validator import broken_rules
from dra_spec.allocation.whatif import nodes_needed, template_of
from dra_spec.allocation.z3_manifests import Waiting, daemons, waiting
from dra_spec.allocation.z3_place import place
from dra_spec.allocation.z3_problem import Pick, Problem, Solution
from dra_spec.allocation.z3_solve import every, first, one
from dra_spec.resources import ManifestError

DRA = (device_class(), slice_of("dra", 3), node("dra"))
PLUGIN = (device_class(), node("plugin", {GPU: 2}))
BOTH = (device_class(), slice_of("both", 3), node("both", {GPU: 2}))


def todo(*parts: str, **options: object) -> Waiting:
    return waiting(load(*parts), **options)  # type: ignore[arg-type]


def placed(*parts: str) -> dict[str, tuple[str, list[tuple[str, str, str, bool, int]]]]:
    """For each pod its node, and container, resource, requests, whether DRA serves it, and with how many devices."""
    problem = todo(*parts).problem
    found = place(problem)
    assert found is not None
    answer = {}
    for call, at in zip(problem.calls, found.nodes, strict=True):
        rows = served(problem, call, at, found.picks)
        answer[call.label] = (at, [(s.container, s.resource, ",".join(s.requests), s.by_dra, len(s.devices)) for s in rows])
    return answer


def explained(problem: Problem, at: str) -> Explanation:
    found = explain(problem, at)
    assert found is not None
    for relaxation in found.relaxations:
        assert one(apply(problem, relaxation)) is not None, relaxation
    return found


def texts(found: Explanation) -> set[str]:
    return {" and ".join(c.text for c in r) for r in found.relaxations}


def test_a_node_with_a_device_plugin_serves_without_a_claim() -> None:
    assert placed(*PLUGIN, pod("p", {GPU: 2})) == {"pod p": ("plugin", [("main", GPU, "", False, 0)])}
    assert one(todo(*PLUGIN, pod("p", {GPU: 3})).problem) is None


def test_a_resource_that_no_class_knows_is_counted_all_the_same() -> None:
    assert placed(node("plugin", {NIC: 1}), pod("p", {NIC: 1})) == {"pod p": ("plugin", [("main", NIC, "", False, 0)])}


def test_a_node_with_devices_serves_by_a_special_claim() -> None:
    assert placed(*DRA, pod("p", {GPU: 2})) == {"pod p": ("dra", [("main", GPU, "container-0-request-0", True, 2)])}
    assert one(todo(*DRA, pod("p", {GPU: 4})).problem) is None


def test_an_implicit_name_is_served_by_its_class() -> None:
    name = f"{IMPLICIT}gpu"
    assert placed(*DRA, pod("p", {name: 1})) == {"pod p": ("dra", [("main", name, "container-0-request-0", True, 1)])}


def test_each_pod_finds_the_kind_of_node_that_has_room_for_it() -> None:
    """Two and one of the plugin, or three and less of DRA: only one way to place both."""
    found = placed(*PLUGIN, *DRA[1:], pod("a", {GPU: 2}), pod("b", {GPU: 3}))
    assert {p: at for p, (at, _) in found.items()} == {"pod a": "plugin", "pod b": "dra"}


def test_a_node_that_offers_both_never_uses_its_devices_for_the_name() -> None:
    assert one(todo(*BOTH, pod("p", {GPU: 3})).problem) is None
    assert placed(*BOTH, pod("p", {GPU: 2, f"{IMPLICIT}gpu": 3}))["pod p"][1] == [
        ("main", f"{IMPLICIT}gpu", "container-0-request-0", True, 3),
        ("main", GPU, "", False, 0),
    ]


def test_an_amount_of_zero_is_no_device_plugin() -> None:
    assert placed(device_class(), slice_of("here", 1), node("here", {GPU: 0}), pod("p", {GPU: 1}))["pod p"][1][0][3]


def test_one_resource_from_the_plugin_and_another_from_dra() -> None:
    parts = (device_class(), device_class("nic", NIC, "nic.example.com"), slice_of("here", 2), node("here", {NIC: 1}))
    assert placed(*parts, pod("p", {GPU: 1, NIC: 1}))["pod p"][1] == [
        ("main", GPU, "container-0-request-0", True, 1),
        ("main", NIC, "", False, 0),
    ]
    assert one(todo(*parts, pod("p", {GPU: 1, NIC: 2})).problem) is None


def test_the_claim_differs_between_nodes() -> None:
    """On one node DRA serves both resources, on the other only one."""
    classes = (device_class(), device_class("nic", NIC, "nic.example.com"))
    there = (*classes, slice_of("a", 1), slice_of("b", 1), slice_of("b", 1, "nic.example.com"), node("a", {NIC: 1}), node("b"))
    problem = todo(*there, pod("p", {GPU: 1, NIC: 1})).problem
    assert [sorted(c.special.served) for c in problem.claims if c.special] == [[GPU], [GPU, NIC]]
    found = {s.nodes[0]: sorted(p.device for p in s.picks) for s in every(problem, 10)}
    assert found == {"a": ["gpu.example.com/a/d0"], "b": ["gpu.example.com/b/d0", "nic.example.com/b/d0"]}


def test_two_classes_with_one_name() -> None:
    classes = (
        device_class("old", created="2026-01-01T00:00:00Z"),
        device_class("new", driver="x.example.com", created="2026-02-01T00:00:00Z"),
    )
    parts = (*classes, slice_of("here", 2), slice_of("here", 1, "x.example.com"), node("here"))
    waits = todo(*parts, pod("p", {GPU: 1}))
    solution = one(waits.problem)
    assert solution is not None
    assert [p.device for p in solution.picks] == ["x.example.com/here/d0"]
    assert any("class new serves example.com/gpu, not old with the same extendedResourceName" in h for h in waits.hints)
    assert not waits.not_encoded
    lost = todo(*parts, pod("p", {f"{IMPLICIT}old": 1}))
    assert any("depends on the order of events, since class new won" in n for n in lost.not_encoded)


def test_init_containers_use_devices_again() -> None:
    listed = (("init", "i", {GPU: 3}), ("sidecar", "s", {GPU: 1}), ("container", "main", {GPU: 2}))
    rows = placed(*DRA, pod("p", *listed))["pod p"][1]
    assert rows == [
        ("i", GPU, "container-1-request-0,container-2-request-0", True, 3),
        ("s", GPU, "container-1-request-0", True, 1),
        ("main", GPU, "container-2-request-0", True, 2),
    ]
    # the sidecar goes on while a later init container runs
    late = (("sidecar", "s", {GPU: 1}), ("init", "i", {GPU: 3}), ("container", "main", {GPU: 2}))
    assert one(todo(*DRA, pod("p", *late)).problem) is None
    assert one(todo(*PLUGIN, pod("p", ("init", "i", {GPU: 2}), ("container", "main", {GPU: 2}))).problem) is not None


def test_resource_claims_and_extended_resources_share_devices() -> None:
    template = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t}\n"
        "spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 2}}]}}}"
    )
    spec = "resourceClaims: [{name: c, resourceClaimTemplateName: t}]"
    assert one(todo(*DRA, template, pod("p", {GPU: 1}, spec=spec)).problem) is not None
    assert one(todo(*DRA, template, pod("p", {GPU: 2}, spec=spec)).problem) is None
    first_found = first(todo(*DRA, template, pod("p", {GPU: 1}, spec=spec)).problem)
    assert first_found is not None  # the pod's own claims come first
    assert [(p.claim, p.device[-2:]) for p in first_found.picks] == [(0, "d0"), (0, "d1"), (1, "d2")]


def test_a_claim_beside_a_plugin_that_a_class_replaces_is_never_bound() -> None:
    template = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t}\n"
        "spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}"
    )
    spec = "resourceClaims: [{name: c, resourceClaimTemplateName: t}]"
    hints = todo(*BOTH, template, pod("p", {GPU: 1}, spec=spec)).hints
    assert any("makes an empty claim there and can never bind the pod" in h for h in hints)
    assert not todo(*DRA, template, pod("p", {GPU: 1}, spec=spec)).hints


# --- pods that are there already -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("phase", "fits"), [("Running", False), ("Pending", False), ("Succeeded", True), ("Failed", True)])
def test_running_pods_use_what_they_ask_for_until_they_end(phase: str, fits: bool) -> None:
    there = pod("old", {GPU: 1}, spec="nodeName: plugin", status=f"phase: {phase}")
    assert (one(todo(*PLUGIN, there, pod("p", {GPU: 2})).problem) is not None) is fits
    assert (one(todo(*PLUGIN, there, pod("p", {GPU: 1})).problem) is not None) is True


def test_a_special_claim_that_is_allocated_holds_its_devices() -> None:
    claim = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
        'metadata: {name: old-extended-resources-x, annotations: {resource.kubernetes.io/extended-resource-claim: "true"}}\n'
        "spec: {devices: {requests: [{name: container-0-request-0, exactly: {deviceClassName: gpu}}]}}\n"
        "status: {allocation: {devices: {results: [{request: container-0-request-0, driver: gpu.example.com, pool: dra, device: d0}]}}}"
    )
    status = "extendedResourceClaimStatus: {resourceClaimName: old-extended-resources-x}"
    there = pod("old", {GPU: 1}, spec="nodeName: dra", status=status)
    waits = todo(*DRA, claim, there, pod("p", {GPU: 2}))
    solution = one(waits.problem)
    assert solution is not None
    assert [p.device[-2:] for p in solution.picks] == ["d1", "d2"]
    assert not waits.hints
    assert one(todo(*DRA, claim, there, pod("p", {GPU: 3})).problem) is None
    bare = todo(*DRA, pod("old", {GPU: 1}, spec="nodeName: dra"), pod("p", {GPU: 3}))
    assert any("pod old is on node dra and has no claim for example.com/gpu" in h for h in bare.hints)


def test_a_claim_of_an_earlier_attempt_makes_the_answer_undecided() -> None:
    claim = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
        'metadata: {name: x, annotations: {resource.kubernetes.io/extended-resource-claim: "true"},\n'
        "  ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u, controller: true}]}\n"
        "spec: {devices: {requests: [{name: container-0-request-0, exactly: {deviceClassName: gpu}}]}}"
    )
    waits = todo(*DRA, claim, pod("p", {GPU: 1}))
    assert [c.label for c in waits.problem.calls] == ["pod p"]
    assert any("is left of an earlier attempt to place pod p" in n for n in waits.not_encoded)


TEMPLATE = (
    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t}\n"
    "spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}"
)


def generated(name: str, device: str) -> str:
    allocation = f"{{devices: {{results: [{{request: r, driver: gpu.example.com, pool: dra, device: {device}}}]}}}}"
    outcome = f"allocation: {allocation}" if device else ""
    return (
        f"apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: {name}}}\n"
        f"spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: gpu}}}}]}}}}\nstatus: {{{outcome}}}"
    )


def test_a_claim_that_was_made_from_a_template_counts_once() -> None:
    spec = "resourceClaims: [{name: c, resourceClaimTemplateName: t}]"
    status = "resourceClaimStatuses: [{name: c, resourceClaimName: old-c-x}]"
    there = pod("old", {}, spec="nodeName: dra\n  " + spec, status=status)
    waits = todo(*DRA, TEMPLATE, there, generated("old-c-x", "d0"), pod("p", {GPU: 2}))
    assert [c.label for c in waits.problem.calls] == ["pod p"]
    solution = one(waits.problem)
    assert solution is not None
    assert [p.device[-2:] for p in solution.picks] == ["d1", "d2"]
    # generated, but without devices: one claim that waits, not two
    waits = todo(*DRA, TEMPLATE, pod("new", {}, spec=spec, status=status), generated("old-c-x", ""))
    assert [[c.label for c in call.claims] for call in waits.problem.calls] == [["claim new-c"]]
    # an entry that needs no claim
    with pytest.raises(ManifestError, match="no claim waits"):
        todo(*DRA, TEMPLATE, pod("new", {}, spec=spec, status="resourceClaimStatuses: [{name: c}]"))


DAEMON = """apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  template:
    spec:
      containers: [{name: main, image: busybox, resources: {limits: {example.com/gpu: 1}}}]
      SELECTOR"""


def test_a_daemon_set_has_a_pod_on_each_node_and_not_elsewhere() -> None:
    nodes = (device_class(), node("a", {GPU: 2}), node("b", {GPU: 1}, "kind: big"))
    waits = todo(*nodes, DAEMON.replace("SELECTOR", ""))
    assert [(c.label, c.nodes) for c in waits.problem.calls] == [("pod agent-0", ("a",)), ("pod agent-1", ("b",))]
    found = one(todo(*nodes, DAEMON.replace("SELECTOR", ""), pod("p", {GPU: 1})).problem)
    assert found is not None
    assert found.nodes == ("a", "b", "a")
    assert one(todo(*nodes, DAEMON.replace("SELECTOR", ""), pod("p", {GPU: 2})).problem) is None
    some = todo(*nodes, DAEMON.replace("SELECTOR", "nodeSelector: {kind: big}"))
    assert [(c.label, c.nodes) for c in some.problem.calls] == [("pod agent-1", ("b",))]


def test_a_daemon_pod_that_the_manifests_list_counts_once() -> None:
    owner = ", ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: u, controller: true}]"
    there = pod("agent-xyz", {GPU: 1}, spec="nodeName: a", meta=owner)
    waits = todo(device_class(), node("a", {GPU: 2}), DAEMON.replace("SELECTOR", ""), there, pod("p", {GPU: 1}))
    assert [c.label for c in waits.problem.calls] == ["pod p"]
    assert one(waits.problem) is not None


# --- why not, and what would help ---------------------------------------------------------------------------------------------


def test_a_plugin_that_has_too_few_left_is_the_reason() -> None:
    there = pod("old", {GPU: 1}, spec="nodeName: plugin")
    found = explained(todo(*PLUGIN, there, pod("p", {GPU: 2})).problem, "plugin")
    assert [c.reason.kind for c in found.causes] == ["resource"]
    assert "node plugin serves example.com/gpu by a device plugin and has 1 of 2 left; pod p wants 2" in found.causes[0].reason.text
    assert found.causes[0].reason.where.line
    assert texts(found) == {
        "ask for 1 instead of 2 example.com/gpu in container main of pod p",
        "free example.com/gpu of pod old, which has 1",
    }


def test_a_node_with_both_gives_its_devices_by_the_implicit_name_only() -> None:
    found = explained(todo(*BOTH, pod("p", {GPU: 3})).problem, "both")
    assert "devices of class gpu do not serve it on a node whose device plugin does" in found.causes[0].reason.text
    assert f"ask for {IMPLICIT}gpu, which DRA serves, instead of {GPU} in pod p" in texts(found)


def test_a_resource_that_nobody_serves() -> None:
    found = explained(todo(*DRA, pod("p", {GPU: 1, NIC: 1})).problem, "dra")
    assert found.causes[0].reason.text == f"node dra has no {NIC}: no device plugin offers it there, and no DeviceClass provides it"
    assert texts(found) == {f"do without {NIC} in container main of pod p"}


def test_all_resources_that_are_short_are_named_and_equal_nodes_have_equal_reasons() -> None:
    problem = todo(node("a", {GPU: 1}), node("b", {GPU: 1}), pod("p", {GPU: 2, NIC: 1, "cpu": 1})).problem
    at_a, at_b = explained(problem, "a"), explained(problem, "b")
    assert sorted(c.reason.text for c in at_a.causes) == [
        f"node a has no {NIC}: no device plugin offers it there, and no DeviceClass provides it",
        f"node a serves {GPU} by a device plugin and has 1 of 1 left; pod p wants 2",
    ]
    assert at_a.causes == at_b.causes
    assert texts(at_a) == {f"ask for 1 instead of 2 {GPU} in container main of pod p and do without {NIC} in container main of pod p"}
    held = pod("old", {GPU: 1}, spec="nodeName: a")
    other = todo(node("a", {GPU: 1}), node("b", {GPU: 0}), held, pod("p", {GPU: 1})).problem
    assert explained(other, "a").causes != explained(other, "b").causes  # what helps there differs


def test_too_few_devices_for_the_special_claim() -> None:
    found = explained(todo(*DRA, pod("p", {GPU: 4})).problem, "dra")
    assert [c.reason.text for c in found.causes] == [
        "request container-0-request-0 of the extended resource claim of pod p wants 4 devices of class gpu for example.com/gpu in main"
    ]
    assert texts(found) == {"ask for 3 instead of 4 example.com/gpu in container main of pod p"}


def test_nobody_can_tolerate_a_taint_in_a_claim_of_the_scheduler() -> None:
    tainted = slice_of("dra", 3, extra=", taints: [{key: k, effect: NoSchedule}]")
    found = explained(todo(device_class(), tainted, node("dra"), pod("p", {GPU: 1, f"{IMPLICIT}gpu": 1})).problem, "dra")
    assert "taint" in {c.reason.kind for c in found.causes}
    assert not found.relaxations


def test_fewer_devices_for_an_init_container() -> None:
    listed = (("init", "big", {GPU: 5}), ("container", "main", {GPU: 2}))
    found = explained(todo(*DRA, pod("p", *listed)).problem, "dra")
    assert texts(found) == {"ask for 3 instead of 5 example.com/gpu in init container big of pod p"}


def test_the_gate_decides_whether_a_class_serves() -> None:
    off = Settings.of("1.35")
    waits = todo(*DRA, pod("p", {GPU: 1}), settings=off)
    assert one(waits.problem) is None
    assert "DeviceClass gpu would provide it, but DRAExtendedResource is off" in explained(waits.problem, "dra").causes[0].reason.text
    assert one(todo(*DRA, pod("p", {GPU: 1}), settings=Settings.of("1.35", {"DRAExtendedResource": True})).problem) is not None
    assert one(todo(*PLUGIN, pod("p", {GPU: 1}), settings=off).problem) is not None
    early = todo(*DRA, pod("p", {GPU: 1}), settings=Settings.of("1.34", {"DRAExtendedResource": True}))
    assert any("extended resources by DRA in Kubernetes 1.34" in n for n in early.not_encoded)
    with pytest.raises(ValueError, match="DRAExtendedResource is locked"):
        Settings.of("1.37", {"DRAExtendedResource": False})


def test_a_node_without_object_leaves_open_what_its_plugins_have() -> None:
    parts = (device_class(), slice_of("here", 2))
    assert not todo(*parts, pod("p", {GPU: 1})).not_encoded
    assert any("node here has no Node object" in n for n in todo(*parts, pod("p", {NIC: 1})).not_encoded)


# --- several pods and more nodes, against counting ----------------------------------------------------------------------------

amounts = st.lists(st.integers(1, 3), min_size=1, max_size=4)
clusters = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3)


def fits_by_counting(nodes: Sequence[tuple[int, int]], pods: Sequence[int]) -> bool:
    """`nodes`: (of the device plugin, devices); where there is a plugin, only it serves."""
    room = [plugin or devices for plugin, devices in nodes]
    for choice in itertools.product(range(len(nodes)), repeat=len(pods)):
        if all(sum(n for n, c in zip(pods, choice, strict=True) if c == i) <= room[i] for i in range(len(nodes))):
            return True
    return False


def cluster(nodes: Sequence[tuple[int, int]], pods: Sequence[int]) -> list[str]:
    parts = [device_class()]
    for i, (plugin, devices) in enumerate(nodes):
        parts += [node(f"n{i}", {GPU: plugin} if plugin else {}), *([slice_of(f"n{i}", devices)] if devices else [])]
    return parts + [pod(f"p{i}", {GPU: n}) for i, n in enumerate(pods)]


@given(clusters, amounts)
@settings(max_examples=25, deadline=None)
def test_pods_fit_together_exactly_if_they_do_by_counting(nodes: list[tuple[int, int]], pods: list[int]) -> None:
    problem = todo(*cluster(nodes, pods)).problem
    together = one(problem)  # one formula over all nodes
    assert (together is not None) is fits_by_counting(nodes, pods)
    assert (place(problem) is not None) is (together is not None)  # numbers per kind of node


@given(amounts, st.integers(0, 4), st.integers(0, 3), st.integers(0, 1))
@settings(max_examples=15, deadline=None)
def test_more_nodes_exactly_if_by_counting(pods: list[int], plugin: int, devices: int, daemon: int) -> None:
    parts = [*cluster([(1, 0)], pods), *([DAEMON.replace("SELECTOR", "")] if daemon else [])]
    loaded = load(*parts)
    new = [node("t", {GPU: plugin} if plugin else {}), slice_of("t", devices)]
    template = template_of(load(*new))
    found = nodes_needed(waiting(loaded).problem, template, {"pod agent-0": True}, daemons(loaded, template.node))
    room = (plugin or devices) - daemon
    old = 1 - daemon
    expected = next((n for n in range(5) if fits_by_counting([(old, 0) if old else (0, 0), *[(max(room, 0), 0)] * n], pods)), None)
    assert found.needed == expected


def test_what_runs_on_a_node_is_not_free_for_others() -> None:
    there = pod("old", {GPU: 1}, spec="nodeName: plugin")
    loaded = load(*PLUGIN, there, pod("a", {GPU: 1}), pod("b", {GPU: 1}))
    template = template_of(load(slice_of("t", 0), node("t", {GPU: 1})))
    assert nodes_needed(waiting(loaded).problem, template).needed == 1
    # an equal name of the new node changes nothing: what runs on the old one is not there
    again = template_of(load(slice_of("plugin", 0), node("plugin", {GPU: 1})))
    assert nodes_needed(waiting(loaded).problem, again).needed == 1


def test_a_new_node_can_be_of_the_other_kind() -> None:
    loaded = load(*PLUGIN, pod("p", {GPU: 3}))
    assert nodes_needed(waiting(loaded).problem, template_of(load(slice_of("t", 3), node("t")))).needed == 1
    assert nodes_needed(waiting(loaded).problem, template_of(load(slice_of("t", 3), node("t", {GPU: 1})))).never == ("pod p",)


# --- the validator ------------------------------------------------------------------------------------------------------------


def test_the_validator_counts_by_itself() -> None:
    listed = (("init", "i", {GPU: 3}), ("container", "main", {GPU: 2}))
    problem = todo(*DRA, *PLUGIN[1:], pod("p", *listed), pod("q", {GPU: 2})).problem
    good = place(problem)
    assert good is not None
    assert not broken_rules(problem, good)

    def rules(solution: Solution, changed: Problem = problem) -> set[str]:
        return {b.rule for b in broken_rules(changed, solution)}

    assert rules(attrs.evolve(good, nodes=("dra", "dra"))) >= {"special"}
    assert rules(attrs.evolve(good, nodes=("plugin", "plugin"))) >= {"special", "resource"}
    assert rules(attrs.evolve(good, picks=good.picks[1:])) >= {"special"}
    assert rules(attrs.evolve(good, picks=(*good.picks, Pick(1, "container-0-request-0", "gpu.example.com/dra/d2")))) >= {"special"}
    unbacked = attrs.evolve(problem, backing={})
    assert rules(good, unbacked) >= {"resource"}


def test_nothing_to_do_is_said() -> None:
    with pytest.raises(ManifestError, match="no claim waits"):
        todo(*DRA)


# --- the reference allocator and the solver -----------------------------------------------------------------------------------

kinds = st.sampled_from(["init", "sidecar"])
some_resources = st.dictionaries(st.sampled_from([GPU, NIC, f"{IMPLICIT}gpu"]), st.integers(1, 2), max_size=2)


@given(
    st.lists(st.tuples(kinds, some_resources), max_size=3),
    st.lists(some_resources, min_size=1, max_size=2),
    st.tuples(st.integers(0, 3), st.integers(0, 4)),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
@settings(max_examples=40, deadline=None)
def test_both_implementations_say_the_same_of_a_pod_on_a_node(
    init: list[tuple[str, dict[str, int]]], main: list[dict[str, int]], gpus: tuple[int, int], nics: tuple[int, int]
) -> None:
    listed = [(kind, f"i{i}", r) for i, (kind, r) in enumerate(init)] + [("container", f"c{i}", r) for i, r in enumerate(main)]
    if not any(r for _, _, r in listed):
        return
    plugin = {r: n for r, n in ((GPU, gpus[0]), (NIC, nics[0])) if n}
    parts = [device_class(), device_class("nic", NIC, "nic.example.com"), node("here", plugin)]
    parts += [slice_of("here", gpus[1])] if gpus[1] else []
    parts += [slice_of("here", nics[1], "nic.example.com")] if nics[1] else []
    problem = todo(*parts, pod("p", *listed)).problem
    solution = first(problem)
    assert Upstream.of(problem).says(problem, "here")[0] == ("no-fit" if solution is None else "fits")
    # by counting: what runs at once of each name, from the plugin or from the devices, which two names share
    wanted = totals(problem.calls[0].pods[0].asks)
    devices = (0 if gpus[0] else wanted.get(GPU, 0)) + wanted.get(f"{IMPLICIT}gpu", 0)
    room = devices <= gpus[1] and (not gpus[0] or wanted.get(GPU, 0) <= gpus[0])
    room = room and wanted.get(NIC, 0) <= (nics[0] or nics[1])
    assert (solution is not None) is room
