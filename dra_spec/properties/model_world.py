"""The world as seen through a view of a model: each field of the schema is read, when asked for, as one projection of one slot.

The decision trees of an engine test what was read; so a list is asked for one element or one membership where that is enough, and what
is fixed in an instance (names, which pod may use which claim) is not read at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from dra_spec.explorer.model import Action, Projection, Slot, View
from dra_spec.properties import model_reads as read
from dra_spec.properties.errors import NotInWorld, NotStatic
from dra_spec.properties.schema import STEP_WORLD, WORLD, ListType, ObjectType
from dra_spec.properties.values import Items, Thing
from dra_spec.properties.world import Absent
from dra_spec.protocol.apiserver import Api
from dra_spec.protocol.instance import Instance, PodSpec
from dra_spec.protocol.kubelet_state import Kubelet, kubelets
from dra_spec.protocol.node import Node, Sandbox, nodes
from dra_spec.protocol.objects import Phase, Pod
from dra_spec.protocol.plugin_state import Plugin, plugins
from dra_spec.protocol.scheduler_state import Scheduler

Getter = Callable[[Any], Sequence[Any]]


class Lazy(Thing):
    """An object whose fields are functions."""

    def __init__(self, path: str, fields: Mapping[str, Callable[[], Any]]) -> None:
        self._path, self._fields = path, fields

    def get(self, field: str) -> Any:
        if field not in self._fields:
            raise NotInWorld(f"{self._path}.{field}")
        return self._fields[field]()


class Part(Items):
    """A list of plain values that a function of `model_reads` finds in one slot; membership and size are read without the list."""

    def __init__(self, view: View, slot: Slot[Any], of: Getter) -> None:
        self._view, self._slot, self._of = view, slot, of

    def __iter__(self) -> Iterator[Any]:
        return iter(self._view.project(self._slot, self._of))

    def __len__(self) -> int:
        return self._view.project(self._slot, read.size_of, self._of.__name__)

    def __contains__(self, item: object) -> bool:
        return self._view.project(self._slot, read.contains, self._of.__name__, item)


class Named(Items):
    """A list of objects with fixed names; `exists` None: all of them always exist."""

    def __init__(self, names: Sequence[str], exists: Callable[[str], bool] | None, make: Callable[[str], Any]) -> None:
        self._names, self._exists, self._make = names, exists, make

    def universe(self) -> Sequence[str] | None:
        return self._names

    def at(self, name: str) -> Any | None:
        return self._make(name) if self._exists is None or self._exists(name) else None

    def peek(self, name: str) -> Any:
        return self._make(name)

    def __iter__(self) -> Iterator[Any]:
        return (self._make(name) for name in self._names if self._exists is None or self._exists(name))

    def __len__(self) -> int:
        return len(self._names) if self._exists is None else sum(map(self._exists, self._names))

    def __contains__(self, item: object) -> bool:
        return False  # objects are not compared; the type checker refuses it


class Names(Items):
    """A list of fixed names, each there or not; a name is looked up alone."""

    def __init__(self, names: Sequence[str], exists: Callable[[str], bool]) -> None:
        self._names, self._exists = names, exists

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._names if self._exists(name))

    def __len__(self) -> int:
        return sum(map(self._exists, self._names))

    def __contains__(self, item: object) -> bool:
        return item in self._names and self._exists(str(item))


def _refuse(slot: Slot[Any], what: Projection) -> Any:
    raise NotStatic(f"{slot} {what}")


STATIC = View(_refuse)


@attrs.frozen(eq=False)
class Sources:
    """The slots of an instance that the world is read from. Sections of writers that do not take part are missing in the world."""

    instance: Instance
    api: Api
    nodes: Mapping[str, Node]
    kubelets: Mapping[str, Kubelet]
    plugins: Mapping[tuple[str, str], Plugin]
    schedulers: Mapping[str, Scheduler]

    @staticmethod
    def of(instance: Instance) -> Sources:
        """The slots that the instance's writers own."""
        local = bool({"kubelet", "plugin"} & instance.writers)
        return Sources(
            instance,
            Api.of(instance),
            nodes(instance) if local else {},
            kubelets(instance) if "kubelet" in instance.writers else {},
            plugins(instance) if "plugin" in instance.writers else {},
            Scheduler.all(instance) if "scheduler" in instance.writers else {},
        )


class ModelWorld(Thing):
    """The world of a state; with `before` and `step`, of a transition."""

    def __init__(self, sources: Sources, view: View, before: View | None = None, step: tuple[Action, str] | None = None) -> None:
        self._sources, self._view, self._before, self._step = sources, view, before, step

    def get(self, field: str) -> Any:
        source, view = self._sources, self._view
        if field == "claims":
            return Named(list(source.api.claim), lambda c: view[source.api.claim[c]].exists, lambda c: self._top(_claim, "claim", c))
        if field == "pods":
            return Named(list(source.api.pod), lambda p: view[source.api.pod[p]].exists, lambda p: self._top(_pod, "pod", p))
        if field == "nodes":
            return Named(source.instance.nodes, None, lambda n: self._top(_node, "node", n))
        if field == "schedulers" and source.schedulers:
            return Named(list(source.schedulers), None, lambda s: self._top(_scheduler, "scheduler", s))
        if field == "step" and self._step is not None:
            return _step(*self._step)
        raise NotInWorld(field)

    def _top(self, make: Callable[[Sources, View, str], dict[str, Callable[[], Any]]], kind: str, name: str) -> Thing:
        fields = make(self._sources, self._view, name)
        if self._before is not None:
            before = self._before
            fields["old"] = lambda: self._old(make, before, kind, name)
        return Lazy(kind, fields)

    def _old(self, make: Callable[[Sources, View, str], dict[str, Callable[[], Any]]], before: View, kind: str, name: str) -> Thing:
        fields = make(self._sources, before, name)
        slots: Mapping[str, Mapping[str, Slot[Any]]] = {"claim": self._sources.api.claim, "pod": self._sources.api.pod}
        if kind not in slots:
            return Lazy(f"{kind}.old", {**fields, "exists": lambda: True})
        slot = slots[kind][name]
        return _Old(lambda: bool(before[slot].exists), Lazy(f"{kind}.old", fields), kind)


class _Old(Thing):
    """An API object before the step, which need not have existed."""

    def __init__(self, exists: Callable[[], bool], thing: Thing, kind: str) -> None:
        self._exists, self._thing, self._kind = exists, thing, kind

    def get(self, field: str) -> Any:
        if field == "exists":
            return self._exists()
        if self._exists() or field == "name":
            return self._thing.get(field)
        section = STEP_WORLD.fields[f"{self._kind}s"]
        assert isinstance(section, ListType)
        assert isinstance(section.element, ObjectType)
        return Absent(section.element.fields["old"]).get(field)


def _step(action: Action, label: str) -> Thing:
    params = {name: str(value) for name, value in action.params.items()}
    return Lazy(
        "step",
        {
            "writer": lambda: action.type.writer,
            "action": lambda: action.name,
            "step": lambda: action.type.step,
            "outcome": lambda: label,
            "params": lambda: params,
        },
    )


def _claim(source: Sources, view: View, name: str) -> dict[str, Callable[[], Any]]:
    slot = source.api.claim[name]
    claim = view[slot]
    return {
        "name": lambda: name,
        "uid": lambda: str(claim.uid),
        "deleting": lambda: claim.deleting,
        "finalizer": lambda: claim.finalizer,
        "allocated": lambda: claim.allocated,
        "devices": lambda: Part(view, slot, read.devices),
        "results": lambda: [_result(result) for result in view.project(slot, read.results)],
        "nodes": lambda: None if view.project(slot, read.everywhere) else Part(view, slot, read.node_names),
        "reservedFor": lambda: Part(view, slot, read.reserved),
        "conditions": lambda: [_condition(*pair) for pair in view.project(slot, read.conditions)],
        "owner": lambda: claim.owner or "",
    }


def _result(result: Any) -> Thing:
    return Lazy(
        "result",
        {
            "request": lambda: result.request,
            "device": lambda: result.device,
            "driver": lambda: result.driver,
            "admin": lambda: result.admin,
            "bindingConditions": lambda: result.binding_conditions,
            "bindingFailureConditions": lambda: result.binding_failure_conditions,
        },
    )


def _condition(device: str, type_: str) -> Thing:
    return Lazy("condition", {"device": lambda: device, "type": lambda: type_})


def _pod(source: Sources, view: View, name: str) -> dict[str, Callable[[], Any]]:
    slot = source.api.pod[name]
    pod, spec = view[slot], source.instance.pod(name)
    return {
        "name": lambda: name,
        "deleting": lambda: pod.deleting,
        "node": lambda: pod.node or "",
        "phase": lambda: pod.phase.value,
        "claims": lambda: _claims_of(view, slot, spec),
        "running": lambda: _running(source, view, name),
    }


def _claims_of(view: View, slot: Slot[Pod], spec: PodSpec) -> Names:
    refs = {ref.claim: ref for ref in reversed(spec.claims)}

    def resolved(claim: str) -> bool:
        return refs[claim].template is None or view.project(slot, read.generated, refs[claim].entry, claim)

    return Names(list(dict.fromkeys(ref.claim for ref in spec.claims)), resolved)


def _running(source: Sources, view: View, name: str) -> bool:
    if not source.kubelets:  # nobody runs containers here: what the API says
        return view[source.api.pod[name]].phase is Phase.RUNNING
    return any(view.project(node.sandboxes[name], read.containers_run) for node in source.nodes.values() if name in node.sandboxes)


def _node(source: Sources, view: View, name: str) -> dict[str, Callable[[], Any]]:
    fields: dict[str, Callable[[], Any]] = {"name": lambda: name}
    if name in source.kubelets:
        sandboxes = source.nodes[name].sandboxes
        fields["kubelet"] = lambda: _kubelet(source.kubelets[name], view)
        fields["containers"] = lambda: Named(
            list(sandboxes),
            lambda pod: view.project(sandboxes[pod], read.containers_run),
            lambda pod: _containers(view, sandboxes[pod], pod),
        )
    if source.plugins:
        drivers = source.nodes[name].drivers
        fields["plugins"] = lambda: Named(drivers, None, lambda driver: _plugin(source, source.plugins[name, driver], view))
    return fields


def _containers(view: View, slot: Slot[Sandbox | None], pod: str) -> Thing:
    return Lazy(
        "containers",
        {"pod": lambda: pod, "claims": lambda: Part(view, slot, read.given_claims), "devices": lambda: Part(view, slot, read.given)},
    )


def _kubelet(kubelet: Kubelet, view: View) -> Thing:
    def cached(claim: str) -> Thing:
        slot = kubelet.cache[claim]
        return Lazy(
            "cache entry",
            {
                **_record(view, slot, claim, read.entry_devices),
                "pods": lambda: Part(view, slot, read.entry_pods),
                "prepared": lambda: view.project(slot, read.entry_prepared),
                "unpreparing": lambda: view.project(slot, read.entry_unpreparing),
            },
        )

    def recorded(claim: str) -> Thing:
        slot = kubelet.disk[claim]
        return Lazy("record", {**_record(view, slot, claim, read.entry_devices), "pods": lambda: Part(view, slot, read.entry_pods)})

    return Lazy(
        "kubelet",
        {
            "running": lambda: view.value(kubelet.running),
            "cache": lambda: Named(list(kubelet.cache), lambda c: view.project(kubelet.cache[c], read.there), cached),
            "checkpoint": lambda: Named(list(kubelet.disk), lambda c: view.project(kubelet.disk[c], read.there), recorded),
        },
    )


def _record(view: View, slot: Slot[Any], claim: str, devices: Getter) -> dict[str, Callable[[], Any]]:
    return {
        "claim": lambda: claim,
        "uid": lambda: str(view.project(slot, read.uid)),
        "devices": lambda: Part(view, slot, devices),
    }


def _plugin(source: Sources, plugin: Plugin, view: View) -> Thing:
    reachable = [d.name for d in source.instance.devices if d.driver == plugin.driver and d.node in (None, plugin.node.name)]

    def recorded(claim: str) -> Thing:
        slot = plugin.records[claim]
        return Lazy("plugin record", {**_record(view, slot, claim, read.held), "state": lambda: view.project(slot, read.completed)})

    def prepared(claim: str) -> Thing:
        return Lazy("prepared claim", _record(view, plugin.hardware[claim], claim, read.held))

    return Lazy(
        "plugin",
        {
            "driver": lambda: plugin.driver,
            "running": lambda: view.value(plugin.serving),
            "inventory": lambda: Names(reachable, lambda d: view.value(plugin.present[d])),
            "checkpoint": lambda: Named(list(plugin.records), lambda c: view.project(plugin.records[c], read.there), recorded),
            "cdi": lambda: Names(plugin.node.claims, lambda c: view.project(plugin.cdi(c), read.there)),
            "prepared": lambda: Named(list(plugin.hardware), lambda c: view.project(plugin.hardware[c], read.there), prepared),
        },
    )


def _scheduler(source: Sources, view: View, name: str) -> dict[str, Callable[[], Any]]:
    scheduler = source.schedulers[name]

    def flying(claim: str) -> Thing:
        slot = scheduler.in_flight[claim]
        return Lazy(
            "in-flight allocation",
            {
                "claim": lambda: claim,
                "devices": lambda: Part(view, slot, read.flying),
                "sharers": lambda: view.project(slot, read.sharers),
            },
        )

    return {
        "name": lambda: name,
        "running": lambda: True,  # a restart is one step
        "inFlight": lambda: Named(list(scheduler.in_flight), lambda c: view.project(scheduler.in_flight[c], read.some), flying),
        "allocated": lambda: Part(view, scheduler.allocated, read.in_order),
    }


def dump(world: Thing, step: bool = False) -> dict[str, Any]:
    """The plain form of a world, without the sections that it lacks. Reads everything."""
    plain = _dump(world, STEP_WORLD if step else WORLD)
    assert isinstance(plain, dict)
    return plain


def _dump(value: Any, type_: Any) -> Any:
    if isinstance(type_, ObjectType):
        found = {}
        for name, field in type_.fields.items():
            if name == "old":
                continue
            try:
                found[name] = _dump(value.get(name), field)
            except NotInWorld:
                continue
        return found
    if isinstance(type_, ListType):
        return [_dump(item, type_.element) for item in value]
    return list(value) if isinstance(value, (Items, tuple)) else value
