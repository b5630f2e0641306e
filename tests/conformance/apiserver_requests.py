"""Recorded requests to an API server as calls of the reference's one (format of apiserver/)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import attrs

from dra_spec.reference.apiserver import CLAIM, POD, ApiServer
from dra_spec.reference.errors import Invalid
from dra_spec.reference.shapes import Object, clone

PATHS = re.compile(
    r"^/(?P<api>api/v1|apis/resource\.k8s\.io/\w+)/namespaces/(?P<space>[^/]+)/(?P<kind>resourceclaims|pods)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<sub>\w+))?)?$"
)
REFERENCE = re.compile(r"\$\{(\d+):([^}]*)\}")
GROUPS = {"resourceclaims": "apis/resource.k8s.io/v1", "pods": "api/v1"}
KINDS = {"resourceclaims": CLAIM, "pods": POD}
STRATEGIC, MERGE, JSON_PATCH = (f"application/{kind}-patch+json" for kind in ("strategic-merge", "merge", "json"))
CLIENTS = {"name", "namespace", "generateName", "labels", "annotations", "finalizers", "ownerReferences", "uid"}
SYSTEM = {"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"}  # which the reference keeps itself
# options that change nothing that is compared (a dry run is undone by the caller), with their values, () = any
HARMLESS: dict[str, tuple[str, ...]] = {"fieldManager": (), "fieldValidation": ("Strict", "Warn"), "dryRun": ("All",)}
UNCHANGED = "as stored"
SEEN = "version "  # before a resourceVersion that an earlier answer shows; others are texts of the request
Versions = Callable[[str], str]  # a resourceVersion in a request to the reference's


class NotCompared(Exception):
    """A request that the reference does not have; the reason."""


@attrs.frozen
class Target:
    """What a request is about. `name` "": the collection; `sub`: status, binding, or ""."""

    kind: str
    space: str
    name: str
    sub: str


def target_of(step: dict[str, Any], steps: list[Any]) -> Target:
    """Raises NotCompared for kinds and versions of the API that the reference does not have."""
    match = PATHS.match(resolved(step["path"], steps))
    if match is None:
        raise NotCompared("a kind or path that the reference does not have")
    if match["api"] != GROUPS[match["kind"]]:
        raise NotCompared("another version of the API")
    return Target(KINDS[match["kind"]], match["space"], match["name"] or "", match["sub"] or "")


def touched_by(step: dict[str, Any], steps: list[Any]) -> Target | None:
    """The claim or pod that a request of another version of the API is about; None for other kinds."""
    match = PATHS.match(resolved(step["path"], steps))
    if match is None:
        return None
    name = match["name"] or (step["response"].get("object") or {}).get("metadata", {}).get("name", "")
    return Target(KINDS[match["kind"]], match["space"], name, match["sub"] or "")


def resolved(value: Any, steps: list[Any]) -> Any:
    """A request with its references to earlier answers filled in and its repetitions written out."""
    if isinstance(value, dict):
        return {key: resolved(item, steps) for key, item in value.items()}
    if isinstance(value, list):
        return [each for item in value for each in (_repeated(item, steps) if _repeats(item) else [resolved(item, steps)])]
    return REFERENCE.sub(lambda m: _value_at(steps, m[1], m[2]), value) if isinstance(value, str) else value


def _repeats(item: Any) -> bool:
    return isinstance(item, dict) and "$repeat" in item


def _repeated(item: dict[str, Any], steps: list[Any]) -> list[Any]:
    start = item.get("from", 0)
    return [resolved(_numbered(item["item"], n), steps) for n in range(start, start + item["$repeat"])]


def _numbered(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {key: _numbered(item, number) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbered(item, number) for item in value]
    return re.sub(r"%(0\d+)?d", lambda m: format(number, (m[1] or "") + "d"), value) if isinstance(value, str) else value


def _value_at(steps: list[Any], step: str, pointer: str) -> str:
    """A value of an earlier answer; a resourceVersion is marked as one (see `Versions`)."""
    answer = steps[int(step)]["response"]
    found: Any = answer.get("object") or answer.get("list") or {}
    *_, last = parts = pointer.strip("/").split("/")
    for part in parts:
        if isinstance(found, list):
            found = found[int(part)] if part.isdigit() and int(part) < len(found) else ""
        else:
            found = found.get(part, "") if isinstance(found, dict) else ""
    return f"{SEEN}{found}" if last == "resourceVersion" and found != "" else str(found)


def send(server: ApiServer, step: dict[str, Any], target: Target, steps: list[Any], versions: Versions) -> Object | list[Object] | None:
    """The reference's answer: an object, a list, None for "gone". Raises NotCompared, ApiError, and KeyError for malformed objects."""
    method, options = step["method"], step.get("query") or {}
    if "rawBody" in step:
        raise NotCompared("a body that is given as text")
    if any(key not in HARMLESS or (HARMLESS[key] and value not in HARMLESS[key]) for key, value in options.items()):
        raise NotCompared("options in the query")
    body = resolved(step.get("body"), steps)
    if method == "GET":
        if target.sub:
            raise NotCompared("reads of subresources")
        return server.get(target.kind, target.name) if target.name else server.list(target.kind)
    if method == "DELETE" and target.name:
        return _delete(server, target, body or {}, versions)
    if method == "POST" and target.sub == "binding":
        return server.bind(target.name, body["target"].get("name", ""), uid=body.get("metadata", {}).get("uid"))
    if method == "PATCH" and target.name and step.get("contentType") == JSON_PATCH and isinstance(body, list):
        return _changed(server, target, lambda old: patched(old, body), versions)
    if not isinstance(body, dict):
        raise NotCompared("a body that is no object")
    if method == "POST" and not target.name:
        return _create(server, target, body)
    if method == "PUT" and target.name:
        return _put(server, target, body, versions)
    if method == "PATCH" and target.name and step.get("contentType") in (MERGE, STRATEGIC):
        return _patch(server, target, body, versions, strategic=step["contentType"] == STRATEGIC)
    raise NotCompared("deletes of collections" if method == "DELETE" else f"{method} {step.get('contentType', '')}".strip())


def _create(server: ApiServer, target: Target, body: Object) -> Object:
    meta = body.get("metadata") or {}
    if not meta.get("name"):
        raise NotCompared("names that the server makes")
    if meta.get("resourceVersion") or meta.get("uid"):
        raise NotCompared("creates with a version or UID")
    new = clone(body)
    new.setdefault("spec", {})
    return server.create(target.kind, new)


def _sent(target: Target, body: Object, old: Object | None, version: str | None) -> Object:
    """An object as the server takes it: the reference's version, no empty fields, no field that clients cannot change."""
    meta = body.get("metadata") or {}
    kept = {key: value for key, value in meta.items() if key in CLIENTS and value not in ("", None, [], {})}
    owners = [ref.get("uid") for ref in kept.get("ownerReferences") or ()]
    if len(set(owners)) < len(owners):
        raise NotCompared("owners that are named twice")
    kept |= {key: value for key, value in (old or {}).get("metadata", {}).items() if key not in CLIENTS and key not in SYSTEM}
    if version:
        kept["resourceVersion"] = version
    status = dict(body.get("status") or {})
    if target.kind == CLAIM and status.get("devices"):
        status["devices"] = [{"conditions": None, **entry} for entry in status["devices"]]  # as the server prints them
    return {"status": status, **{key: body[key] for key in ("apiVersion", "kind", "spec") if key in body}, "metadata": kept}


def _put(server: ApiServer, target: Target, body: Object, versions: Versions) -> Object:
    meta = body.get("metadata") or {}
    if meta.get("name") != target.name:
        raise NotCompared("a name that is not that of the path")
    if target.kind == POD or target.sub not in ("", "status"):
        raise NotCompared("updates of pods")
    version = versions(meta["resourceVersion"]) if meta.get("resourceVersion") else None
    new = _sent(target, body, server.find(target.kind, target.name), version)
    return server.update_status(target.kind, new) if target.sub else server.update(target.kind, new)


def _delete(server: ApiServer, target: Target, options: Object, versions: Versions) -> Object | None:
    if set(options) - {"apiVersion", "kind", "preconditions", "gracePeriodSeconds", "propagationPolicy"}:
        raise NotCompared("options of a delete")
    if options.get("propagationPolicy", "Background") != "Background":
        raise NotCompared("options of a delete")
    if {"orphan", "foregroundDeletion"} & set(
        (server.find(target.kind, target.name) or {"metadata": {}})["metadata"].get("finalizers") or ()
    ):
        raise NotCompared("options of a delete")
    before = options.get("preconditions") or {}
    version = versions(before["resourceVersion"]) if before.get("resourceVersion") else None
    return server.delete(target.kind, target.name, uid=before.get("uid"), version=version, grace=options.get("gracePeriodSeconds"))


def _patch(server: ApiServer, target: Target, patch: Object, versions: Versions, *, strategic: bool) -> Object:
    """A patch is an update of what is stored, which a version in the patch makes conditional."""
    meta = patch.get("metadata") or {}
    if target.kind == POD and target.sub != "status" and ("spec" in patch or target.sub):
        raise NotCompared("updates of pods")
    if not isinstance(meta, dict) or target.sub not in ("", "status"):
        raise NotCompared("patches of other subresources")
    server.get(target.kind, target.name)  # an object that is not there comes first
    version = meta.get("resourceVersion")
    if "uid" in meta:
        if target.sub != "status" or version:
            raise NotCompared("patches with UID and version, or with UID of the main resource")
        others = {key: value for key, value in patch.items() if key not in ("metadata", "status", "apiVersion", "kind")}
        if others or set(meta) - {"uid", "name", "namespace"}:
            raise NotCompared("patches with UID that change the metadata too")
        status = {"status": patch.get("status", {})}
        return server.patch_status(
            target.kind, target.name, lambda found: _replace(found, merged({"status": found}, status, strategic)["status"]), meta["uid"]
        )
    return _changed(server, target, lambda old: merged(old, patch, strategic), versions)


def _changed(server: ApiServer, target: Target, change: Callable[[Object], Object], versions: Versions) -> Object:
    """A change of what is stored, sent back as an update."""
    if target.sub not in ("", "status"):
        raise NotCompared("patches of other subresources")
    old = server.get(target.kind, target.name)
    copy = clone(old)
    copy["metadata"]["resourceVersion"] = UNCHANGED  # so that no number in a patch is taken for it
    new = change(copy)
    if target.kind == POD and new.get("spec") != old["spec"]:
        raise NotCompared("updates of pods")
    meta = new.get("metadata") or {}
    version = meta.get("resourceVersion") if meta.get("resourceVersion") != UNCHANGED else None
    if meta.get("name") != target.name or meta.get("uid") != old["metadata"]["uid"]:
        raise NotCompared("patches of the name")
    if target.kind == POD and "resourceClaimStatuses" in old["status"] and not (new.get("status") or {}).get("resourceClaimStatuses"):
        raise NotCompared("pod statuses that lose the list of claims")
    new = _sent(target, new, old, versions(str(version)) if version else None)
    return server.update_status(target.kind, new) if target.sub else server.update(target.kind, new)


def _replace(status: Object, new: Object) -> None:
    status.clear()
    status.update(new)


# -- patches

_KEYS = {"reservedFor": "uid", "resourceClaimStatuses": "name", "ownerReferences": "uid"}


def merged(old: Any, patch: Any, strategic: bool) -> Any:
    """The object after a merge patch (RFC 7386), or a strategic one as far as lists with one key go. Raises NotCompared."""
    if not isinstance(patch, dict):
        return json.loads(json.dumps(patch))
    found = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if strategic and key.startswith("$"):
            raise NotCompared("directives of strategic patches")
        if value is None:
            found.pop(key, None)
        elif strategic and isinstance(value, list):
            found[key] = _merged_list(key, found.get(key) or [], value)
        else:
            found[key] = merged(found.get(key), value, strategic)
    return found


def _merged_list(name: str, old: list[Any], patch: list[Any]) -> list[Any]:
    if name == "finalizers":
        return _ordered(old, patch, lambda item: item)
    if name not in _KEYS or not all(isinstance(item, dict) and _KEYS[name] in item for item in patch):
        raise NotCompared("lists in strategic patches")
    key = _KEYS[name]
    if len({str(item[key]) for item in patch}) < len(patch):
        raise NotCompared("lists in strategic patches")
    if any(k.startswith("$") and (k, v) != ("$patch", "delete") for item in patch for k, v in item.items()):
        raise NotCompared("directives of strategic patches")
    known = {item.get(key): item for item in old}
    gone = {item[key] for item in patch if "$patch" in item}
    changed = [merged(known.get(item[key]), item, strategic=True) for item in patch if "$patch" not in item]
    return [item for item in _ordered(old, changed, lambda item: item.get(key)) if item.get(key) not in gone]


def _ordered(old: list[Any], patch: list[Any], key: Callable[[Any], Any]) -> list[Any]:
    """The patch's items and the others: an item that is not in the patch goes first only before one that followed it already."""
    places = {key(item): place for place, item in enumerate(old)}
    named = {key(item) for item in patch}
    others, found = [item for item in old if key(item) not in named], list[Any]()
    for item in patch:
        while others and key(item) in places and places[key(others[0])] < places[key(item)]:
            found.append(others.pop(0))
        found.append(item)
    return found + others


def patched(obj: Object, operations: list[Any]) -> Object:
    """The object after a JSON patch (RFC 6902) that can be applied. Raises NotCompared for other operations."""
    for operation in operations:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].lstrip("/").split("/")]
        place: Any = obj
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        kind = operation["op"]
        if not operation["path"]:
            raise NotCompared("JSON patches of the whole object")
        if kind == "test":
            found = place[int(last) if isinstance(place, list) else last]
            if last != "resourceVersion" and found != operation["value"]:
                raise Invalid(f"test of {operation['path']} failed")
        elif kind == "remove":
            del place[int(last) if isinstance(place, list) else last]
        elif kind == "add" and isinstance(place, list):
            place.insert(len(place) if last == "-" else int(last), operation["value"])
        elif kind in ("add", "replace"):
            place[int(last) if isinstance(place, list) else last] = operation["value"]
        else:
            raise NotCompared("JSON patches that move or copy")
    return obj
