"""The reference's API server beside a real one, request by request (format of apiserver/).

The reference holds what the real server has stored, with versions of its own: each answer shows which recorded version a version of the
reference stands for, and this must stay one to one and in order. What a request that the reference does not have has done is taken over
from the answer; where no answer shows it, requests about the object are not compared until one does.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from pathlib import Path
from typing import Any

import attrs
from apiserver_requests import REFERENCE, SEEN, NotCompared, Target, send, target_of, touched_by
from corpus import entries
from report import Disagreement, Report, sorted_out

from dra_spec.reference.apiserver import ANY_VERSION, CLAIM, POD, ApiServer, Watch
from dra_spec.reference.errors import ApiError
from dra_spec.reference.shapes import (
    Object,
    allocation,
    clone,
    conditions,
    consumers,
    deleting,
    device_id,
    name_of,
    node_name,
    results,
    rv_of,
)

LISTED: dict[str, tuple[str, str]] = {}
# what the reference checks: (field, reason) of a cause
CHECKED = [
    (r"spec", "Invalid"),
    (r"spec\.devices\.requests", "TooMany"),
    (r"spec\.devices\.requests\[\d+\]", "Duplicate"),
    (r"status\.allocation", "Invalid"),
    (r"status\.allocation\.devices\.results", "TooMany"),
    (r"status\.allocation\.devices\.results\[\d+\]\.request", "Invalid"),
    (r"status\.reservedFor", "TooMany|Forbidden"),
    (r"status\.reservedFor\[\d+\]", "Duplicate"),
    (r"status\.reservedFor\[\d+\]\.(uid|name|resource)", "Required"),
    (r"status\.devices\[\d+\]", "Invalid|Duplicate"),
    (r"status\.devices\[\d+\]\.conditions", "TooMany"),
    (r"metadata\.finalizers", "Forbidden"),
    (r"metadata\.uid", "Invalid"),
]
BY_CODE = {
    400: "requests that are malformed",
    403: "permissions",
    405: "methods that a path does not have",
    415: "media types",
    500: "answers with 500",
}


def run(paths: list[Path]) -> Report:
    """Counts requests. Compares the code and, of a success, what the protocol reads of the object, and its version."""
    agreed = total = 0
    found: list[Disagreement] = []
    omitted: Counter[str] = Counter()
    for path in paths:
        for sequence in entries(path):
            replay = Replay(sequence["steps"])
            for number in range(len(sequence["steps"])):
                try:
                    wrong = replay.step(number)
                except NotCompared as reason:
                    omitted[str(reason)] += 1
                    continue
                total += 1
                agreed += wrong is None
                if wrong is not None:
                    found.append(Disagreement(path.name, f"{sequence['id']} step {number}", *wrong))
    return sorted_out(agreed, total, found, LISTED, ["requests"], omitted)


@attrs.define(eq=False)
class Space:
    """One namespace. `versions`: recorded version -> the reference's; `unknown`: objects whose state no answer shows, (kind, "") for all
    of a kind; `gaps`: kinds of which events are missing; `revisions`: the reference's revision after each step; `beyond`: what a collector
    has done that the reference's cannot, "" if nothing."""

    server: ApiServer = attrs.field(factory=ApiServer)
    versions: dict[int, int] = attrs.field(factory=dict)
    unknown: set[tuple[str, str]] = attrs.field(factory=set)
    gaps: set[str] = attrs.field(factory=set)
    revisions: dict[int, int] = attrs.field(factory=dict)
    beyond: str = ""
    streams: dict[str, Watch] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.streams = {kind: self.server.watch(kind, "everything") for kind in (CLAIM, POD)}

    def lose(self, kind: str, name: str) -> None:
        """From now on the object's state is not known; a stream of its kind has a gap for good."""
        self.unknown.add((kind, name))
        self.gaps.add(kind)

    def version(self, recorded: str) -> str:
        """The reference's version for one in a request; for one that it does not know, one that no object has."""
        if recorded == ANY_VERSION:
            return recorded
        seen = recorded.removeprefix(SEEN)
        return str(self.versions.get(int(seen), f"unknown {seen}")) if seen != recorded else f"unknown {recorded}"

    def stands_for(self, recorded: int, ours: int) -> bool:
        """Whether two versions of the same object can be the same; remembers it."""
        if recorded in self.versions:
            return self.versions[recorded] == ours
        fits = all((recorded < r) == (ours < o) and ours != o for r, o in self.versions.items())
        self.versions[recorded] = ours
        return fits

    def adopt(self, kind: str, obj: Object) -> None:
        """The real server's object, in the place of the reference's, with the reference's version."""
        known = obj["metadata"].get("resourceVersion")
        held = self.server._objects.setdefault(kind, {})
        new = {"status": {}, **clone(obj)}
        if known in self.versions:
            new["metadata"]["resourceVersion"] = str(self.versions[known])
            held[name_of(new)] = new
        else:
            stored = self.server._store(kind, new, "MODIFIED" if name_of(new) in held else "ADDED")
            if known is not None:
                self.versions[known] = int(stored["metadata"]["resourceVersion"])
        self.unknown.discard((kind, name_of(new)))

    def collect(self) -> None:
        """The garbage collector has done what it can. Raises NotCompared if that is more than the reference's can do."""
        objects = {obj["metadata"].get("uid"): obj for held in self.server._objects.values() for obj in held.values()}
        for obj in objects.values():
            owners = obj["metadata"].get("ownerReferences") or ()
            if any(owner["kind"] not in (CLAIM, POD) for owner in owners):
                self.beyond = "owners of kinds that the reference does not have"
            if len({owner["uid"] in objects for owner in owners}) > 1:
                self.beyond = "owners of which some are gone"
            if obj["kind"] == POD and node_name(obj) and not deleting(obj):
                self.beyond = "garbage collection of pods"
        if self.beyond:
            raise NotCompared(self.beyond)
        again = True
        while again:
            found = [(kind, name) for kind, held in self.server._objects.items() for name in held if self.server.collectable(kind, name)]
            for kind, name in found:
                self.server.collect(kind, name)
            again = bool(found)

    def is_unknown(self, target: Target) -> bool:
        return bool({(target.kind, target.name), (target.kind, "")} & self.unknown)


class Replay:
    """One sequence."""

    def __init__(self, steps: list[dict[str, Any]]) -> None:
        self.steps = steps
        self.spaces: dict[str, Space] = {}

    def step(self, number: int) -> tuple[str, str] | None:
        """Sends the request and takes over what the real server stored. (recorded, ours) if they differ. Raises NotCompared."""
        step = self.steps[number]
        try:
            target = target_of(step, self.steps)
        except NotCompared:
            touched = touched_by(step, self.steps) if _changes(step) else None
            if touched is not None:
                self.spaces.setdefault(touched.space, Space()).lose(touched.kind, touched.name)
            raise
        space = self.spaces.setdefault(target.space, Space())
        try:
            if step["method"] == "WATCH":
                return self._watched(step, target, space)
            return self._compared(step, target, space)
        except NotCompared:
            if _changes(step):
                self._take_over(step, target, space)
            raise
        finally:
            for each in self.spaces.values():
                each.revisions[number] = each.server.revision

    def _compared(self, step: dict[str, Any], target: Target, space: Space) -> tuple[str, str] | None:
        answer = step["response"]
        code = answer["code"]
        if code in BY_CODE:
            raise NotCompared(BY_CODE[code])
        if code == 422 and not any(map(_checked, answer["status"].get("causes", ()))):
            raise NotCompared("rejections for reasons that the reference does not check")
        if code < 300 and answer.get("fieldWarnings"):
            raise NotCompared("unknown fields")
        if code == 404 and answer.get("status", {}).get("details", {}).get("kind") == "namespaces":
            raise NotCompared("namespaces")
        checked = [c["field"] for c in answer.get("status", {}).get("causes", ()) if _checked(c)]
        if set(checked) & {"spec", "status.allocation"} and _has_parameters(space.server.find(target.kind, target.name), step.get("body")):
            raise NotCompared("opaque parameters, whose text counts")
        if space.is_unknown(target) or (not target.name and any(kind == target.kind for kind, _ in space.unknown)):
            raise NotCompared("objects whose state no answer shows")
        if step.get("settle") and not space.beyond:
            space.collect()
        if space.beyond:
            raise NotCompared(space.beyond)
        before, revision = clone_store(space.server), space.server.revision
        sent = {kind: len(stream.pending) for kind, stream in space.streams.items()}
        dry = "dryRun" in (step.get("query") or {})
        try:
            ours = send(space.server, step, target, self.steps, space.version)
        except ApiError as error:
            return None if error.code == code else (f"{code} {_causes(answer)}".strip(), f"{error.code} {error}")
        except (LookupError, TypeError, ValueError, AttributeError) as error:  # a crash is the worst answer
            return f"{code} {_causes(answer)}".strip(), repr(error)
        if code >= 300:
            space.server._objects = before
            return f"{code} {_causes(answer)}".strip(), "200"
        wrong = _answer(space, answer, ours, target, dry)
        if dry:
            space.server._objects, space.server.revision = before, revision
            for kind, stream in space.streams.items():
                stream.pending = deque(list(stream.pending)[: sent[kind]])
        elif isinstance(ours, dict) and "object" in answer and name_of(ours) in space.server._objects.get(target.kind, {}):
            space.adopt(target.kind, answer["object"])
        return wrong

    def _watched(self, step: dict[str, Any], target: Target, space: Space) -> tuple[str, str] | None:
        """The events since the version of an earlier answer."""
        query = step.get("query") or {}
        since = REFERENCE.fullmatch(query.get("resourceVersion", ""))
        if set(query) != {"resourceVersion"} or since is None or target.name or step["response"]["code"] != 200:
            raise NotCompared("watches with other options, or refused")
        if target.kind in space.gaps:
            raise NotCompared("objects whose state no answer shows")
        answer = self.steps[int(since[1])]["response"]
        if "object" in answer:
            start = space.versions.get(answer["object"]["metadata"].get("resourceVersion"), -1)
        else:
            start = space.revisions.get(int(since[1]), 0)
        if start < 0 or any(e["type"] not in ("ADDED", "MODIFIED", "DELETED") for e in step["response"]["events"]):
            raise NotCompared("watches from a version of another namespace, or with errors")
        ours = [event for event in space.streams[target.kind].pending if rv_of(event.object) > start]
        recorded = _without_marks(step["response"]["events"]) if target.kind == POD else step["response"]["events"]
        for real, mine in zip(recorded, ours, strict=False):
            both = [(kind, essence(target.kind, obj)) for kind, obj in ((real["type"], real["object"]), (mine.type, mine.object))]
            if target.kind == POD and real["type"] == mine.type == "DELETED":
                both = [(kind, (found[0], *found[2:])) for kind, found in both]  # see _without_marks
            if both[0] != both[1]:
                return str(both[0]), str(both[1])
            if not space.stands_for(real["object"]["metadata"]["resourceVersion"], rv_of(mine.object)):
                return f"version {real['object']['metadata']['resourceVersion']}", f"version {rv_of(mine.object)} of {space.versions}"
        return None if len(recorded) == len(ours) else (f"{len(recorded)} events", f"{len(ours)}")

    @staticmethod
    def _take_over(step: dict[str, Any], target: Target, space: Space) -> None:
        made = step["response"].get("object")
        if (
            made
            and {"orphan", "foregroundDeletion"} & set(made["metadata"].get("finalizers") or ())
            and "resourceVersion" not in made["metadata"]
        ):
            space.beyond = "foreground and orphaning deletes"  # a collector is at work, as nothing has a version
        if step["method"] == "DELETE" or not made or made.get("kind") != target.kind:
            space.lose(target.kind, target.name)
        elif deleting(made) and not made["metadata"].get("finalizers") and not made["metadata"].get("deletionGracePeriodSeconds"):
            if space.server.find(target.kind, name_of(made)) is not None:
                space.server.drop(target.kind, name_of(made))
        else:
            space.adopt(target.kind, made)


def _without_marks(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events of pods: a delete that takes effect at once is two writes upstream, of which the first marks the pod as deleted, and one
    here. Nothing comes between them."""
    found = []
    for event, following in zip(events, [*events[1:], None], strict=True):
        meta = event["object"]["metadata"]
        at_once = "deletionTimestamp" in meta and not meta.get("deletionGracePeriodSeconds") and not meta.get("finalizers")
        if (
            following
            and event["type"] == "MODIFIED"
            and following["type"] == "DELETED"
            and at_once
            and following["object"]["metadata"]["uid"] == meta["uid"]
        ):
            continue
        found.append(event)
    return found


def _changes(step: dict[str, Any]) -> bool:
    options = {**(step.get("query") or {}), **(step["body"] if isinstance(step.get("body"), dict) else {})}
    return step["response"]["code"] < 300 and step["method"] not in ("GET", "WATCH") and "dryRun" not in options


def clone_store(server: ApiServer) -> dict[str, dict[str, Object]]:
    """The objects, to go back to."""
    return {kind: dict(objects) for kind, objects in server._objects.items()}


def _answer(space: Space, answer: dict[str, Any], ours: Object | list[Object] | None, target: Target, dry: bool) -> tuple[str, str] | None:
    """(recorded, ours) of a success if they differ."""
    if isinstance(ours, list):
        items = answer["list"].get("items") or []
        pairs = list(zip(items, ours, strict=False))
        if len(items) != len(ours):
            return f"{len(items)} items", f"{len(ours)}"
    elif ours is None or "object" not in answer:
        return None  # removed; what is left of it in the answer says nothing
    else:
        pairs = [(answer["object"], ours)]
    for real, mine in pairs:
        if real.get("kind", target.kind) != target.kind:
            continue  # a binding is answered with a status
        if essence(target.kind, real) != essence(target.kind, mine):
            return str(essence(target.kind, real)), str(essence(target.kind, mine))
        recorded = real["metadata"].get("resourceVersion")
        if recorded is not None and not dry and not space.stands_for(recorded, int(mine["metadata"]["resourceVersion"])):
            return f"version {recorded}", f"version {mine['metadata']['resourceVersion']} of {space.versions}"
    return None


def essence(kind: str, obj: Object) -> Any:
    """What the protocol reads of a claim or pod; fields of features that are off come and go."""
    meta = {key: obj["metadata"].get(key) or None for key in ("name", "labels", "annotations", "finalizers", "ownerReferences")}
    status = obj.get("status") or {}
    if kind == CLAIM:
        claim = {**obj, "status": status}
        found = allocation(claim)
        held = [(r["request"], device_id(r), bool(r.get("adminAccess"))) for r in results(found)]
        devices = [device_id(entry) for entry in status.get("devices") or ()]
        return meta, deleting(obj), found is not None, held, consumers(claim), devices, conditions(claim)
    names = [(s["name"], s.get("resourceClaimName")) for s in status.get("resourceClaimStatuses") or ()]
    return meta, deleting(obj), node_name(obj), status.get("phase"), names


def _has_parameters(*values: Any) -> bool:
    return '"parameters"' in json.dumps(values)


def _checked(cause: dict[str, Any]) -> bool:
    return is_checked(cause.get("field", ""), cause["reason"].removeprefix("FieldValue"))


def is_checked(field: str, kind: str) -> bool:
    """Whether the reference checks what a finding of this kind at this field says."""
    return any(re.fullmatch(f, field) and re.fullmatch(k, kind) for f, k in CHECKED)


def _causes(answer: dict[str, Any]) -> str:
    causes = answer.get("status", {}).get("causes", ())
    return ", ".join(f"{c['field']} {c['reason'].removeprefix('FieldValue')}" for c in causes)
