"""What an API server keeps of new objects: fields whose feature gate is off are dropped, and what is then invalid is refused.

Source: k8s.io/kubernetes v1.37.2, pkg/registry/resource (dropDisabledFields of each kind), resource validation, and the recorded answers of
an API server with the release's gates. A version that does not know a field drops it too. All objects are taken as new ones: an API server
leaves a field in an object that had it before its gate went off, which manifests do not tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import attrs

from dra_spec.allocation.gates import gates_of
from dra_spec.allocation.settings import Settings
from dra_spec.resources.claims import AllocatedDevice, ClaimSpec, Constraint, DeviceRequest, ExactRequest, ResourceClaim, SubRequest
from dra_spec.resources.claims import ResourceClaimTemplate as Template
from dra_spec.resources.decode import camel, child
from dra_spec.resources.problems import ManifestError, Problem
from dra_spec.resources.reader import Loaded
from dra_spec.resources.slices import (
    ApiObject,
    AttributeValue,
    Capacity,
    CounterConsumption,
    Device,
    DeviceClass,
    DeviceTaintRule,
    ResourceSlice,
    SliceSpec,
)
from dra_spec.selectors import Environment, SelectorSyntaxError, admit_derived, admit_selector
from dra_spec.selectors.charges import LIMIT

_PARTITIONS = ("DRAPartitionableDevices",)
_SHARING = ("DRAConsumableCapacity",)
_BINDING = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
_REQUEST = {
    "admin_access": ("DRAAdminAccess",),
    "tolerations": ("DRADeviceTaints",),
    "capacity": _SHARING,
    "derived_attributes": ("DRADerivedAttributes",),
}
# field -> the gates that must all be on
_GATED: Mapping[type, Mapping[str, tuple[str, ...]]] = {
    Device: {
        "consumes_counters": _PARTITIONS,
        "taints": ("DRADeviceTaints",),
        "binds_to_node": _BINDING,
        "binding_conditions": _BINDING,
        "binding_failure_conditions": _BINDING,
        "allow_multiple_allocations": _SHARING,
        "node_allocatable_resources": ("DRANodeAllocatableResources",),
    },
    Capacity: {"request_policy": _SHARING},
    CounterConsumption: {"compatibility_groups": ("DRADeviceCompatibilityGroups",)},
    SliceSpec: {
        "shared_counters": _PARTITIONS,
        "per_device_node_selection": _PARTITIONS,
        "skip_node_operations": ("DRAOptionalNodeOperations",),
    },
    ExactRequest: _REQUEST,
    SubRequest: _REQUEST,
    DeviceRequest: {"first_available": ("DRAPrioritizedList",)},
    Constraint: {"distinct_attribute": _SHARING},
    AllocatedDevice: {"share_id": _SHARING, "consumed_capacity": _SHARING},
}
# without these fields the object is not valid
_NEEDED = {(SliceSpec, "per_device_node_selection"), (DeviceRequest, "first_available"), (Constraint, "distinct_attribute")}
_T = TypeVar("_T", bound=ApiObject)


@attrs.frozen
class ApiServer:
    """An API server of a Kubernetes version. `gates`: the feature gates about allocation, on or off."""

    version: str
    gates: Mapping[str, bool]
    settings: Settings  # of the scheduler beside it

    @classmethod
    def of(cls, version: str = "1.37", changed: Mapping[str, bool] | None = None) -> ApiServer:
        """The version with its default gates, changed as asked. Raises ValueError for an unknown version, and an unknown or locked gate."""
        return cls(version, gates_of(version, changed), Settings.of(version, changed))

    def admit(self, loaded: Loaded) -> tuple[Loaded, tuple[Problem, ...]]:
        """The objects as they would be stored, and a warning (DRA317) for each field of an object that is dropped.

        Raises ManifestError for objects that would be refused: a selector that the version does not take in new objects or that may cost
        too much (DRA130), a field without which the object is not valid (DRA140).
        """
        objects: list[ApiObject] = []
        dropped: list[Problem] = []
        refused: list[Problem] = []
        for o in loaded.objects:
            if isinstance(o, DeviceTaintRule) and (off := self._off(("DRADeviceTaints", "DRADeviceTaintRules"))):
                text = f"{self._blame(off)}: the {o.label} is left out{self._remedy(off)}"
                dropped.append(Problem("DRA317", text, o.where("spec")))
                continue
            visit = _Visit(self, o)
            objects.append(visit.stored(o))
            dropped += visit.warnings()
            refused += visit.refused
        refused += [p for error in self._selectors(objects) for p in error.problems]
        if refused:
            raise ManifestError(refused, (*loaded.warnings, *dropped))
        return attrs.evolve(loaded, objects=tuple(objects)), tuple(dropped)

    def _off(self, gates: Iterable[str]) -> str:
        """The first of the gates that is off, "" if all are on."""
        return next((g for g in gates if not self.gates.get(g)), "")

    def _blame(self, gate: str) -> str:
        if gate in self.gates:
            return f"the feature gate {gate} is off in Kubernetes {self.version}"
        return f"Kubernetes {self.version} does not have {gate}"

    def _remedy(self, gate: str) -> str:
        return f": --gate {gate}=true" if gate in self.gates else ""

    def _selectors(self, objects: Iterable[ApiObject]) -> Iterator[SelectorSyntaxError]:
        new = self.settings.admission
        for o in objects:
            if isinstance(o, DeviceClass):
                yield from _refused(o.spec.selectors, new)
            elif isinstance(o, (ResourceClaim, Template)):
                yield from _claim(o, o.spec if isinstance(o, ResourceClaim) else o.spec.spec, new)


def _claim(o: ApiObject, spec: ClaimSpec, new: Environment) -> Iterator[SelectorSyntaxError]:
    left = LIMIT  # for the derived attributes of a claim together
    for request in spec.requests:
        for _, leaf in request.leaves:
            yield from _refused(leaf.selectors, new)
            for derived in leaf.derived_attributes:
                try:
                    left -= admit_derived(derived.expression, leaf.at, new, left).max_cost
                except SelectorSyntaxError as error:
                    yield error


def _refused(selectors: Iterable[Any], new: Environment) -> Iterator[SelectorSyntaxError]:
    for selector in selectors:
        try:
            admit_selector(selector.expression, selector.at, new)
        except SelectorSyntaxError as error:
            yield error


@attrs.define(eq=False)
class _Visit:
    """One object on its way into the store."""

    server: ApiServer
    source: ApiObject
    dropped: dict[tuple[str, str], list[str]] = attrs.field(factory=dict)  # (field, gate) -> its paths
    refused: list[Problem] = attrs.field(factory=list)
    lists: bool = False  # whether a list attribute has been refused

    def stored(self, o: _T) -> _T:
        """The object without the fields that are dropped."""
        if not isinstance(o, (ResourceSlice, DeviceClass, ResourceClaim, Template)):
            return o
        kept: _T = self._value(o, "")
        return kept

    def warnings(self) -> Iterator[Problem]:
        """One for each kind of field that was dropped."""
        for (field, gate), paths in self.dropped.items():
            more = f" (and {len(paths) - 1} more in this object)" if len(paths) > 1 else ""
            text = f"{self.server._blame(gate)}: an API server drops {field}{more}{self.server._remedy(gate)}"
            yield Problem("DRA317", text, self.source.where(paths[0]))

    def _value(self, value: Any, path: str) -> Any:
        if isinstance(value, tuple):
            return self._all(value, [self._value(v, f"{path}[{i}]") for i, v in enumerate(value)])
        if isinstance(value, Mapping):
            changed = {k: self._value(v, f"{path}[{k}]") for k, v in value.items()}
            return value if all(changed[k] is v for k, v in value.items()) else changed
        if isinstance(value, AttributeValue):
            self._list(value, path)
            return value
        return self._object(value, path) if attrs.has(type(value)) and type(value).__module__.startswith(_OURS) else value

    @staticmethod
    def _all(old: tuple[Any, ...], new: list[Any]) -> tuple[Any, ...]:
        return old if all(a is b for a, b in zip(old, new, strict=True)) else tuple(new)

    def _object(self, value: Any, path: str) -> Any:
        gated = _GATED.get(type(value), {})
        changes: dict[str, Any] = {}
        for field in attrs.fields(type(value)):
            if "read" not in field.metadata:
                continue
            name = field.metadata["key"] or camel(field.name)
            there, found = child(path, name), getattr(value, field.name)
            gate = self.server._off(gated.get(field.name, ()))
            if gate and found != _default(field):
                changes[field.name] = self._without(value, field, name, gate, there)
                continue
            kept = self._value(found, there)
            if kept is not found:
                changes[field.name] = kept
        return attrs.evolve(value, **changes) if changes else value

    def _without(self, value: Any, field: Any, name: str, gate: str, path: str) -> Any:
        if (type(value), field.name) in _NEEDED:
            text = f"{self.server._blame(gate)}: an API server drops {name} and refuses the {self.source.KIND}, which needs it"
            text += self.server._remedy(gate)
            self.refused.append(Problem("DRA140", text, self.source.where(path)))
            return getattr(value, field.name)
        self.dropped.setdefault((name, gate), []).append(path)
        return _default(field)

    def _list(self, value: AttributeValue, path: str) -> None:
        """The first list attribute of the object speaks for all."""
        if value.is_list and not self.lists and (gate := self.server._off(("DRAListTypeAttributes",))):
            self.lists = True
            text = f"{self.server._blame(gate)}: an API server refuses the slice, whose attribute is a list ({value.kind})"
            text += self.server._remedy(gate)
            self.refused.append(Problem("DRA140", text, self.source.where(path)))


def _default(field: Any) -> Any:
    """What a field is if nobody sets it."""
    return field.default.factory() if hasattr(field.default, "factory") else field.default


_OURS = "dra_spec.resources."
