"""The reference's kubelet on an empty node, driven from outside by the operations of recorded sequences (format of kubelet/)."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import attrs
from kubelet_plugin import FAILURES, FakePlugin, Unsupported

from dra_spec.reference import disk
from dra_spec.reference.apiserver import CLAIM, POD, ApiServer
from dra_spec.reference.claiminfo import ClaimInfo
from dra_spec.reference.errors import CorruptFile
from dra_spec.reference.kubelet import Kubelet
from dra_spec.reference.kubelet_task import LOOP, WORKER, Task
from dra_spec.reference.machine import Call, Machine
from dra_spec.reference.shapes import Object, allocation, results, uid_of
from dra_spec.reference.steps import Body, Thread, Turn

SANDBOX = "kubelet.create_sandbox"
UNRESOLVED = "?"  # the name of a generated claim that the pod's status lacks
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
OF_KUBELET = ("prepare", "unprepare", "reconcile", "get_resources", "might_need_unprepare")


class _GetFailed(Exception):
    """The API server answers a GET with an error."""


class FaultyApi(ApiServer):
    """Fails as many GETs of claims as asked."""

    failures = 0

    def find(self, kind: str, name: str) -> Object | None:
        if kind == CLAIM and self.failures:
            self.failures -= 1
            raise _GetFailed
        return super().find(kind, name)


@attrs.define(eq=False)
class Running:
    """A call of the kubelet that is under way. `until`: the announcement at which it is over; `failures`: pods that a tick of the loop
    failed for, None if the call is no tick."""

    thread: Thread
    until: str = ""
    failures: list[str] | None = None


class Harness:
    """`last_first`: where the kubelet may go on in any order (drivers, claims of an answer, pods), it goes from the end."""

    def __init__(self, directory: Path, initial: dict[str, Any], *, last_first: bool = False) -> None:
        self.api = FaultyApi()
        self.api._objects = {CLAIM: {}, POD: {}}
        self.last_first = last_first
        self.instance = SimpleNamespace(pods=[], claims=[], devices=[], writers=frozenset({"kubelet"}))
        world: Any = SimpleNamespace(instance=self.instance, api=self.api, directory=directory, left=lambda budget: False)
        self.machine = Machine(world, "n1")
        self.plugins: dict[str, FakePlugin] = {}
        self.answers: list[str] = []  # what plugins did, in the order in which the kubelet saw it
        self.machine.servers = cast(Any, self.plugins)
        self.connected: dict[str, list[str]] = {}  # driver -> its instances, the newest last
        self.kubelet = Kubelet(world, self.machine, [])
        self.uids: dict[str, str] = {}
        self.calls: dict[str, tuple[Running, Call]] = {}  # those that wait for a held answer
        self.files = [(self.content(), self.text())]  # the checkpoint as it was at the end of steps: content and text
        for claim in initial["claims"]:
            self.apply_claim(claim)
        for name, pod in initial["pods"].items():
            self.set_pod(name, pod)
        for plugin in initial["plugins"]:
            self.register(plugin["driver"], plugin["instance"])

    # -- what the kubelet sees

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
        """Entries whose claim is not needed are left out; the claim for extended resources comes last."""
        if pod["spec"].get("schedulingGroup"):
            raise Unsupported("pod groups")
        statuses = {s["name"]: s.get("resourceClaimName") for s in pod["status"].get("resourceClaimStatuses", ())}
        refs = []
        for e in pod["spec"].get("resourceClaims", ()):
            claim = e.get("resourceClaimName") or statuses.get(e["name"], UNRESOLVED)
            if claim is not None:
                refs.append(SimpleNamespace(entry=e["name"], claim=claim, template=e.get("resourceClaimTemplateName")))
        extended = pod["status"].get("extendedResourceClaimStatus")
        if extended:
            refs.append(SimpleNamespace(entry="", claim=extended["resourceClaimName"], template=None))
        self.api._objects[POD][name] = pod
        self.instance.pods = [p for p in self.instance.pods if p.name != name] + [SimpleNamespace(name=name, claims=refs)]
        self.machine.entries[name] = [(ref.entry, ref.claim) for ref in refs]
        self.uids[name] = self.kubelet.uids[name] = uid_of(pod)

    def register(self, driver: str, instance: str) -> None:
        self.connected.setdefault(driver, []).append(instance)
        self.machine.serving[driver] = True
        self.plugin(driver)

    def unregister(self, driver: str, instance: str) -> None:
        left = [i for i in self.connected.get(driver, ()) if i != instance]
        if self.calls and left != self.connected.get(driver, []):
            raise Unsupported("a plugin that leaves while it may have calls")
        self.connected[driver] = left
        self.machine.serving[driver] = bool(left)

    def plugin(self, driver: str) -> FakePlugin:
        return self.plugins.setdefault(driver, FakePlugin(self.api, driver, self.answers))

    # -- coroutines of the kubelet

    def run(self, running: Running) -> dict[str, Any]:
        """Runs a call to its end; the result in the corpus' words."""
        try:
            label = self.go_on(running)
        except _GetFailed:
            return {"outcome": "error", "class": "api_error"}
        thread = running.thread
        assert thread.ended or thread.at == running.until, f"stuck before {thread.at} {thread.params}"
        return self.outcome(running, label)

    def go_on(self, running: Running) -> str:
        """Takes the steps that a call can take; the label of the last one."""
        label, thread = "ok", running.thread
        while not thread.ended and thread.at != running.until:
            ready = [step for step in thread.steps if step.ready]
            if not ready:
                return "blocked"
            turn = Turn(ready[-1 if self.last_first else 0].move)
            thread.take(turn)
            label = turn.label
        return label

    def outcome(self, running: Running, label: str) -> dict[str, Any]:
        """The result of a call that is over. The reference knows one kind of failed RPC; which, the plugin knows."""
        if label == "panic":
            return {"outcome": "panic", "class": "panic"}
        if running.failures is not None:
            return {"outcome": "logged_errors" if running.failures else "ok"}
        if label == "failed":
            return {"outcome": "error", "class": FAILURES[self.answers[-1]]}
        return {"outcome": "error", "class": CLASSES[label]} if label in CLASSES else {"outcome": "ok"}

    def begin(self, name: str, running: Running) -> dict[str, Any]:
        """Starts a call whose first answer is held back."""
        for plugin in self.plugins.values():
            plugin.holds, plugin.held = True, None
        try:
            label = self.go_on(running)
        except _GetFailed:
            return {"outcome": "error", "class": "api_error"}
        finally:
            for plugin in self.plugins.values():
                plugin.holds = False
        held = next((plugin.held for plugin in self.plugins.values() if plugin.held is not None), None)
        if held is None or label != "blocked":
            return self.outcome(running, label)
        self.calls[name] = running, held
        return {"outcome": "blocked"}

    def release(self, name: str) -> dict[str, Any]:
        """The held answer returns."""
        if name not in self.calls:
            raise Unsupported("a call that is over")
        running, call = self.calls.pop(name)
        call.answered = True
        self.answers.append(call.local)
        return self.run(running)

    def reconcile(self, active: list[str], failures: list[str]) -> Body:
        """One tick of the loop, with the references found at its start; it goes on when a pod fails."""
        known = {self.uids.get(name, name) for name in active}
        names = sorted(self.uids.items(), reverse=self.last_first)
        found = [(name, self.kubelet.names_in_cache(name)) for name, uid in names if uid not in known]
        for name, claims in found:
            if claims:
                task = Task()
                task.names = claims
                if not (yield from self.kubelet.unprepare(name, task, LOOP)):
                    failures.append(name)

    def unprepare(self, pod: str) -> Body:
        """The pod worker's unprepare."""
        task = Task()
        if not self.kubelet.names_in_cache(pod) and UNRESOLVED in {claim for _, claim in self.machine.entries[pod]}:
            raise Unsupported("an unprepare that cannot resolve a claim's name")
        task.names = self.kubelet.names_to_drop(pod)
        return cast(Body, self.kubelet.unprepare(pod, task, WORKER))

    # -- operations

    def perform(self, operation: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any] | None:
        """Performs an operation: its result in the corpus' words, None if there is nothing to compare. `recorded`: the real result, for
        the registry of plugins, which the reference does not have. Raises Unsupported."""
        op, pod = operation["op"], operation.get("pod", "")
        if not self.kubelet.running and op.removeprefix("begin_") in OF_KUBELET:
            return {"outcome": "kubelet_down"}
        if op == "apply_claim":
            self.apply_claim(operation["claim"])
        elif op == "delete_claim":
            self.api._objects[CLAIM].pop(operation["name"], None)
        elif op == "set_pod":
            self.set_pod(pod, operation["object"])
        elif op == "api_next":
            self.api.failures += 1
        elif op == "register_plugin":
            if recorded["outcome"] == "ok":
                self.register(operation["driver"], operation["instance"])
            return None
        elif op == "unregister_plugin":
            self.unregister(operation["driver"], operation["instance"])
            return None
        elif op == "plugin_next":
            self.plugin(operation["driver"]).expect(operation["method"], operation["behaviour"])
        elif op in ("reconcile", "begin_reconcile") and "duringActivePods" in operation:
            raise Unsupported("operations inside the loop's look at the active pods")
        elif op in OF_KUBELET or op.startswith("begin_"):
            return self.call(op, operation)
        elif op == "release":
            return self.release(operation["call"])
        elif op == "restart":
            return self.restart()
        elif op == "checkpoint_file":
            self.damage(operation["action"])
        elif op == "checkpoint_writes":
            if operation["fail"]:
                raise Unsupported("failing writes of the checkpoint")
        else:
            raise Unsupported(f"operation {op}")
        return {"outcome": "ok"}

    def call(self, op: str, operation: dict[str, Any]) -> dict[str, Any] | None:
        """A call of the kubelet, to its end or to the first RPC that is held."""
        pod = operation.get("pod", "")
        if op == "get_resources":
            return self.get_resources(pod, operation["container"])
        if op == "might_need_unprepare":
            return {"outcome": "ok", "value": bool(self.kubelet.cache.of_pod(operation["podUID"]))}
        kind = op.removeprefix("begin_")
        if kind == "prepare":
            running = Running(Thread(self.kubelet._prepare(pod, Task())), SANDBOX)
        elif kind == "unprepare":
            running = Running(Thread(self.unprepare(pod)))
        else:
            failures: list[str] = []
            running = Running(Thread(self.reconcile(operation["activePods"], failures)), failures=failures)
        return self.begin(operation["call"], running) if op != kind else self.run(running)

    def get_resources(self, pod: str, container: str) -> dict[str, Any] | None:
        """The CDI ids of a container that uses its claims as a whole, with all devices of one request each."""
        found = self.api.get(POD, pod)
        spec = next(c for c in found["spec"]["containers"] if c["name"] == container)
        used = spec.get("resources", {}).get("claims", ())
        names = dict(self.machine.entries[pod])
        if found["status"].get("extendedResourceClaimStatus") or any(
            "request" in claim or names.get(claim["name"], UNRESOLVED) == UNRESOLVED for claim in used
        ):
            return None
        infos = [self.kubelet.cache.get(names[claim["name"]]) for claim in used]
        if None in infos:
            return {"outcome": "error", "class": "missing_entry"}
        return {"outcome": "ok", "cdiDevices": sorted(cdi for info in infos if info for cdi in info.devices.values())}

    def restart(self) -> dict[str, Any]:
        self.kubelet.crash()
        self.calls.clear()
        self.connected.clear()
        turn = Turn(self.kubelet.move("restart", ""))
        self.kubelet._restart(turn)
        self.kubelet.uids.update(self.uids)
        self.machine.serving.update(dict.fromkeys(self.machine.serving, False))
        return {"outcome": "ok"} if self.kubelet.running else {"outcome": "error", "class": "checkpoint_load"}

    # -- the checkpoint file

    @property
    def path(self) -> Path:
        return self.machine.directory / disk.KUBELET_FILE

    def text(self) -> str | None:
        return self.path.read_text() if self.path.exists() else None

    def damage(self, action: str) -> None:
        text = self.text()
        if action == "delete":
            self.path.unlink(missing_ok=True)
        elif action in ("garbage", "empty"):
            self.path.write_text("not JSON" if action == "garbage" else "")
        elif action == "truncate" and text is not None:
            self.path.write_text(text[: len(text) // 2])
        elif action == "bad_checksum" and text is not None:
            with contextlib.suppress(ValueError):  # a file that is no JSON any more stays as it is
                outer = json.loads(text)
                self.path.write_text(json.dumps({**outer, "Checksum": outer["Checksum"] + 1}))
        elif action == "previous" and len(self.files) > 1:
            self.path.write_text(self.files[-2][1] or "")

    def memory(self) -> Any:
        entries = self.kubelet.cache.entries.values()
        return sorted((*row(info), info.prepared, info.unpreparing) for info in entries) if self.kubelet.running else None

    def checkpoint(self) -> Any:
        """What the file says, or what is wrong with it. To be called at the end of each step."""
        content = self.content()
        if content not in ("missing", self.files[-1][0]):
            self.files.append((content, self.text()))
        return content

    def content(self) -> Any:
        if not self.path.exists():
            return "missing"
        try:
            return sorted(map(row, map(ClaimInfo.from_json, disk.load_kubelet(self.machine.directory))))
        except CorruptFile as error:
            return "bad_checksum" if "checksum" in str(error) else "unreadable"


def row(info: ClaimInfo) -> tuple[Any, ...]:
    """UID, name, pods, and the devices of each driver of an entry."""
    drivers = tuple((driver, tuple(sorted(devices))) for driver, devices in sorted(info.drivers.items()))
    return info.uid, info.name, tuple(sorted(info.pods)), drivers


def real_row(entry: dict[str, Any]) -> tuple[Any, ...]:
    """The same of a recorded entry."""
    drivers = tuple(
        (driver, tuple(sorted({f"{driver}/{d['poolName']}/{d['deviceName']}" for d in state["devices"]})))
        for driver, state in sorted(entry["drivers"].items())
    )
    found = entry["claimUID"], entry["claimName"], tuple(sorted(entry["podUIDs"])), drivers
    return (*found, entry["prepared"], entry["unpreparing"]) if "prepared" in entry else found


def real(entries: Any) -> Any:
    """A recorded cache or file."""
    return sorted(map(real_row, entries)) if isinstance(entries, list) else entries


__all__ = ["Harness", "Unsupported", "real", "real_row", "row"]
