"""DeviceTaintRules on ResourceSlices: events of both kinds, and the slices as allocation sees them in the end (format of lifecycle/)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from corpus import entries
from objects import build
from report import Disagreement, Report, sorted_out

from dra_spec.allocation import Inventory
from dra_spec.resources import DeviceTaintRule, ResourceSlice

Store = dict[tuple[str, str], dict[str, Any]]  # (kind, name) -> object
LISTED: dict[str, tuple[str, str]] = {}
INTERLEAVINGS = 200  # of the events of one case, at most


def run(paths: list[Path]) -> Report:
    """The final slices for interleavings of the events. What consumers see in between is not compared: an inventory has no events.
    Raises UnreadableFile."""
    agreed = total = events = orders = 0
    found: list[Disagreement] = []
    for path in paths:
        for case in entries(path):
            total += 1
            events += len(case.get("expectedEventsInGivenOrder") or ())
            expected = frozenset(map(_text, _slices(case.get("expectedSlices") or ())))
            wrong = None
            for order in interleavings([e if isinstance(e, list) else [e] for e in case["events"]], INTERLEAVINGS):
                orders += 1
                ours = frozenset(map(_text, seen(order)))
                wrong = wrong or (None if ours == expected else ours)
            agreed += wrong is None
            if wrong is not None:
                texts = str(sorted(expected - wrong)), str(sorted(wrong - expected))
                found.append(Disagreement(path.name, str(case.get("id")), *texts))
    notes = [f"{orders} orders of events tried, not compared: {events} events of consumers (an inventory has none)"]
    return sorted_out(agreed, total, found, LISTED, notes)


def interleavings(rows: list[list[Any]], limit: int) -> Iterator[list[Any]]:
    """Orders of all elements that keep the order inside each row, at most `limit`; the given order is the first."""
    left = limit

    def rest(start: list[int], done: list[Any]) -> Iterator[list[Any]]:
        nonlocal left
        if left and len(done) == sum(map(len, rows)):
            left -= 1
            yield list(done)
        for number, row in enumerate(rows):
            if left and start[number] < len(row):
                following = [*start[:number], start[number] + 1, *start[number + 1 :]]
                yield from rest(following, [*done, row[start[number]]])

    yield from rest([0] * len(rows), [])


def seen(events: Iterable[dict[str, Any]]) -> tuple[ResourceSlice, ...]:
    """The slices as allocation sees them after the events."""
    store: Store = {}
    for event in events:
        if event["type"] == "deletedFinalStateUnknown":
            store.pop((DeviceTaintRule.KIND, event["key"]), None)
            continue
        found = event.get("new") or event["old"]
        key = (found["kind"], found["metadata"]["name"])
        if event["type"] == "delete":
            store.pop(key, None)
        else:
            store[key] = found
    rules = [build(DeviceTaintRule, o) for (kind, _), o in sorted(store.items()) if kind == DeviceTaintRule.KIND]
    return Inventory.of((), _slices(o for (kind, _), o in store.items() if kind == ResourceSlice.KIND), (), rules).slices


def _slices(objects: Iterable[dict[str, Any]]) -> tuple[ResourceSlice, ...]:
    return tuple(build(ResourceSlice, o) for o in objects)


def _text(slice_: ResourceSlice) -> str:
    """Everything that is read of a slice."""
    return str(slice_)
