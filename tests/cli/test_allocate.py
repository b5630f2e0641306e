"""`dra-spec allocate` and `dra-spec explain`: answers, forms, exit codes, and what they say of wrong input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from ruamel.yaml import YAML

Run = Callable[..., Result]
DATA = Path(__file__).parent.parent / "data" / "allocation"
WAITING_PODS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 7
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      nodeSelector: {pool: big}
      containers: [{name: c, image: x, resources: {claims: [{name: r}]}}]
      resourceClaims: [{name: r, resourceClaimTemplateName: one}]
"""


def test_pods_one_after_the_other_get_devices_until_there_are_none(run: Run) -> None:
    result = run("allocate", DATA / "crowd.yaml")
    assert result.exit_code == 1
    assert "gpu.example.com/node-a/gpu-0" in result.stdout
    assert "pod pod-1 does not fit" in result.stdout


@pytest.mark.parametrize("solver", ["reference", "z3"])
def test_both_solvers_give_the_first_devices(run: Run, solver: str) -> None:
    result = run("allocate", DATA / "twice.yaml", "--claim", "one", "--solver", solver, "-o", "json")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert answer["fits"]
    (pod,) = answer["allocations"][0]["pods"]
    assert pod["node"] == "node-a"
    assert [d["device"] for d in pod["claims"][0]["devices"]] == ["gpu-0", "gpu-1"]


def test_all_allocations(run: Run) -> None:
    result = run("allocate", DATA / "twice.yaml", "--claim", "one", "--all", "10", "-o", "yaml")
    assert result.exit_code == 0
    found = YAML(typ="safe").load(result.stdout)["allocations"]
    assert [[d["device"] for d in a["pods"][0]["claims"][0]["devices"]] for a in found] == [
        ["gpu-0", "gpu-1"],
        ["gpu-0", "gpu-2"],
        ["gpu-1", "gpu-2"],
    ]


def test_shared_devices_show_what_they_give(run: Run, tmp_path: Path) -> None:
    text = (DATA / "capacity-shared.yaml").read_text().replace("memory: 24Gi", "memory: 20Gi")
    file = tmp_path / "claim.yaml"
    file.write_text(text)
    for solver in ("reference", "z3"):
        result = run("allocate", file, "--solver", solver)
        assert result.exit_code == 0, result.stdout
        assert result.stdout.count("shared, takes memory 20Gi") == 2


def test_explain_says_why_and_what_helps(run: Run) -> None:
    result = run("explain", DATA / "two-rules.yaml")
    assert result.exit_code == 1
    for words in (
        "claim wanted does not fit on node node-a",
        "does not tolerate the taint example.com/unhealthy:NoExecute: gpu.example.com/node-a/gpu-3",
        "two-rules.yaml:24",
        "tolerate the taint example.com/unhealthy:NoExecute in request gpus of claim wanted",
        "drop the constraint matchAttribute gpu.example.com/numa of claim wanted",
        "0: gpu.example.com/node-a/gpu-0, gpu.example.com/node-a/gpu-1",
    ):
        assert words in result.stdout


def test_explain_in_json_has_places_and_devices(run: Run) -> None:
    result = run("explain", DATA / "in-use.yaml", "--claim", "wanted", "-o", "json")
    assert result.exit_code == 1
    (node,) = json.loads(result.stdout)["pods"][0]["nodes"]
    cause = next(c for c in node["causes"] if c["kind"] == "in-use")
    assert cause["devices"] == ["gpu.example.com/node-a/gpu-1"]
    assert [[c["text"] for c in r] for r in node["relaxations"]] == [
        ["free ResourceClaim default/training"],
        ["ask for 1 instead of 2 devices in request gpus of claim wanted"],
    ]
    assert [d["excludedBy"] and d["excludedBy"]["kind"] for d in node["devices"]] == [None, "in-use"]


def test_explain_of_what_fits(run: Run) -> None:
    result = run("explain", DATA / "twice.yaml", "--claim", "two")
    assert result.exit_code == 0
    assert "claim two fits on node node-a" in result.stdout


def test_pods_that_fit_alone_only(run: Run) -> None:
    result = run("explain", DATA / "crowd.yaml")
    assert result.exit_code == 1
    assert "all together do not fit on node node-a" in result.stdout


def test_more_nodes(run: Run) -> None:
    result = run("explain", DATA / "crowd.yaml", "--add-node", DATA / "template.yaml")
    assert result.exit_code == 0
    assert "3 more nodes like this make all pods fit" in result.stdout
    answer = json.loads(run("explain", DATA / "crowd.yaml", "--add-node", DATA / "template.yaml", "-o", "json").stdout)
    assert answer["addNode"]["needed"] == 3


def test_no_number_of_nodes_helps_and_why(run: Run) -> None:
    result = run("explain", DATA / "count.yaml", "--add-node", DATA / "template.yaml")
    assert result.exit_code == 1
    told = result.stdout.partition("no number of such nodes helps: claim wanted would still not fit")[2]
    assert "claim wanted on an empty node like this:" in told
    assert "request gpus of claim wanted wants 3 devices of class gpu" in told
    answer = json.loads(run("explain", DATA / "count.yaml", "--add-node", DATA / "template.yaml", "-o", "json").stdout)
    assert answer["addNode"]["needed"] is None
    assert [c["kind"] for c in answer["addNode"]["why"]["claim wanted"]["causes"]] == ["request"]


def test_pods_that_wait_for_the_first_node(run: Run, tmp_path: Path) -> None:
    pods = tmp_path / "pods.yaml"
    pods.write_text(WAITING_PODS, encoding="utf-8")
    template = tmp_path / "node.yaml"
    template.write_text(
        (DATA / "template.yaml").read_text(encoding="utf-8").replace("{name: big}", "{name: big, labels: {pool: big}}"), encoding="utf-8"
    )
    result = run("explain", pods, "--add-node", template)
    assert result.exit_code == 0
    assert "pod d-0 may go to none of the nodes that exist" in result.stdout
    assert "4 more nodes like this make all pods fit" in result.stdout
    assert run("explain", pods).exit_code == 2
    other = run("explain", pods, "--add-node", DATA / "template.yaml")
    assert other.exit_code == 2
    assert "pod d-0 may go to none of the nodes" in other.stderr


def test_the_best_node(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "best.yaml"
    claim = "[{name: r, firstAvailable: [{name: two, deviceClassName: gpu, count: 2}, {name: one, deviceClassName: gpu}]}]"
    text = WAITING_PODS.partition("---")[0]
    for name, devices in (("a", "{name: x}"), ("b", "{name: x}, {name: z}")):
        text += f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n"
        text += f"metadata: {{name: {name}}}\nspec: {{driver: d.example.com, pool: {{name: {name}, generation: 1, resourceSliceCount: 1}}, "
        text += f"nodeName: {name}, devices: [{devices}]}}\n"
    text += f"---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: w}}\nspec: {{devices: {{requests: {claim}}}}}\n"
    file.write_text(text, encoding="utf-8")
    (first,) = json.loads(run("allocate", file, "-o", "json").stdout)["allocations"]
    (best,) = json.loads(run("allocate", file, "--best-node", "-o", "json").stdout)["allocations"]
    assert (first["pods"][0]["node"], best["pods"][0]["node"]) == ("a", "b")
    assert best["remarks"] == ["score 8: 8 for a first alternative, 7 for a second"]
    several = run("allocate", DATA / "crowd.yaml", "--best-node")
    assert several.exit_code == 2
    assert "--best-node is about one pod" in several.stderr


@pytest.mark.parametrize(("costs", "devices"), [(("6Gi", "1Gi", "1Gi"), ["d1", "d2"]), (("6Gi", "6Gi", "1Gi"), None)])
def test_several_pods_get_devices_that_the_node_can_afford(
    run: Run, tmp_path: Path, costs: tuple[str, ...], devices: list[str] | None
) -> None:
    text = WAITING_PODS.partition("---")[0]
    text += "---\napiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {memory: 8Gi}}\n"
    text += "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec:\n  driver: d.example.com\n  nodeName: a\n"
    text += "  pool: {name: a, generation: 1, resourceSliceCount: 1}\n  devices:\n"
    for i, cost in enumerate(costs):
        text += f"  - {{name: d{i}, nodeAllocatableResources: {{memory: {{mapping: {{deviceMultiplier: {cost}}}}}}}}}\n"
    for name in ("one", "two"):
        text += f"---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: {name}}}\n"
        text += "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}\n"
        text += f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n"
        text += f"  resourceClaims: [{{name: r, resourceClaimName: {name}}}]\n"
        text += "  containers: [{name: c, resources: {claims: [{name: r}], requests: {memory: 1Gi}}}]\n"
    file = tmp_path / "m.yaml"
    file.write_text(text, encoding="utf-8")
    result = run("allocate", file, "--solver", "z3", "--gate", "DRANodeAllocatableResources=true", "-o", "json")
    pods = json.loads(result.stdout)["allocations"][0]["pods"]
    if devices is None:
        assert result.exit_code == 1
        assert "no allocation of all pods leaves the nodes enough" in pods[0]["reason"]
        return
    assert result.exit_code == 0
    assert sorted(d["device"] for p in pods for c in p["claims"] for d in c["devices"]) == devices


@pytest.mark.parametrize("command", ["allocate", "explain"])
def test_a_generation_with_a_gap_is_told_once_with_its_place(run: Run, command: str) -> None:
    result = run(command, DATA / "generation.yaml")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "generation.yaml:38: spec.pool: pool gpu.example.com/node-a is incomplete: it has 1 of 2 slices of generation 3" in line
    assert json.loads(run(command, DATA / "generation.yaml", "-o", "json").stdout)["warnings"] == [line.removeprefix("warning: ")]


def test_a_node_label_is_no_device_attribute(run: Run) -> None:
    result = run("explain", DATA / "node-label.yaml")
    assert "node-label.yaml:33: request gpus of wanted reads the device attribute feature.node.kubernetes.io/fast" in result.stdout
    assert "it is a label of node node-a" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["allocate", DATA / "twice.yaml", "--claim", "ones"], "there is no waiting claim 'ones'; did you mean 'one'?"),
        (["explain", DATA / "twice.yaml", "--node", "node-b"], "there is no node 'node-b'; did you mean 'node-a'?"),
        (["allocate", DATA / "nothing.yaml"], "nothing.yaml"),
        (["explain", DATA / "crowd.yaml", "--add-node", DATA / "crowd.yaml"], "found node-a"),
        (["allocate", DATA / "template.yaml"], "no claim waits for an allocation"),
    ],
)
def test_wrong_input(run: Run, arguments: list[str | Path], message: str) -> None:
    result = run(*arguments)
    if message == "found node-a":  # a template with a node of its own name is fine
        assert result.exit_code == 0
        return
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_selector_that_does_not_compile(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "claim.yaml"
    file.write_text((DATA / "selector.yaml").read_text().replace(">= 40", ">= "))
    for command in ("allocate", "explain"):
        result = run(command, file)
        assert result.exit_code == 2
        assert "claim.yaml:36" in result.stderr
        assert "^" in result.stderr


@pytest.mark.parametrize("command", ["allocate", "explain"])
def test_what_is_not_encoded_is_named(run: Run, tmp_path: Path, command: str) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text(
        (DATA / "crowd.yaml").read_text().replace("spec:\n  resourceClaims", "spec:\n  schedulingGates: [{name: wait}]\n  resourceClaims")
    )
    result = run(command, file)
    assert result.exit_code == 3
    assert "scheduling gates of pod pod-0" in result.stdout
