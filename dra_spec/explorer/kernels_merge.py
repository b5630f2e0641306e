"""All trees of actions as one forest: a test that several of them begin with, or go on with, is made once per state.

A range of entries is what is left to do: leaves that were reached, walks that must be made because a path was not known, and nodes. A
node of the merged forest stands for the nodes of all trees that are in one range and look at one observer; for each number that may be
seen there, and for one not known yet, it has a range of its own. Each node of a tree is in one node of the merged forest, so that the
forest is as large as the trees.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dra_spec.explorer import arrays as codes
from dra_spec.explorer.kernel_cache import compiled
from dra_spec.explorer.kernels_base import ZERO

_ALL = ~ZERO


@compiled
def merge(forest: Any, actions: Any, disabled: Any, capacities: Any, merged: Any, scratch: Any, used: Any) -> Any:
    """Fills nodes, first and entries of `merged`; `used` gets how many nodes, places in `first`, entries, nodes of the root there are.

    `scratch`: per merged node its first member, how many there are, and the node before it; per member its action, node, cell; per observer
    the number of the last range in which it was met, and its merged node there.
    """
    nodes, child, roots = forest.nodes, forest.child, forest.roots
    into, first, entries = merged.nodes, merged.first, merged.entries
    slices, members, met = scratch
    count, places, entry, member, number = 0, 0, 1, 0, 0  # entry 0 is for a pair that is tried again
    at = -1  # the root, then each merged node in turn
    while at < count:
        ranges = 1
        begin, end = 0, actions
        if at >= 0:
            ranges = into[at * codes.NODE + 5] + 1
            begin, end = slices[at, 0], slices[at, 0] + slices[at, 1]
            into[at * codes.NODE + 4] = places
        base = places
        places += ranges + 1
        for seen in range(ranges):
            first[base + seen] = entry
            number += 1
            new = count
            for j in range(begin, end):
                if at >= 0 and seen == ranges - 1:  # what is seen has no number yet
                    entries[2 * entry], entries[2 * entry + 1] = members[j, 0], -1 - members[j, 2]
                    entry += 1
                    continue
                a, cell = j, roots[j]
                if at >= 0:
                    a, cell = members[j, 0], nodes[members[j, 1], 2] + seen
                code = child[cell]
                if code == disabled:
                    continue
                if code >= 0:
                    observer = nodes[code, 3]
                    if met[observer, 0] != number:
                        met[observer, 0], met[observer, 1] = number, count
                        n = count * codes.NODE
                        into[n + 3], into[n + 5], into[n + 7] = nodes[code, 1], capacities[observer], nodes[code, 0]
                        slices[count, 1], slices[count, 2] = 0, at
                        count += 1
                    slices[met[observer, 1], 1] += 1
                else:
                    entries[2 * entry] = a
                    entries[2 * entry + 1] = codes.LEAF - code if code <= codes.LEAF else -1 - cell
                    entry += 1
            if at < 0:
                first[base + 1] = entry  # the nodes of the root are reached by way of the chunks
            for n in range(new, count):
                slices[n, 0] = member
                member += slices[n, 1]
                slices[n, 1] = 0
                entries[2 * entry], entries[2 * entry + 1] = -1, n
                entry += 1
            if new < count:
                for j in range(begin, end):
                    a, cell = j, roots[j]
                    if at >= 0:
                        a, cell = members[j, 0], nodes[members[j, 1], 2] + seen
                    code = child[cell]
                    if code >= 0:
                        n = met[nodes[code, 3], 1]
                        place = slices[n, 0] + slices[n, 1]
                        members[place, 0], members[place, 1], members[place, 2] = a, code, cell
                        slices[n, 1] += 1
        if at < 0:
            used[3] = count
        else:
            first[base + ranges] = entry
        at += 1
    used[0], used[1], used[2] = count, places, entry


@compiled
def place_nodes(merged: Any, layout: Any, count: Any) -> Any:
    """Where the first `count` nodes look in a packed row."""
    into = merged.nodes
    for n in range(count):
        at = n * codes.NODE
        slot = into[at + 7]
        into[at], into[at + 1], into[at + 2] = layout.word[slot], layout.shift[slot], layout.mask[slot]
        into[at + 6] = layout.chunk[slot]


@compiled
def remember(merged: Any, seen: Any, rows: Any, state: Any, chunk: Any, place: Any) -> Any:
    """Works out what is left to do for the slots of a chunk as they are in a state; that there is room was seen to before."""
    nodes, first, entries, stack, memo = merged.nodes, merged.first, merged.entries, merged.stack, merged.memo
    begin = merged.pool[0]
    end = begin
    bottom = stack.shape[0] // 2  # the lower half is in use
    top = bottom
    stack[top], stack[top + 1] = merged.chunks[codes.CHUNK * chunk + 4], merged.chunks[codes.CHUNK * chunk + 5]
    while top >= bottom:
        entry, last = stack[top], stack[top + 1]
        top -= 2
        while entry < last:
            a, what = entries[2 * entry], entries[2 * entry + 1]
            entry += 1
            if a < 0 and nodes[what * codes.NODE + 6] == chunk:
                n = what * codes.NODE
                value = np.int64(rows[state, nodes[n]] >> np.uint64(nodes[n + 1])) & nodes[n + 2]
                number = seen[nodes[n + 3] + value]
                if number < 0:
                    number = nodes[n + 5]
                top += 2
                stack[top], stack[top + 1] = first[nodes[n + 4] + number], first[nodes[n + 4] + number + 1]
            else:
                entries[2 * end], entries[2 * end + 1] = a, what
                end += 1
    memo[place], memo[place + 1] = begin, end
    merged.pool[0] = end


@compiled
def pack_outcomes(forest: Any, layout: Any, special: Any, packed: Any, ranges: Any) -> Any:
    """Works out for some outcomes what they do to a packed row, and for some leaves whether that is all they do.

    `ranges`: first and last outcome, first and last leaf.

    `special`: slots whose change has consequences, so that writing bits is not enough.
    """
    table, constants, listed = forest.outcomes, forest.constants, forest.outcome_list
    keep, put, plain, plain_leaf = packed.keep, packed.put, packed.plain, packed.plain_leaf
    for o in range(ranges[0], ranges[1]):
        simple = table[o, 2] == table[o, 5] and table[o, 6] < 0
        for w in range(keep.shape[1]):
            keep[o, w], put[o, w] = _ALL, ZERO
        for c in range(table[o, 0], table[o, 1]):
            slot = constants[c, 0]
            simple = simple and not special[slot]
            w = layout.word[slot]
            keep[o, w] &= ~(layout.mask[slot] << layout.shift[slot])
            put[o, w] |= np.uint64(constants[c, 1]) << layout.shift[slot]
        plain[o] = simple
    for leaf in range(ranges[2], ranges[3]):
        all_plain = True
        for k in range(forest.leaves[leaf, 0], forest.leaves[leaf, 0] + forest.leaves[leaf, 1]):
            all_plain = all_plain and plain[listed[k]] != 0
        plain_leaf[leaf] = all_plain
