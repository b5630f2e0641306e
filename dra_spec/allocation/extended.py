"""Extended resources: how much a pod asks for, who serves it on a node, and the claim that the scheduler makes for what DRA serves.

A node whose `status.allocatable` has some of a resource serves it by a device plugin, and only by it; elsewhere a DeviceClass with that
`extendedResourceName`, or the class that the implicit name ends with, serves it by DRA. Source: KEP-5004, KEP-753 (what init containers and
sidecars add up to), Kubernetes 1.37.2 dynamicresources/extendeddynamicresources.go, noderesources/fit.go, extendedresourcecache.go.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import attrs

from dra_spec.resources.claims import ClaimSpec, DeviceClaim, DeviceRequest, ExactRequest
from dra_spec.resources.core import Container, Node, Pod
from dra_spec.resources.problems import NOWHERE, ManifestError, Problem, Where
from dra_spec.resources.quantity import Quantity
from dra_spec.resources.slices import DeviceClass

IMPLICIT = "deviceclass.resource.kubernetes.io/"
MAIN, SIDECAR, INIT = "container", "sidecar", "init container"


@attrs.frozen
class Ask:
    """What one container asks for of one resource. `index`: of the container, init containers first; `rank`: of the resource among all
    that the container requests, by name; `kind`: MAIN, SIDECAR or INIT, of which only the last ends before the others start."""

    index: int
    container: str
    kind: str
    resource: str
    amount: int
    rank: int
    at: Where = attrs.field(default=NOWHERE, eq=False)

    @property
    def request(self) -> str:
        """The name of its request in the special claim."""
        return f"container-{self.index}-request-{self.rank}"


@attrs.frozen
class PodAsks:
    """The extended resources that one waiting pod asks for."""

    pod: str
    asks: tuple[Ask, ...]

    @property
    def resources(self) -> frozenset[str]:
        return frozenset(a.resource for a in self.asks)


@attrs.frozen
class Use:
    """A container of a pod may use what a request of the special claim gets (an entry of requestMappings in the pod's status)."""

    container: str
    resource: str
    request: str


@attrs.frozen
class Special:
    """What is special about a claim that the scheduler makes for a pod: it exists only on nodes where DRA serves exactly `served` of the
    resources that the pod asks for (`asked`)."""

    pod: str
    asked: frozenset[str]
    served: frozenset[str]
    uses: tuple[Use, ...]


@attrs.frozen
class Running:
    """A pod that has a node. `amounts`: of extended resources."""

    pod: str
    node: str
    amounts: tuple[tuple[str, int], ...]

    def of(self, resource: str) -> int:
        return dict(self.amounts).get(resource, 0)


@attrs.frozen
class Backing:
    """Resource names and the classes that serve them. `outdone`: by name, the classes that lost a name to another one."""

    classes: Mapping[str, str]
    outdone: Mapping[str, tuple[str, ...]]


def is_extended(name: str) -> bool:
    """Whether a resource name is one that device plugins or classes serve, in distinction from cpu, hugepages-2Mi and the like."""
    return name.startswith(IMPLICIT) or ("/" in name and "kubernetes.io/" not in name and not name.startswith("requests."))


def backing(classes: Iterable[DeviceClass]) -> Backing:
    """Of several classes with the same resource name the newest serves it, of equally new ones the one whose name comes first."""
    classes = tuple(classes)
    by_name: dict[str, list[DeviceClass]] = {}
    for each in classes:
        if each.spec.extended_resource_name:
            by_name.setdefault(each.spec.extended_resource_name, []).append(each)
    found, outdone = {IMPLICIT + c.name: c.name for c in classes}, {}
    for name, rivals in by_name.items():
        rivals.sort(key=lambda c: (-_created(c), c.name))
        found[name] = rivals[0].name
        if len(rivals) > 1:
            outdone[name] = tuple(c.name for c in rivals[1:])
    return Backing(found, outdone)


def _created(device_class: DeviceClass) -> float:
    """Seconds since 1970; a class whose time is not given is older than all others."""
    text = device_class.metadata.creation_timestamp
    if not text:
        return -math.inf
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        where = device_class.where("metadata.creationTimestamp")
        raise ManifestError([Problem("DRA224", f"{device_class.label}: found {text!r}, expected a time", where, text, "a time")]) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def asks_of(pod: Pod) -> tuple[Ask, ...]:
    """What the containers ask for, in their order. Raises ManifestError for an amount that the API server would refuse."""
    found: list[Ask] = []
    for index, container in enumerate(pod.spec.all_containers):
        kind = MAIN
        if index < len(pod.spec.init_containers):
            kind = SIDECAR if container.restart_policy == "Always" else INIT
        found += _asks(container, index, kind)
    return tuple(found)


def _asks(container: Container, index: int, kind: str) -> Iterator[Ask]:
    resources = container.resources
    amounts = {**resources.limits, **resources.requests}  # a limit without a request is a request, too
    for rank, name in enumerate(sorted(amounts)):
        if not is_extended(name):
            continue
        asked, limit = amounts[name], resources.limits.get(name)
        if not name.startswith(IMPLICIT) and limit != asked:  # the API server lets implicit names differ, and requests count
            limited = "no limit" if limit is None else f"a limit of {limit}"
            _refuse(container, name, f"a request of {asked} and {limited}", "them to be equal")
        if asked.value < 0 or asked.value.denominator != 1:
            _refuse(container, name, str(asked), "a whole number of devices")
        if asked.value:
            yield Ask(index, container.name, kind, name, int(asked.value), rank, resources.at)


def _refuse(container: Container, name: str, found: str, expected: str) -> None:
    text = f"container {container.name!r}: extended resource {name}: found {found}, expected {expected}"
    raise ManifestError([Problem("DRA224", text, container.resources.at, found, expected)])


def totals(asks: Sequence[Ask]) -> dict[str, int]:
    """What the pod needs of each resource at once: init containers run one after the other, beside the sidecars before them."""
    lasting: dict[str, int] = {}
    peak: dict[str, int] = {}
    for ask in asks:
        before = lasting.get(ask.resource, 0)
        if ask.kind == INIT:
            peak[ask.resource] = max(peak.get(ask.resource, 0), before + ask.amount)
        else:
            lasting[ask.resource] = before + ask.amount
    return {r: max(lasting.get(r, 0), peak.get(r, 0)) for r in dict.fromkeys(a.resource for a in asks)}


def special_claim(pod: PodAsks, served: frozenset[str], classes: Mapping[str, str]) -> tuple[ClaimSpec, Special]:
    """The claim for the resources that DRA serves, and which container uses which of its requests."""
    requests: list[DeviceRequest] = []
    uses: list[Use] = []
    for resource in sorted(served):
        made, used = _requests([a for a in pod.asks if a.resource == resource], classes[resource])
        requests += made
        uses += used
    requests.sort(key=lambda r: r.name)
    return ClaimSpec(devices=DeviceClaim(requests=tuple(requests))), Special(pod.pod, pod.resources, served, tuple(uses))


def _requests(asks: Sequence[Ask], device_class: str) -> tuple[list[DeviceRequest], list[Use]]:
    """One request for each container that lasts, and one for the init container that needs most beyond what it can use of theirs; the
    other init containers use that one, too."""
    lasting = [a for a in asks if a.kind != INIT]
    requests = [_request(a, a.amount, device_class) for a in lasting]
    uses = [Use(a.container, a.resource, a.request) for a in lasting]
    short: list[tuple[Ask, int]] = []
    wanting: list[tuple[int, Ask]] = []  # where in `uses` the own request of an init container stands
    for ask in (a for a in asks if a.kind == INIT):
        missing = ask.amount
        for later in lasting:
            if later.index > ask.index and missing > 0:
                uses.append(Use(ask.container, ask.resource, later.request))
                missing -= later.amount
        if missing > 0:
            short.append((ask, missing))
            wanting.append((len(uses), ask))
            uses.append(Use(ask.container, ask.resource, ask.request))
    if short:
        most, missing = max(short, key=lambda s: s[1])
        requests.append(_request(most, missing, device_class))
        for position, ask in wanting:
            uses[position] = Use(ask.container, ask.resource, most.request)
    return requests, uses


def _request(ask: Ask, count: int, device_class: str) -> DeviceRequest:
    return DeviceRequest(name=ask.request, exactly=ExactRequest(device_class_name=device_class, count=count, at=ask.at), at=ask.at)


def offered(node: Node, resource: str) -> int:
    """How much of the resource the device plugins of the node have in all."""
    amount: Quantity | None = node.status.allocatable.get(resource)
    return math.ceil(amount.value) if amount is not None else 0


def served_by_dra(node: Node, resources: Iterable[str], classes: Mapping[str, str]) -> frozenset[str]:
    """The resources that DRA serves on the node."""
    return frozenset(r for r in resources if r in classes and not offered(node, r))
