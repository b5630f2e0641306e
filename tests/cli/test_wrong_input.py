"""Bad input: one clear error that names the place, exit code 2, never a traceback. Odd but legal input: a warning and a verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]

BOMB = "\n".join(["a0: &a0 [x,x,x,x,x,x,x,x,x]", *(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 15))])
TEMPLATE = (
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata:\n  name: {{ .Values.name }}\n{{- if .Values.x }}\nspec: {}\n{{- end }}\n"
)
CLAIM = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata:\n  name: c1\nspec:\n  devices:\n    requests:\n    - name: r\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p1\nspec:\n  resourceClaims:\n  - name: c\n    resourceClaimName: {}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "bad.yaml: "),
        ("just words\n", "bad.yaml:1"),
        ("a: [1\n", "bad.yaml:"),
        (TEMPLATE, "Helm or Go template"),
        (BOMB, "bad.yaml"),
        (CLAIM + "      exactli: {}\n", "bad.yaml:9: spec.devices.requests[0].exactli: unknown field 'exactli', did you mean 'exactly'?"),
        (CLAIM + "      exactly:\n        deviceClassName: gone\n---\n" + POD.format("c1"), "there is no DeviceClass 'gone'"),
        (
            CLAIM + "      exactly:\n        deviceClassName: gone\n",
            "bad.yaml:10: spec.devices.requests[0].exactly: request r: there is no DeviceClass 'gone'",
        ),
        (POD.format("missing"), "bad.yaml:7: spec.resourceClaims[0]: the claim 'missing' is missing; no claim is loaded"),
        (
            CLAIM
            + "      exactly:\n        deviceClassName: k\n---\n"
            + POD.format("c1")
            + "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata:\n  name: k\nspec:\n"
            + '  selectors:\n  - cel:\n      expression: device.driver == "\n---\n'
            + "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata:\n  name: s\nspec:\n  driver: d.example.org\n  nodeName: n1\n"
            + "  pool: {name: n1, generation: 1, resourceSliceCount: 1}\n  devices:\n  - name: d1\n",
            "bad.yaml:",
        ),
    ],
    ids=[
        "empty",
        "words",
        "not-yaml",
        "template",
        "bomb",
        "unknown-field",
        "missing-class",
        "missing-class-unused",
        "missing-claim",
        "cel-syntax",
    ],
)
def test_a_bad_manifest(run: Run, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    result = run("check", path)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_a_directory_without_manifests(run: Run, tmp_path: Path) -> None:
    result = run("check", tmp_path)
    assert result.exit_code == 2
    assert "holds no manifests" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "shared-clam"], "did you mean 'shared-claim'?"),
        (["check", "h1", "--invariant", "no-double-alocation"], "did you mean no-double-allocation?"),
        (["check", "h1", "--variant", "unreserve-no-restor"], "did you mean 'unreserve-no-restore'?"),
        (["check", "h1", "--assert", "claims.all(c, c.allocated"], "--assert:1"),
        (["check", "h1", "--assert", "claims.all(c, c.alocated)"], "alocated"),
        (["check", "h1", "--assert", "claims"], "--assert:1"),
        (["check", "h1", "--bound", "lagg=2"], "did you mean 'lag'?"),
        (["check", "h1", "--bound", "lag=-1"], "at least 1"),
        (["check", "h1", "--bound", "pods=9"], "pods=9"),
        (["check", "h1", "--fault", "kubelet-crush=1"], "did you mean 'kubelet-crash'?"),
        (["check", "h1", "--depth", "0"], "--depth"),
        (["check", "h1", "--depht", "1"], "--depht"),
        (["chekc"], "did you mean 'check'?"),
        (["list", "modells"], "modells"),
        (["describe", "no-double-alocation"], "did you mean 'no-double-allocation'?"),
        (["replay", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
        (["replay"], "FILES"),
    ],
)
def test_a_bad_argument(run: Run, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_a_trace_is_not_a_model(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("schema: dra-spec/trace/v1\n")
    result = run("check", path)
    assert result.exit_code == 2
    assert "use `dra-spec replay`" in result.stderr


def test_an_unknown_invariant_in_a_model_file_is_located(run: Run, tmp_path: Path, manifests: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(
        f"schema: dra-spec/model/v1\nname: m\nmanifests: [{manifests}/one-node-one-device.yaml, {manifests}/one-pod.yaml]\n"
        "invariants:\n  - no-such-promise\n"
    )
    result = run("check", path)
    assert result.exit_code == 2
    assert f"{path}:5: unknown invariant no-such-promise" in result.stderr


def test_a_claim_that_no_pod_uses_is_a_warning(run: Run, tmp_path: Path, manifests: Path) -> None:
    spare = tmp_path / "spare.yaml"
    spare.write_text(CLAIM.replace("c1", "spare") + "      exactly:\n        deviceClassName: accelerator\n")
    result = run("check", manifests / "one-node-one-device.yaml", manifests / "one-pod.yaml", spare)
    assert result.exit_code == 0, result.output
    assert "warning: " in result.stdout
    assert "no pod uses the claim spare" in result.stdout


def test_a_class_without_devices_is_a_warning(run: Run, tmp_path: Path, manifests: Path) -> None:
    lonely = tmp_path / "lonely.yaml"
    text = (manifests / "one-node-one-device.yaml").read_text()
    lonely.write_text(text.replace('device.driver == "accel.example.org"', 'device.driver == "other.example.org"'))
    result = run("check", lonely, manifests / "one-pod.yaml")
    assert result.exit_code in (0, 1), result.output
    assert "pod p1 fits no node" in result.stdout
    assert f"{lonely}:5: no device matches the class accelerator" in result.stdout


def test_what_is_not_encoded_is_named_with_its_place_and_undecided(run: Run, tmp_path: Path, manifests: Path) -> None:
    shared = tmp_path / "shared.yaml"
    text = (manifests / "one-node-one-device.yaml").read_text()
    shared.write_text(text + "    allowMultipleAllocations: true\n")
    result = run("check", shared, manifests / "one-pod.yaml")
    assert result.exit_code == 3, result.output
    assert f"not encoded: {shared}:28: devices with allowMultipleAllocations" in result.stdout


def test_claims_without_any_pod(run: Run, tmp_path: Path, manifests: Path) -> None:
    path = tmp_path / "claim.yaml"
    path.write_text(CLAIM + "      exactly:\n        deviceClassName: accelerator\n")
    result = run("check", path, manifests / "one-node-one-device.yaml")
    assert result.exit_code == 0, result.output
    assert "claim.yaml:4: no pod uses the claim c1; it takes no part" in " ".join(result.stdout.split())
