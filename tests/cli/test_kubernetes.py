"""`--kubernetes` and `--gate` of allocate and explain, verdicts told apart, node resources, and what is said of selectors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Run = Callable[..., Result]
DATA = Path(__file__).parent.parent / "data" / "allocation"


def edited(tmp_path: Path, name: str, *changes: tuple[str, str]) -> Path:
    text = (DATA / name).read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    file = tmp_path / "m.yaml"
    file.write_text(text)
    return file


def answer(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("command", ["allocate", "explain"])
def test_a_version_without_the_feature_drops_the_field_and_says_so(run: Run, command: str) -> None:
    now = run(command, DATA / "taint.yaml", "-o", "json")
    before = run(command, DATA / "taint.yaml", "-o", "json", "--kubernetes", "1.34")
    assert (now.exit_code, before.exit_code) == (1, 0)
    assert (answer(now)["warnings"], now.stderr) == ([], "")
    (warning,) = answer(before)["warnings"]
    assert "taint.yaml:22: spec.devices[1].taints: the feature gate DRADeviceTaints is off in Kubernetes 1.34" in warning
    assert f"warning: {warning}" in before.stderr
    assert answer(before)["kubernetes"] == "1.34"


@pytest.mark.parametrize("solver", ["reference", "z3"])
def test_a_gate_brings_the_feature_back(run: Run, solver: str) -> None:
    arguments = ["allocate", DATA / "taint.yaml", "--kubernetes", "1.34", "--solver", solver]
    assert run(*arguments, "--gate", "DRADeviceTaints=true").exit_code == 1
    assert run(*arguments, "--gate", "DRADeviceTaints=false").exit_code == 0


def test_the_default_is_1_37_with_its_default_gates(run: Run) -> None:
    for name in ("taint", "counter", "capacity-shared"):
        default = run("allocate", DATA / f"{name}.yaml", "-o", "json")
        named = run("allocate", DATA / f"{name}.yaml", "-o", "json", "--kubernetes", "1.37")
        assert default.stdout == named.stdout
        assert answer(default)["warnings"] == []


@pytest.mark.parametrize("command", ["allocate", "explain"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gate", "DRAAdminAcess=true"], "no feature gate 'DRAAdminAcess' for allocation; did you mean DRAAdminAccess?"),
        (["--gate", "DRAAdminAccess=false"], "DRAAdminAccess is locked to true in Kubernetes 1.37"),
        (["--gate", "DRADerivedAttributes=true", "--kubernetes", "1.36"], "has no feature gate 'DRADerivedAttributes'"),
        (["--gate", "DRAAdminAccess"], "found 'DRAAdminAccess', expected NAME=true or NAME=false"),
        (["--gate", "DRAAdminAccess=yes"], "expected NAME=true or NAME=false"),
        (["--gate", "Nonsense=true"], "expected one of DRAAdminAccess"),
        (["--kubernetes", "1.33"], "'1.33' is not one of"),
    ],
)
def test_wrong_versions_and_gates(run: Run, command: str, arguments: list[str], message: str) -> None:
    result = run(command, DATA / "count.yaml", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["allocate", "explain"])
def test_a_selector_that_a_version_does_not_take(run: Run, tmp_path: Path, command: str) -> None:
    file = edited(tmp_path, "selector.yaml", (".memory >= 40", ".memory.includes(40)"))
    old = run(command, file, "--kubernetes", "1.35")
    assert old.exit_code == 2
    assert "m.yaml:36" in old.stderr
    assert "(Kubernetes 1.35 does not know this, 1.37 does)" in old.stderr
    assert "^" in old.stderr
    refused = run(command, file)
    assert refused.exit_code == 2
    assert "an API server of Kubernetes 1.37 with these feature gates does not take this in a new object" in refused.stderr
    assert run(command, file, "--gate", "DRAListTypeAttributes=true").exit_code in (0, 1)


def test_what_the_api_server_would_refuse_is_wrong_input(run: Run) -> None:
    result = run("allocate", DATA / "distinct.yaml", "--kubernetes", "1.34")
    assert result.exit_code == 2
    assert "distinct.yaml:37" in result.stderr
    assert "drops distinctAttribute and refuses the ResourceClaim" in result.stderr


def test_an_error_on_the_way_is_told_from_no_fit(run: Run, tmp_path: Path) -> None:
    """A device without the attribute comes before one that would do."""
    file = edited(tmp_path, "selector.yaml", ("memory >= 40", "nothing >= 40"))
    for solver in ("reference", "z3"):
        result = run("allocate", file, "--solver", solver, "-o", "json")
        assert result.exit_code == 1
        (pod,) = answer(result)["allocations"][0]["pods"]
        assert pod["verdict"] == "fatal"
        assert "no such key: nothing" in pod["reason"]
        plain = run("allocate", DATA / "count.yaml", "--solver", solver, "-o", "json")
        assert answer(plain)["allocations"][0]["pods"][0]["verdict"] == "no-fit"
    told = run("allocate", file, "--solver", "z3")
    assert "does not fit, kube-scheduler gives up: selector" in told.stdout
    assert "note: without that error the claims would not fit on node node-a" in told.stdout
    explained = run("explain", file)
    assert "kube-scheduler gives up, on all nodes: selector" in explained.stdout
    assert "guard it with has(device.attributes['gpu.example.com'].nothing)" in explained.stdout


def test_explain_speaks_of_the_selectors(run: Run, tmp_path: Path) -> None:
    file = edited(tmp_path, "selector.yaml", ("device.attributes['gpu.example.com'].memory >= 40", "device.driver == 'nic.example.com'"))
    assert "selectors of class gpu and of request gpus of claim wanted exclude each other" in run("explain", file).stdout
    (pod,) = answer(run("explain", file, "-o", "json"))["pods"]
    (found,) = pod["selectors"]
    assert found["kind"] == "disjoint"
    assert found["where"].endswith("m.yaml:36")
    assert found["other"].endswith("m.yaml:7")


COSTS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
---
apiVersion: v1
kind: Node
metadata: {name: node-a}
status: {allocatable: {memory: 8Gi}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: node-a
  pool: {name: node-a, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    nodeAllocatableResources:
      memory: {mapping: {deviceMultiplier: 6Gi}}
      cpu: {overhead: {perPod: 100m}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: wanted}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resourceClaims: [{name: g, resourceClaimName: wanted}]
  containers: [{name: c, resources: {claims: [{name: g}], requests: {memory: MEMORY}}}]
"""


@pytest.mark.parametrize("solver", ["reference", "z3"])
def test_what_devices_cost_a_node_is_shown_and_decides(run: Run, tmp_path: Path, solver: str) -> None:
    gate = ["--gate", "DRANodeAllocatableResources=true", "--solver", solver]
    file = tmp_path / "m.yaml"
    file.write_text(COSTS.replace("memory: 8Gi", "memory: 8Gi, cpu: 1").replace("MEMORY", "2Gi"))
    fits = run("allocate", file, *gate)
    assert fits.exit_code == 0
    assert "the devices of pod p cost 6Gi of memory, 100m of cpu (overhead) of node node-a" in fits.stdout
    (pod,) = answer(run("allocate", file, *gate, "-o", "json"))["allocations"][0]["pods"]
    assert pod["nodeResources"] == [{"pod": "p", "mapped": {"memory": "6Gi"}, "overhead": {"cpu": "100m"}, "checked": True}]
    file.write_text(COSTS.replace("memory: 8Gi", "memory: 8Gi, cpu: 1").replace("MEMORY", "3Gi"))
    short = run("allocate", file, *gate)
    assert short.exit_code == 1
    assert "node node-a has 1Gi of memory too little for the devices of pod p" in short.stdout
    off = run("allocate", file, "--solver", solver)
    assert off.exit_code == 0
    assert "an API server drops nodeAllocatableResources" in off.stderr


def test_explain_names_node_resources(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(COSTS.replace("MEMORY", "3Gi"))
    result = run("explain", file, "--gate", "DRANodeAllocatableResources=true", "-o", "json")
    assert result.exit_code == 1
    (cause,) = answer(result)["pods"][0]["nodes"][0]["causes"]
    assert cause["kind"] == "node-resources"
    assert "1Gi of memory too little" in cause["text"]
    assert "100m of cpu too little" in cause["text"]


def test_a_node_without_allocatable_is_marked(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(COSTS.replace("status: {allocatable: {memory: 8Gi}}\n", "").replace("MEMORY", "3Gi"))
    result = run("allocate", file, "--gate", "DRANodeAllocatableResources=true")
    assert result.exit_code == 0
    assert "of node node-a, which does not say what it has" in result.stdout


def test_where_pools_have_no_order_the_answer_says_so(run: Run, tmp_path: Path) -> None:
    off = [
        a for g in ("DRAConsumableCapacity", "DRAFractionalCapacityRange", "DRADeviceBindingConditions") for a in ("--gate", f"{g}=false")
    ]
    file = tmp_path / "m.yaml"
    first = COSTS.replace("MEMORY", "1Gi").replace("    nodeAllocatableResources:\n", "").replace("      memory: {mapping: ", "    # ")
    text = first.replace("      cpu: {overhead: {perPod: 100m}}\n", "")
    pool = (
        "driver: gpu.example.com\n  nodeName: node-a\n  pool: {name: NAME, generation: 1, resourceSliceCount: 1}\n  devices: [{name: x}]\n"
    )
    more = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: t}\nspec:\n  " + pool.replace("NAME", "other")
    file.write_text(text + more)
    for solver in ("reference", "z3"):
        assert (
            "note: with these feature gates kube-scheduler tries pools in any order"
            in run("allocate", file, "--solver", solver, *off).stdout
        )
        assert "any order" not in run("allocate", file, "--solver", solver).stdout


def test_warnings_about_the_template_of_new_nodes(run: Run, tmp_path: Path) -> None:
    template = tmp_path / "t.yaml"
    template.write_text((DATA / "template.yaml").read_text().replace("{name: gpu-0}", "{name: gpu-0, bindsToNode: true}"))
    result = run("explain", DATA / "crowd.yaml", "--add-node", template, "--kubernetes", "1.34", "-o", "json")
    assert "t.yaml" in result.stderr
    assert any("drops bindsToNode" in w for w in answer(result)["warnings"])


def test_a_release_that_gives_devices_against_a_rule_is_named(run: Run, tmp_path: Path) -> None:
    """1.36 takes devices with values a, b, a as distinct for one request."""
    devices = "  devices:\n" + "".join(f"  - {{name: d{i}, attributes: {{x: {{string: {v}}}}}}}\n" for i, v in enumerate("aba"))
    head = COSTS.partition("  devices:\n")[0]
    constraint = "constraints: [{distinctAttribute: gpu.example.com/x}]"
    requests = f"requests: [{{name: gpu, exactly: {{deviceClassName: gpu, count: 3}}}}], {constraint}"
    file = tmp_path / "m.yaml"
    file.write_text(
        head + devices + "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: wanted}\n"
        f"spec: {{devices: {{{requests}}}}}\n"
    )
    assert run("allocate", file).exit_code == 1
    assert run("allocate", file, "--kubernetes", "1.36").exit_code == 0
    solved = run("allocate", file, "--kubernetes", "1.36", "--solver", "z3")
    assert solved.exit_code == 1
    assert "kube-scheduler 1.36 would give devices that break a rule" in solved.stdout
    explained = run("explain", file, "--kubernetes", "1.36")
    assert "note: kube-scheduler 1.36 would give it devices all the same, which break a rule" in explained.stdout
    assert "note" not in run("explain", file).stdout


def test_several_pods_and_an_error_that_the_first_would_meet(run: Run, tmp_path: Path) -> None:
    selector = """, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].x == 1"}}]"""
    both = (DATA / "crowd.yaml").read_text().replace("deviceClassName: gpu", f"deviceClassName: gpu{selector}")
    file = tmp_path / "m.yaml"
    file.write_text(both)
    result = run("allocate", file, "--solver", "z3")
    assert result.exit_code == 1
    assert "note: this is whether an allocation exists; kube-scheduler gives up pod pod-0 if it comes first" in result.stdout
