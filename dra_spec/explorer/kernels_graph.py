"""The compiled part of promises about the whole graph."""

from __future__ import annotations

from typing import Any

from dra_spec.explorer.kernel_cache import compiled


@compiled
def index_edges(edges: Any, edge_class: Any, count: Any, classes: Any, ends: Any, sources: Any) -> Any:
    """Sorts the edges of the given classes by where they lead: those into state n come from sources[ends[n - 1]:ends[n]]."""
    for e in range(count):
        if classes[edge_class[e]]:
            ends[edges[e, 1] + 1] += 1
    for n in range(ends.shape[0] - 1):
        ends[n + 1] += ends[n]
    for e in range(count):
        if classes[edge_class[e]]:
            to = edges[e, 1]
            sources[ends[to]] = edges[e, 0]  # `ends` moves on from the beginning of its group to the end
            ends[to] += 1


@compiled
def spread_back(ends: Any, sources: Any, good: Any, stack: Any) -> Any:
    """Marks in `good` all states from which a good one can be reached."""
    top = 0
    for n in range(good.shape[0]):
        if good[n]:
            stack[top] = n
            top += 1
    while top > 0:
        top -= 1
        n = stack[top]
        begin = ends[n - 1] if n > 0 else 0
        for j in range(begin, ends[n]):
            before = sources[j]
            if not good[before]:
                good[before] = 1
                stack[top] = before
                top += 1
