"""The places where versions of the allocator differ, each as a small part that a variant replaces (see variants.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from dra_spec.allocation.constraints import Distinct, ListMatch, ScalarMatch, Tracker
from dra_spec.allocation.inventory import Pool
from dra_spec.allocation.state import AllocatedState, Amounts

TrackerFactory = Callable[[], Tracker]


def by_driver_and_name(pool: Pool) -> str:
    """Counters are kept apart for each pool."""
    return pool.label


def nothing_consumed(state: AllocatedState, device: str) -> Amounts:
    """A request for all devices looks at what a device has in all, not at what is left of it now."""
    return {}


def any_share(state: AllocatedState, device: str) -> bool:
    """A device has been charged its counters if it has a live share, with or without capacity."""
    return state.shared(device)


@attrs.frozen
class Rules:
    """The release's rules (v0.37.2) where nothing is replaced.

    `kept`: bookkeeping that stays by mistake when a candidate is given up: the stage (taint, constraint, capacity, backtrack) to what
    stays (counters, shared-counters, constraints).
    """

    scalar_match: TrackerFactory = ScalarMatch
    list_match: TrackerFactory = ListMatch
    distinct: Callable[[bool], Tracker] = Distinct
    counter_key: Callable[[Pool], str] = by_driver_and_name
    all_devices_consumed: Callable[[AllocatedState, str], Amounts] = nothing_consumed
    counters_charged: Callable[[AllocatedState, str], bool] = any_share
    kept: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    capacity_wraps: bool = False  # see capacity.Arithmetic
    requests_grow: bool = False
    lists_break_selectors: bool = False  # with the list gate off, a list attribute of a device fails every selector on it
    configs_for_all_requests: bool = True  # a config that names all requests is written without names
    knows_groups: bool = True  # slices with compatibility groups are left out if their gate is off
    checked_total: bool = True  # the number of devices of a claim is added up without overflow
