"""The reference's kubelet beside the real DRA manager (kubernetes v1.37.2): the same operations, then cache, checkpoint file and answer
compared.

A sequence is followed up to its first operation that the reference does not have: calls held in flight, faults inside an answer, failing
writes, claims that are not needed, extended resources. Sequences whose real answers vary from run to run are left out.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dra_spec.reference import disk
from dra_spec.reference.apiserver import CLAIM, POD, ApiServer
from dra_spec.reference.claiminfo import ClaimInfo
from dra_spec.reference.errors import CorruptFile
from dra_spec.reference.kubelet import Kubelet
from dra_spec.reference.kubelet_task import LOOP, WORKER, Task
from dra_spec.reference.machine import PREPARE, Call, Machine
from dra_spec.reference.shapes import allocation, device_id, results, uid_of
from dra_spec.reference.steps import Body, Thread, Turn

CLASSES = {
    "unresolved": "claim_not_created",
    "not-found": "api_not_found",
    "not-owner": "not_owner",
    "not-reserved": "not_reserved",
    "not-allocated": "not_allocated",
    "no-plugin": "driver_not_registered",
    "uid-differs": "old_claim_same_name",
    "unpreparing": "being_unprepared",
    "missing": "missing_entry",
    "failed": "rpc_error",
    "skipped": "rpc_missing_result",
}


class Unsupported(Exception):
    """An operation that the reference does not have."""


class FakePlugin:
    """Answers at once: each claim's devices as they are in the API now."""

    def __init__(self, api: ApiServer, driver: str) -> None:
        self.api, self.driver = api, driver
        self.behaviours: dict[str, list[str]] = {"prepare": [], "unprepare": []}

    def accept(self, pod: str, lane: int, call: Call) -> Thread | None:
        call.answered = True
        behaviour = self.behaviours[call.method].pop(0) if self.behaviours[call.method] else "ok"
        call.failed = behaviour == "grpc_error"
        for name, uid in call.claims if call.method == PREPARE and not call.failed else ():
            claim = self.api.find(CLAIM, name)
            mine = [r for r in results(allocation(claim)) if r["driver"] == self.driver] if claim and uid_of(claim) == uid else []
            if not mine:
                raise Unsupported("an error for one claim of an answer")
            call.answer[uid] = {device_id(r): f"{self.driver}/dev={uid}-{r['device']}" for r in mine}
        return None


class Harness:
    """A kubelet on an empty node, driven from outside."""

    def __init__(self, directory: Path, initial: dict[str, Any]) -> None:
        self.api = ApiServer()
        self.api._objects = {CLAIM: {}, POD: {}}
        self.instance = SimpleNamespace(pods=[], claims=[], devices=[], writers=frozenset({"kubelet"}))
        world: Any = SimpleNamespace(instance=self.instance, api=self.api, directory=directory, left=lambda budget: False)
        self.machine = Machine(world, "n1")
        self.kubelet = Kubelet(world, self.machine, [])
        self.uids: dict[str, str] = {}
        self.serving: Counter[str] = Counter()
        for claim in initial["claims"]:
            self.apply_claim(claim)
        for name, pod in initial["pods"].items():
            self.set_pod(name, pod)
        for plugin in initial["plugins"]:
            self.register(plugin["driver"])

    def apply_claim(self, claim: dict[str, Any]) -> None:
        name = claim["metadata"]["name"]
        if any("skipNodeOperations" in result for result in results(allocation(claim))):
            raise Unsupported("optional node operations")
        self.api._objects[CLAIM][name] = claim
        if name not in self.machine.claims:
            self.machine.claims.append(name)
        for driver in {result["driver"] for result in results(allocation(claim))}:
            self.machine.serving.setdefault(driver, False)

    def set_pod(self, name: str, pod: dict[str, Any]) -> None:
        statuses = {s["name"]: s.get("resourceClaimName") for s in pod["status"].get("resourceClaimStatuses", ())}
        if None in statuses.values() or "extendedResourceClaimStatus" in pod["status"]:
            raise Unsupported("a claim that is not needed, or made for an extended resource")
        self.api._objects[POD][name] = pod
        refs = [
            SimpleNamespace(
                entry=e["name"],
                claim=e.get("resourceClaimName") or statuses.get(e["name"], "?"),
                template=e.get("resourceClaimTemplateName"),
            )
            for e in pod["spec"].get("resourceClaims", ())
        ]
        self.instance.pods = [p for p in self.instance.pods if p.name != name] + [SimpleNamespace(name=name, claims=refs)]
        self.machine.entries[name] = [(ref.entry, ref.claim) for ref in refs]
        self.uids[name] = self.kubelet.uids[name] = uid_of(pod)

    def register(self, driver: str) -> None:
        self.machine.serving[driver] = True
        servers: Any = self.machine.servers
        servers.setdefault(driver, FakePlugin(self.api, driver))

    def run(self, body: Body, until: str = "") -> str:
        """Runs a coroutine to its end, or up to the announcement of `until`; the label of its last step."""
        thread, label = Thread(body), "ok"
        while not thread.ended and thread.at != until:
            ready = [step for step in thread.steps if step.ready]
            assert ready, f"stuck before {thread.at} {thread.params}"
            step = ready[0]
            turn = Turn(step.move)
            thread.take(turn)
            label = turn.label
        return label

    def perform(self, operation: dict[str, Any]) -> dict[str, Any] | None:
        """Performs an operation: its result in the corpus' words, None if there is nothing to compare."""
        op, pod = operation["op"], operation.get("pod", "")
        if op == "apply_claim":
            self.apply_claim(operation["claim"])
        elif op == "delete_claim":
            self.api._objects[CLAIM].pop(operation["name"], None)
        elif op == "set_pod":
            self.set_pod(pod, operation["object"])
        elif op in ("register_plugin", "unregister_plugin") and operation["instance"] != "1":
            raise Unsupported("several instances")
        elif op == "register_plugin":
            self.register(operation["driver"])
            return None
        elif op == "unregister_plugin":
            self.machine.serving[operation["driver"]] = False
            return None
        elif op == "plugin_next" and operation["behaviour"] in ("ok", "grpc_error"):
            servers: Any = self.machine.servers
            plugin = servers.setdefault(operation["driver"], FakePlugin(self.api, operation["driver"]))
            plugin.behaviours[operation["method"]].append(operation["behaviour"])
        elif op == "prepare":
            label = self.run(self.kubelet._prepare(pod, Task()), until="kubelet.create_sandbox")
            return outcome(label)
        elif op == "unprepare":
            return self.unprepare(pod, WORKER)
        elif op == "reconcile" and "duringActivePods" not in operation:
            held = {uid for info in self.kubelet.cache.entries.values() for uid in info.pods} - {
                self.uids.get(name, name) for name in operation["activePods"]
            }
            failed = [self.unprepare(name, LOOP)["outcome"] != "ok" for name, uid in sorted(self.uids.items()) if uid in held]
            return {"outcome": "logged_errors" if any(failed) else "ok"}
        elif op == "might_need_unprepare":
            return {"outcome": "ok", "value": bool(self.kubelet.cache.of_pod(operation["podUID"]))}
        elif op == "restart":
            return self.restart()
        elif op == "checkpoint_file":
            self.damage(operation["action"])
        else:
            raise Unsupported(op)
        return {"outcome": "ok"}

    def unprepare(self, pod: str, kind: str) -> dict[str, Any]:
        task = Task()
        if kind == WORKER and not self.kubelet.names_in_cache(pod) and "?" in {claim for _, claim in self.machine.entries[pod]}:
            raise Unsupported("an unprepare that cannot resolve a claim's name")
        task.names = self.kubelet.names_to_drop(pod) if kind == WORKER else self.kubelet.names_in_cache(pod)
        return outcome(self.run(self.kubelet.unprepare(pod, task, kind)))

    def restart(self) -> dict[str, Any]:
        self.kubelet.crash()
        turn = Turn(self.kubelet.move("restart", ""))
        self.kubelet._restart(turn)
        self.kubelet.uids.update(self.uids)
        self.machine.serving.update(dict.fromkeys(self.machine.serving, False))
        return {"outcome": "ok"} if self.kubelet.running else {"outcome": "error", "class": "checkpoint_load"}

    def damage(self, action: str) -> None:
        path = self.machine.directory / disk.KUBELET_FILE
        text = path.read_text() if path.exists() else None
        if action == "delete":
            path.unlink(missing_ok=True)
        elif action in ("garbage", "empty"):
            path.write_text("not JSON" if action == "garbage" else "")
        elif action == "truncate" and text is not None:
            path.write_text(text[: len(text) // 2])
        elif action == "bad_checksum" and text is not None:
            outer = json.loads(text)
            path.write_text(json.dumps({**outer, "Checksum": outer["Checksum"] + 1}))
        elif action == "previous":
            raise Unsupported("the previous checkpoint")

    def memory(self) -> Any:
        entries = self.kubelet.cache.entries.values()
        return sorted((*row(info), info.prepared, info.unpreparing) for info in entries) if self.kubelet.running else None

    def checkpoint(self) -> Any:
        if not (self.machine.directory / disk.KUBELET_FILE).exists():
            return "missing"
        try:
            return sorted(row(info) for info in self.kubelet.cache.stored().values())
        except CorruptFile as error:
            return "bad_checksum" if "checksum" in str(error) else "unreadable"


def outcome(label: str) -> dict[str, Any]:
    if label == "panic":
        return {"outcome": "panic"}
    return {"outcome": "error", "class": CLASSES[label]} if label in CLASSES else {"outcome": "ok"}


def row(info: ClaimInfo) -> tuple[Any, ...]:
    drivers = tuple((driver, tuple(sorted(devices))) for driver, devices in sorted(info.drivers.items()))
    return info.uid, info.name, tuple(sorted(info.pods)), drivers


def real_row(entry: dict[str, Any]) -> tuple[Any, ...]:
    drivers = tuple(
        (driver, tuple(sorted({f"{driver}/{d['poolName']}/{d['deviceName']}" for d in state["devices"]})))
        for driver, state in sorted(entry["drivers"].items())
    )
    found = entry["claimUID"], entry["claimName"], tuple(sorted(entry["podUIDs"])), drivers
    return (*found, entry["prepared"], entry["unpreparing"]) if "prepared" in entry else found


def real(entries: Any) -> Any:
    return sorted(map(real_row, entries)) if isinstance(entries, list) else entries


def followed(sequence: dict[str, Any], directory: Path) -> Iterable[str]:
    """Follows a sequence as far as possible; yields the operations that were compared."""
    try:
        harness = Harness(directory, sequence["initial"])
        for number, step in enumerate(sequence["steps"]):
            op = step["operation"]["op"]
            if op == "get_resources":
                continue
            where = f"{sequence['id']} step {number}: {step['operation']}"
            expected = {key: step["result"][key] for key in ("outcome", "class", "value") if key in step["result"]}
            found = harness.perform(step["operation"])
            if found is not None:
                assert found == expected, where
            assert harness.memory() == real(step["memory"]), where
            assert harness.checkpoint() == real(step["checkpoint"]), where
            yield op
            if not harness.kubelet.running:
                return
    except Unsupported:
        return


def test_kubelet_does_as_the_real_manager(tmp_path: Path) -> None:
    corpus = os.environ.get("DRA_SPEC_CORPUS")
    if not corpus:
        pytest.skip("no corpus")
    seen: Counter[str] = Counter()
    with gzip.open(Path(corpus) / "conformance" / "kubelet" / "sequences.jsonl.gz", "rt") as lines:
        for line in lines:
            sequence = json.loads(line)
            if "nondeterministic" not in sequence and not sequence.get("gates"):
                seen.update(followed(sequence, tmp_path / sequence["id"]))
    assert seen["prepare"] > 500
    assert seen["unprepare"] > 300
    assert seen["reconcile"] > 100
    assert seen["restart"] > 100
