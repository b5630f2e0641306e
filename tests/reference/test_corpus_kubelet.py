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
from typing import Any, cast

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

SANDBOX = "kubelet.create_sandbox"
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
        self.holds, self.held = False, None  # whether the next answer is held back; the call whose answer is
        self.behaviours: dict[str, list[str]] = {"prepare": [], "unprepare": []}

    def accept(self, pod: str, lane: int, call: Call) -> Thread | None:
        if self.holds:
            self.holds, self.held = False, call
        else:
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
        self.calls: dict[str, tuple[Thread, Call, str]] = {}  # those that wait for a held answer, and where they are to end
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
        thread = Thread(body)
        label = self.go_on(thread, until)
        assert thread.ended or thread.at == until, f"stuck before {thread.at} {thread.params}"
        return label

    def go_on(self, thread: Thread, until: str) -> str:
        """Takes the steps that a coroutine can take; the label of the last one."""
        label = "ok"
        while not thread.ended and thread.at != until:
            ready = [step for step in thread.steps if step.ready]
            if not ready:
                return "blocked"
            turn = Turn(ready[0].move)
            thread.take(turn)
            label = turn.label
        return label

    def begin(self, name: str, body: Body, until: str = "") -> dict[str, Any]:
        """Starts a call whose first answer is held back."""
        plugins: list[Any] = list(self.machine.servers.values())
        for plugin in plugins:
            plugin.holds, plugin.held = True, None
        thread = Thread(body)
        label = self.go_on(thread, until)
        held = next((plugin.held for plugin in plugins if plugin.held is not None), None)
        for plugin in plugins:
            plugin.holds = False
        if held is None or label != "blocked":
            return outcome(label)
        self.calls[name] = thread, held, until
        return {"outcome": "blocked"}

    def release(self, name: str) -> dict[str, Any]:
        """The held answer returns."""
        if name not in self.calls:
            raise Unsupported("a call that is over")
        thread, call, until = self.calls.pop(name)
        call.answered = True
        return outcome(self.go_on(thread, until))

    def reconcile(self, active: list[str]) -> Body:
        """One tick of the loop, with the references found at its start; it fails if one of the pods does."""
        known = {self.uids.get(name, name) for name in active}
        found = [(name, self.kubelet.names_in_cache(name)) for name, uid in sorted(self.uids.items()) if uid not in known]
        for name, claims in found:
            if claims:
                task = Task()
                task.names = claims
                self.loop_failed |= not (yield from self.kubelet.unprepare(name, task, LOOP))

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
        elif op == "unregister_plugin" and self.calls:
            raise Unsupported("a plugin that leaves while it has calls")
        elif op == "unregister_plugin":
            self.machine.serving[operation["driver"]] = False
            return None
        elif op == "plugin_next" and operation["behaviour"] in ("ok", "grpc_error"):
            servers: Any = self.machine.servers
            plugin = servers.setdefault(operation["driver"], FakePlugin(self.api, operation["driver"]))
            plugin.behaviours[operation["method"]].append(operation["behaviour"])
        elif op == "prepare":
            return outcome(self.run(self.kubelet._prepare(pod, Task()), SANDBOX))
        elif op == "begin_prepare":
            return self.begin(operation["call"], self.kubelet._prepare(pod, Task()), SANDBOX)
        elif op == "unprepare":
            return outcome(self.run(self.unprepare(pod)))
        elif op == "begin_unprepare":
            return self.begin(operation["call"], self.unprepare(pod))
        elif op == "release":
            return self.release(operation["call"])
        elif op in ("reconcile", "begin_reconcile") and "duringActivePods" not in operation:
            self.loop_failed = False
            if op == "begin_reconcile":
                return self.begin(operation["call"], self.reconcile(operation["activePods"]))
            self.run(self.reconcile(operation["activePods"]))
            return {"outcome": "logged_errors" if self.loop_failed else "ok"}
        elif op == "get_resources":
            return self.get_resources(pod, operation["container"])
        elif op == "might_need_unprepare":
            return {"outcome": "ok", "value": bool(self.kubelet.cache.of_pod(operation["podUID"]))}
        elif op == "restart":
            return self.restart()
        elif op == "checkpoint_file":
            self.damage(operation["action"])
        else:
            raise Unsupported(op)
        return {"outcome": "ok"}

    def get_resources(self, pod: str, container: str) -> dict[str, Any] | None:
        """The CDI ids of a container that uses its claims as a whole, with all devices of one request each."""
        spec = next(c for c in self.api.get(POD, pod)["spec"]["containers"] if c["name"] == container)
        used = spec.get("resources", {}).get("claims", ())
        names = dict(self.machine.entries[pod])
        if any("request" in claim or names[claim["name"]] == "?" for claim in used):
            return None
        infos = [self.kubelet.cache.get(names[claim["name"]]) for claim in used]
        if None in infos:
            return {"outcome": "error", "class": "missing_entry"}
        return {"outcome": "ok", "cdiDevices": sorted(cdi for info in infos if info for cdi in info.devices.values())}

    def unprepare(self, pod: str) -> Body:
        """The pod worker's unprepare."""
        task = Task()
        if not self.kubelet.names_in_cache(pod) and "?" in {claim for _, claim in self.machine.entries[pod]}:
            raise Unsupported("an unprepare that cannot resolve a claim's name")
        task.names = self.kubelet.names_to_drop(pod)
        return cast(Body, self.kubelet.unprepare(pod, task, WORKER))

    def restart(self) -> dict[str, Any]:
        self.kubelet.crash()
        self.calls.clear()
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
        return {"outcome": "panic", "class": "panic"}
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
            where = f"{sequence['id']} step {number}: {step['operation']}"
            expected = {key: step["result"][key] for key in ("outcome", "class", "value", "cdiDevices") if key in step["result"]}
            found = harness.perform(step["operation"])
            if op == "get_resources" and found is not None:
                expected["cdiDevices"] = expected.get("cdiDevices") or []
                found["cdiDevices"] = found.get("cdiDevices", [])
            if found is not None:
                assert found == expected, where
            assert harness.memory() == real(step["memory"]), where
            assert harness.checkpoint() == real(step["checkpoint"]), where
            yield op
            if not harness.kubelet.running:
                return
    except Unsupported:
        return


def corpus() -> Path:
    found = os.environ.get("DRA_SPEC_CORPUS")
    if not found:
        pytest.skip("no corpus")
    return Path(found) / "conformance" / "kubelet"


def fixed(lines: Iterable[str]) -> Iterable[dict[str, Any]]:
    """The sequences whose answers do not vary, with the default feature gates."""
    sequences = map(json.loads, lines)
    return (sequence for sequence in sequences if "nondeterministic" not in sequence and not sequence.get("gates"))


def test_kubelet_does_as_the_real_manager(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    with gzip.open(corpus() / "sequences.jsonl.gz", "rt") as lines:
        for sequence in fixed(lines):
            seen.update(followed(sequence, tmp_path / sequence["id"]))
    for op, least in {"prepare": 1500, "unprepare": 500, "get_resources": 400, "reconcile": 200, "restart": 150, "release": 20}.items():
        assert seen[op] > least, seen


def test_kubelet_has_the_known_hazards_of_the_real_manager(tmp_path: Path) -> None:
    whole = set()
    with (corpus() / "hazards.jsonl").open() as lines:
        for sequence in fixed(lines):
            if len(list(followed(sequence, tmp_path / sequence["id"]))) >= len(sequence["steps"]) or "O-NIL" in sequence["hazard"]:
                whole.add(sequence["hazard"])
    assert {"O-STALE", "O-NIL", "O-ABA"} <= whole, whole
