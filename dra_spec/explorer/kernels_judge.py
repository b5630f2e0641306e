"""Asks decision trees about stored states: state invariants, goals, final states."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from dra_spec.explorer import arrays as codes
from dra_spec.explorer.kernel_cache import compiled
from dra_spec.explorer.kernels_base import ZERO, request, unpack, walk_row


@njit(inline="always")
def differs(rows: Any, state: Any, before: Any, reads: Any, t: Any) -> Any:
    """Whether two states differ in some bits."""
    found = ZERO
    for w in range(rows.shape[1]):
        found |= (rows[state, w] ^ rows[before, w]) & reads[t, w]
    return found != ZERO


@compiled
def judge(forest: Any, layout: Any, store: Any, work: Any, ctl: Any, trees: Any, reads: Any, first_bad: Any) -> Any:
    """Asks the state invariants (trees) about the states from POS to END, or about the pairs (state, index in trees) of `again`.

    `reads`: per invariant, and last for all of them, the bits of a row that its known paths look at. Where a state has those as its parent
    has them it is not asked: the parent was, and the same comes out. None: all are asked.
    """
    slots = layout.word.shape[0]
    listed = ctl[codes.LISTED] != 0
    roots, nodes, seen, child = forest.roots, forest.nodes, forest.seen, forest.child
    word, shift, mask = layout.word, layout.shift, layout.mask
    rows, flags, values = store.rows, store.flags, work.values
    retries, again, saw, tree_property = work.retries, work.again, work.saw, work.tree_property
    requests, request_after, asked = work.requests, work.request_after, work.asked
    most_retries = retries.shape[0] - trees.shape[0]
    retried = ctl[codes.RETRIES]
    status = codes.DONE
    parent, compared = store.parent, reads.shape[0] > 0 and not listed
    for i in range(ctl[codes.POS], ctl[codes.END]):
        ctl[codes.POS] = i
        if retried > most_retries and not listed:
            status = codes.FULL
            break
        state = np.int64(i)
        first, last = 0, trees.shape[0]
        if listed:
            state = again[i] >> codes.ACTION_BITS
            first = again[i] & ((1 << codes.ACTION_BITS) - 1)
            last = first + 1
        before = np.int64(parent[state])
        alike = compared and before != codes.NO_PARENT
        if alike and not differs(rows, state, before, reads, last):
            flags[state] |= flags[before] & codes.VIOLATING
            continue
        alike = alike and flags[before] & codes.VIOLATING == 0
        for t in range(first, last):
            if alike and not differs(rows, state, before, reads, t):
                continue
            tree = trees[t]
            code = walk_row(np.uintp(roots[tree]), nodes, seen, child, word, shift, mask, rows, state)
            if code > codes.LEAF:
                unpack(word, shift, mask, rows, state, values)
                request(requests, request_after, asked, nodes, seen, child, values, ctl, roots[tree], state, tree, slots)
                retries[retried] = state << codes.ACTION_BITS | t
                retried += 1
                continue
            which = tree_property[tree]
            saw[which] |= 1 << (codes.LEAF - code)
            if code == codes.LEAF:
                flags[state] |= codes.VIOLATING
                if first_bad[which] < 0 or state < first_bad[which]:
                    first_bad[which] = state
    ctl[codes.RETRIES] = retried
    return status


@compiled
def label(forest: Any, layout: Any, store: Any, work: Any, ctl: Any, tree: Any, marks: Any) -> Any:
    """Asks one tree about the states from POS to END whose mark is 3 (not asked yet); the answer replaces the mark.

    Returns how many states got no answer, because a path is missing.
    """
    slots = layout.word.shape[0]
    roots, nodes, seen, child = forest.roots, forest.nodes, forest.seen, forest.child
    word, shift, mask, rows, values = layout.word, layout.shift, layout.mask, store.rows, work.values
    requests, request_after, asked = work.requests, work.request_after, work.asked
    missing = 0
    for state in range(ctl[codes.POS], ctl[codes.END]):
        if marks[state] == 3:
            code = walk_row(np.uintp(roots[tree]), nodes, seen, child, word, shift, mask, rows, state)
            if code > codes.LEAF:
                unpack(word, shift, mask, rows, state, values)
                request(requests, request_after, asked, nodes, seen, child, values, ctl, roots[tree], state, tree, slots)
                missing += 1
            else:
                marks[state] = codes.LEAF - code
    return missing
