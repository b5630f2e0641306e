"""From manifests to a problem: which pods are waiting, with which claims, and where they may go."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

import attrs

from dra_spec.allocation.z3_problem import Call, Problem, WantedClaim, holdings_of, node_names
from dra_spec.allocation.z3_view import matches
from dra_spec.resources.claims import ClaimSpec, ResourceClaim, ResourceClaimTemplate
from dra_spec.resources.core import Node, Pod
from dra_spec.resources.meta import CelSelector
from dra_spec.resources.problems import ManifestError
from dra_spec.resources.problems import Problem as Wrong
from dra_spec.resources.reader import Loaded
from dra_spec.resources.slices import Pool as SlicePool
from dra_spec.resources.slices import SliceSpec

IMPLICIT_EXTENDED = "deviceclass.resource.kubernetes.io/"
_READ = re.compile(r"""device\.(?:attributes|capacity)\[\s*["']([^"']+)["']\s*\]\s*(?:\.\??(\w+)|\[\s*\??\s*["']([^"']+)["']\s*\])""")


@attrs.frozen(eq=False)
class Waiting:
    """A problem, what of the manifests is not encoded (each with its place), and hints about likely mistakes."""

    problem: Problem
    not_encoded: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def waiting(loaded: Loaded, claim: str = "", node: str = "") -> Waiting:
    """Every pod without an allocation as one call; claims and templates that no pod uses as calls of their own.

    `claim`: only this claim (name or namespace/name; of a pod as POD-ENTRY), alone. `node`: only this node. Pods that share a claim are one
    call, so they land on one node. Raises ManifestError for names that are not there.
    """
    nodes = node_names(loaded)
    if node and node not in nodes:
        raise _unknown("node", node, nodes)
    here = (node,) if node else nodes
    units = list(_units(loaded, here))
    if claim:
        units = [_only(units, claim)]
    others = tuple(dict.fromkeys(n for pod in loaded.pods for n in _extended(loaded, pod))) if not claim else ()
    if not units and not others:
        raise ManifestError([Wrong("DRA220", "no claim waits for an allocation, so there is nothing to decide")])
    problem = Problem(
        {c.name: c for c in loaded.classes},
        loaded.slices,
        {n.name: n for n in loaded.nodes},
        tuple(call for call, _ in units),
        holdings_of(loaded.claims),
        loaded.taint_rules,
    )
    pods = [pod for _, pods in units for pod in pods] if not claim else []
    notes = tuple(dict.fromkeys([*(n for pod in pods for n in _not_encoded(loaded, pod)), *others]))
    return Waiting(problem, notes, tuple(node_label_hints(loaded)))


def _units(loaded: Loaded, nodes: tuple[str, ...]) -> Iterator[tuple[Call, list[Pod]]]:
    claims = {(c.namespace, c.name): c for c in loaded.claims}
    templates = {(t.namespace, t.name): t for t in loaded.templates}
    used: set[str] = set()
    groups: list[tuple[list[Pod], dict[str, WantedClaim], set[str]]] = []
    for pod in loaded.pods:
        wanted: dict[str, WantedClaim] = {}
        open_to = {n for n in nodes if _may_go(loaded, pod, n)}
        for entry in pod.spec.resource_claims:
            named = claims.get((pod.namespace, entry.resource_claim_name))
            template = templates.get((pod.namespace, entry.resource_claim_template_name))
            if named is not None:
                used.add(named.label)
                if named.status.allocation is None:
                    wanted[named.label] = WantedClaim(f"claim {named.name}", named.spec)
                else:
                    open_to &= {n for n in nodes if _allocated_for(loaded, named, n)}
            elif template is not None:
                used.add(template.label)
                label = f"{pod.label} {entry.name}"
                wanted[label] = WantedClaim(f"claim {pod.name}-{entry.name}", template.spec.spec)
        done = pod.status.phase in ("Succeeded", "Failed")
        if not wanted or done:
            continue
        sharing = [g for g in groups if set(g[1]) & set(wanted)]
        for group in sharing:
            groups.remove(group)
        pods = [p for g in sharing for p in g[0]] + [pod]
        together = {k: c for g in sharing for k, c in g[1].items()} | wanted
        groups.append((pods, together, open_to.intersection(*(g[2] for g in sharing))))
    for pods, together, open_to in groups:
        label = " and ".join(pod_label(loaded, p) for p in pods)
        if not open_to:
            raise ManifestError([Wrong("DRA221", f"{label} may go to none of the nodes {', '.join(nodes)}", pods[0].where("spec"))])
        yield Call(label, tuple(together.values()), tuple(n for n in nodes if n in open_to)), pods
    rest: tuple[ResourceClaim | ResourceClaimTemplate, ...] = (*loaded.claims, *loaded.templates)
    for each in rest:
        if each.label not in used and not (isinstance(each, ResourceClaim) and each.status.allocation is not None):
            word = "claim" if isinstance(each, ResourceClaim) else "claim of template"
            yield Call(f"{word} {each.name}", (WantedClaim(f"{word} {each.name}", _spec(each)),), nodes), []


def pod_label(loaded: Loaded, pod: Pod) -> str:
    """The pod's name, with its namespace where another pod has the same name."""
    alike = sum(p.name == pod.name for p in loaded.pods)
    return f"pod {pod.name}" if alike == 1 else f"pod {pod.namespace}/{pod.name}"


def _spec(each: ResourceClaim | ResourceClaimTemplate) -> ClaimSpec:
    return each.spec if isinstance(each, ResourceClaim) else each.spec.spec


def _only(units: Sequence[tuple[Call, list[Pod]]], name: str) -> tuple[Call, list[Pod]]:
    short = name.rpartition("/")[2]
    known = []
    for call, pods in units:
        for claim in call.claims:
            known.append(claim.label.rpartition(" ")[2])
            if known[-1] == short:
                return Call(claim.label, (claim,), call.nodes), pods
    raise _unknown("waiting claim", name, known)


def _unknown(kind: str, name: str, known: Iterable[str]) -> ManifestError:
    known = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; expected one of {', '.join(known)}" if known else "; there is none"
    return ManifestError([Wrong("DRA202", f"there is no {kind} {name!r}{hint}", found=name, expected=", ".join(known))])


def _may_go(loaded: Loaded, pod: Pod, name: str) -> bool:
    if pod.spec.node_name:
        return pod.spec.node_name == name
    node = next((n for n in loaded.nodes if n.name == name), None)
    labels = node.labels if node is not None else {}
    if node is not None and node.spec.unschedulable:
        return False
    return all(labels.get(k) == v for k, v in pod.spec.node_selector.items())


def _allocated_for(loaded: Loaded, claim: ResourceClaim, name: str) -> bool:
    selector = claim.status.allocation.node_selector if claim.status.allocation else None
    node = next((n for n in loaded.nodes if n.name == name), None) or Problem({}, (), {}, ()).node(name)
    return selector is None or matches(
        SliceSpec(driver="d", pool=SlicePool(name="p", resource_slice_count=1), node_selector=selector), node
    )


def _not_encoded(loaded: Loaded, pod: Pod) -> Iterator[str]:
    """What decides where a pod may go, and is not looked at."""
    affinity = pod.spec.affinity or {}
    for key in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
        if affinity.get(key):
            yield f"{pod.where('spec.affinity').place}: {key} of pod {pod.name}"
    if pod.spec.scheduling_gates:
        yield f"{pod.where('spec.schedulingGates').place}: scheduling gates of pod {pod.name}"
    if pod.spec.scheduling_group is not None:
        yield f"{pod.where('spec.schedulingGroup').place}: pod groups (pod {pod.name})"
    for node in loaded.nodes:
        if any(t.effect in ("NoSchedule", "NoExecute") for t in node.spec.taints):
            yield f"{node.where('spec.taints').place}: taints of node {node.name}"


def _extended(loaded: Loaded, pod: Pod) -> Iterator[str]:
    backed = {c.spec.extended_resource_name: c.name for c in loaded.classes if c.spec.extended_resource_name}
    for container in pod.spec.all_containers:
        for name in {**container.resources.requests, **container.resources.limits}:
            if name not in backed and not name.startswith(IMPLICIT_EXTENDED):
                continue
            text = f"{container.resources.at.place}: pod {pod.name} asks for the extended resource {name} (extended resources by DRA)"
            plugin = [n.name for n in loaded.nodes if name in n.status.allocatable]
            if plugin:
                text += f"; node {plugin[0]} has it from a device plugin too"
            yield text


def node_label_hints(loaded: Loaded) -> Iterator[str]:
    """Selectors that read a node label as if it were an attribute: Node Feature Discovery labels nodes, it publishes no devices."""
    published: set[tuple[str, str]] = set()
    for each in loaded.slices:
        for device in each.spec.devices:
            for key in (*device.attributes, *device.capacity):
                domain, slash, ident = key.partition("/")
                published.add((domain, ident) if slash else (each.spec.driver, key))
    for selector, owner in _selectors(loaded):
        for domain, dotted, quoted in dict.fromkeys(_READ.findall(selector.expression)):
            ident = dotted or quoted
            if (domain, ident) in published:
                continue
            label = f"{domain}/{ident}"
            having: Node | None = next((n for n in loaded.nodes if label in n.labels), None)
            nfd = domain.endswith(("node.kubernetes.io", ".nfd.k8s-sigs.io"))
            if having is None and not nfd:
                continue
            place = f"{selector.at.place}: " if selector.at.place else ""
            whose = f"a label of node {having.name}" if having is not None else "the name of a node label (Node Feature Discovery)"
            yield (
                f"{place}{owner} reads the device attribute {label}, which no device has; it is {whose}. "
                "Labels describe nodes: ask for them with the pod's nodeSelector or node affinity"
            )


def _selectors(loaded: Loaded) -> Iterator[tuple[CelSelector, str]]:
    for device_class in loaded.classes:
        for selector in device_class.spec.selectors:
            yield selector, f"class {device_class.name}"
    owners: tuple[ResourceClaim | ResourceClaimTemplate, ...] = (*loaded.claims, *loaded.templates)
    for each in owners:
        for request in _spec(each).requests:
            for name, leaf in request.leaves:
                for selector in leaf.selectors:
                    yield selector, f"request {name} of {each.name}"
