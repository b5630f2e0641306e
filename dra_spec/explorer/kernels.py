"""The compiled core: walks decision trees over packed rows. It knows nothing of a model; its machine code is cached on disk.

A row is a state: slot i is a field of bits that holds the number of its value. All functions take tuples of arrays (arrays.py) and an
array of counters `ctl` that carries what goes in and out. Nothing is allocated here: when room runs out, a function returns with a
status, the caller makes room and calls again. The machine code is cached per file, so what is compiled together stays in this one.

Speed: arrays are taken out of their tuples before a loop, counters live in local variables inside it, and indices are unsigned where
they are known not to be negative (a signed index costs a test).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from dra_spec.explorer import arrays as codes

_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_SEED = np.uint64(0x9E3779B97F4A7C15)
_ONE, _ZERO = np.uint64(1), np.uint64(0)
_R29, _R32 = np.uint64(29), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def compiled(fn: Any) -> Any:
    """Compiles a function; its machine code is kept on disk, unless there is no place for it."""
    try:
        return njit(cache=True)(fn)
    except RuntimeError:  # neither beside this file nor in the user's cache: compiled anew at each start
        return njit(fn)


@njit(inline="always")
def mix(h: Any, word: Any) -> Any:
    """One word into a hash."""
    h = (h ^ word) * _M1
    h ^= h >> _R32
    h *= _M2
    return h ^ (h >> _R29)


@compiled
def hash_of(row: Any) -> Any:
    h = _SEED
    for w in range(row.shape[0]):
        h = mix(h, row[w])
    return h


@compiled
def place_of(name: Any, mask: Any, size: Any) -> Any:
    """Where a search in the rename table begins."""
    return np.int64(mix(mix(_SEED, np.uint64(name)), mask) & np.uint64(size - 1))


@njit(inline="always")
def unpack(word: Any, shift: Any, mask: Any, rows: Any, state: Any, values: Any) -> Any:
    for i in range(word.shape[0]):
        values[i] = np.int32((rows[state, word[i]] >> shift[i]) & mask[i])


@compiled
def unpack_row(layout: Any, rows: Any, state: Any, values: Any) -> Any:
    """The numbers of one row."""
    unpack(layout.word, layout.shift, layout.mask, rows, state, values)


@njit(inline="always")
def walk(start: Any, nodes: Any, seen: Any, child: Any, values: Any, room: Any) -> Any:
    """The leaf's code, or UNKNOWN or REQUESTED where the path is missing; with `room` an unknown place is marked as requested."""
    code = child[start]
    if code == codes.UNKNOWN and room:
        child[start] = codes.REQUESTED
    while code >= 0:
        node = np.uintp(code)
        cell = np.uintp(nodes[node, 1] + values[np.uintp(nodes[node, 0])])
        what = seen[cell]
        if what < 0:
            if what == codes.UNKNOWN and room:
                seen[cell] = codes.REQUESTED
            code = what
        else:
            cell = np.uintp(nodes[node, 2] + what)
            code = child[cell]
            if code == codes.UNKNOWN and room:
                child[cell] = codes.REQUESTED
    return code


@njit(inline="always")
def walk_row(start: Any, nodes: Any, seen: Any, child: Any, word: Any, shift: Any, mask: Any, rows: Any, state: Any, room: Any) -> Any:
    """Like `walk`, on a packed row: for one tree, which looks at few slots, that is faster than to unpack them all."""
    code = child[start]
    if code == codes.UNKNOWN and room:
        child[start] = codes.REQUESTED
    while code >= 0:
        node = np.uintp(code)
        slot = np.uintp(nodes[node, 0])
        value = np.int64((rows[state, word[slot]] >> shift[slot]) & mask[slot])
        cell = np.uintp(nodes[node, 1] + value)
        what = seen[cell]
        if what < 0:
            if what == codes.UNKNOWN and room:
                seen[cell] = codes.REQUESTED
            code = what
        else:
            cell = np.uintp(nodes[node, 2] + what)
            code = child[cell]
            if code == codes.UNKNOWN and room:
                child[cell] = codes.REQUESTED
    return code


@compiled
def request(requests: Any, request_after: Any, values: Any, ctl: Any, code: Any, state: Any, tree: Any, slots: Any) -> Any:
    """Puts an unknown path on the list, with the state after (for step invariants); one that is on it already is left."""
    n = ctl[codes.REQUESTS]
    if code == codes.UNKNOWN and n < requests.shape[0]:
        requests[n, 0] = state
        requests[n, 1] = tree
        for i in range(slots):
            request_after[n, i] = values[slots + i]
        ctl[codes.REQUESTS] = n + 1


@compiled
def flush(store: Any, work: Any, ctl: Any) -> Any:
    """Moves the successors from the buffer to the table. GROW: no room (nothing was moved). LIMIT: that on states was met."""
    n, count, words = ctl[codes.STATES], ctl[codes.BUFFERED], store.rows.shape[1]
    rows, table, flags, parent, via = store.rows, store.table, store.flags, store.parent, store.via
    buffer, hashes, sources, vias, action_class = work.rows, work.hashes, work.source, work.via, work.action_class
    edges, edge_class = store.edges, store.edge_class
    size = table.shape[0]
    if n + count > rows.shape[0] or (n + count) * 5 > size * 3 or (edges.shape[0] > 0 and ctl[codes.EDGES] + count > edges.shape[0]):
        return codes.GROW
    mask = np.uint64(size - 1)
    touched = _ZERO
    for k in range(count):  # independent loads overlap: the last pass finds table and rows in the cache
        touched |= table[hashes[k] & mask]
    for k in range(count):
        entry = table[hashes[k] & mask]
        if entry != _ZERO and entry >> _R32 == hashes[k] >> _R32:
            touched |= rows[(entry & _LOW) - _ONE, 0]
    ctl[codes.TOUCHED] = np.int64(touched & _LOW)  # so that the loads are not optimised away
    e = ctl[codes.EDGES]
    for k in range(count):
        h = hashes[k]
        tag = h >> _R32
        at = h & mask
        number = np.int64(-1)
        while True:
            entry = table[at]
            if entry == _ZERO:
                break
            if entry >> _R32 == tag:
                candidate = (entry & _LOW) - _ONE
                same = True
                for w in range(words):
                    if rows[candidate, w] != buffer[k, w]:
                        same = False
                        break
                if same:
                    number = np.int64(candidate)
                    break
            at = (at + _ONE) & mask
        if number < 0:
            if n >= ctl[codes.MAX_STATES]:
                ctl[codes.STATES], ctl[codes.EDGES] = n, e
                return codes.LIMIT
            number = n
            for w in range(words):
                rows[n, w] = buffer[k, w]
            parent[n] = sources[k]
            via[n] = vias[k]
            flags[n] = 0
            n += 1
            table[at] = (tag << _R32) | np.uint64(n)
        if edges.shape[0] > 0 and sources[k] != codes.NO_PARENT and action_class[vias[k] >> codes.OUTCOME_BITS] >= 0:
            edges[e, 0] = sources[k]
            edges[e, 1] = number
            edge_class[e] = action_class[vias[k] >> codes.OUTCOME_BITS]
            e += 1
    ctl[codes.STATES], ctl[codes.EDGES] = n, e
    ctl[codes.BUFFERED] = 0
    return codes.DONE


@compiled
def rebuild(store: Any, count: Any) -> Any:
    """Fills an empty table with the first `count` rows."""
    rows, table = store.rows, store.table
    mask = np.uint64(table.shape[0] - 1)
    for n in range(count):
        h = _SEED
        for w in range(rows.shape[1]):
            h = mix(h, rows[n, w])
        at = h & mask
        while table[at] != _ZERO:
            at = (at + _ONE) & mask
        table[at] = ((h >> _R32) << _R32) | np.uint64(n + 1)


@compiled
def repack(old: Any, new: Any, old_rows: Any, new_rows: Any, count: Any, values: Any) -> Any:
    """The first `count` rows in another layout."""
    for n in range(count):
        unpack(old.word, old.shift, old.mask, old_rows, n, values)
        for w in range(new_rows.shape[1]):
            new_rows[n, w] = _ZERO
        for i in range(new.word.shape[0]):
            new_rows[n, new.word[i]] |= np.uint64(values[i]) << new.shift[i]


@njit(inline="always")
def renamed(names: Any, name_masks: Any, name_values: Any, requests: Any, ctl: Any, bearer: Any, value: Any, mask: Any) -> Any:
    """The value with the object's live versions (mask) counted anew; -1: not known yet, on the list of requests if there is room."""
    name = (np.int64(bearer) << 32 | np.int64(value)) + 1
    size = names.shape[0]
    at = np.int64(mix(mix(_SEED, np.uint64(name)), mask) & np.uint64(size - 1))
    while names[at] != 0 and not (names[at] == name and name_masks[at] == mask):
        at = (at + 1) & (size - 1)
    found = np.int32(-1)
    if names[at] != 0:
        found = name_values[at]
    elif ctl[codes.RENAMED] * 2 < size and ctl[codes.RENAMES] < requests.shape[0]:
        names[at] = name
        name_masks[at] = mask
        name_values[at] = -1
        requests[ctl[codes.RENAMES]] = at
        ctl[codes.RENAMES] += 1
        ctl[codes.RENAMED] += 1
    return found


@njit(inline="always")
def renumber(
    slot_first: Any,
    slot_bearers: Any,
    bearers: Any,
    masks: Any,
    object_first: Any,
    object_bearers: Any,
    names: Any,
    name_masks: Any,
    name_values: Any,
    name_requests: Any,
    values: Any,
    written_slots: Any,
    stamps: Any,
    ctl: Any,
    slots: Any,
    written: Any,
    stamp: Any,
) -> Any:
    """Closes the gaps in the versions of the objects that the written slots bear, in the state after.

    The new number of written slots, or -1 - that number if a name is missing.
    """
    complete = True
    changed = written
    later = np.uintp(slots)
    for k in range(changed):
        slot = np.uintp(written_slots[k])
        for j in range(slot_first[slot], slot_first[slot + np.uintp(1)]):
            b = np.uintp(slot_bearers[j])
            thing = np.uintp(bearers[b, 1])
            base = bearers[b, 2]
            if stamps[later + thing] == stamp:
                continue
            if masks[np.uintp(base + values[slot])] == masks[np.uintp(base + values[later + slot])]:
                continue
            stamps[later + thing] = stamp
            first, last = object_first[thing], object_first[thing + np.uintp(1)]
            live = _ZERO
            for i in range(first, last):
                at = np.uintp(i)
                live |= masks[np.uintp(object_bearers[at, 2] + values[later + np.uintp(object_bearers[at, 0])])]
            if live & (live + _ONE) == _ZERO:
                continue
            high = ~((live ^ (live + _ONE)) >> _ONE)  # the versions above the first gap
            for i in range(first, last):
                at = np.uintp(i)
                other = np.uintp(object_bearers[at, 0])
                value = values[later + other]
                if masks[np.uintp(object_bearers[at, 2] + value)] & high != _ZERO:
                    name = renamed(names, name_masks, name_values, name_requests, ctl, object_bearers[at, 1], value, live)
                    if name < 0:
                        complete = False
                    else:
                        values[later + other] = name
                        written_slots[written] = other
                        written += 1
    return written if complete else -1 - written


@compiled
def expand(forest: Any, dispatch: Any, layout: Any, store: Any, work: Any, versions: Any, ctl: Any) -> Any:
    """Fires all actions in the states from POS to END, or the pairs (state, action) of `again`. Returns a status; go on by calling again.

    All outcomes of an action in a state are worked out before one is taken: if a path or a name is missing, the pair goes on the list
    of retries as a whole.
    """
    slots = layout.word.shape[0]
    words = store.rows.shape[1]
    listed = ctl[codes.LISTED] != 0
    roots, nodes, seen, child = forest.roots, forest.nodes, forest.seen, forest.child
    leaves, outcome_list, outcome_table = forest.leaves, forest.outcome_list, forest.outcomes
    constants, trees = forest.constants, forest.trees
    groups, dispatch_first, unknown, entries = dispatch.groups, dispatch.first, dispatch.unknown, dispatch.entries
    word, shift, mask = layout.word, layout.shift, layout.mask
    rows, flags = store.rows, store.flags
    values, written_slots, stamps, buffer = work.values, work.written, work.stamps, work.rows
    retries, again, saw, step_bad, tree_property = work.retries, work.again, work.saw, work.step_bad, work.tree_property
    taken, enabled, hashes, sources, vias = work.taken, work.enabled, work.hashes, work.source, work.via
    requests, request_after = work.requests, work.request_after
    most_requests = requests.shape[0]
    slot_first, slot_bearers, bearers, masks = versions.slot_first, versions.slot_bearers, versions.bearers, versions.masks
    object_first, object_bearers = versions.object_first, versions.object_bearers
    names, name_masks, name_values, name_requests = versions.names, versions.name_masks, versions.name_values, versions.requests
    beyond = work.beyond
    versioned = bearers.shape[0] > 0
    room = buffer.shape[0] - ctl[codes.WIDEST]
    most_retries = retries.shape[0] - taken.shape[0]
    groups_end = np.int64(groups.shape[0])
    buffered, retried, stamp = ctl[codes.BUFFERED], ctl[codes.RETRIES], ctl[codes.STAMP]
    status = codes.DONE
    i, end = ctl[codes.POS], ctl[codes.END]
    while True:
        if buffered > room or i >= end:
            ctl[codes.BUFFERED] = buffered
            status = flush(store, work, ctl)
            buffered = ctl[codes.BUFFERED]
        if retried > most_retries and not listed:
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
        for s in range(slots):
            values[s] = np.int32((rows[state, word[s]] >> shift[s]) & mask[s])
            values[slots + s] = values[s]
        state_flags = 0
        group = groups_end if listed else np.int64(-1)
        while group <= groups_end:
            if group < 0:
                entry, entry_end = np.int64(0), np.int64(unknown[0])
            elif group < groups_end:
                what = seen[np.uintp(groups[group, 1] + values[np.uintp(groups[group, 0])])]
                if what >= 0:
                    place = np.uintp(groups[group, 2] + what)
                    entry, entry_end = np.int64(dispatch_first[place]), np.int64(dispatch_first[place + np.uintp(1)])
                else:
                    entry, entry_end = np.int64(unknown[group]), np.int64(unknown[group + 1])
            elif listed:
                entry, entry_end = np.int64(0), np.int64(1)
            else:
                break
            while entry < entry_end:
                if listed:
                    a = again[i] & ((1 << codes.ACTION_BITS) - 1)
                    cell = np.uintp(roots[a])
                else:
                    a = np.int64(entries[np.uintp(entry), 0])
                    cell = np.uintp(entries[np.uintp(entry), 1])
                entry += 1
                code = walk(cell, nodes, seen, child, values, ctl[codes.REQUESTS] < most_requests)
                if code > codes.LEAF:
                    request(requests, request_after, values, ctl, code, state, a, slots)
                    retries[retried] = state << codes.ACTION_BITS | a
                    retried += 1
                    continue
                leaf = np.uintp(codes.LEAF - code)
                outcomes = leaves[leaf, 1]
                if outcomes == 0:
                    continue
                begin = leaves[leaf, 0]
                mark = buffered
                missing = False
                escapes = False
                for k in range(outcomes):
                    o = np.uintp(outcome_list[np.uintp(begin + k)])
                    if outcome_table[o, 6] >= 0:
                        escapes = True
                        continue
                    stamp += 1
                    written = 0
                    conflict = False
                    complete = True
                    part, last_part = outcome_table[o, 2] - 1, outcome_table[o, 3]
                    source = o  # first the outcome's own constants, then those of its parts
                    while part < last_part and not conflict:
                        known = True
                        if part >= outcome_table[o, 2]:
                            tree = trees[part]
                            reached = walk(np.uintp(roots[tree]), nodes, seen, child, values, ctl[codes.REQUESTS] < most_requests)
                            if reached > codes.LEAF:
                                request(requests, request_after, values, ctl, reached, state, tree, slots)
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
                            reached = walk(np.uintp(roots[tree]), nodes, seen, child, values, ctl[codes.REQUESTS] < most_requests)
                            if reached > codes.LEAF:
                                request(requests, request_after, values, ctl, reached, state, tree, slots)
                                complete = False
                                continue
                            which = tree_property[tree]
                            saw[which] |= 1 << (codes.LEAF - reached)
                            if reached == codes.LEAF and step_bad[which, 0] < 0:
                                step_bad[which, 0] = state
                                step_bad[which, 1] = a << codes.OUTCOME_BITS | k
                        if versioned:
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
                            )
                            if written < 0:
                                written = -1 - written
                                complete = False
                    if complete:
                        b = np.uintp(buffered)
                        for w in range(words):
                            buffer[b, w] = rows[state, w]
                        for n in range(written):
                            slot = np.uintp(written_slots[n])
                            w = word[slot]
                            new = np.uint64(values[np.uintp(slots) + slot])
                            buffer[b, w] = (buffer[b, w] & ~(mask[slot] << shift[slot])) | (new << shift[slot])
                        h = _SEED
                        for w in range(words):
                            h = mix(h, buffer[b, w])
                        hashes[b] = h
                        sources[b] = state
                        vias[b] = a << codes.OUTCOME_BITS | k
                        buffered += 1
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
            group += 1
        flags[state] |= state_flags
        i += 1
    ctl[codes.POS], ctl[codes.BUFFERED], ctl[codes.RETRIES], ctl[codes.STAMP] = i, buffered, retried, stamp
    return status


@compiled
def judge(forest: Any, layout: Any, store: Any, work: Any, ctl: Any, trees: Any, first_bad: Any) -> Any:
    """Asks the state invariants (trees) about the states from POS to END, or about the pairs (state, index in trees) of `again`."""
    slots = layout.word.shape[0]
    listed = ctl[codes.LISTED] != 0
    roots, nodes, seen, child = forest.roots, forest.nodes, forest.seen, forest.child
    word, shift, mask = layout.word, layout.shift, layout.mask
    rows, flags, values = store.rows, store.flags, work.values
    retries, again, saw, tree_property = work.retries, work.again, work.saw, work.tree_property
    requests, request_after = work.requests, work.request_after
    most_requests = requests.shape[0]
    most_retries = retries.shape[0] - trees.shape[0]
    retried = ctl[codes.RETRIES]
    status = codes.DONE
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
        unpack(word, shift, mask, rows, state, values)
        for t in range(first, last):
            tree = trees[t]
            code = walk(np.uintp(roots[tree]), nodes, seen, child, values, ctl[codes.REQUESTS] < most_requests)
            if code > codes.LEAF:
                request(requests, request_after, values, ctl, code, state, tree, slots)
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
    requests, request_after = work.requests, work.request_after
    missing = 0
    for state in range(ctl[codes.POS], ctl[codes.END]):
        if marks[state] == 3:
            with_room = ctl[codes.REQUESTS] < requests.shape[0]
            code = walk_row(np.uintp(roots[tree]), nodes, seen, child, word, shift, mask, rows, state, with_room)
            if code > codes.LEAF:
                request(requests, request_after, values, ctl, code, state, tree, slots)
                missing += 1
            else:
                marks[state] = codes.LEAF - code
    return missing
