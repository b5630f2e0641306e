"""Variants of kubelet and plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dra_spec.reference import disk
from dra_spec.reference.apiserver import CLAIM
from dra_spec.reference.claiminfo import ClaimInfo
from dra_spec.reference.kubelet import Kubelet
from dra_spec.reference.kubelet_task import GONE, Task, Want
from dra_spec.reference.machine import RUNNING, Call
from dra_spec.reference.plugin import Held, Plugin
from dra_spec.reference.shapes import Object, consumers
from dra_spec.reference.steps import Turn

Registry = dict[str, dict[str, Mapping[str, Callable[..., Any]]]]


def _check_holders(self: Kubelet, pod: str, obj: Object | None, index: int) -> Want | str:
    """As K1 to K3; the pods of the cache entry must still be in reservedFor."""
    found = Kubelet.check(self, pod, obj, index)
    if isinstance(found, str):
        return found
    info = self.cache.get(found.claim)
    holders = {entry["uid"] for entry in consumers(self.api.get(CLAIM, found.claim))}
    return found if info is None or info.pods <= holders else "left-behind"


def _compare_drivers(self: Kubelet, info: ClaimInfo, want: Want) -> str:
    """As K4; the entry must have the drivers of the claim."""
    problem = Kubelet.refusal(self, info, want)
    return problem or ("" if sorted(info.drivers) == want.drivers else "left-behind")


def _anybody(self: Kubelet, pod: str, claim: str) -> bool:
    """Whether the entry refers to the pod is not looked at."""
    return True


def _free_only(self: Kubelet, call: Call) -> bool:
    """The entries go with each answer, which needs the cache lock."""
    return call.failed or self.unlocked()


def _forget_early(self: Kubelet, task: Task, driver: str) -> None:
    """The claims of the driver leave cache and checkpoint at once."""
    for want in task.batch:
        if driver in want.drivers:
            self.cache.entries.pop(want.claim, None)
    self.cache.save()


def _no_checkpoint(self: Kubelet, pod: str, task: Task) -> Any:
    """Nothing is written before the calls."""
    turn: Turn = yield self.step("checkpoint_reference", pod, index=task.index)
    turn.took("ok")


def _loop_waits(self: Kubelet, pod: str, obj: Object | None) -> bool:
    """Not while the worker is busy with the pod or its containers run."""
    sandbox = self.machine.sandboxes.get(pod)
    if self.lives[pod] == GONE or (sandbox is not None and sandbox.state == RUNNING):
        return False
    return Kubelet.inactive(self, pod, obj)


def _keep_record(self: Plugin, claims: disk.Json, boot: int) -> disk.Json:
    """Whether the node was rebooted is not looked at."""
    return claims


def _client_gone(self: Plugin, call: Call) -> bool:
    """The client has given up or died."""
    return not call.client


def _no_overlap(self: Plugin, uid: str, held: Held) -> bool:
    """Other claims are not looked at."""
    return False


def _always_there(self: Plugin, held: Held) -> bool:
    """The inventory is not looked at."""
    return True


NODE: Registry = {
    "kubelet-checks-holders": {"Kubelet": {"check": _check_holders, "refusal": _compare_drivers}},
    "kubelet-counts-references": {"Kubelet": {"is_holder": _anybody}},
    "kubelet-forgets-after-first-driver": {"Kubelet": {"may_read": _free_only, "driver_done": _forget_early}},
    "kubelet-late-checkpoint": {"Kubelet": {"checkpoint": _no_checkpoint}},
    "kubelet-loop-waits": {"Kubelet": {"inactive": _loop_waits}},
    "plugin-keeps-record-at-reboot": {"Plugin": {"kept": _keep_record}},
    "plugin-looks-at-client": {"Plugin": {"cancelled": _client_gone}},
    "plugin-ignores-inventory": {"Plugin": {"all_present": _always_there}},
    "plugin-no-overlap-check": {"Plugin": {"overlaps": _no_overlap}},
}
