"""What the slices of one pool say together. The API server checks each slice alone, so disagreement is possible and worth a word."""

from __future__ import annotations

from collections.abc import Sequence

from dra_spec.resources.problems import Problem
from dra_spec.resources.slices import ResourceSlice


def selection(slice_: ResourceSlice) -> str:
    """Which nodes reach the slice, as it is written, in words."""
    spec = slice_.spec
    if spec.node_name:
        return f"nodeName {spec.node_name}"
    if spec.node_selector:
        terms = [
            " and ".join(f"{r.key} {r.operator} {','.join(r.values)}".strip() for r in t.match_expressions + t.match_fields)
            for t in spec.node_selector.terms
        ]
        return f"nodeSelector {' or '.join(terms)}"
    return "allNodes" if spec.all_nodes else "perDeviceNodeSelection"


def pools_that_disagree(slices: Sequence[ResourceSlice]) -> tuple[Problem, ...]:
    """Warnings DRA304: two slices of a pool (same driver, name and generation) that select nodes differently."""
    first: dict[tuple[str, str, int], ResourceSlice] = {}
    problems: list[Problem] = []
    for slice_ in slices:
        key = (*slice_.pool_id, slice_.spec.pool.generation)
        other = first.setdefault(key, slice_)
        if selection(other) != selection(slice_):
            other_text = f"slice {other.name} ({other.where('spec').place}) has {selection(other)}"
            text = (
                f"pool {slice_.spec.pool.name} of {slice_.spec.driver}: slice {slice_.name} has {selection(slice_)}, "
                f"but {other_text}; the slices of a pool must agree about its nodes"
            )
            problems.append(Problem("DRA304", text, slice_.where("spec"), selection(slice_), selection(other)))
    return tuple(problems)
