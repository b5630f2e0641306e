"""The local variables of a pod worker or of the reconcile loop, and the states of a pod worker."""

from __future__ import annotations

import attrs

UNKNOWN, SYNCING, TERMINATING, GONE, TERMINATED = "unknown", "syncing", "terminating", "gone", "terminated"
WORKER, LOOP = "worker", "loop"


@attrs.define(eq=False)
class Want:
    """A claim that a call is about: name, UID, drivers to be called."""

    claim: str
    uid: str
    drivers: list[str]


@attrs.define(eq=False)
class Task:
    """`seen`: what phase A found; `names`: claims to give up; `batch`: claims of the calls; `done`: drivers that have answered;
    `waiting`: the driver whose answer is awaited on `lane`; `stored`: claims of its answer that are in the cache; `missing`: drivers that
    phase A did not look up."""

    index: int = 0
    seen: list[Want] = attrs.field(factory=list)
    names: list[str] = attrs.field(factory=list)
    batch: list[Want] = attrs.field(factory=list)
    done: set[str] = attrs.field(factory=set)
    waiting: str | None = None
    lane: int = 0
    stored: set[str] = attrs.field(factory=set)
    missing: set[str] = attrs.field(factory=set)

    @property
    def drivers(self) -> set[str]:
        return {driver for want in self.batch for driver in want.drivers}
