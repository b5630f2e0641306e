"""Whole runs on the concrete world: what is in the API server and on disk at the end, and what a crash leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import walk_instances as cases

from dra_spec.protocol.instance import Instance
from dra_spec.reference import disk
from dra_spec.reference.apiserver import CLAIM, POD
from dra_spec.reference.errors import Divergence
from dra_spec.reference.shapes import allocation, consumers, finalizer, phase
from dra_spec.reference.steps import Move
from dra_spec.reference.world import World

OTHERS = ("workload.", "kubelet.crash", "kubelet.call_times_out", "plugin.crash", "node.reboot", "device.vanish")


def advance(world: World, limit: int = 200) -> list[Move]:
    """Takes steps of the writers, in the order in which they are listed, until none is left but faults and users."""
    made: list[Move] = []
    for _ in range(limit):
        own = [m for m in world.enabled() if not m.action.startswith(OTHERS)]
        if not own:
            return made
        world.step(own[0].action, dict(own[0].params))
        made.append(own[0])
    raise AssertionError(f"no end: {made[-5:]}")


def everything() -> Instance:
    return cases.instance(
        [cases.pod("p1", "c1")],
        [cases.claim("c1")],
        [cases.device("d1")],
        cases.NODE + " scheduler claim-controller",
        kubelet_crash=1,
        plugin_crash=1,
        delete_pod=1,
        finish_pod=1,
    )


DEVICE = "gpu.example.com/n1/d1"


def test_a_pod_gets_its_device_and_the_files_are_there(tmp_path: Path) -> None:
    world = World(everything(), directory=tmp_path)
    advance(world)
    claim = world.api.get(CLAIM, "c1")
    assert finalizer(claim)
    assert [entry["name"] for entry in consumers(claim)] == ["p1"]
    assert world.machines["n1"].sandboxes["p1"].devices == {("c1", DEVICE)}
    (entry,) = disk.load_kubelet(tmp_path / "n1")
    assert entry["ClaimUID"] == claim["metadata"]["uid"]
    assert list(entry["PodUIDs"]) == [world.api.get(POD, "p1")["metadata"]["uid"]]
    records, _ = disk.load_plugin(tmp_path / "n1" / "plugins" / "gpu.example.com")
    assert records[claim["metadata"]["uid"]]["state"] == "Completed"
    (spec,) = (tmp_path / "n1" / "cdi").glob("*.json")
    assert json.loads(spec.read_text())["devices"][0]["containerEdits"]["env"] == [f"DRA_DEVICE={DEVICE}"]


def test_a_deleted_pod_leaves_nothing(tmp_path: Path) -> None:
    world = World(everything(), directory=tmp_path)
    advance(world)
    world.step("workload.delete_pod", {"pod": "p1"}, "ok")
    advance(world)
    assert world.api.find(POD, "p1") is None
    claim = world.api.get(CLAIM, "c1")
    assert allocation(claim) is None
    assert not finalizer(claim)
    assert disk.load_kubelet(tmp_path / "n1") == []
    assert disk.load_plugin(tmp_path / "n1" / "plugins" / "gpu.example.com")[0] == {}
    assert list((tmp_path / "n1" / "cdi").glob("*.json")) == []
    assert world.plugins["n1", "gpu.example.com"].hardware == {}


def test_a_kubelet_remembers_what_is_on_disk_and_nothing_else(tmp_path: Path) -> None:
    world = World(everything(), directory=tmp_path)
    advance(world)
    before = world.kubelets["n1"].cache.entries["c1"]
    assert before.prepared
    world.step("kubelet.crash", {"node": "n1"}, "crash")
    assert world.kubelets["n1"].cache.entries == {}
    world.step("kubelet.restart", {"node": "n1"}, "ok")
    after = world.kubelets["n1"].cache.entries["c1"]
    assert (after.uid, after.pods, after.devices) == (before.uid, before.pods, before.devices)
    assert not after.prepared


def test_a_kubelet_does_not_start_from_a_corrupt_checkpoint(tmp_path: Path) -> None:
    world = World(everything(), directory=tmp_path)
    advance(world)
    world.step("kubelet.crash", {"node": "n1"}, "crash")
    path = tmp_path / "n1" / disk.KUBELET_FILE
    path.write_text(path.read_text().replace("c1", "c9"))
    assert world.step("kubelet.restart", {"node": "n1"}) == "corrupt"
    assert not world.kubelets["n1"].running


def test_a_plugin_does_not_start_from_a_corrupt_record(tmp_path: Path) -> None:
    world = World(everything(), directory=tmp_path)
    world.step("plugin.crash", {"node": "n1", "driver": "gpu.example.com"}, "crash")
    (tmp_path / "n1" / "plugins" / "gpu.example.com" / disk.PLUGIN_FILE).write_text("{")
    assert world.step("plugin.start", {"node": "n1", "driver": "gpu.example.com"}) == "corrupt"
    assert not world.machines["n1"].serving["gpu.example.com"]


def test_a_refused_write_is_not_sent_and_an_applied_one_is() -> None:
    for fault, stored in (("refused", False), ("applied-error", True)):
        instance = cases.instance(
            [cases.pod("p1", "c1")], [cases.claim("c1")], [cases.device("d1")], cases.CONTROL, **{fault_budget(fault): 1}
        )
        with World(instance) as world:
            while not any(m.action == "scheduler.add_finalizer" for m in world.enabled()):
                move = next(m for m in world.enabled() if m.action.startswith("scheduler."))
                world.step(move.action, dict(move.params))
            world.step("scheduler.add_finalizer", {"scheduler": "scheduler", "pod": "p1", "index": 0}, fault)
            assert finalizer(world.api.get(CLAIM, "c1")) is stored
            assert not world.left(f"api-{fault}")


def fault_budget(fault: str) -> str:
    return f"api_{fault}".replace("-", "_")


def test_a_fault_without_budget_does_not_happen() -> None:
    instance = cases.instance([cases.pod("p1")], [], [], cases.CONTROL)
    with World(instance) as world:
        world.step("scheduler.skip_claims", {"scheduler": "scheduler", "pod": "p1"}, "ok")
        with pytest.raises(Divergence, match="expected refused, observed ok"):
            world.step("scheduler.bind", {"scheduler": "scheduler", "pod": "p1"}, "refused")


def test_the_temporary_directory_goes_with_the_world() -> None:
    with World(cases.one_node()) as world:
        directory = world.directory
        assert (directory / "n1" / disk.KUBELET_FILE).exists()
    assert not directory.exists()


def test_a_finished_pod_frees_its_claim() -> None:
    with World(everything()) as world:
        advance(world)
        world.step("workload.exit_containers", {"node": "n1", "pod": "p1"}, "ok")
        advance(world)
        assert phase(world.api.get(POD, "p1")) == "Succeeded"
        assert not consumers(world.api.get(CLAIM, "c1"))
