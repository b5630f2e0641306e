"""The cycle state of one scheduling attempt, and what is computed from it without looking at anything shared."""

from __future__ import annotations

import attrs

from dra_spec.reference.shapes import (
    FINALIZER,
    Object,
    allocation,
    clone,
    conditions,
    consumer,
    consumers,
    deleting,
    device_id,
    finalizer,
    reserved_for,
    results,
    selected_nodes,
    uid_of,
)


@attrs.define(eq=False)
class Pending:
    """An allocation that the pod is to publish, and the claim's UID when it was decided."""

    uid: str
    allocation: Object


@attrs.define(eq=False)
class Cycle:
    """One attempt: the popped pod, its claims as PreFilter found them, what Filter and Reserve decided, and bindClaim's working copies."""

    pod: Object
    claims: list[Object | None]
    pending: list[Pending | None]
    in_use: set[str] | None = None
    revision: int = 0
    unavailable: tuple[int, ...] = ()
    node: str | None = None
    tries: int = 0  # of bindClaim
    repeats: int = 0  # of a request that a repair sends again
    working: Object | None = None  # what bindClaim's last GET or Update returned
    written: Object | None = None  # what the status write returned, until it is assumed

    @classmethod
    def of(cls, pod: Object) -> Cycle:
        """An attempt that has looked at nothing yet."""
        count = len(pod["spec"]["resourceClaims"])
        return cls(pod, [None] * count, [None] * count)

    @property
    def entries(self) -> list[Object]:
        return list(self.pod["spec"]["resourceClaims"])

    def claim(self, index: int) -> Object:
        """The copy of a claim; it must have been resolved."""
        found = self.claims[index]
        assert found is not None, f"claim {index} is not resolved"
        return found

    @property
    def unallocated(self) -> list[int]:
        """The claims that need an allocation."""
        return [i for i, claim in enumerate(self.claims) if claim is not None and allocation(claim) is None]


def fits(found: Object | None, node: str) -> bool:
    """Whether the node selector of an allocation accepts the node."""
    nodes = selected_nodes(found)
    return nodes is None or node in nodes


def has_binding_conditions(claim: Object | None) -> bool:
    return claim is not None and any(result.get("bindingConditions") for result in results(allocation(claim)))


def binding_failed(claim: Object) -> bool:
    """Whether some allocated device reports one of its failure conditions as True."""
    true = conditions(claim)
    return any((device_id(r), c) in true for r in results(allocation(claim)) for c in r.get("bindingFailureConditions", ()))


def binding_pending(claim: Object) -> bool:
    """Whether some binding condition of an allocated device is not reported as True."""
    true = conditions(claim)
    return any((device_id(r), c) not in true for r in results(allocation(claim)) for c in r.get("bindingConditions", ()))


def deallocatable(claim: Object, pod: Object) -> bool:
    """Whether PostFilter may deallocate the claim: nobody, or only this pod, has it reserved (judged on the copy)."""
    return all(entry["uid"] == uid_of(pod) for entry in consumers(claim))


def with_allocation(claim: Object, found: Object) -> Object:
    """A copy with finalizer and allocation, as Reserve puts it in flight."""
    return with_finalizer({**claim, "status": {**claim["status"], "allocation": found}})


def with_finalizer(claim: Object) -> Object:
    """A copy with the built-in finalizer."""
    new = clone(claim)
    if not finalizer(new):
        new["metadata"].setdefault("finalizers", []).append(FINALIZER)
    return new


def with_reservation(claim: Object, pod: Object, found: Object | None) -> Object:
    """A copy with the pod appended to reservedFor and, if given, the allocation set. No check for duplicates."""
    new = clone(claim)
    if found is not None:
        new["status"]["allocation"] = clone(found)
    new["status"].setdefault("reservedFor", []).append(consumer(pod))
    return new


def without_all(claim: Object) -> Object:
    """A copy without allocation, reservations and device status, as PostFilter writes it."""
    new = clone(claim)
    new["status"] = {}
    return new


def first_write(claim: Object, carries: bool) -> str | None:
    """The first write of bindClaim: "finalizer" or "status"; None if it fails without one.

    Fails if the claim is deleting, allocated elsewhere (this pod carries an allocation and the claim has one) or deallocated elsewhere.
    The UID is not compared.
    """
    if deleting(claim):
        return None
    if carries and allocation(claim) is not None:
        return None
    if not carries and allocation(claim) is None:
        return None
    return "finalizer" if carries and not finalizer(claim) else "status"


def listed(claim: Object, pod: Object) -> bool:
    """Whether the copy says that the claim is reserved for the pod."""
    return reserved_for(claim, uid_of(pod))
