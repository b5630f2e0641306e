"""The table of states: successors move in from a buffer; tables and rows are made anew when they grow."""

from __future__ import annotations

from typing import Any

import numpy as np

from dra_spec.explorer import arrays as codes
from dra_spec.explorer.kernel_cache import compiled
from dra_spec.explorer.kernels_base import LOW, ONE, R32, SEED, ZERO, enter, mix

_WORD, _LAST = np.uint64(64), np.uint64(63)


@compiled
def fingerprint(layout: Any, rows: Any, count: Any, keys: Any, key_first: Any, prints: Any, hashes: Any) -> Any:
    """The fingerprints of the first `count` rows (fingerprints.py) and, if there is room for them, their hashes."""
    word, shift, mask = layout.word, layout.shift, layout.mask
    for n in range(count):
        low, high = ZERO, ZERO
        for i in range(word.shape[0]):
            at = np.uintp(key_first[i] + np.int64((rows[n, word[i]] >> shift[i]) & mask[i]))
            low ^= keys[at, 0]
            high ^= keys[at, 1]
        prints[n, 0], prints[n, 1] = low, high
        if n < hashes.shape[0]:
            hashes[n] = mix(mix(SEED, low), high)


@compiled
def flush(layout: Any, store: Any, work: Any, ctl: Any) -> Any:
    """Moves the successors from the buffer to the table. GROW: no room (nothing was moved). LIMIT: that on states was met."""
    n, count, words = ctl[codes.STATES], ctl[codes.BUFFERED], store.rows.shape[1]
    rows, table, flags, parent, via = store.rows, store.table, store.flags, store.parent, store.via
    kept, given, width, narrow = store.kept, work.kept, store.kept.shape[1], store.keys.shape[0] > 0
    buffer, hashes, sources, vias, action_class = work.rows, work.hashes, work.source, work.via, work.action_class
    edges, edge_class = store.edges, store.edge_class
    size = table.shape[0]
    if n + count > rows.shape[0] or (n + count) * 4 > size * 3 or (edges.shape[0] > 0 and ctl[codes.EDGES] + count > edges.shape[0]):
        return codes.GROW
    if narrow:
        fingerprint(layout, buffer, count, store.keys, store.key_first, given, hashes)
    mask = np.uint64(size - 1)
    touched = ZERO
    for k in range(count):  # independent loads overlap: the last pass finds table and rows in the cache
        touched |= table[hashes[k] & mask]
    for k in range(count):
        entry = table[hashes[k] & mask]
        if entry != ZERO and entry >> R32 == hashes[k] >> R32:
            touched |= kept[(entry & LOW) - ONE, 0]
    ctl[codes.TOUCHED] = np.int64(touched & LOW)  # so that the loads are not optimised away
    e = ctl[codes.EDGES]
    for k in range(count):
        h = hashes[k]
        tag = h >> R32
        at = h & mask
        number = np.int64(-1)
        while True:
            entry = table[at]
            if entry == ZERO:
                break
            if entry >> R32 == tag:
                candidate = (entry & LOW) - ONE
                same = True
                for w in range(width):
                    if kept[candidate, w] != given[k, w]:
                        same = False
                        break
                if same:
                    number = np.int64(candidate)
                    break
            at = (at + ONE) & mask
        if number < 0:
            if n >= ctl[codes.MAX_STATES]:
                ctl[codes.STATES], ctl[codes.EDGES] = n, e
                return codes.LIMIT
            number = n
            for w in range(words):
                rows[n, w] = buffer[k, w]
            if narrow:
                for w in range(width):
                    kept[n, w] = given[k, w]
            parent[n] = sources[k]
            via[n] = vias[k]
            flags[n] = 0
            n += 1
            table[at] = (tag << R32) | np.uint64(n)
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
    """Fills an empty table with the first `count` rows, or their fingerprints."""
    kept, table = store.kept, store.table
    for n in range(count):
        enter(kept, table, n)


@compiled
def repack(moves: Any, old_rows: Any, new_rows: Any, count: Any) -> Any:
    """The first `count` rows in another layout."""
    first, word, mask, turn = moves.first, moves.word, moves.mask, moves.turn
    for n in range(count):
        for w in range(new_rows.shape[1]):
            made = ZERO
            for m in range(first[w], first[w + 1]):
                bits = old_rows[n, word[m]] & mask[m]
                made |= (bits << turn[m]) | (bits >> ((_WORD - turn[m]) & _LAST))
            new_rows[n, w] = made
