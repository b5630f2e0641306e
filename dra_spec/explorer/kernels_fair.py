"""The compiled part of leads-to promises: edges by where they begin, and the states from which a weakly fair run stays in a region."""

from __future__ import annotations

from typing import Any

from dra_spec.explorer.kernel_cache import compiled

LEADS, CORE = 1, 2  # a state with a way into a fair component; a state in one


@compiled
def sort_edges(edges: Any, edge_class: Any, count: Any, first: Any, ends: Any, classes: Any) -> Any:
    """Sorts the edges by where they begin: those out of state n become ends[first[n]:first[n + 1]], with their classes."""
    for e in range(count):
        first[edges[e, 0] + 1] += 1
    for n in range(first.shape[0] - 1):
        first[n + 1] += first[n]
    for e in range(count):
        n = edges[e, 0]
        ends[first[n]] = edges[e, 1]  # `first` moves on to where the next state begins
        classes[first[n]] = edge_class[e]
        first[n] += 1
    for n in range(first.shape[0] - 1, 0, -1):
        first[n] = first[n - 1]
    first[0] = 0


@compiled
def judge_component(
    begin: Any, top: Any, stack: Any, first: Any, ends: Any, classes: Any, region: Any, fair: Any, found: Any, name: Any, tally: Any
) -> Any:
    """What a component (stack[begin:top], named already) is: CORE, LEADS or 0. `tally`: per class three cells, all 0 before and after.

    Cells: the last state (plus 1) in which the class was seen, in how many states it is enabled, whether it is taken inside.
    """
    size, own, leads = top - begin, name[stack[begin]], 0
    for i in range(begin, top):
        n = stack[i]
        for e in range(first[n], first[n + 1]):
            to, c = ends[e], classes[e]
            if tally[c, 0] != n + 1:
                tally[c, 0] = n + 1
                tally[c, 1] += 1
            if region[to]:
                if name[to] == own:
                    tally[c, 2] = 1
                elif found[to]:
                    leads = LEADS
    ignored = False
    for e in range(first[stack[begin]], first[stack[begin] + 1]):  # what is enabled everywhere is enabled here
        c = classes[e]
        ignored |= fair[c] and tally[c, 1] == size and tally[c, 2] == 0
    for i in range(begin, top):
        for e in range(first[stack[i]], first[stack[i] + 1]):
            tally[classes[e], 0] = tally[classes[e], 1] = tally[classes[e], 2] = 0
    return leads if ignored else CORE


@compiled
def fair_states(
    first: Any,
    ends: Any,
    classes: Any,
    region: Any,
    fair: Any,
    found: Any,
    name: Any,
    index: Any,
    at: Any,
    stack: Any,
    calls: Any,
    tally: Any,
) -> Any:
    """Fills `found` with LEADS or CORE for the states of the region from which a run can stay there and be fair to the marked classes.

    `name` becomes the component of each state of the region: the number (from 1) of its first state in the depth-first search. Tarjan's
    strongly connected components, without recursion: a component is done after all that it leads to. `index`, `at`, `stack` and `calls` are
    scratch space, a cell per state; `index` and `name` are 0 at the beginning.
    """
    number, top = 0, 0
    for root in range(region.shape[0]):
        if not region[root] or index[root] != 0:
            continue
        depth = 0
        calls[0] = stack[top] = root
        top += 1
        number += 1
        index[root] = name[root] = number
        at[root] = first[root]
        while depth >= 0:
            n = calls[depth]
            if at[n] < first[n + 1]:
                to = ends[at[n]]
                at[n] += 1
                if not region[to]:
                    continue
                if index[to] == 0:
                    depth += 1
                    calls[depth] = stack[top] = to
                    top += 1
                    number += 1
                    index[to] = name[to] = number
                    at[to] = first[to]
                elif index[to] > 0:  # on the stack
                    name[n] = min(name[n], index[to])
                continue
            depth -= 1
            if depth >= 0:
                name[calls[depth]] = min(name[calls[depth]], name[n])
            if name[n] != index[n]:
                continue
            begin = top - 1
            while stack[begin] != n:
                begin -= 1
            for i in range(begin, top):
                name[stack[i]] = index[n]
            what = judge_component(begin, top, stack, first, ends, classes, region, fair, found, name, tally)
            for i in range(begin, top):
                found[stack[i]] = what
            own = index[n]
            for i in range(begin, top):
                index[stack[i]] = -own
            top = begin
