"""Checkpoint files, CDI specs and their resolution, on real files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_spec.reference import cdi, disk
from dra_spec.reference.claiminfo import ClaimInfoCache
from dra_spec.reference.errors import CorruptFile, UnresolvedDevice

ENTRY = {"ClaimUID": "u1", "ClaimName": "c1", "Namespace": "default", "PodUIDs": {"p1": {}}, "DriverState": {"gpu.example.com": {}}}


def test_kubelet_checkpoint_comes_back(tmp_path: Path) -> None:
    disk.save_kubelet(tmp_path, [ENTRY])
    assert disk.load_kubelet(tmp_path) == [ENTRY]
    assert [path.name for path in tmp_path.iterdir()] == [disk.KUBELET_FILE]  # no temporary file is left behind


def test_a_driver_without_devices_is_null_in_the_kubelets_file(tmp_path: Path) -> None:
    disk.save_kubelet(tmp_path, [ENTRY | {"DriverState": {"gpu.example.com": {"Devices": None}}}])
    info = ClaimInfoCache(tmp_path).get("c1")
    assert info is not None
    assert (info.drivers, info.pods) == ({"gpu.example.com": {}}, {"p1"})


def test_missing_kubelet_checkpoint_is_created_empty(tmp_path: Path) -> None:
    assert disk.load_kubelet(tmp_path) == []
    assert (tmp_path / disk.KUBELET_FILE).exists()


def test_kubelet_checkpoint_has_the_layout_of_the_kubelet(tmp_path: Path) -> None:
    disk.save_kubelet(tmp_path, [ENTRY])
    outer = json.loads((tmp_path / disk.KUBELET_FILE).read_text())
    assert set(outer) == {"Data", "Checksum"}
    assert json.loads(outer["Data"])["apiVersion"] == "checkpoint.dra.kubelet.k8s.io/v1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a checkpoint file"),
        ("[]", "not a checkpoint file"),
        ('{"Data": "{}"}', "not a checkpoint file"),
        ('{"Data": "{}", "Checksum": 1}', "checksum"),
        ('{"Data": 7, "Checksum": 1}', "checksum"),
    ],
)
def test_corrupt_kubelet_checkpoint_names_the_file(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / disk.KUBELET_FILE).write_text(text)
    with pytest.raises(CorruptFile, match=rf"{disk.KUBELET_FILE}.*{message}"):
        disk.load_kubelet(tmp_path)


def test_one_flipped_byte_is_noticed(tmp_path: Path) -> None:
    disk.save_kubelet(tmp_path, [ENTRY])
    path = tmp_path / disk.KUBELET_FILE
    path.write_text(path.read_text().replace("c1", "c2"))
    with pytest.raises(CorruptFile, match="checksum"):
        disk.load_kubelet(tmp_path)


def test_a_plugins_file_is_not_a_kubelets(tmp_path: Path) -> None:
    disk.save_plugin(tmp_path, {})
    (tmp_path / disk.PLUGIN_FILE).rename(tmp_path / disk.KUBELET_FILE)
    with pytest.raises(CorruptFile, match="expected 'DRACheckpoint'"):
        disk.load_kubelet(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    claims=st.dictionaries(
        st.text(min_size=1, max_size=8), st.fixed_dictionaries({"state": st.sampled_from(["Started", "Completed"]), "name": st.text()})
    )
)
def test_plugin_checkpoint_comes_back(tmp_path: Path, claims: dict[str, dict[str, str]]) -> None:
    disk.save_plugin(tmp_path, claims, 3)
    assert disk.load_plugin(tmp_path) == (claims, 3)


def test_missing_plugin_checkpoint_is_empty_and_stays_missing(tmp_path: Path) -> None:
    assert disk.load_plugin(tmp_path) == ({}, 0)
    assert not (tmp_path / disk.PLUGIN_FILE).exists()


D1, D2 = "gpu.example.com/n1/d1", "gpu.example.com/n1/d2"


def test_runtime_resolves_from_the_files_that_exist_now(tmp_path: Path) -> None:
    cdi.write_spec(tmp_path, "gpu.example.com", "u1", "c1", [D1, D2])
    ids = [cdi.device_id("gpu.example.com", "u1", device) for device in (D1, D2)]
    assert cdi.resolve(tmp_path, ids) == [D1, D2]
    cdi.remove_spec(tmp_path, "gpu.example.com", "u1")
    with pytest.raises(UnresolvedDevice, match="u1-d1"):
        cdi.resolve(tmp_path, ids)


def test_a_claim_of_another_uid_never_resolves(tmp_path: Path) -> None:
    cdi.write_spec(tmp_path, "gpu.example.com", "u2", "c1", [D1])
    with pytest.raises(UnresolvedDevice):
        cdi.resolve(tmp_path, [cdi.device_id("gpu.example.com", "u1", D1)])


def test_an_id_defined_twice_is_unusable(tmp_path: Path) -> None:
    cdi.write_spec(tmp_path, "gpu.example.com", "u1", "c1", [D1])
    original = cdi.spec_path(tmp_path, "gpu.example.com", "u1")
    (tmp_path / "copy.json").write_text(original.read_text())
    with pytest.raises(UnresolvedDevice, match="2 times"):
        cdi.resolve(tmp_path, [cdi.device_id("gpu.example.com", "u1", D1)])


def test_removing_a_missing_spec_is_success(tmp_path: Path) -> None:
    cdi.remove_spec(tmp_path, "gpu.example.com", "u1")


def test_a_broken_spec_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"kind": "x"}')
    with pytest.raises(CorruptFile, match=r"bad\.json"):
        cdi.read_specs(tmp_path)
