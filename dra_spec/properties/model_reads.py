"""What the world reads of a slot's value: pure module-level functions, so that equal projections are equal."""

from __future__ import annotations

from typing import Any

from dra_spec.protocol.kubelet_state import Entry
from dra_spec.protocol.node import CdiFile, Sandbox
from dra_spec.protocol.objects import Claim, Pod
from dra_spec.protocol.plugin_state import Record, Setup
from dra_spec.protocol.scheduler_state import InFlights


def devices(claim: Claim) -> tuple[str, ...]:
    return tuple(sorted(claim.devices))


def results(claim: Claim) -> tuple[Any, ...]:
    return claim.allocation.results if claim.allocation else ()


def everywhere(claim: Claim) -> bool:
    return claim.allocation is None or claim.allocation.nodes is None


def node_names(claim: Claim) -> tuple[str, ...]:
    return tuple(sorted(claim.allocation.nodes or ())) if claim.allocation else ()


def reserved(claim: Claim) -> tuple[str, ...]:
    return tuple(sorted(claim.reserved_for))


def conditions(claim: Claim) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(claim.conditions))


def generated(pod: Pod, entry: str, claim: str) -> bool:
    return (entry, claim) in pod.claim_names


def there(value: object) -> bool:
    return value is not None


def some(value: tuple[Any, ...]) -> bool:
    return bool(value)


def containers_run(sandbox: Sandbox | None) -> bool:
    return sandbox is not None and sandbox.running


def given(sandbox: Sandbox | None) -> tuple[str, ...]:
    return tuple(sorted({device for _, device in sandbox.devices})) if sandbox else ()


def given_claims(sandbox: Sandbox | None) -> tuple[str, ...]:
    return tuple(sorted({claim for claim, _ in sandbox.devices})) if sandbox else ()


def entry_pods(entry: Entry | None) -> tuple[str, ...]:
    return tuple(sorted(entry.pods)) if entry else ()


def entry_devices(entry: Entry | None) -> tuple[str, ...]:
    return tuple(sorted(entry.devices)) if entry else ()


def entry_prepared(entry: Entry | None) -> bool:
    return entry is not None and entry.prepared


def entry_unpreparing(entry: Entry | None) -> bool:
    return entry is not None and entry.unpreparing


def held(value: Record | Setup | None) -> tuple[str, ...]:
    return tuple(sorted(value.held.devices)) if value else ()


def completed(record: Record | None) -> str:
    return "Completed" if record is not None and record.completed else "Started"


def uid(value: Entry | Record | Setup | CdiFile | None) -> Any:
    return value.uid if value is not None else None


def flying(entries: InFlights) -> tuple[str, ...]:
    return tuple(sorted({device for entry in entries for device in entry.devices}))


def sharers(entries: InFlights) -> int:
    return sum(entry.sharers for entry in entries)


def in_order(devices: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(devices))


def contains(value: Any, what: str, item: object) -> bool:
    """Whether the list that the function called `what` finds has the item; by name, so that what was read can be printed."""
    return item in globals()[what](value)


def size_of(value: Any, what: str) -> int:
    return len(globals()[what](value))
