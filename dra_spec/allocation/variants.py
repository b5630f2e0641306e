"""Known wrong answers of upstream's allocator, one variant per cause: what it replaces, in which versions it is, and who reported it.

A variant is a function from rules to rules. Several can be combined; `RELEASES` says which ones a released module has together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from dra_spec.allocation.constraints import Distinct, values
from dra_spec.allocation.inventory import Pool
from dra_spec.allocation.rules import Rules
from dra_spec.allocation.state import AllocatedState, Amounts
from dra_spec.resources.slices import AttributeValue

SNAPSHOT = "3d036712930c"  # development snapshot of 2026-07-01, between v0.37.0-alpha.2 and -alpha.3


@attrs.frozen
class AllocatorVariant:
    """`replaces`: fields of Rules; the value for `kept` is merged, stage by stage, with what other variants keep."""

    name: str
    effect: str
    versions: str
    upstream: str
    replaces: Mapping[str, Any]


@attrs.define
class DistinctByRequest(Distinct):
    """Remembers one value per request: with a count above one only the last device is compared, and giving one back forgets all."""

    last: dict[str, AttributeValue] = attrs.field(factory=dict)

    def add(self, request: str, value: AttributeValue) -> bool:
        if not self.differs(value, list(self.last.values())):
            return False
        self.last[request] = value
        return True

    def remove(self, request: str) -> None:
        self.last.pop(request, None)


@attrs.define
class NarrowingMatch:
    """Keeps one intersection, which only ever gets smaller until all devices are given back."""

    common: tuple[str, frozenset[object]] | None = None
    devices: int = 0

    def add(self, request: str, value: AttributeValue) -> bool:
        found = values(value)
        if found is None:
            return False
        if self.devices and self.common is not None:
            kind, common = self.common
            found = (kind, common & found[1]) if kind == found[0] else (kind, frozenset())
            if not found[1]:
                return False
        self.common = found
        self.devices += 1
        return True

    def remove(self, request: str) -> None:
        self.devices -= 1


def by_name_only(pool: Pool) -> str:
    """Two drivers whose pools have the same name share one budget."""
    return pool.name


def consumed_now(state: AllocatedState, device: str) -> Amounts:
    """A device without enough capacity left silently drops out of "all"."""
    return state.consumed.get(device, {})


def shares_with_capacity(state: AllocatedState, device: str) -> bool:
    """A live share without capacity is overlooked, so the next one is charged the counters again."""
    return device in state.consumed


_STAGES = ("taint", "constraint", "capacity")
_ALL = (
    AllocatorVariant(
        "counters-kept-on-rejection",
        "counters of a candidate stay charged when a later check (taint, constraint, capacity) rejects it: no fit though one exists",
        "v0.37.0-alpha.2",
        "kubernetes#140436",
        {"kept": {stage: frozenset({"counters"}) for stage in _STAGES}},
    ),
    AllocatorVariant(
        "shared-counters-kept-on-backtracking",
        "counters of a device that allows several allocations are not given back on backtracking: no fit though one exists",
        "v0.37.0-alpha.2",
        "kubernetes#140436",
        {"kept": {"backtrack": frozenset({"shared-counters"})}},
    ),
    AllocatorVariant(
        "counters-by-pool-name",
        "the counter budget is kept per pool name, so drivers with equal pool names share one",
        "v0.37.0-alpha.2",
        "kubernetes#140434",
        {"counter_key": by_name_only},
    ),
    AllocatorVariant(
        "distinct-by-request",
        "distinctAttribute remembers one value per request: a, b, a is accepted for a count of 3",
        "up to v0.36.6, v0.37.0-alpha.2",
        "kubernetes#140438",
        {"distinct": DistinctByRequest},
    ),
    AllocatorVariant(
        "constraints-kept-on-rejection",
        "what a constraint remembers of a candidate stays when the last capacity check rejects it",
        "v0.37.0-alpha.2",
        "kubernetes#140436",
        {"kept": {"capacity": frozenset({"constraints"})}},
    ),
    AllocatorVariant(
        "list-match-not-restored",
        "the common values of a list matchAttribute are not restored on backtracking: no fit though one exists",
        "up to v0.36.6, v0.37.0-alpha.2",
        "kubernetes#140326",
        {"list_match": NarrowingMatch},
    ),
    AllocatorVariant(
        "all-drops-busy-devices",
        "a request for all devices leaves out those whose remaining capacity is too small: it gets fewer than all",
        "up to v0.36.6, v0.37.0-alpha.2",
        "fixed in v0.37.2, no issue found",
        {"all_devices_consumed": consumed_now},
    ),
    AllocatorVariant(
        "share-without-capacity-recharged",
        "a live share without capacity is overlooked: the next share of the device is charged its counters again",
        "v0.36.6, v0.37.0-alpha.2",
        "kubernetes#140433",
        {"counters_charged": shares_with_capacity},
    ),
    AllocatorVariant(
        "capacity-wraps",
        "steps of a capacity range are counted in 64 bits that overflow, and negative amounts are taken: too much fits",
        "up to v0.36.6, v0.37.0-alpha.2",
        "fixed in v0.37.2, no issue found",
        {"capacity_wraps": True},
    ),
    AllocatorVariant(
        "large-requests-grow",
        "capacity that is chosen already is added in place to a request beyond 64 bits, which then does not fit: no fit though one exists",
        "v0.37.0-alpha.2",
        "fixed in v0.37.2, no issue found",
        {"requests_grow": True},
    ),
    AllocatorVariant(
        "lists-break-selectors",
        "with the gate for list attributes off, a list attribute of a device makes every selector on it fail",
        "up to v0.37.0-alpha.2",
        "fixed in v0.37, no issue found",
        {"lists_break_selectors": True},
    ),
    AllocatorVariant(
        "config-names-all-requests",
        "a config entry for all requests lists their names; it means the same, but reads differently",
        "up to v0.36.6",
        "fixed in v0.37.2, no issue found",
        {"configs_for_all_requests": False},
    ),
    AllocatorVariant(
        "compatibility-groups-unknown",
        "compatibility groups are a field that the code does not know: devices that must not share counters do",
        "up to v0.37.0-alpha.2",
        "KEP-5963, first in v0.37",
        {"knows_groups": False},
    ),
    AllocatorVariant(
        "device-total-overflows",
        "the devices that a claim needs are added up in 64 bits that overflow: the scheduler crashes on huge counts",
        "v0.37.0-alpha.2",
        "fixed in v0.37.2, no issue found",
        {"checked_total": False},
    ),
)
VARIANTS: Mapping[str, AllocatorVariant] = {v.name: v for v in _ALL}

_OLD = (
    "distinct-by-request",
    "list-match-not-restored",
    "all-drops-busy-devices",
    "share-without-capacity-recharged",
    "capacity-wraps",
    "lists-break-selectors",
    "config-names-all-requests",
    "compatibility-groups-unknown",
)
_OF_SNAPSHOT = tuple(v.name for v in _ALL if v.name not in ("config-names-all-requests", "lists-break-selectors"))
# module version -> the defects it has
RELEASES: Mapping[str, tuple[str, ...]] = {"v0.36.6": _OLD, SNAPSHOT: _OF_SNAPSHOT, "v0.37.0-alpha.2": _OF_SNAPSHOT, "v0.37.2": ()}
# Kubernetes version -> the defects of its newest patch release; 1.34 and 1.35 are taken to be as 1.36
BY_VERSION: Mapping[str, tuple[str, ...]] = {"1.34": _OLD, "1.35": _OLD, "1.36": _OLD, "1.37": ()}


def rules_with(names: Iterable[str]) -> Rules:
    """The release's rules with the named defects. Raises ValueError for an unknown name."""
    rules = Rules()
    for name in names:
        if name not in VARIANTS:
            raise ValueError(f"found allocator variant {name!r}, expected one of {', '.join(sorted(VARIANTS))}")
        for field, value in VARIANTS[name].replaces.items():
            if field == "kept":
                stages = {*rules.kept, *value}
                value = {s: rules.kept.get(s, frozenset()) | value.get(s, frozenset()) for s in stages}
            rules = attrs.evolve(rules, **{field: value})
    return rules
