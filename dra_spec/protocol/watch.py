"""Watch channels: the events of one kind that the API server has not yet delivered to one watcher.

Events of one kind arrive in the order of the writes; kinds have no order between them. A channel is kept as the undelivered events of each
object and one order token (the names of the objects, one for each undelivered event), so that no slot holds a whole kind.

**Bound.** A channel holds at most `lag` events. A write that would exceed this waits: the step is disabled until the reader takes an event,
which it always can. So a reader is never more than `lag` events of a kind behind; the bound belongs to every verdict.

**Closed.** A reader that will never look at an object again closes the object's channel. Events for it are then dropped and need no room,
so that a reader without interest neither costs states nor blocks a write. A real informer keeps such an object up to date; nobody can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from dra_spec.explorer.model import Outcome, PartView, Slot, Storage, View

Events = tuple[Any, ...] | None  # oldest first; None: closed


def room(watcher: str) -> str:
    """The room of a watcher's channels; also everybody who writes to the API server enters it."""
    return f"watch/{watcher}"


def _full(order: tuple[str, ...], lag: int) -> bool:
    return len(order) >= lag


def _head(order: tuple[str, ...]) -> str | None:
    return order[0] if order else None


def _first(events: Events) -> Any:
    return events[0] if events else None


def _closed(events: Events) -> bool:
    return events is None


def _push_event(p: PartView, events: Slot[Events], lag: int, event: Any) -> None:
    waiting = p.value(events)
    if waiting is not None and len(waiting) < lag:  # where `blocks` was asked, it is not full
        p.write(events, (*waiting, event))


def _push_order(p: PartView, channel: Channel, name: str) -> None:
    if not p.project(channel.events[name], _closed) and not p.project(channel.order, _full, channel.lag):
        p.write(channel.order, (*p.value(channel.order), name))


def _pop_event(p: PartView, events: Slot[Events]) -> None:
    waiting = p.value(events)
    if waiting:
        p.write(events, waiting[1:])


def _pop_order(p: PartView, channel: Channel) -> None:
    p.write(channel.order, p.value(channel.order)[1:])


def _drop_from_order(p: PartView, channel: Channel, names: frozenset[str]) -> None:
    p.write(channel.order, tuple(other for other in p.value(channel.order) if other not in names))


@attrs.frozen(eq=False)
class Channel:
    """The undelivered events of one kind for one watcher. An event is the object as it was written (`exists` false: removed)."""

    watcher: str
    kind: str
    lag: int
    order: Slot[tuple[str, ...]]
    events: Mapping[str, Slot[Events]]

    @staticmethod
    def make(watcher: str, kind: str, names: Iterable[str], lag: int, closed: frozenset[str] = frozenset()) -> Channel:
        """A channel for the objects `names`; those in `closed` never get an event."""
        where = room(watcher)
        events = {name: Slot[Events](f"{where}/{kind}/{name}", None if name in closed else (), where, Storage.CHANNEL) for name in names}
        return Channel(watcher, kind, lag, Slot(f"{where}/{kind}s", (), where, Storage.CHANNEL), events)

    @property
    def slots(self) -> tuple[Slot[Any], ...]:
        return (self.order, *self.events.values())

    # -- the API server's side

    def blocks(self, v: View, name: str) -> bool:
        """Whether a write of the object must wait for the reader."""
        return name in self.events and not v.project(self.events[name], _closed) and v.project(self.order, _full, self.lag)

    def push(self, outcome: Outcome, name: str, event: Any) -> None:
        """Adds the event to what the reader has yet to see."""
        if name in self.events:
            outcome.part(_push_event, self.events[name], self.lag, event).part(_push_order, self, name)

    # -- the reader's side

    def next(self, v: View, name: str) -> Any:
        """The next event of the kind if it is one of this object, else None."""
        return v.project(self.events[name], _first) if v.project(self.order, _head) == name else None

    def take(self, outcome: Outcome, name: str) -> None:
        """Takes the event that `next` showed."""
        outcome.part(_pop_event, self.events[name]).part(_pop_order, self)

    def close(self, outcome: Outcome, name: str) -> None:
        """The reader will not look at the object again: drops what is undelivered (no `take` before), refuses what comes."""
        outcome[self.events[name]] = None
        outcome.part(_drop_from_order, self, frozenset({name}))

    def closed(self, v: View, name: str) -> bool:
        """Whether the reader will not look at the object again."""
        return v.project(self.events[name], _closed)

    def close_all(self, p: PartView) -> None:
        """In a part: the reader will look at no object of this kind again."""
        p.write(self.order, ())
        for events in self.events.values():
            p.write(events, None)

    def list_anew(self, p: PartView) -> None:
        """In a part: as `relist`."""
        p.write(self.order, ())
        for events in self.events.values():
            if not p.project(events, _closed):
                p.write(events, ())

    def relist(self, outcome: Outcome) -> None:
        """The reader lists the kind anew: what was undelivered is in the list. Closed channels stay closed."""
        outcome[self.order] = ()
        for events in self.events.values():
            outcome.part(_empty, events)


def _empty(p: PartView, events: Slot[Events]) -> None:
    if not p.project(events, _closed):
        p.write(events, ())
