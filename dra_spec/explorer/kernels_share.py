"""The table of states, filled by several workers: each looks after its own share of the places, whoever made the successor.

Successors lie in one buffer, in pieces; the order of the pieces is the order of their states. First each worker looks up the successors
that belong into its share (`insert`), then, when it is known how many new states come before each piece, each writes the rows of some
pieces (`settle`). In between `hashes` tells what became of a successor: the place of its entry, if it is a new state; else OLD and the
number of the state, or AGAIN and the place in the buffer of the successor, an earlier one, that is the same new state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dra_spec.explorer import arrays as codes
from dra_spec.explorer.kernel_cache import compiled
from dra_spec.explorer.kernels_base import LOW, ONE, R32, ZERO, enter, hash_at

OLD, AGAIN = np.uint64(1 << 63), np.uint64(1 << 62)


@compiled
def insert(store: Any, pile: Any, share: Any) -> Any:
    """Looks up the successors whose place is in the share [FROM, TO) of the table; new ones get an entry.

    A search that comes to the end of the share is left to `insert_late`: it goes on in somebody else's.
    """
    table, kept, given, hashes, pieces, became = store.table, store.kept, pile.kept, pile.hashes, pile.pieces, pile.became
    bounds, fresh, late, mine = share.bounds, share.fresh, share.late, share.mine
    width, mask = kept.shape[1], np.uint64(table.shape[0] - 1)
    low, high = np.uint64(bounds[0]), np.uint64(bounds[1])
    room = np.uint64(bounds[1] - bounds[0])
    most = mine.shape[0]
    number = np.uint64(bounds[4])
    left = 0
    for p in range(pieces.shape[0]):
        k, end = pieces[p, 0], pieces[p, 1]
        found = 0
        while k < end:
            count = 0
            while k < end and count < most:
                mine[count] = k
                count += int((hashes[k] & mask) - low < room)
                k += 1
            touched = ZERO
            for j in range(count):  # independent loads overlap: the last pass finds table and rows in the cache
                touched |= table[hashes[mine[j]] & mask]
            for j in range(count):
                h = hashes[mine[j]]
                entry = table[h & mask]
                n = (entry & LOW) - ONE
                if entry != ZERO and entry >> R32 == h >> R32 and n < number:
                    touched |= kept[n, 0]
            bounds[3] = np.int64(touched & LOW)  # so that the loads are not optimised away
            for j in range(count):
                q = np.uint64(mine[j])
                h = hashes[q]
                tag = h >> R32
                at = h & mask
                while at != high:
                    entry = table[at]
                    if entry == ZERO:
                        table[at] = (tag << R32) | (number + q + ONE)
                        became[q] = at
                        found += 1
                        break
                    if entry >> R32 == tag:
                        n = (entry & LOW) - ONE
                        same = True
                        if n < number:
                            for w in range(width):
                                same &= kept[n, w] == given[q, w]
                        else:
                            for w in range(width):
                                same &= given[n - number, w] == given[q, w]
                        if same:
                            became[q] = OLD | n if n < number else AGAIN | (n - number)
                            break
                    at += ONE
                else:
                    late[left, 0], late[left, 1] = q, p
                    left += 1
        fresh[p] = found
    bounds[2] = left


@compiled
def insert_late(store: Any, pile: Any, share: Any) -> Any:
    """Finishes the searches that came to the end of a share; by one worker, when all shares are done."""
    table, kept, given, hashes, became = store.table, store.kept, pile.kept, pile.hashes, pile.became
    width, mask = kept.shape[1], np.uint64(table.shape[0] - 1)
    number = np.uint64(share.bounds[4])
    for i in range(share.bounds[2]):
        q = np.uint64(share.late[i, 0])
        tag = hashes[q] >> R32
        at = hashes[q] & mask
        while True:
            entry = table[at]
            if entry == ZERO:
                table[at] = (tag << R32) | (number + q + ONE)
                became[q] = at
                share.fresh[share.late[i, 1]] += 1
                break
            if entry >> R32 == tag:
                n = (entry & LOW) - ONE
                same = True
                for w in range(width):
                    same &= (kept[n, w] if n < number else given[n - number, w]) == given[q, w]
                if same:
                    became[q] = OLD | n if n < number else AGAIN | (n - number)
                    break
            at = (at + ONE) & mask


@compiled
def settle(store: Any, pile: Any, first: Any, own: Any, edges: Any, action_class: Any) -> Any:
    """Writes the new states of a worker's own pieces, those of each piece from number `first[piece]` on; once more does no harm.

    `edges`: gets how many edges each piece has that are to be stored.
    """
    rows, kept, parent, via, flags, table = store.rows, store.kept, store.parent, store.via, store.flags, store.table
    buffer, given, became, hashes, sources, vias = pile.rows, pile.kept, pile.became, pile.hashes, pile.source, pile.via
    words, width, narrow = rows.shape[1], kept.shape[1], store.keys.shape[0] > 0
    with_edges = store.edges.shape[0] > 0
    for i in range(own[0]):
        piece = own[i + 1]
        n = np.uint64(first[piece])
        count = 0
        for k in range(pile.pieces[piece, 0], pile.pieces[piece, 1]):
            q = np.uint64(k)
            what = became[q]
            if what < AGAIN:
                for w in range(words):
                    rows[n, w] = buffer[q, w]
                if narrow:
                    for w in range(width):
                        kept[n, w] = given[q, w]
                parent[n] = sources[q]
                via[n] = vias[q]
                flags[n] = 0
                table[what] = ((hashes[q] >> R32) << R32) | (n + ONE)
                became[q] = OLD | n
                n += ONE
            if with_edges:
                count += action_class[vias[q] >> codes.OUTCOME_BITS] >= 0
        edges[piece] = count


@compiled
def withdraw(store: Any, pile: Any) -> Any:
    """Takes the new entries out of the table again; nobody's search went on behind them, since they came last."""
    for piece in range(pile.pieces.shape[0]):
        for q in range(pile.pieces[piece, 0], pile.pieces[piece, 1]):
            if pile.became[q] < AGAIN:
                store.table[pile.became[q]] = ZERO


@compiled
def link(store: Any, pile: Any, first: Any, own: Any, action_class: Any) -> Any:
    """Writes the edges of a worker's own pieces, those of each from number `first[piece]` on; when all new states are written."""
    edges, edge_class, became, sources, vias = store.edges, store.edge_class, pile.became, pile.source, pile.via
    for i in range(own[0]):
        piece = own[i + 1]
        e = first[piece]
        for q in range(pile.pieces[piece, 0], pile.pieces[piece, 1]):
            kind = action_class[vias[q] >> codes.OUTCOME_BITS]
            if kind >= 0:
                what = became[q]
                if what < OLD:
                    what = became[what & ~AGAIN]
                edges[e, 0] = sources[q]
                edges[e, 1] = what & LOW
                edge_class[e] = kind
                e += 1


@compiled
def refill(store: Any, share: Any, states: Any) -> Any:
    """Fills the share of an empty table with the states whose place is in it, except those whose search comes to its end."""
    kept, table, bounds, late, mine = store.kept, store.table, share.bounds, share.late, share.mine
    mask = np.uint64(table.shape[0] - 1)
    low, high = np.uint64(bounds[0]), np.uint64(bounds[1])
    room = np.uint64(bounds[1] - bounds[0])
    left, n, most = 0, 0, mine.shape[0] - 1
    while n < states:
        count = 0
        while n < states and count < most:
            h = hash_at(kept, n)
            mine[count], mine[count + 1] = n, np.int64(h)
            count += 2 * int((h & mask) - low < room)
            n += 1
        touched = ZERO
        for j in range(0, count, 2):  # independent loads overlap: the last pass finds the table in the cache
            touched |= table[np.uint64(mine[j + 1]) & mask]
        bounds[3] = np.int64(touched & LOW)  # so that the loads are not optimised away
        for j in range(0, count, 2):
            h = np.uint64(mine[j + 1])
            at = h & mask
            while at != high and table[at] != ZERO:
                at += ONE
            if at != high:
                table[at] = ((h >> R32) << R32) | np.uint64(mine[j] + 1)
            elif left < late.shape[0]:
                late[left, 0] = mine[j]
                left += 1
            else:
                return 0
    bounds[2] = left
    return 1


@compiled
def refill_late(store: Any, share: Any) -> Any:
    """Puts in the states that `refill` left out; by one worker, when all shares are done."""
    kept, table = store.kept, store.table
    for i in range(share.bounds[2]):
        enter(kept, table, share.late[i, 0])
