"""Each format of recorded answers with a right answer, a wrong one, and something that the project does not have."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

RUN = Path(__file__).parent / "run.py"
Json = dict[str, Any]


def run(path: Path) -> tuple[int, list[str]]:
    """(exit code, lines of the output)."""
    done = subprocess.run([sys.executable, str(RUN), str(path)], capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def compared(tmp_path: Path, cases: list[Json]) -> tuple[int, list[str]]:
    path = tmp_path / "own.json"
    path.write_text(json.dumps(cases))
    return run(path)


# -- lifecycle


def slice_of(*taints: Json) -> Json:
    device = {"name": "d", "taints": list(taints)} if taints else {"name": "d"}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {"driver": "x.example.com", "pool": pool, "devices": [device]}}


def rule(selector: Json | None) -> Json:
    spec: Json = {"taint": {"key": "bad", "effect": "NoExecute"}} | ({} if selector is None else {"deviceSelector": selector})
    return {"kind": "DeviceTaintRule", "metadata": {"name": "r"}, "spec": spec}


def test_taint_rules(tmp_path: Path) -> None:
    taint = {"key": "bad", "effect": "NoExecute"}
    added = [{"type": "add", "new": slice_of()}, {"type": "add", "new": rule({"pool": "p"})}]
    gone = [added[0], [added[1], {"type": "deletedFinalStateUnknown", "key": "r"}]]
    of_none = [added[0], {"type": "add", "new": rule(None)}]
    code, lines = compared(
        tmp_path,
        [
            {"id": "tainted", "events": added, "expectedSlices": [slice_of(taint)]},
            {"id": "gone", "events": gone, "expectedSlices": [slice_of()]},
            {"id": "of none", "events": of_none, "expectedSlices": [slice_of(taint)]},
        ],
    )
    assert (code, lines[-1]) == (1, "agreed 2 of 3"), lines
    assert lines[0].startswith("taint_rules: own.json: 2 / 3 (7 orders of events tried, not compared: 0 events of consumers")
    assert lines[1].startswith("  own.json: of none: expected ")


def test_claim_helpers(tmp_path: Path) -> None:
    claim = {"metadata": {"name": "c", "namespace": "a", "ownerReferences": [{"uid": "1", "controller": True}]}}
    pods = [{"kind": "Pod", "metadata": {"name": "p", "namespace": space, "uid": "1"}, "spec": {}} for space in "ab"]
    entry = {"name": "x", "resourceClaimTemplateName": "t"}
    cases: list[Json] = [
        {"function": "claim-is-for", "input": {"claim": claim, "pod": pods[0]}, "expected": {"error": None}},
        {"function": "claim-is-for", "input": {"claim": claim, "pod": pods[1]}, "expected": {"error": "another namespace"}},
        {"function": "claim-name-of-pod-claim", "input": {"pod": pods[0], "podClaim": entry}, "expected": {"check": False, "error": "no"}},
        {"function": "base-request-name", "input": {"requestRef": "a/b"}, "expected": {"baseRequestRef": "a"}},
        {"id": "wrong", "function": "base-request-name", "input": {"requestRef": "a/b"}, "expected": {"baseRequestRef": "b"}},
        {"function": "claim-is-for", "input": {"claim": claim, "pod": pods[0] | {"kind": "PodGroup"}}, "expected": {"error": None}},
        {"function": "something-new", "input": {}, "expected": {}},
    ]
    assert compared(tmp_path, cases) == (
        1,
        [
            "claim_helpers: own.json: 4 / 5 (not compared: 1 (claim-is-for: the protocol has no pod groups), "
            "1 (something-new: no such function))",
            "  own.json: wrong: expected b, found a",
            "not compared, in the files above: 2",
            "agreed 4 of 5",
        ],
    )


def test_a_format_that_the_project_has_nothing_for(tmp_path: Path) -> None:
    code, lines = compared(tmp_path, [{"wantedPools": {}, "expectedSlices": []}] * 2)
    assert code == 2
    assert lines[0].endswith("own.json: not compared (2 cases: the project has no controller that publishes ResourceSlices)")
    assert lines[-1] == "nothing to compare"


# -- kubelet

RESULT = {"request": "r", "driver": "x.example.com", "pool": "p", "device": "d"}
HELD = {
    "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
    "spec": {},
    "status": {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": [{"resource": "pods", "name": "p", "uid": "pu"}]},
}
POD = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "pu"},
    "spec": {"containers": [], "resourceClaims": [{"name": "e", "resourceClaimName": "c"}]},
    "status": {},
}
INITIAL = {"claims": [HELD], "pods": {"p": POD}, "plugins": [{"driver": "x.example.com", "instance": "1", "services": ["v1.DRAPlugin"]}]}


def entry_of(*devices: str, prepared: bool | None = None) -> Json:
    """A cache entry; without `prepared` as it stands in the file."""
    state = {"devices": [{"poolName": "p", "deviceName": d, "cdiDeviceIDs": [f"x/dev={d}"], "requestNames": ["r"]} for d in devices]}
    found: Json = {"claimUID": "u", "claimName": "c", "namespace": "ns", "podUIDs": ["pu"], "drivers": {"x.example.com": state}}
    return found if prepared is None else found | {"prepared": prepared, "unpreparing": False}


def sequence(name: str, *steps: Json, **more: Any) -> Json:
    return {"id": name, "initial": INITIAL, "steps": list(steps), **more}


def prepare(memory: Json) -> Json:
    return {"operation": {"op": "prepare", "pod": "p"}, "result": {"outcome": "ok"}, "memory": [memory], "checkpoint": [entry_of("d")]}


FAILED_WRITE = {
    "operation": {"op": "checkpoint_writes", "fail": True},
    "result": {"outcome": "ok"},
    "memory": [entry_of("d", prepared=True)],
    "checkpoint": [entry_of("d")],
}


def test_kubelet(tmp_path: Path) -> None:
    right, wrong = prepare(entry_of("d", prepared=True)), prepare(entry_of("d", prepared=False))
    other = {"seen": 3, "differs": [{"step": 0, "field": "memory", "value": right["memory"]}]}
    code, lines = compared(
        tmp_path,
        [
            sequence("right", right),
            sequence("wrong", wrong, right),
            sequence("one of two", wrong, nondeterministic=[{}], otherTraces=[other]),
            sequence("cut", right, FAILED_WRITE, right),
        ],
    )
    assert (code, lines[-1]) == (1, "agreed 3 of 4"), lines
    assert lines[0] == (
        "kubelet: own.json: 3 / 4 (steps of 4 sequences, 2 of them whole; "
        "not compared: 2 (failing writes of the checkpoint), 1 (after a disagreement))"
    )
    assert lines[1].startswith("  own.json: wrong step 0: expected memory [")


def test_checkpoint_files(tmp_path: Path) -> None:
    device = {"PoolName": "p", "DeviceName": "d", "RequestNames": ["r"], "CDIDeviceIDs": ["x/dev=d"], "ShareID": None}

    def file(devices: list[Json] | None) -> str:
        """As Kubernetes writes it: no devices are null."""
        entry = {"ClaimUID": "u", "ClaimName": "c", "Namespace": "ns", "PodUIDs": {"pu": {}}}
        entry["DriverState"] = {"x.example.com": {"Devices": devices}}
        data = {"kind": "DRACheckpoint", "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1", "ClaimInfoStateList": [entry]}
        text = json.dumps(data, separators=(",", ":"))
        return json.dumps({"Data": text, "Checksum": zlib.crc32(text.encode())})

    cases = [
        {"file": file([device]), "decoded": [entry_of("d")]},
        {"file": file(None), "decoded": [entry_of()]},
        {"file": file([device]).replace("x/dev", "y/dev"), "decoded": [entry_of("d")]},
    ]
    code, lines = compared(tmp_path, cases)
    assert (code, lines[-1]) == (1, "agreed 2 of 3")
    assert "checksum" in lines[1]


# -- API server

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims"
SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x"}}]}}


def stored(version: int, **status: Any) -> Json:
    meta = {"name": "c", "namespace": "n", "uid": "u1", "resourceVersion": version}
    return {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": meta, "spec": SPEC, "status": status}


def request(method: str, path: str, code: int, answer: Json, body: Any = None, media: str = "application/json") -> Json:
    sent = {"method": method, "path": CLAIMS + path, "user": "admin", "response": {"code": code, **answer}}
    return sent | ({"body": body, "contentType": media} if body is not None else {})


def test_api_server(tmp_path: Path) -> None:
    create = request("POST", "", 201, {"object": stored(1)}, {"metadata": {"name": "c"}, "spec": SPEC})
    allocated = {"devices": {"results": [RESULT]}}
    patch = request(
        "PATCH",
        "/c/status",
        200,
        {"object": stored(2, allocation=allocated)},
        {"status": {"allocation": allocated}},
        "application/merge-patch+json",
    )
    labelled = stored(3, allocation=allocated)
    labelled["metadata"]["labels"] = {"a": "b"}
    change = [{"op": "test", "path": "/metadata/name", "value": "c"}, {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
    json_patch = request("PATCH", "/c", 200, {"object": labelled}, change, "application/json-patch+json")
    stale = stored(2) | {"metadata": {"name": "c", "uid": "${0:/metadata/uid}", "resourceVersion": "${0:/metadata/resourceVersion}"}}
    put = request("PUT", "/c/status", 409, {"status": {"reason": "Conflict"}}, stale)
    apply = request("PATCH", "/c", 200, {"object": stored(3, allocation=allocated)}, {}, "application/apply-patch+yaml")
    refused = {"status": {"reason": "Invalid", "causes": [{"field": "spec.devices.requests", "reason": "FieldValueInvalid"}]}}
    unchanged = request("GET", "/c", 200, {"object": stored(2, allocation=allocated)})
    read = request("GET", "/c", 200, {"object": stored(3, allocation=allocated)})
    steps = [create, patch, put, apply, request("POST", "", 422, refused, create["body"]), read]
    tested = [create, patch, json_patch]
    wrong = [create, patch, put | {"response": {"code": 200, "object": stored(2)}}, unchanged]
    code, lines = compared(tmp_path, [{"id": "right", "steps": steps}, {"id": "json", "steps": tested}, {"id": "wrong", "steps": wrong}])
    assert (code, lines[-1]) == (1, "agreed 10 of 11"), lines
    assert lines[0] == (
        "apiserver: own.json: 10 / 11 (requests; not compared: 1 (PATCH application/apply-patch+yaml), "
        "1 (rejections for reasons that the reference does not check))"
    )
    assert lines[1].startswith("  own.json: wrong step 2: expected 200, found 409 ResourceClaim c: the object has been modified")


def test_a_watch_shows_the_events_since_a_version(tmp_path: Path) -> None:
    create = request("POST", "", 201, {"object": stored(1)}, {"metadata": {"name": "c"}, "spec": SPEC})
    delete = request("DELETE", "/c", 200, {"status": {}})
    listed = request("GET", "", 200, {"list": {"items": [stored(1)], "resourceVersion": 1}})
    deleted = {"events": [{"type": "DELETED", "object": stored(2)}]}
    since = {"query": {"resourceVersion": "${1:/metadata/resourceVersion}"}}
    watch = request("WATCH", "", 200, deleted) | since
    early = request("WATCH", "", 200, {"events": [{"type": "ADDED", "object": stored(1)}, *deleted["events"]]}) | since
    right = {"id": "right", "steps": [create, listed, delete, watch]}
    wrong = {"id": "wrong", "steps": [create, listed, delete, early]}
    code, lines = compared(tmp_path, [right, wrong])
    assert (code, lines[-1]) == (1, "agreed 7 of 8"), lines
    assert lines[1].startswith("  own.json: wrong step 3: expected ('ADDED', ")


def test_garbage_collection(tmp_path: Path) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "gone", "controller": True}
    made = stored(1)
    made["metadata"] = {"name": "c", "namespace": "n", "uid": "u1", "ownerReferences": [owner]}
    create = request("POST", "", 201, {"object": made}, {"metadata": {"name": "c", "ownerReferences": [owner]}, "spec": SPEC})
    collected = request("GET", "/c", 404, {"status": {"reason": "NotFound"}}) | {"settle": True}
    kept = request("GET", "/c", 200, {"object": made}) | {"settle": True}
    code, lines = compared(tmp_path, [{"id": "right", "steps": [create, collected]}, {"id": "wrong", "steps": [create, kept]}])
    assert (code, lines[-1]) == (1, "agreed 3 of 4"), lines


# -- validation


def checked(name: str, obj: Json, *errors: tuple[str, str]) -> Json:
    full = {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "c", "namespace": "n"}, **obj}
    found = [{"field": field, "type": kind} for field, kind in errors]
    return {"id": name, "operation": "create", "gates": {}, "object": full, "valid": not found, "errors": found}


def with_count(count: int) -> Json:
    return {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x", "count": count}}]}}}


@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        (checked("a", {"spec": SPEC}), "1 / 1 (1 valid cases among them)"),
        (checked("b", with_count(-1), ("spec.devices.requests[0].exactly.count", "Invalid")), "1 / 1 (0 valid cases among them)"),
        (checked("c", with_count(-1)), "0 / 1 (1 valid cases among them)"),
        (checked("d", {"spec": SPEC}, ("spec.devices.requests[0].exactly.count", "Invalid")), "0 / 1 (0 valid cases among them)"),
        (checked("e", {"spec": SPEC}, ("spec.newField", "Invalid")), "0 / 0 (0 valid cases among them; not compared: 1 (invalid by rules"),
    ],
)
def test_validation(tmp_path: Path, case: Json, outcome: str) -> None:
    code, lines = compared(tmp_path, [case])
    assert lines[0].startswith(f"validation: own.json: {outcome}"), lines
    assert code == int(outcome.startswith("0 / 1"))
