"""What DRA needs of Pod, PodGroup, Node and Namespace. Their other fields are ignored; a misspelt field of those read here is not."""

# ruff: noqa: RUF009 - f() and at() make attrs fields, they do not give defaults

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from dra_spec.resources import names
from dra_spec.resources.decode import at, boolean, checked, f, items, mapping, obj, quantity, raw, string
from dra_spec.resources.problems import Where
from dra_spec.resources.quantity import Quantity
from dra_spec.resources.slices import ApiObject


@attrs.frozen(kw_only=True)
class PodClaim:
    """An entry of `spec.resourceClaims`: exactly one of the two names is set."""

    name: str = f(string(names.dns_label), required=True)
    resource_claim_name: str = f(string(names.dns_subdomain), default="")
    resource_claim_template_name: str = f(string(names.dns_subdomain), default="")
    at: Where = at()


def _pod_claim_rule(entry: PodClaim) -> str | None:
    if bool(entry.resource_claim_name) == bool(entry.resource_claim_template_name):
        which = "both" if entry.resource_claim_name else "neither"
        return f"found {which} of resourceClaimName and resourceClaimTemplateName, expected exactly one"
    return None


_POD_CLAIMS = items(checked(obj(PodClaim), _pod_claim_rule), unique="name")


@attrs.frozen(kw_only=True)
class ContainerClaim:
    """`request` "": all requests of the claim."""

    name: str = f(string(), required=True)
    request: str = f(string(), default="")
    at: Where = at()


@attrs.frozen(kw_only=True)
class Resources:
    LENIENT: ClassVar[bool] = True

    claims: tuple[ContainerClaim, ...] = f(items(obj(ContainerClaim)), default=())
    requests: Mapping[str, Quantity] = f(mapping(quantity), default=attrs.Factory(dict))
    limits: Mapping[str, Quantity] = f(mapping(quantity), default=attrs.Factory(dict))
    at: Where = at()


@attrs.frozen(kw_only=True)
class Container:
    LENIENT: ClassVar[bool] = True
    NEAR: ClassVar[tuple[str, ...]] = ("resizePolicy", "env", "envFrom", "image")

    name: str = f(string(), default="")
    restart_policy: str = f(string(), default="")
    resources: Resources = f(obj(Resources), default=attrs.Factory(Resources))
    at: Where = at()


@attrs.frozen(kw_only=True)
class SchedulingGate:
    name: str = f(string(), required=True)


@attrs.frozen(kw_only=True)
class SchedulingGroup:
    pod_group_name: str = f(string(names.dns_subdomain), required=True)


_OTHER_POD_FIELDS = """
    activeDeadlineSeconds automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks ephemeralContainers hostAliases hostIPC
    hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets os overhead preemptionPolicy priority priorityClassName
    readinessGates resources restartPolicy runtimeClassName schedulerName securityContext serviceAccount serviceAccountName
    setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds topologySpreadConstraints volumes workloadRef
"""


@attrs.frozen(kw_only=True)
class PodSpec:
    LENIENT: ClassVar[bool] = True
    KNOWN: ClassVar[tuple[str, ...]] = tuple(_OTHER_POD_FIELDS.split())

    resource_claims: tuple[PodClaim, ...] = f(_POD_CLAIMS, default=())
    containers: tuple[Container, ...] = f(items(obj(Container)), default=())
    init_containers: tuple[Container, ...] = f(items(obj(Container)), default=())
    node_name: str = f(string(), default="")
    node_selector: Mapping[str, str] = f(mapping(string()), default=attrs.Factory(dict))
    affinity: Any = f(raw)
    tolerations: Any = f(raw)
    scheduling_gates: tuple[SchedulingGate, ...] = f(items(obj(SchedulingGate)), default=())
    scheduling_group: SchedulingGroup | None = f(obj(SchedulingGroup))
    at: Where = at()

    @property
    def all_containers(self) -> tuple[Container, ...]:
        return self.init_containers + self.containers


def pod_rule(spec: PodSpec) -> str | None:
    known = {entry.name for entry in spec.resource_claims}
    for container in spec.all_containers:
        for use in container.resources.claims:
            if use.name not in known:
                listed = ", ".join(sorted(known)) or "no claim"
                return f"container {container.name!r} (line {use.at.line}) uses claim {use.name!r}, but spec.resourceClaims lists {listed}"
    return None


@attrs.frozen(kw_only=True)
class ClaimNameStatus:
    name: str = f(string(), required=True)
    resource_claim_name: str = f(string(), default="")


@attrs.frozen(kw_only=True)
class ExtendedClaimStatus:
    resource_claim_name: str = f(string(), default="")
    request_mappings: Any = f(raw)


@attrs.frozen(kw_only=True)
class PodStatus:
    LENIENT: ClassVar[bool] = True
    NEAR: ClassVar[tuple[str, ...]] = ("resourceClaimStatuses", "resources")

    phase: str = f(string(), default="")
    resource_claim_statuses: tuple[ClaimNameStatus, ...] = f(items(obj(ClaimNameStatus)), default=())
    extended_resource_claim_status: ExtendedClaimStatus | None = f(obj(ExtendedClaimStatus))


@attrs.frozen(kw_only=True)
class Pod(ApiObject):
    """A pod; `workload` names the object that it was made from ("Deployment web"), "" if it is a manifest of its own; `ordinal` counts the
    pods of a workload, from 0."""

    KIND: ClassVar[str] = "Pod"
    LENIENT: ClassVar[bool] = True

    spec: PodSpec = f(checked(obj(PodSpec), pod_rule), required=True)
    status: PodStatus = f(obj(PodStatus), default=attrs.Factory(PodStatus))
    workload: str = ""
    ordinal: int = 0


@attrs.frozen(kw_only=True)
class PodGroupSpec:
    LENIENT: ClassVar[bool] = True

    resource_claims: tuple[PodClaim, ...] = f(items(checked(obj(PodClaim), _pod_claim_rule), high=4, unique="name"), default=())
    scheduling_policy: Any = f(raw)
    at: Where = at()


@attrs.frozen(kw_only=True)
class PodGroup(ApiObject):
    KIND: ClassVar[str] = "PodGroup"
    LENIENT: ClassVar[bool] = True

    spec: PodGroupSpec = f(obj(PodGroupSpec), default=attrs.Factory(PodGroupSpec))


@attrs.frozen(kw_only=True)
class NodeTaint:
    LENIENT: ClassVar[bool] = True

    key: str = f(string(), required=True)
    value: str = f(string(), default="")
    effect: str = f(string(), default="")
    at: Where = at()


@attrs.frozen(kw_only=True)
class NodeSpec:
    LENIENT: ClassVar[bool] = True

    unschedulable: bool = f(boolean, default=False)
    taints: tuple[NodeTaint, ...] = f(items(obj(NodeTaint)), default=())


@attrs.frozen(kw_only=True)
class NodeStatus:
    LENIENT: ClassVar[bool] = True

    allocatable: Mapping[str, Quantity] = f(mapping(quantity), default=attrs.Factory(dict))
    declared_features: tuple[str, ...] = f(items(string()), default=())


@attrs.frozen(kw_only=True)
class Node(ApiObject):
    KIND: ClassVar[str] = "Node"
    NAMESPACED: ClassVar[bool] = False
    LENIENT: ClassVar[bool] = True

    spec: NodeSpec = f(obj(NodeSpec), default=attrs.Factory(NodeSpec))
    status: NodeStatus = f(obj(NodeStatus), default=attrs.Factory(NodeStatus))

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels


@attrs.frozen(kw_only=True)
class Namespace(ApiObject):
    """Kept for its labels only (admin access)."""

    KIND: ClassVar[str] = "Namespace"
    NAMESPACED: ClassVar[bool] = False
    LENIENT: ClassVar[bool] = True
