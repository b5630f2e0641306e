"""What objects say about each other: missing classes, claims, templates (errors); things that nobody uses (warnings)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import attrs

from dra_spec.resources.claims import ClaimSpec, ResourceClaim, ResourceClaimTemplate
from dra_spec.resources.core import Pod, PodClaim, PodGroup
from dra_spec.resources.problems import ManifestError, Problem
from dra_spec.resources.reader import MAX_REPLICAS, Loaded, load
from dra_spec.resources.slices import ApiObject

ADMIN_LABEL = "resource.kubernetes.io/admin-access"


def load_checked(paths: Iterable[str | os.PathLike[str]], *, max_replicas: int = MAX_REPLICAS) -> Loaded:
    """`load`, then `check`. Raises ManifestError with the problems of both, so that one run names them all."""
    try:
        loaded = load(paths, max_replicas=max_replicas)
    except ManifestError as error:
        if isinstance(error.partial, Loaded):
            errors, _ = check(error.partial)
            raise ManifestError((*error.problems, *errors), error.warnings) from None
        raise
    errors, warnings = check(loaded)
    if errors:
        raise ManifestError(errors, (*loaded.warnings, *warnings))
    return attrs.evolve(loaded, warnings=(*loaded.warnings, *warnings))


def check(loaded: Loaded) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """(errors, warnings). Errors: DRA201 missing class, DRA202 missing claim, DRA203 missing template, DRA204 missing request, DRA205
    missing pod group, DRA206 admin access without the namespace's label. Warnings: DRA310 unused claim, DRA311 unused template, DRA312
    slice for a node that has no object, DRA313 namespace unknown for admin access."""
    checker = _Checker(loaded)
    checker.classes()
    checker.pods()
    checker.admin_access()
    checker.unused()
    checker.node_names()
    return tuple(checker.errors), tuple(checker.warnings)


class _Checker:
    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = []
        self.claims = {(c.namespace, c.name): c for c in loaded.claims}
        self.templates = {(t.namespace, t.name): t for t in loaded.templates}

    def specs(self) -> list[tuple[ApiObject, ClaimSpec]]:
        claims = [(c, c.spec) for c in self.loaded.claims]
        return [*claims, *((t, t.spec.spec) for t in self.loaded.templates)]

    def classes(self) -> None:
        known = {c.name for c in self.loaded.classes}
        for owner, spec in self.specs():
            for request in spec.requests:
                for name, leaf in request.leaves:
                    if leaf.device_class_name in known:
                        continue
                    listed = ", ".join(sorted(known)) or "none at all"
                    missing = f"DeviceClass {leaf.device_class_name!r}, which is not among the manifests (there are: {listed})"
                    text = f"{owner.label}: request {name!r} names {missing}"
                    self.errors.append(Problem("DRA201", text, leaf.at, leaf.device_class_name, listed))

    def pods(self) -> None:
        groups = {(g.namespace, g.name): g for g in self.loaded.pod_groups}
        seen: set[object] = set()
        users: Sequence[Pod | PodGroup] = (*self.loaded.pods, *self.loaded.pod_groups)
        for user in users:
            for entry in user.spec.resource_claims:
                self.reference(user, entry, seen)
            if isinstance(user, Pod):
                self.requests(user, seen)
                group = user.spec.scheduling_group
                if group and (user.namespace, group.pod_group_name) not in groups and ("group", user.workload or user.name) not in seen:
                    seen.add(("group", user.workload or user.name))
                    text = f"{_label(user)} belongs to PodGroup {group.pod_group_name!r}, which is not among the manifests"
                    self.errors.append(Problem("DRA205", text, user.spec.at, group.pod_group_name, "a PodGroup in the same namespace"))

    def reference(self, user: Pod | PodGroup, entry: PodClaim, seen: set[object]) -> None:
        template = bool(entry.resource_claim_template_name)
        name = entry.resource_claim_template_name or entry.resource_claim_name
        known: dict[tuple[str, str], ResourceClaim] | dict[tuple[str, str], ResourceClaimTemplate] = (
            self.templates if template else self.claims
        )
        if (user.namespace, name) in known or (entry.at in seen and entry.at.line):
            return
        seen.add(entry.at)  # the pods of one workload share the entry
        kind = "ResourceClaimTemplate" if template else "ResourceClaim"
        elsewhere = sorted(namespace for namespace, other in known if other == name)
        where = f"; there is one in namespace {', '.join(elsewhere)}, but a pod uses those of its own namespace" if elsewhere else ""
        text = f"{_label(user)} uses {kind} {name!r}, which is not among the manifests in namespace {user.namespace!r}{where}"
        self.errors.append(Problem("DRA203" if template else "DRA202", text, entry.at, name, f"a {kind} in namespace {user.namespace}"))

    def requests(self, pod: Pod, seen: set[object]) -> None:
        """Container claims that pick one request: it must exist."""
        entries = {e.name: e for e in pod.spec.resource_claims}
        for container in pod.spec.all_containers:
            for use in container.resources.claims:
                entry = entries.get(use.name)
                spec = self.spec_of(pod, entry) if entry else None
                if spec is None or not use.request or (use.at in seen and use.at.line):
                    continue
                names = {r.name for r in spec.requests} | {n for r in spec.requests for n, _ in r.leaves}
                if use.request not in names:
                    seen.add(use.at)
                    known = ", ".join(sorted(names)) or "none"
                    text = f"{_label(pod)}: container {container.name!r} uses request {use.request!r}, expected one of {known}"
                    self.errors.append(Problem("DRA204", text, use.at, use.request, known))

    def spec_of(self, pod: Pod, entry: PodClaim) -> ClaimSpec | None:
        claim = self.claims.get((pod.namespace, entry.resource_claim_name))
        template = self.templates.get((pod.namespace, entry.resource_claim_template_name))
        return claim.spec if claim else template.spec.spec if template else None

    def admin_access(self) -> None:
        namespaces = {n.name: n for n in self.loaded.namespaces}
        for owner, spec in self.specs():
            for request in spec.requests:
                if not (request.exactly and request.exactly.admin_access):
                    continue
                namespace = namespaces.get(owner.namespace)
                need = f'the label {ADMIN_LABEL}: "true"'
                text = f"{owner.label}: request {request.name!r} has adminAccess"
                if namespace is None:
                    text += f"; namespace {owner.namespace!r} is not among the manifests and is taken to have {need}"
                    self.warnings.append(Problem("DRA313", text, request.at))
                elif namespace.metadata.labels.get(ADMIN_LABEL) != "true":
                    text += f", but namespace {owner.namespace!r} ({namespace.where().place}) lacks {need}"
                    self.errors.append(Problem("DRA206", text, request.at, "no label", need))

    def unused(self) -> None:
        users: Sequence[Pod | PodGroup] = (*self.loaded.pods, *self.loaded.pod_groups)
        named = {(u.namespace, e.resource_claim_name) for u in users for e in u.spec.resource_claims}
        instantiated = {(u.namespace, e.resource_claim_template_name) for u in users for e in u.spec.resource_claims}
        for key, claim in self.claims.items():
            if key not in named:
                self.warnings.append(Problem("DRA310", f"no pod uses {claim.label}", claim.where("metadata.name")))
        for key, template in self.templates.items():
            if key not in instantiated:
                self.warnings.append(Problem("DRA311", f"no pod uses {template.label}", template.where("metadata.name")))

    def node_names(self) -> None:
        known = {n.name for n in self.loaded.nodes}
        for slice_ in self.loaded.slices:
            name = slice_.spec.node_name
            if known and name and name not in known:
                text = f"{slice_.label} is for node {name!r}, which is not among the manifests"
                self.warnings.append(Problem("DRA312", text, slice_.where("spec.nodeName"), name, ", ".join(sorted(known))))


def _label(user: Pod | PodGroup) -> str:
    return user.workload if isinstance(user, Pod) and user.workload else user.label
