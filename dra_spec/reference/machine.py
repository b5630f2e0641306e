"""A node as a machine: what kubelet, plugins and runtime share. Calls, sandboxes, CDI files, the boot id, the directory with the files."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from dra_spec.reference.steps import Thread

if TYPE_CHECKING:
    from dra_spec.reference.world import World

PREPARE, UNPREPARE = "prepare", "unprepare"
CREATED, RUNNING, EXITED = "created", "running", "exited"


@attrs.define(eq=False)
class Call:
    """One NodePrepareResources or NodeUnprepareResources call.

    `claims`: (name, UID) in the request; `client`: the kubelet still waits; `handler`: the plugin's coroutine, None once it has answered;
    `answer`: claim UID -> {device: CDI id}; `failed`: the answer is an error, or has one for some claim.
    """

    method: str
    claims: list[tuple[str, str]]
    client: bool = True
    handler: Thread | None = None
    answered: bool = False
    failed: bool = False
    answer: dict[str, dict[str, str]] = attrs.field(factory=dict)
    local: Any = None  # the handler's local variables


@attrs.define(eq=False)
class Sandbox:
    """A pod in the runtime. `devices`: (claim, device) pairs that its containers were given."""

    state: str = CREATED
    devices: set[tuple[str, str]] = attrs.field(factory=set)


class Server(Protocol):
    """A plugin as the receiver of calls."""

    def accept(self, pod: str, lane: int, call: Call) -> Thread:
        """The handler of a call that has arrived."""


class Machine:
    """One node. `lanes`: (driver, pod) -> the calls that are open, by lane: the first free one is taken."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.api = world, name, world.api
        instance = world.instance
        self.directory: Path = world.directory / name
        self.cdi: Path = self.directory / "cdi"
        specs = [pod for pod in instance.pods if pod.node in (None, name)]
        self.pods = [pod.name for pod in specs]
        self.entries = {pod.name: [(ref.entry, ref.claim) for ref in pod.claims] for pod in specs}
        used = {ref.claim for pod in specs for ref in pod.claims}
        self.claims = [claim.name for claim in instance.claims if claim.name in used]
        self.drivers = sorted({device.driver for device in instance.devices if device.node in (None, name)})
        self.lanes: dict[tuple[str, str], list[Call | None]] = {}
        self.serving = dict.fromkeys(self.drivers, True)
        self.sandboxes: dict[str, Sandbox] = {}
        self.boot = 0
        self.servers: Mapping[str, Server] = {}  # by driver

    def plugin_directory(self, driver: str) -> Path:
        """Where a plugin keeps its checkpoint."""
        return self.directory / "plugins" / driver

    def send(self, driver: str, pod: str, call: Call) -> int:
        """Puts a call on its way; its lane."""
        lanes = self.lanes.setdefault((driver, pod), [])
        lane = next((i for i, open_call in enumerate(lanes) if open_call is None), len(lanes))
        if lane == len(lanes):
            lanes.append(None)
        lanes[lane] = call
        call.handler = self.servers[driver].accept(pod, lane, call) if driver in self.servers else None
        return lane

    def finish(self, driver: str, pod: str, lane: int) -> None:
        """The call is over for both ends."""
        self.lanes[driver, pod][lane] = None

    def client_gone(self) -> None:
        """The kubelet's process has ended: handlers go on, answers are lost."""
        for lanes in self.lanes.values():
            for lane, call in enumerate(lanes):
                if call is not None:
                    call.client = False
                    if call.answered:
                        lanes[lane] = None

    def reply(self, driver: str, pod: str, lane: int, failed: bool) -> None:
        """The handler has ended; nobody keeps an answer that nobody waits for."""
        call = self.lanes[driver, pod][lane]
        assert call is not None
        call.handler, call.answered, call.failed, call.local = None, True, failed, None
        if not call.client:
            self.finish(driver, pod, lane)

    def handlers_gone(self, driver: str) -> None:
        """A plugin's process has ended: its open calls fail."""
        for (of, pod), lanes in self.lanes.items():
            for lane, call in enumerate(lanes):
                if of == driver and call is not None and not call.answered:
                    self.reply(driver, pod, lane, failed=True)

    def lose_power(self) -> None:
        """What a reboot takes beside the processes: calls, containers, CDI files (a tmpfs)."""
        self.lanes.clear()
        self.sandboxes.clear()
        shutil.rmtree(self.cdi, ignore_errors=True)
        self.boot += 1
