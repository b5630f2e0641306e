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


def test_extended_resources_are_named(run: Run, tmp_path: Path) -> None:
    text = (
        (DATA / "crowd.yaml")
        .read_text()
        .replace("metadata: {name: gpu}\nspec:\n", "metadata: {name: gpu}\nspec:\n  extendedResourceName: example.com/gpu\n")
    )
    text = text.replace(
        "metadata: {name: node-a, labels: {zone: east}}", 'metadata: {name: node-a}\nstatus: {allocatable: {example.com/gpu: "4"}}'
    )
    text = text.replace("resources: {claims: [{name: gpu}]}", "resources: {claims: [{name: gpu}], limits: {example.com/gpu: 1}}")
    file = tmp_path / "pods.yaml"
    file.write_text(text)
    result = run("allocate", file)
    assert result.exit_code == 3
    assert "asks for the extended resource example.com/gpu" in result.stdout
    assert "node node-a has it from a device plugin too" in result.stdout


def test_a_pod_with_extended_resources_only_is_undecided(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {extendedResourceName: example.com/gpu}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
        "spec:\n  containers: [{name: c, image: busybox, resources: {limits: {example.com/gpu: 1}}}]\n"
    )
    for command in ("allocate", "explain"):
        result = run(command, file)
        assert result.exit_code == 3
        assert f"{file}:10: pod p asks for the extended resource example.com/gpu" in result.stdout
