"""What an API server keeps of new objects, by version and feature gates."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from dra_spec.allocation.admission import ApiServer
from dra_spec.resources import Loaded, ManifestError, dump, load_text

CORPUS = os.environ.get("DRA_SPEC_CORPUS", "")

SLICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: d.example.com
  nodeName: node-a
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  EXTRA
  devices:
  - name: a
    DEVICE
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec:
  devices:
    requests:
    - name: r
      EXACTLY
    CONSTRAINT
"""
EXACT = "exactly: {deviceClassName: g, REQUEST}"


def a_slice(device: str = "", extra: str = "") -> str:
    return SLICE.replace("DEVICE", device).replace("EXTRA", extra)


def a_claim(request: str = "", constraint: str = "", exactly: str = EXACT) -> str:
    return CLAIM.replace("EXACTLY", exactly).replace("REQUEST", request or "count: 1").replace("CONSTRAINT", constraint)


def admitted(text: str, version: str = "1.37", **gates: bool) -> tuple[Loaded, list[str]]:
    loaded, warnings = ApiServer.of(version, gates).admit(load_text(text, file="m.yaml"))
    assert all(w.code == "DRA317" and w.where.line for w in warnings)
    return loaded, [str(w) for w in warnings]


COUNTERS = "consumesCounters: [{counterSet: s, counters: {c: {value: 1}}}]"
GROUPS = "consumesCounters: [{counterSet: s, counters: {c: {value: 1}}, compatibilityGroups: [x]}]"
# field -> (manifest, gate, a version in which the gate is off by default, a version in which it is on or can be set)
DROPPED = {
    "consumesCounters": (a_slice(COUNTERS), "DRAPartitionableDevices", "1.35", "1.37"),
    "compatibilityGroups": (a_slice(GROUPS), "DRADeviceCompatibilityGroups", "1.37", "1.37"),
    "taints": (a_slice("taints: [{key: k, effect: NoSchedule}]"), "DRADeviceTaints", "1.34", "1.37"),
    "bindsToNode": (a_slice("bindsToNode: true"), "DRADeviceBindingConditions", "1.35", "1.36"),
    "allowMultipleAllocations": (a_slice("allowMultipleAllocations: true"), "DRAConsumableCapacity", "1.34", "1.36"),
    "nodeAllocatableResources": (
        a_slice("nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: 1}}}"),
        "DRANodeAllocatableResources",
        "1.37",
        "1.37",
    ),
    "skipNodeOperations": (a_slice(extra="skipNodeOperations: ['*']"), "DRAOptionalNodeOperations", "1.37", "1.37"),
    "tolerations": (a_claim("tolerations: [{key: k, operator: Exists}]"), "DRADeviceTaints", "1.34", "1.36"),
    "capacity": (a_claim("capacity: {requests: {m: 1}}"), "DRAConsumableCapacity", "1.35", "1.37"),
    "derivedAttributes": (
        a_claim("derivedAttributes: [{name: d.example.com/x, expression: '1'}]"),
        "DRADerivedAttributes",
        "1.37",
        "1.37",
    ),
    "sharedCounters": (
        SLICE.replace("  devices:\n  - name: a\n    DEVICE\n", "").replace(
            "EXTRA", "sharedCounters: [{name: s, counters: {c: {value: 1}}}]"
        ),
        "DRAPartitionableDevices",
        "1.34",
        "1.37",
    ),
}


@pytest.mark.parametrize("field", DROPPED)
def test_a_field_is_dropped_while_its_gate_is_off_and_named_with_its_place(field: str) -> None:
    text, gate, off, on = DROPPED[field]
    loaded, (warning,) = admitted(text, off)
    assert warning.startswith("m.yaml:")
    assert f"feature gate {gate} is off in Kubernetes {off}: an API server drops {field}" in warning
    assert f'"{field}"' not in json.dumps(dump(loaded.objects[0]))
    kept, none = admitted(text, on, **{gate: True})
    assert none == []
    assert f'"{field}"' in json.dumps(dump(kept.objects[0]))


def test_a_field_that_a_version_does_not_know_is_dropped_too() -> None:
    _, (warning,) = admitted(a_slice("nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: 1}}}"), "1.34")
    assert "Kubernetes 1.34 does not have DRANodeAllocatableResources: an API server drops nodeAllocatableResources" in warning


def test_admin_access_that_is_false_is_a_use_of_the_field() -> None:
    loaded, (warning,) = admitted(a_claim("adminAccess: false"), "1.34", DRAAdminAccess=False)
    assert "drops adminAccess" in warning
    exactly = loaded.claims[0].spec.requests[0].exactly
    assert exactly is not None
    assert exactly.admin_access is None


def test_many_places_make_one_warning() -> None:
    two = a_slice("allowMultipleAllocations: true") + "  - {name: b, allowMultipleAllocations: true}\n"
    assert [w.rpartition(" drops ")[2] for w in admitted(two, "1.34")[1]] == [
        "allowMultipleAllocations (and 1 more in this object): --gate DRAConsumableCapacity=true"
    ]


@pytest.mark.parametrize(
    ("text", "gate", "version", "words"),
    [
        (a_slice("attributes: {x: {ints: [1]}}"), "DRAListTypeAttributes", "1.37", "refuses the slice, whose attribute is a list (ints)"),
        (a_slice("attributes: {x: {strings: [a]}}"), "DRAListTypeAttributes", "1.34", "Kubernetes 1.34 does not have"),
        (
            a_claim(constraint="constraints: [{distinctAttribute: d.example.com/x}]"),
            "DRAConsumableCapacity",
            "1.34",
            "drops distinctAttribute and refuses the ResourceClaim",
        ),
        (
            a_claim(exactly="firstAvailable: [{name: s, deviceClassName: g}]"),
            "DRAPrioritizedList",
            "1.35",
            "drops firstAvailable and refuses the ResourceClaim",
        ),
        (
            SLICE.replace("nodeName: node-a", "perDeviceNodeSelection: true").replace("DEVICE", "nodeName: node-a").replace("EXTRA", ""),
            "DRAPartitionableDevices",
            "1.34",
            "drops perDeviceNodeSelection and refuses the ResourceSlice",
        ),
    ],
)
def test_what_is_not_valid_without_the_field_is_refused(text: str, gate: str, version: str, words: str) -> None:
    loaded = load_text(text, file="m.yaml")
    gates = {gate: False} if gate in ApiServer.of(version).gates else {}
    with pytest.raises(ManifestError) as error:
        ApiServer.of(version, gates).admit(loaded)
    (problem,) = error.value.problems
    assert words in problem.message
    assert problem.where.line
    assert problem.code == "DRA140"
    assert ApiServer.of("1.37", {gate: True}).admit(loaded)[1] == ()


def test_taint_rules_are_left_out_while_one_of_their_gates_is_off() -> None:
    text = """
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: r}
spec: {deviceSelector: {}, taint: {key: k, effect: NoSchedule}}
"""
    for version, gates, words in (
        ("1.34", {}, "DRADeviceTaints is off in Kubernetes 1.34"),
        ("1.36", {}, "DRADeviceTaintRules is off in Kubernetes 1.36"),
        ("1.37", {"DRADeviceTaints": False}, "DRADeviceTaints is off in Kubernetes 1.37"),
    ):
        loaded, (warning,) = admitted(text, version, **gates)
        assert loaded.objects == ()
        assert words in warning
    assert admitted(text)[1] == []
    assert len(admitted(text, "1.36", DRADeviceTaintRules=True)[0].taint_rules) == 1


def test_new_objects_may_use_only_what_the_api_server_takes() -> None:
    text = a_claim("""selectors: [{cel: {expression: "device.attributes['d'].x.includes(1)"}}]""")
    with pytest.raises(ManifestError, match=r"m.yaml:9: .*'includes' is not known \(an API server of Kubernetes 1.37 with these"):
        admitted(text)
    assert admitted(text, DRAListTypeAttributes=True)[1] == []
    with pytest.raises(ManifestError, match=r"Kubernetes 1.34 does not know this, 1.37 does"):
        admitted(text, "1.34")


def test_what_may_cost_too_much_is_refused() -> None:
    each = "device.attributes"
    costly = f"{each}.all(a, {each}.all(b, {each}.all(c, {each}.all(d, a + b + c + d != ''))))"
    with pytest.raises(ManifestError, match="may cost"):
        admitted(a_claim(f'selectors: [{{cel: {{expression: "{costly}"}}}}]'))
    one = f"{each}.all(a, {each}.all(b, {each}.all(c, a + b != c)))"
    derived = ", ".join(f'{{name: d.example.com/x{i}, expression: "{one}"}}' for i in range(3))
    with pytest.raises(ManifestError, match="derived attributes of a claim may cost 1000000 together"):
        admitted(a_claim(f"derivedAttributes: [{derived}]"), DRADerivedAttributes=True)


def test_without_anything_to_drop_the_objects_are_the_same() -> None:
    loaded = load_text(a_slice("attributes: {x: {int: 1}}") + "---" + a_claim(), file="m.yaml")
    kept, warnings = ApiServer.of().admit(loaded)
    assert warnings == ()
    assert all(a is b for a, b in zip(kept.objects, loaded.objects, strict=True))


GATED = (
    "compatibilityGroups",
    "derivedAttributes",
    "skipNodeOperations",
    "nodeAllocatableResources",
    "distinctAttribute",
    "consumesCounters",
    "taints",
    "bindsToNode",
    "allowMultipleAllocations",
)


@pytest.mark.skipif(not CORPUS, reason="no corpus")
def test_a_real_api_server_keeps_and_drops_the_same_fields() -> None:
    """Answers of the API server of 1.37.2 with default gates to new objects."""
    path = Path(CORPUS) / "conformance" / "apiserver" / "sequences.jsonl.gz"
    compared = dropped = 0
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        for step in json.loads(line)["steps"]:
            body = step.get("body")
            if step["method"] != "POST" or not isinstance(body, dict) or body.get("kind") not in ("ResourceClaim", "ResourceSlice"):
                continue
            answer = step["response"]
            if (
                answer.get("code") != 201
                or body.get("apiVersion") != "resource.k8s.io/v1"
                or not any(f'"{g}"' in json.dumps(body) for g in GATED)
            ):
                continue
            compared += 1
            dropped += _same_fields(body, answer["object"])
    assert compared >= 10
    assert dropped >= 10


def _same_fields(body: dict[str, Any], stored: dict[str, Any]) -> bool:
    """Whether something was dropped."""
    text = json.dumps({k: v for k, v in body.items() if k != "status"})
    try:
        read = load_text(text, file="body.json")
    except ManifestError:  # refused by a rule of ours that this API server does not have
        return False
    loaded, warnings = ApiServer.of().admit(read)
    ours = json.dumps(dump(loaded.objects[0]))
    for field in GATED:
        assert (f'"{field}"' in ours) == (f'"{field}"' in json.dumps(stored)), (field, body)
    return bool(warnings)
