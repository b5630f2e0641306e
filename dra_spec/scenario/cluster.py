"""From Kubernetes objects to the fixed part of a model: pods with their claims, generated claims, nodes, devices.

What the objects ask for and the protocol does not encode is collected as notes (file:line and the feature), never dropped; see `encoded`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import attrs

from dra_spec.protocol import instance as spec
from dra_spec.resources.claims import ClaimSpec, ResourceClaim, ResourceClaimTemplate
from dra_spec.resources.core import Pod, PodClaim
from dra_spec.resources.problems import ManifestError, Problem, Where
from dra_spec.resources.reader import Loaded
from dra_spec.resources.slices import ResourceSlice
from dra_spec.scenario.encoded import not_encoded, remark

LONE_NODE = "node"  # stands for the nodes of a cluster whose objects name none
DEFAULT_SCHEDULER = "default-scheduler"
_T = TypeVar("_T", ResourceClaim, ResourceClaimTemplate)


@attrs.frozen(eq=False)
class Cluster:
    """What the model's objects are made of.

    `sources`: the claim spec behind each claim of the model, by name; `named`: the object behind each named claim; `inventory`: the slices
    that count (the newest generation of each pool); `notes`: what is not encoded; `warnings`: oddities.
    """

    pods: Sequence[spec.PodSpec]
    claims: Sequence[spec.ClaimSpec]
    nodes: Sequence[str]
    devices: Sequence[spec.DeviceSpec]
    sources: Mapping[str, ClaimSpec]
    named: Mapping[str, ResourceClaim]
    inventory: Sequence[ResourceSlice]
    loaded: Loaded
    schedulers: Sequence[str] = ("scheduler",)
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()


def cluster(loaded: Loaded, *, pods: int | None = None, created_later: Iterable[str] = (), schedulers: int | None = None) -> Cluster:
    """The cluster of the objects.

    `pods`: only the first so many take part; `created_later`: these are created during the run; `schedulers`: so many share the pods in
    turn (None: as many as the pods name). Raises `ManifestError`: a pod names a claim or template that is not there, no pod uses a claim.
    """
    return _Builder(loaded, pods, frozenset(created_later), schedulers).build()


class _Builder:
    def __init__(self, loaded: Loaded, most: int | None, later: frozenset[str], schedulers: int | None) -> None:
        self.loaded, self.most, self.later, self.schedulers = loaded, most, later, schedulers
        self.warnings: list[str] = []
        self.problems: list[Problem] = []
        self.claims: dict[str, spec.ClaimSpec] = {}
        self.sources: dict[str, ClaimSpec] = {}
        self.named: dict[str, ResourceClaim] = {}
        self.short = _short_names([*loaded.claims, *loaded.pods])

    def build(self) -> Cluster:
        notes = not_encoded(self.loaded)
        chosen = self._chosen(bool(notes))
        pods = [self._pod(pod) for pod in chosen]
        known = {self.short[pod.label] for pod in chosen} | {pod.name for pod in chosen}
        for name in sorted(self.later - known):
            raise ManifestError([Problem("DRA222", f"created-later names {name!r}, expected one of {', '.join(sorted(known))}")])
        if self.problems:
            raise ManifestError(self.problems)
        for claim in self.loaded.claims:
            if self.short[claim.label] not in self.claims and self.most is None:
                self.warnings.append(remark(claim.where("metadata.name"), f"no pod uses the claim {claim.name}; it takes no part"))
        inventory = newest(self.loaded.slices)
        names, pods = _share(pods, self.schedulers)
        return Cluster(
            pods=pods,
            claims=list(self.claims.values()),
            nodes=self._nodes(inventory, pods),
            devices=devices(inventory),
            sources=self.sources,
            named=self.named,
            inventory=inventory,
            loaded=self.loaded,
            schedulers=names,
            notes=notes,
            warnings=[*self.warnings, *(str(w) for w in self.loaded.warnings)],
        )

    def _chosen(self, others: bool) -> list[Pod]:
        """The pods that take part. `others`: something is not encoded, so that it is no mistake if no pod has a claim.

        Nor is it one if there are claims that no pod uses: each gets a warning.
        """
        using = [pod for pod in self.loaded.pods if pod.spec.resource_claims and pod.status.phase not in ("Succeeded", "Failed")]
        if not using and not others and not self.loaded.claims:
            where = self.loaded.objects[0].where() if self.loaded.objects else Where()
            raise ManifestError([Problem("DRA220", "no pod uses a claim, so there is nothing to check", Where(where.file))])
        if self.most is None:
            return using
        if self.most > len(using):
            text = f"the bound pods={self.most} asks for more pods than use claims here ({len(using)})"
            raise ManifestError([Problem("DRA221", text)])
        return using[: self.most]

    def _pod(self, pod: Pod) -> spec.PodSpec:
        name = self.short[pod.label]
        refs = [ref for entry in pod.spec.resource_claims if (ref := self._ref(pod, name, entry)) is not None]
        later = name in self.later or pod.name in self.later
        return spec.PodSpec(name, tuple(refs), not later, pod.spec.node_name or None, _scheduler_name(pod))

    def _ref(self, pod: Pod, name: str, entry: PodClaim) -> spec.ClaimRef | None:
        if entry.resource_claim_name:
            claim = self._find(self.loaded.claims, pod, entry.resource_claim_name, entry, "claim")
            if claim is None:
                return None
            short = self.short[claim.label]
            if short not in self.claims:
                self.claims[short] = spec.ClaimSpec(short, None, tuple(r.name for r in claim.spec.requests))
                self.sources[short], self.named[short] = claim.spec, claim
            return spec.ClaimRef(entry.name, short)
        template = self._find(self.loaded.templates, pod, entry.resource_claim_template_name, entry, "claim template")
        if template is None:
            return None
        generated = f"{name}-{entry.name}"
        while generated in self.claims or generated in self.short.values():
            generated += "-x"
        self.claims[generated] = spec.ClaimSpec(generated, name, tuple(r.name for r in template.spec.spec.requests))
        self.sources[generated] = template.spec.spec
        return spec.ClaimRef(entry.name, generated, template.name)

    def _find(self, objects: Sequence[_T], pod: Pod, name: str, entry: PodClaim, kind: str) -> _T | None:
        """The object of that name in the pod's namespace; else a problem is noted that tells where it is, or what there is."""
        here = [o for o in objects if o.namespace == pod.namespace]
        for found in here:
            if found.name == name:
                return found
        elsewhere = next((o for o in objects if o.name == name), None)
        if elsewhere is not None:
            place = elsewhere.where("metadata.name").place
            hint = f"the one in namespace {elsewhere.namespace} ({place}) is not the pod's: its namespace is {pod.namespace}"
        else:
            hint = f"expected one of {', '.join(sorted(o.name for o in here))}" if here else f"no {kind} is loaded"
        self.problems.append(Problem("DRA201", f"the {kind} {name!r} is missing; {hint}", entry.at, name))
        return None

    def _nodes(self, inventory: Sequence[ResourceSlice], pods: Sequence[spec.PodSpec]) -> list[str]:
        """The Node objects in order of name; without any, the nodes that slices and pods name, or one that stands for all."""
        found = {node.name for node in self.loaded.nodes}
        if not found:
            found |= {s.spec.node_name for s in inventory if s.spec.node_name}
            found |= {d.node_name for s in inventory for d in s.spec.devices if d.node_name}
            found |= {pod.node for pod in pods if pod.node}
            if not found:
                self.warnings.append(f"no object names a node; one called {LONE_NODE!r} stands for them")
                found = {LONE_NODE}
        for pod in pods:
            if pod.node is not None and pod.node not in found:
                raise ManifestError(
                    [Problem("DRA223", f"pod {pod.name} is bound to node {pod.node!r}, expected {', '.join(sorted(found))}")]
                )
        return sorted(found)


def newest(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    """The slices of the highest generation of each pool, in order; older ones are what a driver is about to delete."""
    slices = list(slices)
    highest: dict[tuple[str, str], int] = {}
    for each in slices:
        highest[each.pool_id] = max(highest.get(each.pool_id, 0), each.spec.pool.generation)
    return [each for each in slices if each.spec.pool.generation == highest[each.pool_id]]


def devices(inventory: Iterable[ResourceSlice]) -> list[spec.DeviceSpec]:
    """The devices of the slices, each once, in order of name."""
    found: dict[str, spec.DeviceSpec] = {}
    for each in inventory:
        for device in each.spec.devices:
            name = f"{each.spec.driver}/{each.spec.pool.name}/{device.name}"
            node = device.node_name or each.spec.node_name or None
            found.setdefault(name, spec.DeviceSpec(name, node, device.binding_conditions, device.binding_failure_conditions))
    return [found[name] for name in sorted(found)]


def _short_names(objects: Iterable[ResourceClaim | Pod]) -> dict[str, str]:
    """A name for each object by its label: its own where no other of the kind has it, else with the namespace before it."""
    objects = list(objects)
    count: dict[tuple[str, str], int] = {}
    for each in objects:
        count[each.KIND, each.name] = count.get((each.KIND, each.name), 0) + 1
    return {o.label: o.name if count[o.KIND, o.name] == 1 else f"{o.namespace}/{o.name}" for o in objects}


def _scheduler_name(pod: Pod) -> str | None:
    """`spec.schedulerName` as written; None: the default one."""
    node = pod.source.node.at("spec.schedulerName") if pod.source else None
    name = str(node.value) if node is not None and node.kind == "str" else DEFAULT_SCHEDULER
    return None if name == DEFAULT_SCHEDULER else name


def _share(pods: Sequence[spec.PodSpec], number: int | None) -> tuple[tuple[str, ...], list[spec.PodSpec]]:
    """The schedulers, and the pods with the scheduler of each. With a number the pods that name none are dealt out in turn."""
    named = [pod.scheduler or "scheduler" for pod in pods]
    names = tuple(dict.fromkeys(["scheduler", *named])) if "scheduler" in named or not named else tuple(dict.fromkeys(named))
    if number is None or number == len(names):
        return names, list(pods)
    names = ("scheduler", *(f"scheduler-{i}" for i in range(2, number + 1)))
    return names, [attrs.evolve(pod, scheduler=names[i % number]) for i, pod in enumerate(pods)]
