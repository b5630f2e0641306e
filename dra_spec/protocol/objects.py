"""API objects as the protocol sees them: small immutable values, one slot each in the API server.

Only what some writer decides by is kept. Names are the manifests'; devices are written `driver/pool/device`.
"""

from __future__ import annotations

import enum

import attrs

from dra_spec.explorer.values import Version


class Phase(enum.Enum):
    """Pod phases. `SUCCEEDED` stands for both terminal phases."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"


@attrs.frozen
class DeviceResult:
    """One entry of `status.allocation.devices.results`."""

    request: str
    device: str  # driver/pool/device
    admin: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()

    @property
    def driver(self) -> str:
        return self.device.partition("/")[0]


@attrs.frozen
class Allocation:
    """`status.allocation`. `nodes`: names of the nodes that the node selector accepts, None = everywhere."""

    results: tuple[DeviceResult, ...] = ()
    nodes: frozenset[str] | None = None

    @property
    def devices(self) -> frozenset[str]:
        """The devices that nobody else may have (admin access apart)."""
        return frozenset(r.device for r in self.results if not r.admin)

    @property
    def drivers(self) -> tuple[str, ...]:
        return tuple(sorted({r.driver for r in self.results}))

    @property
    def picks(self) -> tuple[tuple[str, str], ...]:
        """Request and device of each result."""
        return tuple((r.request, r.device) for r in self.results)


@attrs.frozen
class Claim:
    """A ResourceClaim in the API server, or a copy of it. `exists` false: no such object (all else at its default).

    `reserved_for` holds pod names: a pod name is used once in a run, so that the name stands for the UID. `conditions`: pairs
    (device, condition type) whose status is True in `status.devices`. `owner`: the pod that owns a generated claim.
    """

    rv: Version
    uid: Version
    exists: bool = True
    finalizer: bool = False
    deleting: bool = False
    allocation: Allocation | None = None
    reserved_for: frozenset[str] = frozenset()
    conditions: frozenset[tuple[str, str]] = frozenset()
    owner: str | None = None

    @property
    def allocated(self) -> bool:
        return self.allocation is not None

    @property
    def devices(self) -> frozenset[str]:
        """Devices held exclusively; empty if unallocated."""
        return self.allocation.devices if self.allocation else frozenset()


@attrs.frozen
class Pod:
    """A Pod in the API server, or a copy of it. `claim_names`: pairs (entry of spec.resourceClaims, generated claim) of
    `status.resourceClaimStatuses`; entries that name a claim directly are not in it."""

    exists: bool = True
    deleting: bool = False
    node: str | None = None
    phase: Phase = Phase.PENDING
    claim_names: tuple[tuple[str, str], ...] = ()

    @property
    def terminal(self) -> bool:
        return self.phase is Phase.SUCCEEDED


NO_POD = Pod(exists=False)
