"""The compiled core: fires actions in states. It knows nothing of a model; its machine code is cached on disk.

A row is a state: slot i is a field of bits that holds the number of its value. All functions take tuples of arrays (arrays.py) and an
array of counters `ctl` that carries what goes in and out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dra_spec.explorer import arrays as codes
from dra_spec.explorer.kernel_cache import compiled
from dra_spec.explorer.kernels_base import SEED, mix, request, unpack_twice, walk
from dra_spec.explorer.kernels_dead import bury
from dra_spec.explorer.kernels_effects import keep_in_mind, note, recall, watched_walk
from dra_spec.explorer.kernels_merge import remember
from dra_spec.explorer.kernels_store import flush
from dra_spec.explorer.kernels_symmetry import canonical
from dra_spec.explorer.kernels_versions import renumber

_1, _2, _3, _4, _5 = (np.uintp(n) for n in range(1, 6))


@compiled
def expand(
    forest: Any,
    merged: Any,
    packed: Any,
    effects: Any,
    layout: Any,
    store: Any,
    work: Any,
    versions: Any,
    dead: Any,
    symmetry: Any,
    ctl: Any,
) -> Any:
    """Fires all actions in the states from POS to END, or the pairs (state, action) of `again`. Returns a status; go on by calling again.

    With APART the successors stay in the buffer, which has room for them; somebody else puts them into the table (kernels_share.py).

    All outcomes of an action in a state are worked out before one is taken: if a path or a name is missing, the pair goes on the list
    of retries as a whole.
    """
    slots = layout.word.shape[0]
    words = store.rows.shape[1]
    listed, apart = ctl[codes.LISTED] != 0, ctl[codes.APART] != 0
    roots, nodes, seen, child = forest.roots, forest.nodes, forest.seen, forest.child
    leaves, outcome_list, outcome_table = forest.leaves, forest.outcome_list, forest.outcomes
    constants, trees = forest.constants, forest.trees
    tests, first, entries, stack = merged.nodes, merged.first, merged.entries, merged.stack
    chunks, memo, pool, ready = merged.chunks, merged.memo, merged.pool, work.ready
    entry_room = entries.shape[0] // 2 - work.taken.shape[0]
    chunks_end = chunks.shape[0]
    keep, put, plain_leaf = packed.keep, packed.put, packed.plain_leaf
    word, shift, mask = layout.word, layout.shift, layout.mask
    rows, flags = store.rows, store.flags
    values, written_slots, stamps, buffer = work.values, work.written, work.stamps, work.rows
    retries, again, saw, step_bad, tree_property = work.retries, work.again, work.saw, work.step_bad, work.tree_property
    taken, enabled, hashes, sources, vias = work.taken, work.enabled, work.hashes, work.source, work.via
    requests, request_after, asked = work.requests, work.request_after, work.asked
    slot_first, slot_bearers, bearers, masks = versions.slot_first, versions.slot_bearers, versions.bearers, versions.masks
    object_first, object_bearers = versions.object_first, versions.object_bearers
    names, name_masks, name_values, name_requests = versions.names, versions.name_masks, versions.name_values, versions.requests
    beyond = work.beyond
    versioned = bearers.shape[0] > 0
    order, source_slot, image_base, image_tables = symmetry.order, symmetry.source, symmetry.base, symmetry.tables
    image = symmetry.image
    dead_first, affected, dead_before, dead_after = dead.first, dead.affected, dead.before, dead.after
    dead_slot_first, dead_slots, rest, dead_done, dead_fault = dead.slot_first, dead.slots, dead.rest, dead.done, dead.fault
    mortal = dead_before.shape[0] > 0
    symmetric = order.shape[0] > 0
    need, memory = effects.need, effects.memory
    recalls = memory.shape[0] > 0
    room = buffer.shape[0] - ctl[codes.WIDEST]
    most_retries = retries.shape[0] - taken.shape[0]
    buffered, retried, stamp = ctl[codes.BUFFERED], ctl[codes.RETRIES], ctl[codes.STAMP]
    status = codes.DONE
    i, end = ctl[codes.POS], ctl[codes.END]
    while True:
        full = retried > most_retries and not listed
        # what is learned may widen the fields, so nothing may be left in the buffer then
        if not apart and (full or buffered > room or i >= end):
            ctl[codes.BUFFERED] = buffered
            status = flush(layout, store, work, ctl)
            buffered = ctl[codes.BUFFERED]
        if full:
            status = codes.FULL if status == codes.DONE else status
        if status != codes.DONE or i >= end:
            break
        if listed:
            state = again[i] >> codes.ACTION_BITS
        else:
            state = i
            if flags[state] & codes.VIOLATING and not ctl[codes.EXPAND_ALL]:
                i += 1
                continue
        if pool[0] > entry_room:
            memo[:] = 0
            pool[0] = pool[1]
        # first: which actions are enabled, and the leaves that their trees lead to
        count = 0
        unpacked = False
        top = -2
        if listed:
            entries[0], entries[1] = again[i] & ((1 << codes.ACTION_BITS) - 1), -1 - roots[again[i] & ((1 << codes.ACTION_BITS) - 1)]
            stack[0], stack[1] = 0, 1
            top = 0
        else:
            if first[0] < first[1]:
                stack[0], stack[1] = first[0], first[1]
                top = 0
            for c in range(0, chunks_end, codes.CHUNK):
                at = np.uintp(c)
                key = (rows[state, chunks[at]] >> np.uint64(chunks[at + _1])) & np.uint64(chunks[at + _2])
                place = np.uintp(np.uint64(chunks[at + _3]) + key + key)
                if memo[place + _1] == 0:
                    remember(merged, seen, rows, state, c // codes.CHUNK, place)
                if memo[place] < memo[place + _1]:
                    top += 2
                    stack[np.uintp(top)], stack[np.uintp(top) + _1] = memo[place], memo[place + _1]
        while top >= 0:
            entry, entry_end = np.uintp(stack[np.uintp(top)]), np.uintp(stack[np.uintp(top) + _1])
            top -= 2
            while entry < entry_end:
                a, what = np.int64(entries[entry + entry]), np.int64(entries[entry + entry + _1])
                entry += _1
                if a < 0:
                    test = np.uintp(what * codes.NODE)
                    value = (rows[state, tests[test]] >> np.uint64(tests[test + _1])) & np.uint64(tests[test + _2])
                    what = np.int64(seen[np.uintp(np.uint64(tests[test + _3]) + value)])
                    if what < 0:
                        what = np.int64(tests[test + _5])
                    place = np.uintp(tests[test + _4] + what)
                    if first[place] < first[place + _1]:
                        top += 2
                        stack[np.uintp(top)], stack[np.uintp(top) + _1] = first[place], first[place + _1]
                    continue
                if what < 0:
                    if not unpacked:
                        unpack_twice(word, shift, mask, rows, state, values)
                        unpacked = True
                    code = walk(np.uintp(-1 - what), nodes, seen, child, values)
                    if code > codes.LEAF:
                        start = np.int64(-1 - what)
                        request(requests, request_after, asked, nodes, seen, child, values, ctl, start, state, a, slots)
                        retries[retried] = state << codes.ACTION_BITS | a
                        retried += 1
                        continue
                    what = np.int64(codes.LEAF - code)
                ready[np.uintp(count)], ready[np.uintp(count) + _1] = a, what
                count += 2
        # here a stubborn set is chosen among them (Reductions.por)
        # then: what they do
        state_flags = 0
        for r in range(0, count, 2):
            a, leaf = np.int64(ready[np.uintp(r)]), np.uintp(ready[np.uintp(r) + _1])
            outcomes = leaves[leaf, 1]
            if outcomes == 0:
                continue
            begin = leaves[leaf, 0]
            if plain_leaf[leaf]:
                for k in range(outcomes):
                    o = np.uintp(outcome_list[np.uintp(begin + k)])
                    b = np.uintp(buffered)
                    h = SEED
                    for w in range(words):
                        after = (rows[state, w] & keep[o, w]) | put[o, w]
                        buffer[b, w] = after
                        h = mix(h, after)
                    hashes[b] = h
                    sources[b] = state
                    vias[b] = a << codes.OUTCOME_BITS | k
                    buffered += 1
                enabled[a] = 1
                taken[a] += outcomes
                state_flags |= codes.ALIVE
                continue
            mark = buffered
            missing = False
            escapes = False
            for k in range(outcomes):
                o = np.uintp(outcome_list[np.uintp(begin + k)])
                if outcome_table[o, 6] >= 0:
                    escapes = True
                    continue
                b = np.uintp(buffered)
                if recalls and recall(need, memory, rows, state, o, buffer, b, hashes):
                    sources[b] = state
                    vias[b] = a << codes.OUTCOME_BITS | k
                    buffered += 1
                    continue
                if not unpacked:
                    unpack_twice(word, shift, mask, rows, state, values)
                    unpacked = True
                stamp += 1
                written = 0
                conflict = False
                complete = True
                good = True  # no promise about steps is broken
                part, last_part = outcome_table[o, 2] - 1, outcome_table[o, 3]
                source = o  # first the outcome's own constants, then those of its parts
                while part < last_part and not conflict:
                    known = True
                    if part >= outcome_table[o, 2]:
                        tree = trees[part]
                        reached = watched_walk(np.uintp(roots[tree]), nodes, seen, child, values, slots, need, o, word, shift, mask)
                        if reached > codes.LEAF:
                            start = np.int64(roots[tree])
                            request(requests, request_after, asked, nodes, seen, child, values, ctl, start, state, tree, slots)
                            complete = known = False
                        else:
                            source = np.uintp(outcome_list[leaves[codes.LEAF - reached, 0]])
                    part += 1
                    if known:
                        for c in range(outcome_table[source, 0], outcome_table[source, 1]):
                            slot = np.uintp(constants[np.uintp(c), 0])
                            conflict |= stamps[slot] == stamp
                            if not conflict:
                                stamps[slot] = stamp
                                written_slots[written] = slot
                                written += 1
                                values[np.uintp(slots) + slot] = constants[np.uintp(c), 1]
                if conflict:
                    ctl[codes.POS], ctl[codes.FAULTY] = state, a
                    return codes.CONFLICT
                if complete:
                    for p in range(outcome_table[o, 4], outcome_table[o, 5]):
                        tree = trees[p]
                        reached = watched_walk(np.uintp(roots[tree]), nodes, seen, child, values, slots, need, o, word, shift, mask)
                        if reached > codes.LEAF:
                            start = np.int64(roots[tree])
                            request(requests, request_after, asked, nodes, seen, child, values, ctl, start, state, tree, slots)
                            complete = False
                            continue
                        which = tree_property[tree]
                        saw[which] |= 1 << (codes.LEAF - reached)
                        if reached == codes.LEAF:
                            good = False
                            if step_bad[which, 0] < 0:
                                step_bad[which, 0] = state
                                step_bad[which, 1] = a << codes.OUTCOME_BITS | k
                    if mortal:
                        written = bury(
                            dead_first,
                            affected,
                            dead_before,
                            dead_after,
                            dead_slot_first,
                            dead_slots,
                            rest,
                            dead_done,
                            dead_fault,
                            roots,
                            nodes,
                            seen,
                            child,
                            requests,
                            request_after,
                            asked,
                            values,
                            written_slots,
                            stamps,
                            ctl,
                            slots,
                            written,
                            stamp,
                            state,
                            a,
                            need,
                            o,
                            word,
                            shift,
                            mask,
                        )
                        if written < 0:
                            written = -1 - written
                            complete = False
                    if versioned and complete:
                        written = renumber(
                            slot_first,
                            slot_bearers,
                            bearers,
                            masks,
                            object_first,
                            object_bearers,
                            names,
                            name_masks,
                            name_values,
                            name_requests,
                            values,
                            written_slots,
                            stamps,
                            ctl,
                            slots,
                            written,
                            stamp,
                            need,
                            o,
                            word,
                            shift,
                            mask,
                        )
                        if written < 0:
                            written = -1 - written
                            complete = False
                if complete:
                    if symmetric:
                        written = canonical(order, source_slot, image_base, image_tables, values, image, written_slots, slots, written)
                    for w in range(words):
                        buffer[b, w] = rows[state, w]
                    for n in range(written):
                        slot = np.uintp(written_slots[n])
                        field = word[slot]
                        new = np.uint64(values[np.uintp(slots) + slot])
                        buffer[b, field] = (buffer[b, field] & ~(mask[slot] << shift[slot])) | (new << shift[slot])
                    h = SEED
                    for w in range(words):
                        h = mix(h, buffer[b, w])
                    hashes[b] = h
                    sources[b] = state
                    vias[b] = a << codes.OUTCOME_BITS | k
                    buffered += 1
                    if recalls and good:
                        for n in range(written):
                            note(need, o, np.uintp(written_slots[n]), word, shift, mask)
                        keep_in_mind(need, memory, rows, state, o, buffer, b)
                else:
                    missing = True
                for n in range(written):
                    slot = np.uintp(written_slots[n])
                    values[np.uintp(slots) + slot] = values[slot]
            if missing:
                buffered = mark
                retries[retried] = state << codes.ACTION_BITS | a
                retried += 1
                continue
            enabled[a] = 1
            taken[a] += buffered - mark
            state_flags |= codes.ALIVE
            if escapes:
                state_flags |= codes.ESCAPING
                for k in range(outcomes):
                    reason = outcome_table[outcome_list[begin + k], 6]
                    if reason >= 0:
                        beyond[reason] = 1
        flags[state] |= state_flags
        i += 1
    ctl[codes.POS], ctl[codes.BUFFERED], ctl[codes.RETRIES], ctl[codes.STAMP] = i, buffered, retried, stamp
    return status
