"""Accepted windows: what the authors of DRA do not promise, as named assumptions of invariants.

An invariant lists the assumptions under which it is promised, each with a sentence; a model either meets an assumption or not. A model that
does not may still check the invariant: then a violation is an accepted one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dra_spec.protocol.instance import Instance

ASSUMPTIONS: Mapping[str, Callable[[Instance], bool]] = {
    "single-scheduler": lambda i: len(i.schedulers) == 1,
    "no-scheduler-restart": lambda i: not i.budget("scheduler-crash"),
    "no-force-delete": lambda i: not i.budget("force-delete-pod"),
    "no-node-loss": lambda i: not i.budget("node-reboot"),
    "devices-stay": lambda i: not i.budget("device-vanishes"),
    "claims-stay": lambda i: not i.budget("delete-claim"),
    "pods-stay": lambda i: not i.budget("delete-pod") and not i.budget("force-delete-pod"),
    "pods-end": lambda i: i.budget("finish-pod") < 0,
    "scheduler-binds": lambda i: all(pod.node is None for pod in i.pods),
    "honest-answers": lambda i: not i.budget("api-applied-error"),
}
