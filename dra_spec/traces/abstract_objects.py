"""Concrete API objects as the model's values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dra_spec.explorer.values import Version
from dra_spec.protocol.objects import NO_POD, Allocation, Claim, DeviceResult, Phase, Pod
from dra_spec.reference import shapes
from dra_spec.reference.apiserver import CLAIM, ApiServer, Watch
from dra_spec.reference.shapes import Object

Values = dict[str, Any]  # by the name of the slot

PHASES = {"Pending": Phase.PENDING, "Running": Phase.RUNNING, "Succeeded": Phase.SUCCEEDED, "Failed": Phase.SUCCEEDED}


def rv_version(name: str, number: int) -> Version:
    """A resourceVersion of a claim."""
    return Version(f"rv/claim/{name}", number)


def uid_version(uid: str) -> Version:
    """A claim's UID as its incarnation; the server's UIDs are `name.number`."""
    name, _, number = uid.rpartition(".")
    return Version(f"uid/claim/{name}", int(number))


def allocation(found: Object | None) -> Allocation | None:
    """`status.allocation`."""
    if found is None:
        return None
    results = tuple(
        DeviceResult(
            r["request"],
            shapes.device_id(r),
            bool(r.get("adminAccess")),
            tuple(r.get("bindingConditions", ())),
            tuple(r.get("bindingFailureConditions", ())),
        )
        for r in shapes.results(found)
    )
    nodes = shapes.selected_nodes(found)
    return Allocation(results, None if nodes is None else frozenset(nodes))


def claim(obj: Object) -> Claim:
    """A ResourceClaim that exists."""
    name = shapes.name_of(obj)
    owner = shapes.owner_pod(obj)
    return Claim(
        rv_version(name, shapes.rv_of(obj)),
        uid_version(shapes.uid_of(obj)),
        finalizer=shapes.finalizer(obj),
        deleting=shapes.deleting(obj),
        allocation=allocation(shapes.allocation(obj)),
        reserved_for=frozenset(entry["name"] for entry in shapes.consumers(obj)),
        conditions=frozenset(shapes.conditions(obj)),
        owner=owner[0] if owner else None,
    )


def removed_claim(name: str, last: Object | None) -> Claim:
    """A claim that is gone, or has never been there (None)."""
    if last is None:
        return Claim(rv_version(name, 0), Version(f"uid/claim/{name}", 0), exists=False)
    return Claim(rv_version(name, shapes.rv_of(last)), uid_version(shapes.uid_of(last)), exists=False)


def stored_claim(api: ApiServer, name: str) -> Claim:
    """What the API server has under a claim's name."""
    found = api.find(CLAIM, name)
    return claim(found) if found is not None else removed_claim(name, api.removed.get((CLAIM, name)))


def pod(obj: Object | None) -> Pod:
    """A Pod; None: no such pod."""
    if obj is None:
        return NO_POD
    names = tuple((s["name"], s["resourceClaimName"]) for s in obj["status"].get("resourceClaimStatuses", ()))
    return Pod(True, shapes.deleting(obj), shapes.node_name(obj), PHASES[shapes.phase(obj)], names)


def channel(prefix: str, kind: str, watch: Watch, names: Iterable[str], closed: Iterable[str] = ()) -> Values:
    """The slots of a watch channel: events by object, None for those that the reader ignores, and their order."""
    shut = set(closed)
    events: Mapping[str, list[Any]] = {name: [] for name in names}
    order = []
    for event in watch.pending:
        name = shapes.name_of(event.object)
        if name in shut or name not in events:
            continue
        order.append(name)
        gone = event.type == "DELETED"
        if kind == "claim":
            events[name].append(removed_claim(name, event.object) if gone else claim(event.object))
        else:
            events[name].append(NO_POD if gone else pod(event.object))
    found: Values = {f"{prefix}/{kind}/{name}": None if name in shut else tuple(waiting) for name, waiting in events.items()}
    found[f"{prefix}/{kind}s"] = tuple(order)
    return found
