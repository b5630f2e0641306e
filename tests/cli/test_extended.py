"""Extended resources, topology and node labels in `dra-spec allocate` and `dra-spec explain`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from ruamel.yaml import YAML

Run = Callable[..., Result]
DATA = Path(__file__).parent.parent / "data" / "allocation"


def answer(result: Result) -> Any:
    return json.loads(result.stdout)


@pytest.mark.parametrize("solver", ["reference", "z3"])
def test_who_serves_which_container(run: Run, solver: str) -> None:
    """One pod on a node with a device plugin, one on a node with devices, in text, JSON and YAML."""
    files = (DATA / "extended.yaml", "--solver", solver)
    result = run("allocate", *files)
    assert result.exit_code == 0, result.stdout
    rows = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "old pod trainer container main 2 of example.com/gpu by a device plugin" in rows
    claim = "new the extended resource claim of pod server"
    assert f"{claim} container-0-request-0 gpu.example.com/new/gpu-0 example.com/gpu for init container load" in rows
    users = "example.com/gpu for init container load, example.com/gpu for container main"
    assert f"{claim} container-1-request-0 gpu.example.com/new/gpu-2 {users}" in rows
    plain = answer(run("allocate", *files, "-o", "json"))
    assert plain["fits"]
    trainer, server = plain["allocations"][0]["pods"]
    assert trainer["claims"] == []
    assert trainer["extendedResources"] == [
        {
            "pod": "pod trainer",
            "container": "main",
            "kind": "container",
            "resource": "example.com/gpu",
            "amount": 2,
            "servedBy": "device plugin",
        }
    ]
    assert [(c["name"], len(c["devices"])) for c in server["claims"]] == [("the extended resource claim of pod server", 3)]
    load, main = server["extendedResources"]
    assert (load["container"], load["kind"], load["servedBy"], load["amount"]) == ("load", "init container", "DRA", 3)
    assert sorted(load["devices"]) == ["gpu.example.com/new/gpu-0", "gpu.example.com/new/gpu-1", "gpu.example.com/new/gpu-2"]
    assert main["requests"] == ["container-1-request-0"]
    same = YAML(typ="safe").load(run("allocate", *files, "-o", "yaml").stdout)
    assert same["allocations"] == plain["allocations"]


def test_why_a_node_does_not_serve(run: Run) -> None:
    result = run("explain", DATA / "extended.yaml", "--node", "old")
    assert result.exit_code == 1
    for words in (
        "pod trainer fits on node old",
        "pod server does not fit on node old",
        "node old serves example.com/gpu by a device plugin and has 2 of 3 left; pod server wants 3",
        "devices of class gpu do not serve it on a node whose device plugin does",
        "ask for 2 instead of 3 example.com/gpu in init container load of pod server",
        "free example.com/gpu of pod running, which has 1",
    ):
        assert words in result.stdout
    plain = answer(run("explain", DATA / "extended.yaml", "--node", "old", "-o", "json"))
    (at_old,) = plain["pods"][1]["nodes"]
    assert [c["kind"] for c in at_old["causes"]] == ["resource"]
    assert {tuple(c["kind"] for c in r) for r in at_old["relaxations"]} == {("ask",), ("running",)}


def test_the_reason_without_a_solver_is_the_same(run: Run) -> None:
    for solver in ("reference", "z3"):
        result = run("allocate", DATA / "extended.yaml", "--node", "old", "--solver", solver, "-o", "json")
        assert result.exit_code == 1
        trainer, server = answer(result)["allocations"][0]["pods"]
        if solver == "reference":
            assert trainer["node"] == "old"
            assert "has 0 of 3 left; pod server wants 3" in server["reason"]


def test_more_nodes_of_either_kind(run: Run, tmp_path: Path) -> None:
    crowd = tmp_path / "crowd.yaml"
    crowd.write_text(
        (DATA / "extended.yaml").read_text()
        + "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: many}\nspec:\n  replicas: 9\n  template:\n    spec:\n"
        + "      containers: [{name: main, image: busybox, resources: {limits: {example.com/gpu: 1}}}]\n"
    )
    plugin = tmp_path / "plugin.yaml"
    plugin.write_text(
        (DATA / "template.yaml")
        .read_text()
        .replace("metadata: {name: big}", 'metadata: {name: big}\nstatus: {allocatable: {example.com/gpu: "4"}}')
    )
    # four, eight and one are left: the nodes that are there have one for the nine pods
    assert answer(run("explain", crowd, "--add-node", plugin, "-o", "json"))["addNode"]["needed"] == 3
    assert answer(run("explain", crowd, "--add-node", DATA / "template.yaml", "-o", "json"))["addNode"]["needed"] == 5


@pytest.mark.parametrize("command", ["allocate", "explain"])
def test_hints_about_labels_and_attributes_in_both_directions(run: Run, tmp_path: Path, command: str) -> None:
    result = run(command, DATA / "node-label.yaml")
    assert "reads the device attribute feature.node.kubernetes.io/fast, which no device has; it is a label of node node-a" in result.stdout
    text = (DATA / "crowd.yaml").read_text().replace("- {name: gpu-0}", "- {name: gpu-0, attributes: {model: {string: a1}}}")
    affinity = (
        "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
        "[{matchExpressions: [{key: gpu.example.com/model, operator: In, values: [a1]}]}]}}}"
    )
    file = tmp_path / "pods.yaml"
    file.write_text(text.replace("spec:\n  resourceClaims", f"spec:\n  affinity: {affinity}\n  resourceClaims", 1))
    words = "pod pod-0 chooses nodes by the label gpu.example.com/model, which no node has; it is an attribute or a capacity of devices"
    assert words in run(command, file).stdout
    file.write_text(text.replace("spec:\n  resourceClaims", "spec:\n  nodeSelector: {gpu.example.com/model: a1}\n  resourceClaims", 1))
    result = run(command, file)
    assert result.exit_code == 2  # no node is open to the pod
    assert words in result.stderr


@pytest.mark.parametrize(
    "expression",
    [
        "device.attributes['feature.node.kubernetes.io'].fast == 'yes'",
        "has(device.attributes['feature.node.kubernetes.io'].fast)",
        "cel.bind(a, device.attributes['feature.node.kubernetes.io'], 'fast' in a && a.fast == 'yes')",
        "device.attributes['feature.node.kubernetes.io'][?'fast'].orValue('no') == 'yes'",
        "'feature.node.kubernetes.io' in device.attributes",
    ],
)
def test_all_spellings_of_a_label_in_a_selector_are_noticed(run: Run, tmp_path: Path, expression: str) -> None:
    text = (DATA / "node-label.yaml").read_text()
    file = tmp_path / "claim.yaml"
    start = text.index('- cel: {expression: "device.attributes')
    file.write_text(text[:start] + f'- cel: {{expression: "{expression}"}}\n')
    result = run("explain", file)
    assert result.exit_code == 1
    assert "hint: " in result.stdout
    assert "it is a label of node node-a" in result.stdout


def test_an_attribute_of_a_label_like_domain_is_no_mistake(run: Run, tmp_path: Path) -> None:
    text = (DATA / "node-label.yaml").read_text().replace("model: {string: a1}", "feature.node.kubernetes.io/fast: {string: 'yes'}")
    file = tmp_path / "claim.yaml"
    file.write_text(text)
    result = run("explain", file)
    assert result.exit_code == 0
    assert "hint" not in result.stdout


def test_wrong_amounts_are_one_located_error(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text((DATA / "extended.yaml").read_text().replace("example.com/gpu: 2}", "example.com/gpu: 1500m}"))
    for command in ("allocate", "explain"):
        result = run(command, file)
        assert result.exit_code == 2
        assert "extended resource example.com/gpu: found 1500m, expected a whole number of devices" in result.stderr
        assert "pods.yaml:" in result.stderr


def test_models_name_extended_resources_as_not_encoded(run: Run) -> None:
    from dra_spec.resources import load
    from dra_spec.scenario.encoded import not_encoded

    notes = [n for n in not_encoded(load([DATA / "extended.yaml"])) if "extended resource" in n]
    assert len(notes) == 4, notes
    assert all("extended.yaml:" in n for n in notes)
    assert any("pod server asks for the extended resource example.com/gpu" in n for n in notes)


def two_pods(tmp_path: Path, amounts: tuple[int, int]) -> Path:
    """Two pods for a node whose device plugin has three, and nothing else."""
    text = (DATA / "extended.yaml").read_text()
    documents = [d for d in text.split("---\n") if "kind: Pod" not in d and "name: new" not in d and "slice-new" not in d]
    for i, amount in enumerate(amounts):
        resources = f"{{limits: {{example.com/gpu: {amount}}}}}"
        documents.append(
            f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p{i}}}\nspec: {{containers: [{{name: main, resources: {resources}}}]}}\n"
        )
    file = tmp_path / "pods.yaml"
    file.write_text("---\n".join(documents))
    return file


def test_pods_that_fit_alone_and_not_together(run: Run, tmp_path: Path) -> None:
    result = run("explain", two_pods(tmp_path, (2, 2)))
    assert result.exit_code == 1
    assert "all together do not fit on node old" in result.stdout
    assert "node old serves example.com/gpu by a device plugin and has 3 of 3 left; all together wants 4" in result.stdout
    assert "ask for 1 instead of 2 example.com/gpu in container main of pod p0" in result.stdout
    assert run("explain", two_pods(tmp_path, (2, 1))).exit_code == 0


@pytest.mark.parametrize("solver", ["reference", "z3"])
def test_the_reason_of_one_pod_names_the_plugin(run: Run, tmp_path: Path, solver: str) -> None:
    file = two_pods(tmp_path, (4, 1))
    file.write_text(file.read_text().rpartition("---\n")[0])
    result = run("allocate", file, "--solver", solver)
    assert result.exit_code == 1
    assert "pod p0 does not fit: node old serves example.com/gpu by a device plugin and has 3 of 3 left; pod p0 wants 4" in result.stdout


def test_a_release_without_the_gate_serves_by_plugins_only(run: Run) -> None:
    result = run("allocate", DATA / "extended.yaml", "--kubernetes", "1.35", "-o", "json")
    assert result.exit_code == 1
    trainer, server = answer(result)["allocations"][0]["pods"]
    assert trainer["node"] == "old"
    assert server["node"] is None
    assert "node new has no example.com/gpu: no device plugin offers it there" in server["reason"]
    assert run("allocate", DATA / "extended.yaml", "--kubernetes", "1.35", "--gate", "DRAExtendedResource=true").exit_code == 0


CORPUS = os.environ.get("DRA_SPEC_CORPUS", "")


@pytest.mark.skipif(not CORPUS, reason="no corpus")
def test_the_pods_of_the_example_driver_get_a_device_each(run: Run) -> None:
    manifests = Path(CORPUS) / "manifests"
    files = [manifests / "inventories" / "extended-resource.yaml", manifests / "dra-example-driver" / "extended-resource-request.yaml"]
    for solver in ("reference", "z3"):
        result = run("allocate", *files, "--solver", solver, "-o", "json")
        assert result.exit_code == 0
        pods = answer(result)["allocations"][0]["pods"]
        assert [(r["servedBy"], len(r["devices"])) for p in pods for r in p["extendedResources"]] == [("DRA", 1), ("DRA", 1)]
