"""The API server in memory: one revision counter, optimistic concurrency, validation, finalizers, watches.

Each public method is one request and hence one atomic step. Objects go in and come out as deep copies. Raises the `ApiError`s of
`errors`. Rules: kubernetes v1.37.2 `pkg/registry/resource/resourceclaim/strategy.go`, `pkg/apis/resource/validation/validation.go`,
`pkg/registry/core/pod/{strategy,storage/storage}.go`, apiserver `pkg/registry/generic/registry/store.go`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs

from dra_spec.reference.errors import AlreadyExists, Conflict, Invalid, NotFound
from dra_spec.reference.shapes import FINALIZER, Object, clone, deleting, name_of, uid_of
from dra_spec.reference.validation import check_claim_status, check_new_claim, drop_lost_devices

CLAIM, POD, TEMPLATE = "ResourceClaim", "Pod", "ResourceClaimTemplate"
GRACE_SECONDS = 30
ANY_VERSION = "0"  # in a PUT: as if no version were sent
STAMP = "2026-01-01T00:00:00Z"  # the world has no clock: a deletionTimestamp only says that it is set


@attrs.frozen
class Event:
    """A watch event: ADDED, MODIFIED or DELETED with the object after the write (before it, for DELETED, but with the new version)."""

    type: str
    object: Object


@attrs.define(eq=False)
class Watch:
    """One client's stream of one kind: the events it has not taken yet, in resourceVersion order, without bound."""

    kind: str
    client: str
    pending: deque[Event] = attrs.field(factory=deque)

    def take(self) -> Event:
        """The next event. Raises IndexError if there is none."""
        return self.pending.popleft()


class ApiServer:
    """The store and its rules."""

    def __init__(self) -> None:
        self.revision = 0
        self._uids = 0
        self._objects: dict[str, dict[str, Object]] = {}
        self._watches: list[Watch] = []
        self.removed: dict[tuple[str, str], Object] = {}  # the last of each name that is gone, as its watchers are told

    # -- reading ---------------------------------------------------------------------------------------------------------------------

    def get(self, kind: str, name: str) -> Object:
        """A consistent read. Raises NotFound."""
        return clone(self._stored(kind, name))

    def find(self, kind: str, name: str) -> Object | None:
        """As get, None if absent."""
        found = self._objects.get(kind, {}).get(name)
        return None if found is None else clone(found)

    def list(self, kind: str) -> list[Object]:
        """All objects of a kind by name."""
        return [clone(obj) for _, obj in sorted(self._objects.get(kind, {}).items())]

    def watch(self, kind: str, client: str) -> Watch:
        """A stream of the writes from now on."""
        found = Watch(kind, client)
        self._watches.append(found)
        return found

    def unwatch(self, watch: Watch) -> None:
        """Ends a stream; what it has not delivered is lost."""
        self._watches.remove(watch)

    def _stored(self, kind: str, name: str) -> Object:
        found = self._objects.get(kind, {}).get(name)
        if found is None:
            raise NotFound(f"{kind} {name}: not found")
        return found

    # -- writing ---------------------------------------------------------------------------------------------------------------------

    def create(self, kind: str, obj: Object) -> Object:
        """Creates an object; its status is wiped, but for a pod's phase. Raises Invalid, whether the name is free or not, and
        AlreadyExists."""
        name, new = name_of(obj), clone(obj)
        if kind == CLAIM:
            check_new_claim(new)
        if name in self._objects.get(kind, {}):
            raise AlreadyExists(f"{kind} {name}: already exists")
        new["status"] = {"phase": "Pending"} if kind == POD else {}
        self._uids += 1
        new["metadata"]["uid"] = f"{name}.{self._uids:08d}"
        return self._store(kind, new, "ADDED")

    def update(self, kind: str, obj: Object) -> Object:
        """PUT of the main resource: metadata only, spec must be equal, status is kept. Taking the last finalizer off a deleting object
        removes it, unless it has time left: the event shows it with the finalizer, the answer without it and in the version of before.
        Raises NotFound, Conflict, Invalid."""
        old = self._expect(kind, obj)
        if obj.get("spec") != old["spec"]:
            raise Invalid(f"{kind} {name_of(obj)}: spec: field is immutable")
        new = clone(obj)
        new["status"] = clone(old["status"])
        self._keep_system_fields(new, old)
        finalizers, before = set(new["metadata"].get("finalizers") or ()), set(old["metadata"].get("finalizers", ()))
        if deleting(old) and finalizers - before:
            raise Invalid(f"{kind} {name_of(obj)}: metadata.finalizers: no new finalizers can be added to an object that is being deleted")
        if deleting(old) and not finalizers and not old["metadata"].get("deletionGracePeriodSeconds"):
            self._remove(kind, clone(old))
            return new
        return self._store_changed(kind, new, old)

    def update_status(self, kind: str, obj: Object) -> Object:
        """PUT of the status subresource: everything else is kept. Raises NotFound, Conflict, Invalid."""
        old = self._expect(kind, obj)
        return self._put_status(kind, old, clone(obj["status"]))

    def patch_status(self, kind: str, name: str, change: Callable[[Object], None], uid: str | None = None) -> Object:
        """A patch without resourceVersion: `change` edits the newest status. With `uid` the patch names metadata.uid, and another UID
        is Invalid. Raises NotFound, Invalid."""
        old = self._stored(kind, name)
        if uid is not None and uid_of(old) != uid:
            raise Invalid(f"{kind} {name}: metadata.uid: field is immutable")
        status = clone(old["status"])
        change(status)
        return self._put_status(kind, old, status)

    def delete(
        self, kind: str, name: str, *, uid: str | None = None, version: str | None = None, grace: int | None = None
    ) -> Object | None:
        """DELETE: None if the object was removed, else the object with its deletionTimestamp.

        `grace` seconds apply to pods only, None = the pod's own (30); a pod without node or in a terminal phase always goes at once.
        Raises NotFound, Conflict.
        """
        old = self._stored(kind, name)
        if uid is not None and uid_of(old) != uid:
            raise Conflict(f"{kind} {name}: the UID in the precondition is not that of the stored object")
        if version is not None and old["metadata"]["resourceVersion"] != version:
            raise Conflict(f"{kind} {name}: the resourceVersion in the precondition is not that of the stored object")
        seconds = self._grace(old, grace) if kind == POD else 0
        new = clone(old)
        if seconds == 0 and not old["metadata"].get("finalizers"):
            self._remove(kind, new)
            return None
        if deleting(old) and (grace is None or seconds >= old["metadata"].get("deletionGracePeriodSeconds", 0)):
            return new  # a later delete can only shorten the time, and only if it says so
        new["metadata"]["deletionTimestamp"] = STAMP
        new["metadata"]["deletionGracePeriodSeconds"] = seconds
        return self._store(kind, new, "MODIFIED")

    def bind(self, name: str, node: str, uid: str | None = None) -> Object:
        """POST pods/binding. Raises NotFound, and Conflict if the pod is deleting, bound or another one."""
        old = self._stored(POD, name)
        if uid is not None and uid_of(old) != uid:
            raise Conflict(f"pod {name}: the UID in the precondition is not that of the stored object")
        if deleting(old):
            raise Conflict(f"pod {name} is being deleted, cannot be assigned to a host")
        if old["spec"].get("nodeName"):
            raise Conflict(f"pod {name} is already assigned to node {old['spec']['nodeName']}")
        new = clone(old)
        new["spec"]["nodeName"] = node
        return self._store(POD, new, "MODIFIED")

    def touch(self, kind: str, name: str) -> Object:
        """Somebody edits a label: nothing changes but the version."""
        new = clone(self._stored(kind, name))
        labels = new["metadata"].setdefault("labels", {})
        labels["touched"] = str(int(labels.get("touched", "0")) + 1)
        return self._store(kind, new, "MODIFIED")

    def collect(self, kind: str, name: str) -> Object | None:
        """The garbage collector's turn on one object: deletes it if all its owners are gone. Raises NotFound, and Conflict if some
        owner is there or the object is deleting already."""
        old = self._stored(kind, name)
        if not self.collectable(kind, name):
            raise Conflict(f"{kind} {name}: has no dangling owners only, or is being deleted")
        return self.delete(kind, name, uid=uid_of(old), version=old["metadata"]["resourceVersion"])

    def collectable(self, kind: str, name: str) -> bool:
        """Whether all owners of an object are absent or have another UID, and it is not being deleted."""
        obj = self._objects.get(kind, {}).get(name)
        if obj is None or deleting(obj) or not obj["metadata"].get("ownerReferences"):
            return False
        for ref in obj["metadata"]["ownerReferences"]:
            owner = self._objects.get(ref["kind"], {}).get(ref["name"])
            if owner is not None and uid_of(owner) == ref["uid"]:
                return False
        return True

    def put(self, kind: str, obj: Object) -> Object:
        """What several accepted requests leave behind when nobody comes between them: one version, one event. For abstract writers only."""
        return self._store(kind, clone(obj), "MODIFIED")

    def drop(self, kind: str, name: str) -> None:
        """As put, for an object that is gone in the end."""
        self._remove(kind, self.get(kind, name))

    # -- inside ----------------------------------------------------------------------------------------------------------------------

    def _expect(self, kind: str, obj: Object) -> Object:
        old = self._stored(kind, name_of(obj))
        if obj["metadata"].get("uid", uid_of(old)) != uid_of(old):
            raise Conflict(f"{kind} {name_of(obj)}: the object has been replaced")
        version = obj["metadata"].get("resourceVersion")
        if version and version != ANY_VERSION and version != old["metadata"]["resourceVersion"]:
            raise Conflict(f"{kind} {name_of(obj)}: the object has been modified; please apply your changes to the latest version")
        return old

    def _put_status(self, kind: str, old: Object, status: Object) -> Object:
        new = clone(old)
        new["status"] = status
        if kind == CLAIM:
            drop_lost_devices(old, new)
            check_claim_status(old, new)
        return self._store_changed(kind, new, old)

    @staticmethod
    def _keep_system_fields(new: Object, old: Object) -> None:
        for field in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"):
            new["metadata"].pop(field, None)
            if field in old["metadata"]:
                new["metadata"][field] = old["metadata"][field]

    @staticmethod
    def _grace(pod: Object, asked: int | None) -> int:
        if not pod["spec"].get("nodeName") or pod["status"]["phase"] in ("Succeeded", "Failed"):
            return 0
        own = int(pod["spec"].get("terminationGracePeriodSeconds", GRACE_SECONDS))
        return own if asked is None else asked

    def _store_changed(self, kind: str, new: Object, old: Object) -> Object:
        """Stores unless nothing changed: a write that changes no byte gets no version and makes no event."""
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if new == old:
            return clone(old)
        return self._store(kind, new, "MODIFIED")

    def _store(self, kind: str, new: Object, event: str) -> Object:
        self.revision += 1
        if not new["metadata"].get("finalizers"):
            new["metadata"].pop("finalizers", None)
        new["metadata"]["resourceVersion"] = str(self.revision)
        self._objects.setdefault(kind, {})[name_of(new)] = new
        self._emit(kind, event, new)
        return clone(new)

    def _remove(self, kind: str, last: Object) -> Object:
        self.revision += 1
        last["metadata"]["resourceVersion"] = str(self.revision)
        del self._objects[kind][name_of(last)]
        self.removed[kind, name_of(last)] = clone(last)
        self._emit(kind, "DELETED", last)
        return clone(last)

    def _emit(self, kind: str, event: str, obj: Object) -> None:
        for watch in self._watches:
            if watch.kind == kind:
                watch.pending.append(Event(event, clone(obj)))


def without_finalizer(claim: Object) -> Object:
    """A copy of the claim without the built-in finalizer."""
    new = clone(claim)
    new["metadata"]["finalizers"] = [f for f in claim["metadata"].get("finalizers", ()) if f != FINALIZER]
    return new
