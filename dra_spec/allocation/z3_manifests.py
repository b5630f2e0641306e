"""From manifests to a problem: which pods are waiting, with which claims, and where they may go."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

import attrs

from dra_spec.allocation.errors import UnsupportedFeature
from dra_spec.allocation.extended import PodAsks, asks_of
from dra_spec.allocation.extended_manifests import Extended, finished, made_by_scheduler, pod_label
from dra_spec.allocation.extended_nodes import with_specials
from dra_spec.allocation.label_hints import attribute_as_label, node_label_hints
from dra_spec.allocation.settings import Settings
from dra_spec.allocation.z3_problem import Call, Problem, WantedClaim, holdings_of, node_names
from dra_spec.allocation.z3_view import matches
from dra_spec.resources.claims import ClaimSpec, ResourceClaim, ResourceClaimTemplate
from dra_spec.resources.core import Node, Pod, PodClaim
from dra_spec.resources.problems import ManifestError
from dra_spec.resources.problems import Problem as Wrong
from dra_spec.resources.reader import Loaded
from dra_spec.resources.slices import Pool as SlicePool
from dra_spec.resources.slices import SliceSpec


@attrs.frozen(eq=False)
class Waiting:
    """A problem, what of the manifests is not encoded (each with its place), and hints about likely mistakes. `pods`: of each call."""

    problem: Problem
    not_encoded: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    pods: tuple[tuple[Pod, ...], ...] = ()


def waiting(loaded: Loaded, claim: str = "", node: str = "", settings: Settings | None = None, new: Node | None = None) -> Waiting:
    """Every pod without an allocation as one call; claims and templates that no pod uses as calls of their own.

    `claim`: only this claim (name or namespace/name; of a pod as POD-ENTRY), alone. `node`: only this node. Pods that share a claim are one
    call, so they land on one node. `new`: nodes like this one may be added, so a pod may have no node yet. Raises ManifestError for names
    that are not there.
    """
    settings = settings or Settings()
    extended = Extended.of(loaded, settings)
    nodes = node_names(loaded)
    if node and node not in nodes:
        raise _unknown("node", node, nodes)
    here = (node,) if node else nodes
    units = list(_units(loaded, here, new))
    if claim:
        units = [_only(units, claim)]
    if not units:
        raise ManifestError([Wrong("DRA220", "no claim waits for an allocation, so there is nothing to decide")])
    problem = Problem(
        {c.name: c for c in loaded.classes},
        loaded.slices,
        {n.name: n for n in loaded.nodes},
        tuple(with_specials(call, [extended.node(n) for n in call.nodes], extended.classes) for call, _ in units),
        holdings_of(loaded.claims),
        loaded.taint_rules,
        backing=extended.classes,
        unbacked=extended.unserved,
        running=extended.running(),
        features=frozenset(settings.features),
        version=settings.version,
    )
    pods = [pod for _, pods in units for pod in pods] if not claim else []
    notes = dict.fromkeys(n for pod in pods for n in (*_not_encoded(loaded, pod), *extended.not_told(pod, here)))
    cut = [w.message for w in loaded.warnings if w.code == "DRA301"]
    hints = (*node_label_hints(loaded), *extended.hints(pods, here), *cut)
    return Waiting(problem, tuple(notes), hints, tuple(tuple(p) for _, p in units))


def _units(loaded: Loaded, nodes: tuple[str, ...], new: Node | None) -> Iterator[tuple[Call, list[Pod]]]:
    claims = {(c.namespace, c.name): c for c in loaded.claims}
    templates = {(t.namespace, t.name): t for t in loaded.templates}
    used: set[str] = set()
    groups: list[tuple[list[Pod], dict[str, WantedClaim], set[str], list[PodAsks]]] = []
    for pod in loaded.pods:
        if _daemon(pod) and not _daemon_exists(loaded, pod):
            continue
        wanted: dict[str, WantedClaim] = {}
        open_to = {n for n in nodes if _may_go(loaded, pod, n)}
        for entry in pod.spec.resource_claims:
            named = claims.get((pod.namespace, claim_name(pod, entry) or ""))
            template = templates.get((pod.namespace, entry.resource_claim_template_name))
            if template is not None:
                used.add(template.label)
            if claim_name(pod, entry) == "":
                continue
            if named is not None:
                used.add(named.label)
                if named.status.allocation is None:
                    name = entry.resource_claim_name or f"{pod.name}-{entry.name}"
                    wanted[named.label] = WantedClaim(f"claim {name}", named.spec)
                else:
                    open_to &= {n for n in nodes if _allocated_for(named, _node(loaded, n))}
            elif template is not None:
                label = f"{pod.label} {entry.name}"
                wanted[label] = WantedClaim(f"claim {pod.name}-{entry.name}", template.spec.spec)
        # a pod that has a node already is counted there
        asks = PodAsks(pod_label(loaded, pod), () if pod.spec.node_name else asks_of(pod))
        if finished(pod) or not (wanted or asks.asks):
            continue
        sharing = [g for g in groups if set(g[1]) & set(wanted)]
        for group in sharing:
            groups.remove(group)
        pods = [p for g in sharing for p in g[0]] + [pod]
        together = {k: c for g in sharing for k, c in g[1].items()} | wanted
        all_asks = [a for g in sharing for a in g[3]] + ([asks] if asks.asks else [])
        groups.append((pods, together, open_to.intersection(*(g[2] for g in sharing)), all_asks))
    for pods, together, open_to, all_asks in groups:
        label = " and ".join(pod_label(loaded, p) for p in pods)
        if not open_to and not (new is not None and all(may_join(loaded, p, new) for p in pods)):
            text = f"{label} may go to none of the nodes {', '.join(nodes)}"
            text = "; ".join([text, *(h for pod in pods for h in attribute_as_label(loaded, pod))])
            raise ManifestError([Wrong("DRA221", text, pods[0].where("spec"))])
        yield Call(label, tuple(together.values()), tuple(n for n in nodes if n in open_to), tuple(all_asks)), pods
    rest: tuple[ResourceClaim | ResourceClaimTemplate, ...] = (*loaded.claims, *loaded.templates)
    for each in rest:
        if each.label not in used and not (isinstance(each, ResourceClaim) and (each.status.allocation or made_by_scheduler(each))):
            word = "claim" if isinstance(each, ResourceClaim) else "claim of template"
            yield Call(f"{word} {each.name}", (WantedClaim(f"{word} {each.name}", _spec(each)),), nodes), []


def claim_name(pod: Pod, entry: PodClaim) -> str | None:
    """The claim that stands for an entry: by name, or generated and noted in the pod's status; None if it is not generated yet, "" if the
    entry needs none."""
    generated = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses}
    return entry.resource_claim_name or generated.get(entry.name)


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


def _node(loaded: Loaded, name: str) -> Node:
    """The node's object, or one without labels."""
    return next((n for n in loaded.nodes if n.name == name), None) or Problem({}, (), {}, ()).node(name)


def _may_go(loaded: Loaded, pod: Pod, name: str) -> bool:
    if pod.spec.node_name:
        return pod.spec.node_name == name
    node = _node(loaded, name)
    if _daemon(pod):
        return name == _home(loaded, pod).name
    return not node.spec.unschedulable and _labelled(pod, node)


def _labelled(pod: Pod, node: Node) -> bool:
    return all(node.labels.get(k) == v for k, v in pod.spec.node_selector.items())


def _daemon(pod: Pod) -> bool:
    return pod.workload.startswith("DaemonSet ")


def _home(loaded: Loaded, pod: Pod) -> Node:
    """A DaemonSet has a pod for each node."""
    return loaded.nodes[pod.ordinal]


def _daemon_exists(loaded: Loaded, pod: Pod) -> bool:
    """Not if the node lacks the labels that the pods ask for, and not if the manifests list the pod that is there already."""
    home, name = _home(loaded, pod), pod.workload.partition(" ")[2]
    there = [p for p in loaded.pods if p.spec.node_name == home.name and p.namespace == pod.namespace]
    made = any(o.kind == "DaemonSet" and o.name == name for p in there for o in p.metadata.owner_references)
    return _labelled(pod, home) and not made


def may_join(loaded: Loaded, pod: Pod, new: Node) -> bool:
    """Whether a waiting pod may go to a node that is added: its labels, and what its claims have already, allow it."""
    if pod.spec.node_name or _daemon(pod) or new.spec.unschedulable or not _labelled(pod, new):
        return False
    named = {(pod.namespace, claim_name(pod, e)) for e in pod.spec.resource_claims}
    another = attrs.evolve(new, metadata=attrs.evolve(new.metadata, name=f"new {new.name}"))
    return all(_allocated_for(c, another) for c in loaded.claims if (c.namespace, c.name) in named)


def daemons(loaded: Loaded, new: Node) -> tuple[Call, ...]:
    """The pods that a node brings along when it is added: one of each DaemonSet for whose pods it has the labels.

    Raises UnsupportedFeature if such pods share a claim.
    """
    found = []
    templates = {(t.namespace, t.name): t for t in loaded.templates}
    for pod in loaded.pods:
        if not _daemon(pod) or pod.ordinal or not _labelled(pod, new):
            continue
        if any(e.resource_claim_name for e in pod.spec.resource_claims):
            raise UnsupportedFeature(f"new nodes beside pods of {pod.workload}, which share a claim", pod.where("spec.resourceClaims"))
        label = f"pod of {pod.workload} on a new node"
        entries = [(e.name, templates[pod.namespace, e.resource_claim_template_name]) for e in pod.spec.resource_claims]
        claims = tuple(WantedClaim(f"claim {name} of {label}", template.spec.spec) for name, template in entries)
        asks = asks_of(pod)
        if claims or asks:
            found.append(Call(label, claims, (new.name,), (PodAsks(label, asks),) if asks else ()))
    return tuple(found)


def _allocated_for(claim: ResourceClaim, node: Node) -> bool:
    selector = claim.status.allocation.node_selector if claim.status.allocation else None
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
