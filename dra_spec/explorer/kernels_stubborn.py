"""The compiled part of partial-order reduction: a stubborn set for each state. What it must be, and why that is enough: stubborn.py.

A set of actions is an array of words; `todo` is a list of members that were not looked at yet. Functions that add members return its new
length.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from dra_spec.explorer import arrays as codes
from dra_spec.explorer.kernel_cache import compiled
from dra_spec.explorer.kernels_base import ONE, ZERO, request, unpack, walk

# places in `numbers`, what goes in and out
AT, PAIRS, LEFT, CHOSEN, STATES, ENABLED, TAKEN = range(7)
NUMBERS = 7

_63 = np.uint64(63)
_M1, _M2, _M4 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)
_1, _2, _4, _56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


@njit(inline="always")
def has(members: Any, a: Any) -> Any:
    return members[a >> 6] >> (np.uint64(a) & _63) & ONE != ZERO


@njit(inline="always")
def put(members: Any, a: Any) -> Any:
    members[a >> 6] |= ONE << (np.uint64(a) & _63)


@njit(inline="always")
def bits(word: Any) -> Any:
    """How many bits of a word are set."""
    word = word - ((word >> _1) & _M1)
    word = (word & _M2) + ((word >> _2) & _M2)
    word = (word + (word >> _4)) & _M4
    return np.int64((word * _BYTES) >> _56)


@njit(inline="always")
def enlist(sets: Any, row: Any, enabled: Any, chosen: Any, todo: Any, top: Any, numbers: Any) -> Any:
    """Adds the members of a set; counts those that are enabled."""
    for w in range(chosen.shape[0]):
        fresh = sets[row, w] & ~chosen[w]
        if fresh != ZERO:
            chosen[w] |= fresh
            numbers[CHOSEN] += bits(fresh & enabled[w])
            while fresh != ZERO:
                todo[top] = (w << 6) + bits((fresh & (~fresh + ONE)) - ONE)
                top += 1
                fresh &= fresh - ONE
    return top


@compiled
def reach(cell: Any, nodes: Any, seen: Any, child: Any, values: Any) -> Any:
    """Where a tree leads, from a cell on."""
    return walk(np.uintp(cell), nodes, seen, child, values)


@compiled
def close(
    sets: Any,
    actions: Any,
    first: Any,
    lock_slot: Any,
    lock_base: Any,
    shut: Any,
    cells: Any,
    nodes: Any,
    seen: Any,
    child: Any,
    values: Any,
    enabled: Any,
    chosen: Any,
    todo: Any,
    top: Any,
    numbers: Any,
    limit: Any,
) -> Any:
    """Works off a list of guards: an enabled action asks for all that gets in its way, any other guard for what must happen before it
    opens.

    That is the keys of one lock that is shut, of that with the fewest new members, enabled ones counted ninefold; or, without such a
    lock, all that write to what the tree looked at. False: there are `limit` enabled members or more, and nobody wants to know the rest.
    """
    locks = lock_slot.shape[0]
    words = chosen.shape[0]
    while top > 0:
        if numbers[CHOSEN] >= limit:
            return False
        top -= 1
        guard = np.int64(todo[top])
        row = np.int64(-1)
        if guard < actions and has(enabled, guard):
            row = guard
        else:
            fewest = np.int64(0)
            for lock in range(first[guard], first[guard + 1]):
                if shut[lock_base[lock] + values[lock_slot[lock]]]:
                    cost = np.int64(0)
                    for w in range(words):
                        fresh = sets[actions + lock, w] & ~chosen[w]
                        if fresh != ZERO:
                            cost += bits(fresh) + 8 * bits(fresh & enabled[w])
                    if row < 0 or cost < fewest:
                        row, fewest = actions + lock, cost
        if row >= 0:
            top = enlist(sets, row, enabled, chosen, todo, top, numbers)
            continue
        code = np.int64(child[cells[guard]])
        while code >= 0:
            slot = np.int64(nodes[code, 0])
            top = enlist(sets, actions + locks + slot, enabled, chosen, todo, top, numbers)
            code = np.int64(child[nodes[code, 2] + seen[nodes[code, 1] + values[slot]]])
    return numbers[CHOSEN] < limit


@compiled
def look(forest: Any, tables: Any, store: Any, work: Any, ctl: Any, scratch: Any, state: Any, slots: Any) -> Any:
    """Finds the enabled actions of a state; False if a path is missing, also one of a promise."""
    values = work.values
    nodes, seen, child, roots, leaves = forest.nodes, forest.seen, forest.child, forest.roots, forest.leaves
    actions = tables.actions
    complete = True
    scratch.enabled[:] = ZERO
    scratch.live[:] = ZERO
    for g in range(tables.tree.shape[0]):
        tree = tables.tree[g]
        if g >= actions and tree < actions:
            continue
        code = reach(roots[tree], nodes, seen, child, values)
        if code > codes.LEAF:
            request(work.requests, work.request_after, work.asked, nodes, seen, child, values, ctl, roots[tree], state, tree, slots)
            complete = False
            continue
        leaf = codes.LEAF - code
        if g >= actions or leaves[leaf, 1] == 0:
            continue
        put(scratch.enabled, g)
        work.enabled[g] = 1
        store.flags[state] |= codes.ALIVE
        for k in range(leaves[leaf, 0], leaves[leaf, 0] + leaves[leaf, 1]):
            reason = forest.outcomes[forest.outcome_list[k], 6]
            if reason >= 0:
                work.beyond[reason] = 1
                store.flags[state] |= codes.ESCAPING
            else:
                put(scratch.live, g)
    return complete


@compiled
def escapes(forest: Any, values: Any, tree: Any) -> Any:
    """Whether an outcome of an action leaves the bounds."""
    code = reach(forest.roots[tree], forest.nodes, forest.seen, forest.child, values)
    leaf = codes.LEAF - code
    for k in range(forest.leaves[leaf, 0], forest.leaves[leaf, 0] + forest.leaves[leaf, 1]):
        if forest.outcomes[forest.outcome_list[k], 6] >= 0:
            return True
    return False


@compiled
def begin(forest: Any, tables: Any, values: Any, scratch: Any, numbers: Any) -> Any:
    """The list of what the least set asks for: the actions of the seed, and each promise that is not broken. Its length."""
    todo, top = scratch.todo, 0
    actions = tables.actions
    numbers[CHOSEN] = 0
    for w in range(scratch.chosen.shape[0]):
        scratch.chosen[w] = tables.seed[w]
        numbers[CHOSEN] += bits(tables.seed[w] & scratch.enabled[w])
    for a in range(actions):
        if has(tables.seed, a):
            todo[top] = a
            top += 1
    for g in range(actions, tables.tree.shape[0]):
        tree = tables.tree[g]
        if tree < actions:
            is_open = has(scratch.enabled, tree) and escapes(forest, values, tree)
        else:
            is_open = reach(forest.roots[tree], forest.nodes, forest.seen, forest.child, values) == codes.LEAF
        if not is_open:
            todo[top] = g
            top += 1
    return top


@compiled
def choose(
    forest: Any,
    layout: Any,
    store: Any,
    work: Any,
    ctl: Any,
    tables: Any,
    scratch: Any,
    states: Any,
    pairs: Any,
    left: Any,
    numbers: Any,
) -> Any:
    """For states, from number AT on, the pairs (state, action) that are to be fired. `left`: states for which a path is missing.

    Returns when all are done or the list of pairs is full.
    """
    slots, actions, sets, cells = layout.word.shape[0], tables.actions, tables.sets, scratch.cells
    first, lock_slot, lock_base, shut = tables.first, tables.lock_slot, tables.lock_base, tables.shut
    nodes, seen, child = forest.nodes, forest.seen, forest.child
    values, flags, enabled, live, todo = work.values, store.flags, scratch.enabled, scratch.live, scratch.todo
    chosen, base, best = scratch.chosen, scratch.base, scratch.best
    words = chosen.shape[0]
    for g in range(cells.shape[0]):
        cells[g] = forest.roots[tables.tree[g]]
    limit = np.int64(actions + 1)
    at, filled, remaining = numbers[AT], 0, 0
    while at < states.shape[0] and filled + actions <= pairs.shape[0]:
        state = states[at]
        at += 1
        if flags[state] & codes.VIOLATING and not ctl[codes.EXPAND_ALL]:
            continue
        unpack(layout.word, layout.shift, layout.mask, store.rows, state, values)
        for s in range(slots):
            values[slots + s] = values[s]
        if not look(forest, tables, store, work, ctl, scratch, state, slots):
            left[remaining] = state
            remaining += 1
            continue
        top = begin(forest, tables, values, scratch, numbers)
        close(
            sets, actions, first, lock_slot, lock_base, shut, cells, nodes, seen, child, values, enabled, chosen, todo, top, numbers, limit
        )
        going, some = False, False
        for w in range(words):
            going |= chosen[w] & live[w] != ZERO
            some |= live[w] != ZERO
            base[w] = chosen[w]
        if tables.keeps_moving and some and not going:  # that enabled action with which the fewest enabled ones come
            before, fewest = numbers[CHOSEN], limit
            for a in range(actions):
                if has(live, a) and fewest > before + 1:
                    for w in range(words):
                        chosen[w] = base[w]
                    put(chosen, a)
                    todo[0] = a
                    numbers[CHOSEN] = before + 1
                    if close(
                        sets,
                        actions,
                        first,
                        lock_slot,
                        lock_base,
                        shut,
                        cells,
                        nodes,
                        seen,
                        child,
                        values,
                        enabled,
                        chosen,
                        todo,
                        1,
                        numbers,
                        fewest,
                    ):
                        fewest = numbers[CHOSEN]
                        for w in range(words):
                            best[w] = chosen[w]
            for w in range(words):
                chosen[w] = best[w]
        numbers[STATES] += 1
        for w in range(enabled.shape[0]):
            numbers[ENABLED] += bits(enabled[w])
            members = chosen[w] & enabled[w]
            numbers[TAKEN] += bits(members)
            while members != ZERO:
                a = (w << 6) + bits((members & (~members + ONE)) - ONE)
                pairs[filled] = state << codes.ACTION_BITS | a
                filled += 1
                members &= members - ONE
    numbers[AT], numbers[PAIRS], numbers[LEFT] = at, filled, remaining
