"""The concrete cluster: API server, writers, disks, devices; and who goes on next.

`World.enabled()` lists the moves that some writer announces; `World.step` takes one. Built from the same plain data as the model's
instance, which it reads by attribute only.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from dra_spec.reference.apiserver import CLAIM, POD, ApiServer
from dra_spec.reference.controller import ClaimController
from dra_spec.reference.drivers import Devices, DriverController
from dra_spec.reference.errors import Divergence
from dra_spec.reference.kubelet import Kubelet
from dra_spec.reference.machine import Machine
from dra_spec.reference.placement import Placement
from dra_spec.reference.plugin import Plugin
from dra_spec.reference.scheduler import Scheduler
from dra_spec.reference.shapes import claim_object, pod_object
from dra_spec.reference.snapshot import snapshot
from dra_spec.reference.steps import Move, Moves, Turn
from dra_spec.reference.users import GarbageCollector, Workload
from dra_spec.reference.variants import check_variants, specialise


class Process(Protocol):
    """A writer: what it announces, and what it does of its own accord when a step is over (see `settle`)."""

    def moves(self) -> Moves:
        """The enabled moves."""

    def settle(self) -> None:
        """Deliveries that no step can tell: events of objects that the writer will never look at again."""


class World:
    """A running cluster.

    `instance`: pods, claims, nodes, devices, schedulers, budgets, writers, binding_conditions, allocate; `variants`: names of the defects
    and repairs to run with; `directory`: where the nodes' files go, None = a temporary directory that lives as long as the world. Raises
    UnknownVariant.
    """

    def __init__(self, instance: Any, variants: Iterable[str] = (), directory: Path | None = None) -> None:
        self.instance = instance
        self.variants = tuple(variants)
        check_variants(self.variants)
        self._temporary = tempfile.TemporaryDirectory(prefix="dra-spec-") if directory is None else None
        self.directory = Path(self._temporary.name) if self._temporary else directory or Path()
        self.budgets: dict[str, int] = {name: n for name, n in instance.budgets.items() if n}
        self.api = ApiServer()
        self._populate()
        self.processes: list[Process] = list(self._start())

    def _start(self) -> Iterator[Process]:
        writers = self.instance.writers
        self.schedulers: dict[str, Scheduler] = {}
        self.workload: Workload | None = None
        if "scheduler" in writers:
            kind = specialise(Scheduler, self.variants)
            self.schedulers = {name: kind(self, name) for name in self.instance.schedulers}
            yield from self.schedulers.values()
        self.controller: ClaimController | None = None
        if "claim-controller" in writers:
            self.controller = specialise(ClaimController, self.variants)(self)
            yield self.controller
        yield from self._start_nodes(writers)
        if "apiserver" in writers:
            yield GarbageCollector(self)
        if "workload" in writers:
            self.workload = Workload(self)
            yield self.workload

    def _start_nodes(self, writers: frozenset[str]) -> Iterator[Process]:
        self.present = {device.name: True for device in self.instance.devices}
        self.machines: dict[str, Machine] = {}
        self.plugins: dict[tuple[str, str], Plugin] = {}
        self.kubelets: dict[str, Kubelet] = {}
        self.drivers: DriverController | None = None
        for name in self.instance.nodes if writers & {"kubelet", "plugin"} else ():
            machine = self.machines[name] = Machine(self, name)
            kind = specialise(Plugin, self.variants)
            mine = {driver: kind(self, machine, driver) for driver in machine.drivers}
            self.plugins.update({(name, driver): plugin for driver, plugin in mine.items()})
            yield from mine.values()
            if "plugin" in writers:
                machine.servers = mine
            if "kubelet" in writers:
                self.kubelets[name] = specialise(Kubelet, self.variants)(self, machine, list(mine.values()))
                yield self.kubelets[name]
        if "driver-controller" in writers:
            self.drivers = specialise(DriverController, self.variants)(self)
            yield self.drivers
        if writers & {"kubelet", "plugin", "driver-controller"}:
            yield Devices(self)
            if "scheduler" not in writers:
                yield Placement(self)

    def allocate(self, claims: tuple[str, ...], node: str, in_use: frozenset[str]) -> Sequence[Any]:
        """The instance's allocator: one allocation per claim. Raises DoesNotFit, FatalAllocation."""
        found: Sequence[Any] = self.instance.allocate(claims, node, in_use)
        return found

    def left(self, budget: str) -> bool:
        """Whether one more fault or event of the kind may happen."""
        return self.budgets.get(budget, 0) != 0

    def _populate(self) -> None:
        for claim in self.instance.claims:
            if claim.pod is None:
                self.api.create(CLAIM, claim_object(claim.name, requests_of(claim)))
        for pod in self.instance.pods:
            if pod.present:
                self.api.create(POD, pod_object(pod.name, entries_of(pod), pod.node))

    def close(self) -> None:
        """Removes the temporary directory."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def enabled(self) -> list[Move]:
        """The moves that can be taken now, in the order of the writers."""
        return [move for process in self.processes for move in process.moves()]

    def step(self, action: str, params: Mapping[str, str | int], outcome: str = "") -> str:
        """Takes a move; the label of what came out. `outcome`: a fault to be injected, or the result that is expected; "" accepts any.

        Raises Divergence if the move is not enabled or ends otherwise than asked.
        """
        wanted = str(Move.of(action, params))  # numbers may come as text
        found = [(move, taker) for process in self.processes for move, taker in process.moves().items() if str(move) == wanted]
        if not found:
            raise Divergence(wanted, "an enabled step", "not enabled", self._why_not(action))
        move, taker = found[0]
        turn = Turn(move, outcome, self.budgets)
        taker(turn)
        for process in self.processes:
            process.settle()
        if outcome and turn.label != outcome:
            raise Divergence(wanted, outcome, turn.label, "the step was taken and ended otherwise")
        return turn.label

    def snapshot(self) -> dict[str, Any]:
        """The world as invariants see it: plain data in the shape of the CEL schema."""
        return snapshot(self)

    def _why_not(self, action: str) -> str:
        writer = action.partition(".")[0]
        others = [str(move) for move in self.enabled() if move.action.partition(".")[0] == writer]
        return "that writer can do " + (", ".join(others) if others else "nothing")


def requests_of(claim: Any) -> tuple[str, ...]:
    """The names of a claim's requests."""
    return tuple(claim.requests)


def entries_of(pod: Any) -> list[tuple[str, str, str | None]]:
    """The entries of spec.resourceClaims of an instance's pod: (entry, claim, template)."""
    return [(ref.entry, ref.claim, ref.template) for ref in pod.claims]
