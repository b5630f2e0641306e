"""Pods out of workloads: Deployment, ReplicaSet, StatefulSet, Job, DaemonSet. The number of pods is bounded by the caller."""

from __future__ import annotations

import attrs

from dra_spec.resources.core import Pod
from dra_spec.resources.decode import Context, Failed, check_keys, obj
from dra_spec.resources.meta import Metadata
from dra_spec.resources.problems import Problem
from dra_spec.resources.tree import Node

WORKLOADS = {
    ("apps", "Deployment"): "replicas",
    ("apps", "ReplicaSet"): "replicas",
    ("apps", "StatefulSet"): "replicas",
    ("batch", "Job"): "parallelism",
    ("apps", "DaemonSet"): "",
}


class _Template:
    """What is read of a workload's spec; used to recognise misspelt fields only."""

    LENIENT = True
    NEAR = ("selector", "completions", "completionMode")


@attrs.frozen
class Workload:
    """A workload before its pods are counted. `replicas` None: one pod a node (DaemonSet)."""

    kind: str
    metadata: Metadata
    pod: Pod
    replicas: int | None


def read_workload(node: Node, group: str, kind: str, ctx: Context) -> Workload:
    """Read a workload's pod template. Raises Failed after reporting to the context."""
    metadata: Metadata = obj(Metadata)(node.get("metadata") or Node("map", {}, node.line, node.column), "metadata", ctx)
    spec = node.get("spec")
    template = spec.get("template") if spec is not None else None
    if spec is not None and spec.kind == "map":
        check_keys(spec, "spec", ctx, ("template", "replicas", "parallelism"), _Template)
    if spec is None or template is None or template.kind != "map":
        ctx.report("DRA111", "the required field 'template' is missing", spec or node, "spec.template", "nothing", "a pod template")
        raise Failed
    inner = template.get("metadata")
    if inner is None or inner.kind == "null":
        template = template.with_value(dict(template.value) | {"metadata": Node("map", {}, template.line, template.column)})
    pod: Pod = obj(Pod)(template, "spec.template", ctx)
    label = f"{kind} {metadata.name}"
    name = metadata.name or metadata.generate_name + "0"
    meta = attrs.evolve(pod.metadata, name=name, namespace=metadata.namespace, generate_name="")
    return Workload(kind, metadata, attrs.evolve(pod, metadata=meta, workload=label), _replicas(spec, kind, WORKLOADS[group, kind], ctx))


def _replicas(spec: Node, kind: str, key: str, ctx: Context) -> int | None:
    if not key:
        return None

    def number(name: str) -> int | None:
        value = spec.get(name)
        if value is None or value.kind == "null":
            return None
        if value.kind != "int" or value.value < 0:
            raise ctx.mismatch("an integer of at least 0", value, f"spec.{name}")
        return int(value.value)

    wanted = number(key)
    wanted = 1 if wanted is None else wanted
    if kind == "Job":
        completions = number("completions")
        return wanted if completions is None else min(wanted, completions)
    return wanted


def expand(workload: Workload, nodes: int, max_replicas: int, warnings: list[Problem]) -> tuple[Pod, ...]:
    """The workload's pods, `name-0`, `name-1`, ...; at most `max_replicas`, a cut is reported in `warnings` (DRA301)."""
    wanted = workload.replicas if workload.replicas is not None else nodes
    where = workload.pod.where()
    count = min(wanted, max_replicas)
    if count < wanted:
        text = f"{workload.pod.workload} wants {wanted} pods: only {count} are modelled"
        warnings.append(Problem("DRA301", text, where, str(wanted), f"at most {max_replicas}"))
    if wanted == 0:
        warnings.append(Problem("DRA302", f"{workload.pod.workload} has no pods", where))
    base = workload.pod.metadata.name
    pods = (attrs.evolve(workload.pod, metadata=attrs.evolve(workload.pod.metadata, name=f"{base}-{i}"), ordinal=i) for i in range(count))
    return tuple(pods)
