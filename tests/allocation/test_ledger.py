"""Ordinary resources of nodes that chosen devices cost."""

from __future__ import annotations

import pytest

from dra_spec.allocation import AllocatedState, Allocator, FatalAllocation, Inventory, Settings, UnsupportedFeature
from dra_spec.allocation.admission import ApiServer
from dra_spec.allocation.in_turn import Placed, User, place_call
from dra_spec.allocation.ledger import Ledger, requests_of
from dra_spec.allocation.z3_manifests import waiting
from dra_spec.resources import Loaded, Pod, load_text

GATE = {"DRANodeAllocatableResources": True}
CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
"""


def node(name: str, memory: str = "8Gi") -> str:
    status = f"status: {{allocatable: {{cpu: '4', memory: {memory}}}}}" if memory else ""
    return f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n{status}\n"


def devices(at: str, *costs: str) -> str:
    listed = "\n".join(f"  - {{name: d{i}, nodeAllocatableResources: {{{c}}}}}" for i, c in enumerate(costs))
    return f"""---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: s-{at}}}
spec:
  driver: d.example.com
  nodeName: {at}
  pool: {{name: {at}, generation: 1, resourceSliceCount: 1}}
  devices:
{listed}
"""


def a_claim(name: str, status: str = "") -> str:
    spec = "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}"
    return f"---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: {name}}}\n{spec}\n{status}\n"


def a_pod(name: str, claim: str, memory: str = "1Gi", at: str = "") -> str:
    where = f"nodeName: {at}\n  " if at else ""
    return f"""---
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  {where}resourceClaims: [{{name: x, resourceClaimName: {claim}}}]
  containers:
  - {{name: a, resources: {{claims: [{{name: x}}], requests: {{memory: {memory}}}}}}}
  - {{name: b, resources: {{claims: [{{name: x}}]}}}}
"""


def placed(text: str) -> list[Placed]:
    """Each waiting call in turn."""
    server = ApiServer.of("1.37", GATE)
    loaded, _ = server.admit(load_text(CLASS + text, file="m.yaml"))
    todo = waiting(loaded, settings=server.settings)
    ledger = Ledger.of(loaded, Inventory.of_loaded(loaded))
    allocator = Allocator(ledger.inventory, server.settings)
    held = [c.status.allocation for c in loaded.claims if c.status.allocation]
    found = []
    for call, pods in zip(todo.problem.calls, todo.pods, strict=True):
        users = [User.of(loaded, call, pod) for pod in pods]
        found.append(place_call(allocator, todo.problem, call, AllocatedState.of(held), ledger, users))
        held += [r.allocation for r in found[-1].results.values()]
        if found[-1].node:
            for user, charge in zip(users, found[-1].charges, strict=False):
                ledger.add(found[-1].node, user.pod, charge.cost)
    return found


def shown(one: Placed) -> list[dict[str, str]]:
    return [{k: str(q) for k, q in c.cost.total.items()} for c in one.charges]


GIVES = "memory: {mapping: {deviceMultiplier: 6Gi}}"
OVERHEAD = "cpu: {overhead: {perPod: 100m, perContainer: 50m}}"


def test_a_node_without_enough_is_given_up_and_another_device_is_not_tried() -> None:
    text = node("n0") + node("n1") + devices("n0", GIVES, OVERHEAD) + devices("n1", GIVES) + a_claim("c")
    (found,) = placed(text + a_pod("p", "c", "3Gi"))
    assert found.kind == "no-fit"  # n0/d1 would do, but d0 comes first
    assert "node n0 has 1Gi of memory too little for the devices of pod p" in found.reason
    (found,) = placed(text + a_pod("p", "c", "2Gi"))
    assert (found.node, shown(found)) == ("n0", [{"memory": "6Gi"}])


def test_overhead_counts_pods_and_containers() -> None:
    (found,) = placed(node("n0") + devices("n0", OVERHEAD) + a_claim("c") + a_pod("p", "c"))
    assert shown(found) == [{"cpu": "200m"}]


def test_pods_that_run_and_pods_placed_before_count() -> None:
    status = "status: {allocation: {devices: {results: [{request: r, driver: d.example.com, pool: n0, device: d0}]}}}"
    text = (
        node("n0") + node("n1") + devices("n0", "memory: {mapping: {deviceMultiplier: 3Gi}}", "memory: {mapping: {deviceMultiplier: 3Gi}}")
    )
    text += devices("n1", "memory: {mapping: {deviceMultiplier: 3Gi}}", "memory: {mapping: {deviceMultiplier: 3Gi}}")
    running = a_claim("old", status) + a_pod("r", "old", "1Gi", "n0")
    first, second = placed(text + running + a_claim("a") + a_claim("b") + a_pod("p", "a", "1Gi") + a_pod("q", "b", "2Gi"))
    assert first.node == "n0"  # 1 + 3 run there, 1 + 3 more are just enough
    assert second.node == "n1"
    assert placed(text + running + a_claim("a") + a_pod("p", "a", "1100Mi"))[0].node == "n1"


def test_pods_cannot_share_a_claim_that_stands_for_resources_but_one_that_costs_some() -> None:
    both = a_pod("p", "c") + a_pod("q", "c")
    (found,) = placed(node("n0", "64Gi") + devices("n0", GIVES) + a_claim("c") + both)
    assert found.kind == "no-fit"
    assert "claim c stands for resources of the node, so several pods cannot share it" in found.reason
    (found,) = placed(node("n0", "64Gi") + devices("n0", OVERHEAD) + a_claim("c") + both)
    assert shown(found) == [{"cpu": "200m"}, {"cpu": "200m"}]


def test_a_node_that_does_not_say_what_it_has_is_not_refused_but_marked() -> None:
    (found,) = placed(node("n0", "") + devices("n0", GIVES) + a_claim("c") + a_pod("p", "c"))
    assert [c.unknown for c in found.charges] == [True]


def test_a_claim_without_pods_shows_what_it_would_cost() -> None:
    (found,) = placed(node("n0") + devices("n0", GIVES) + a_claim("c"))
    assert shown(found) == [{"memory": "6Gi"}]


def test_nothing_counts_while_the_gate_is_off() -> None:
    server = ApiServer.of()
    loaded, warnings = server.admit(load_text(CLASS + node("n0") + devices("n0", GIVES), file="m.yaml"))
    assert len(warnings) == 1
    assert not Ledger.of(loaded, Inventory.of_loaded(loaded)).matters


def test_what_a_running_pod_costs_is_not_guessed() -> None:
    result = "{request: r, driver: d.example.com, pool: n0, device: DEVICE}"
    results = f"{result.replace('DEVICE', 'gone')}, {result.replace('DEVICE', 'd0')}"
    status = f"status: {{allocation: {{devices: {{results: [{results}]}}}}}}"
    loaded = load_text(CLASS + node("n0") + devices("n0", GIVES) + a_claim("c", status) + a_pod("p", "c", at="n0"), file="m.yaml")
    with pytest.raises(UnsupportedFeature, match=r"m\.yaml:.*what the devices of a running pod cost: device d.example.com/n0/gone"):
        Ledger.of(loaded, Inventory.of_loaded(loaded))


def test_what_a_pod_asks_for_at_once() -> None:
    text = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  initContainers:
  - {name: i, resources: {requests: {cpu: 3}}}
  - {name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}
  - {name: j, resources: {limits: {cpu: 3, memory: 1Gi}}}
  containers:
  - {name: a, resources: {requests: {cpu: 1, memory: 2Gi}}}
  - {name: b, resources: {requests: {cpu: 1500m}}}
"""
    loaded: Loaded = load_text(text)
    pod: Pod = loaded.pods[0]
    assert {k: str(q) for k, q in requests_of(pod).items()} == {"cpu": "4", "memory": "2Gi"}


def test_a_fatal_error_on_a_later_node_ends_the_attempt() -> None:
    selector = """selectors: [{cel: {expression: "device.attributes['d.example.com'].x == 1"}}]"""
    good = devices("n0", "").replace("nodeAllocatableResources: {}", "attributes: {x: {int: 1}}")
    bad = devices("n1", "").replace(", nodeAllocatableResources: {}", "")
    text = node("n0") + node("n1") + good + bad + a_claim("c").replace("deviceClassName: gpu", f"deviceClassName: gpu, {selector}")
    (found,) = placed(text)
    assert found.kind == "fatal"
    assert "d.example.com/n1/d0: no such key: x" in found.reason
    with pytest.raises(FatalAllocation):
        Allocator(Inventory.of_loaded(load_text(CLASS + text)), Settings()).allocate([load_text(CLASS + text).claims[0].spec], "n1")
