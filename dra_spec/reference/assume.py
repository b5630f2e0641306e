"""The scheduler's memory of claims: assume cache, allocated devices fed by its events, in-flight allocations.

Kubernetes v1.37.2 `pkg/scheduler/util/assumecache/assume_cache.go`, `.../dynamicresources/{allocateddevices,dra_manager}.go`. Each public
method is one critical section.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from dra_spec.reference.shapes import Object, allocation, exclusive, name_of, rv_of, uid_of

Handler = Callable[[Object | None, Object | None], None]  # (old, new); None: absent before, after


@attrs.define(eq=False)
class Entry:
    """The two pointers of one claim: last object accepted from the informer; object that every reader gets. They may be the same object."""

    api: Object
    latest: Object


class AssumeCache:
    """Claims by name. Events go to the handlers before a method returns."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.handlers: list[Handler] = []

    def get(self, name: str) -> Object | None:
        """The latest object; not to be changed by the caller."""
        entry = self.entries.get(name)
        return entry.latest if entry else None

    def deliver(self, obj: Object) -> bool:
        """An informer's add or update. Dropped entirely, the api pointer included, unless newer than latest; says whether it was taken."""
        entry = self.entries.get(name_of(obj))
        if entry is not None and rv_of(obj) <= rv_of(entry.latest):
            return False
        old = entry.latest if entry else None
        self.entries[name_of(obj)] = Entry(obj, obj)
        self._emit(old, obj)
        return True

    def remove(self, name: str) -> None:
        """An informer's delete."""
        entry = self.entries.pop(name, None)
        if entry is not None:
            self._emit(entry.latest, None)

    def assume(self, obj: Object) -> str:
        """Makes an object the latest: "ok", "not-found" if the claim is absent, "out-of-sync" if the cache has a newer one."""
        entry = self.entries.get(name_of(obj))
        if entry is None:
            return "not-found"
        if rv_of(obj) < rv_of(entry.latest):
            return "out-of-sync"
        old, entry.latest = entry.latest, obj
        self._emit(old, obj)
        return "ok"

    def restore(self, name: str) -> bool:
        """Goes back to the last object from the informer. Compares pointers; says whether the content changed as well."""
        entry = self.entries.get(name)
        if entry is None or entry.latest is entry.api:
            return False
        old, entry.latest = entry.latest, entry.api
        self._emit(old, entry.api)
        return old != entry.api

    def _emit(self, old: Object | None, new: Object | None) -> None:
        for handler in self.handlers:
            handler(old, new)


class AllocatedDevices:
    """Devices of allocated claims as the assume cache's events tell it, and a revision that each effective change counts up.

    A set, not a count. An update from one allocation to another is ignored, as upstream relies on their immutability.
    """

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.revision = 0

    def handle(self, old: Object | None, new: Object | None) -> None:
        """A claim event."""
        before = allocation(old) if old is not None else None
        after = allocation(new) if new is not None else None
        if before is None and after is not None:
            self._change(self.ids | exclusive(after), bool(exclusive(after)))
        elif before is not None and after is None:
            self._change(self.ids - exclusive(before), bool(exclusive(before)))

    def _change(self, ids: set[str], effective: bool) -> None:
        self.ids = ids
        self.revision += effective


@attrs.define(eq=False)
class Intended:
    """An in-flight allocation: the claim object with the allocation that somebody is about to write; how many pods rely on it."""

    claim: Object
    sharers: int = 1


class InFlight:
    """In-flight allocations by claim UID, under one mutex."""

    def __init__(self, cache: AssumeCache) -> None:
        self._cache = cache
        self.entries: dict[str, Intended] = {}

    def get(self, uid: str) -> Object | None:
        entry = self.entries.get(uid)
        return entry.claim if entry else None

    def devices(self) -> set[str]:
        """The walk over all entries, under one read lock."""
        found: set[str] = set()
        for entry in self.entries.values():
            found |= exclusive(allocation(entry.claim))
        return found

    def signal(self, claim: Object) -> str:
        """Registers an intended allocation: "shared" if the entry was there (the object passed is ignored), "missing" if the cache lacks
        the claim, "published" if the cache shows the same claim allocated already (nothing is stored), else "stored"."""
        uid = uid_of(claim)
        if uid in self.entries:
            self.entries[uid].sharers += 1
            return "shared"
        known = self._cache.get(name_of(claim))
        if known is None:
            return "missing"
        if uid_of(known) == uid and allocation(known) is not None:
            return "published"
        self.entries[uid] = Intended(claim)
        return "stored"

    def release(self, uid: str, force: bool = False) -> bool:
        """Counts an entry down, or removes it with `force`; says whether it was deleted."""
        entry = self.entries.get(uid)
        if entry is None:
            return False
        if entry.sharers > 1 and not force:
            entry.sharers -= 1
            return False
        del self.entries[uid]
        return True


def uids(claims: Iterable[Object]) -> list[str]:
    return [uid_of(claim) for claim in claims]
