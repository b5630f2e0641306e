"""The types of the expression language, and the schema of the world that invariants speak about.

The schema is one place: the type checker, the plain world, the world over a model and the documentation read it. A world has
lists of existing objects only. In the world of a step each object of a top-level list also has `old`: the same object before the step.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs


class Type:
    """A type of the expression language; all but uids, maps and objects are CEL's own."""


@attrs.frozen
class Scalar(Type):
    name: str

    def __str__(self) -> str:
        return self.name


BOOL, INT, STRING, NULL = Scalar("bool"), Scalar("int"), Scalar("string"), Scalar("null")
ANY = Scalar("anything")  # the element of an empty list
UID = Scalar("uid")  # compared for equality only


@attrs.frozen
class ListType(Type):
    """A list. `key`: the field that names an element; None if elements have no name."""

    element: Type
    key: str | None = None

    def __str__(self) -> str:
        return f"list({self.element})"


@attrs.frozen
class MapType(Type):
    """A map from strings."""

    value: Type

    def __str__(self) -> str:
        return f"map(string, {self.value})"


@attrs.frozen
class Nullable(Type):
    """A list that may be null."""

    of: Type

    def __str__(self) -> str:
        return f"{self.of} or null"


@attrs.frozen(eq=False)
class ObjectType(Type):
    """An object with a fixed set of fields. `section`: the writer whose state it is, None for API objects."""

    name: str
    fields: Mapping[str, Type]
    section: str | None = None

    def __str__(self) -> str:
        return self.name


STRINGS = ListType(STRING)


def _claim() -> dict[str, Type]:
    result = ObjectType(
        "allocation result",
        {
            "request": STRING,
            "device": STRING,
            "driver": STRING,
            "admin": BOOL,
            "bindingConditions": STRINGS,
            "bindingFailureConditions": STRINGS,
        },
    )
    return {
        "name": STRING,
        "uid": UID,
        "deleting": BOOL,
        "finalizer": BOOL,
        "allocated": BOOL,
        "devices": STRINGS,  # exclusive ones, driver/pool/device, sorted
        "results": ListType(result),
        "nodes": Nullable(STRINGS),
        "reservedFor": STRINGS,
        "conditions": ListType(ObjectType("device condition", {"device": STRING, "type": STRING})),
        "owner": STRING,
    }


def _pod() -> dict[str, Type]:
    return {
        "name": STRING,
        "deleting": BOOL,
        "node": STRING,
        "phase": STRING,
        "claims": STRINGS,
        "running": BOOL,
    }


def _node() -> dict[str, Type]:
    entry: dict[str, Type] = {
        "claim": STRING,
        "uid": UID,
        "pods": STRINGS,
        "prepared": BOOL,
        "unpreparing": BOOL,
        "devices": STRINGS,
    }
    cache = ObjectType("kubelet cache entry", entry)
    record = ObjectType("kubelet checkpoint record", {"claim": STRING, "uid": UID, "pods": STRINGS, "devices": STRINGS})
    kubelet = ObjectType(
        "kubelet", {"running": BOOL, "cache": ListType(cache, "claim"), "checkpoint": ListType(record, "claim")}, section="kubelet"
    )
    plugin_record = ObjectType("plugin checkpoint record", {"claim": STRING, "uid": UID, "state": STRING, "devices": STRINGS})
    prepared = ObjectType("prepared claim", {"claim": STRING, "uid": UID, "devices": STRINGS})
    plugin = ObjectType(
        "plugin",
        {
            "driver": STRING,
            "running": BOOL,
            "inventory": STRINGS,
            "checkpoint": ListType(plugin_record, "claim"),
            "cdi": STRINGS,
            "prepared": ListType(prepared, "claim"),
        },
        section="plugin",
    )
    containers = ObjectType("containers of a pod", {"pod": STRING, "claims": STRINGS, "devices": STRINGS}, section="kubelet")
    return {"name": STRING, "kubelet": kubelet, "plugins": ListType(plugin, "driver"), "containers": ListType(containers, "pod")}


def _scheduler() -> dict[str, Type]:
    in_flight = ObjectType("in-flight allocation", {"claim": STRING, "devices": STRINGS, "sharers": INT})
    return {"name": STRING, "running": BOOL, "inFlight": ListType(in_flight, "claim"), "allocated": STRINGS}


STEP = ObjectType(
    "step",
    {"writer": STRING, "action": STRING, "step": STRING, "outcome": STRING, "params": MapType(STRING)},
)


def _world(step: bool) -> ObjectType:
    def listed(name: str, fields: dict[str, Type], section: str | None = None) -> ListType:
        old = {"old": ObjectType(f"{name} before the step", {**fields, "exists": BOOL}, section)} if step else {}
        return ListType(ObjectType(name, {**fields, **old}, section), "name")

    sections: dict[str, Type] = {
        "claims": listed("claim", _claim()),
        "pods": listed("pod", _pod()),
        "nodes": listed("node", _node()),
        "schedulers": listed("scheduler", _scheduler(), "scheduler"),
    }
    if step:
        sections["step"] = STEP
    return ObjectType("world", sections)


WORLD = _world(step=False)
STEP_WORLD = _world(step=True)
TOP_LEVEL = ("claims", "pods", "nodes", "schedulers")
