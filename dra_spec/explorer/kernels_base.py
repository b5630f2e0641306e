"""What all kernels share: hashing, unpacking of rows, the walk through a decision tree, the list of requests.

Nothing is allocated in a kernel: when room runs out, it returns a status, the caller makes room and calls again.

Speed: arrays are taken out of their tuples before a loop, counters live in local variables inside it, and indices are unsigned where
they are known not to be negative (a signed index costs a test).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from dra_spec.explorer import arrays as codes
from dra_spec.explorer.kernel_cache import compiled

_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
SEED = np.uint64(0x9E3779B97F4A7C15)
ONE, ZERO = np.uint64(1), np.uint64(0)
_R29, R32 = np.uint64(29), np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


@njit(inline="always")
def mix(h: Any, word: Any) -> Any:
    """One word into a hash."""
    h = (h ^ word) * _M1
    h ^= h >> R32
    h *= _M2
    return h ^ (h >> _R29)


@compiled
def hash_of(row: Any) -> Any:
    h = SEED
    for w in range(row.shape[0]):
        h = mix(h, row[w])
    return h


@njit(inline="always")
def hash_at(kept: Any, n: Any) -> Any:
    """The hash of a state, by what is kept of it."""
    h = SEED
    for w in range(kept.shape[1]):
        h = mix(h, kept[n, w])
    return h


@njit(inline="always")
def enter(kept: Any, table: Any, n: Any) -> Any:
    """Puts a state that is not there yet into the table of states."""
    mask = np.uint64(table.shape[0] - 1)
    h = hash_at(kept, n)
    at = h & mask
    while table[at] != ZERO:
        at = (at + ONE) & mask
    table[at] = ((h >> R32) << R32) | np.uint64(n + 1)


@njit(inline="always")
def unpack(word: Any, shift: Any, mask: Any, rows: Any, state: Any, values: Any) -> Any:
    for i in range(word.shape[0]):
        values[i] = np.int32((rows[state, word[i]] >> shift[i]) & mask[i])


@njit(inline="always")
def unpack_twice(word: Any, shift: Any, mask: Any, rows: Any, state: Any, values: Any) -> Any:
    """The numbers of a row as those of the state before and, to begin with, of the state after."""
    slots = word.shape[0]
    for i in range(slots):
        values[i] = np.int32((rows[state, word[i]] >> shift[i]) & mask[i])
    for i in range(slots):
        values[slots + i] = values[i]


@njit(inline="always")
def walk(start: Any, nodes: Any, seen: Any, child: Any, values: Any) -> Any:
    """The leaf's code, or UNKNOWN where the path is missing."""
    code = child[start]
    while code >= 0:
        node = np.uintp(code)
        code = seen[np.uintp(nodes[node, 1] + values[np.uintp(nodes[node, 0])])]
        if code >= 0:
            code = child[np.uintp(nodes[node, 2] + code)]
    return code


@njit(inline="always")
def walk_row(start: Any, nodes: Any, seen: Any, child: Any, word: Any, shift: Any, mask: Any, rows: Any, state: Any) -> Any:
    """Like `walk`, on a packed row: for one tree, which looks at few slots, that is faster than to unpack them all."""
    code = child[start]
    while code >= 0:
        node = np.uintp(code)
        slot = np.uintp(nodes[node, 0])
        value = np.int64((rows[state, word[slot]] >> shift[slot]) & mask[slot])
        code = seen[np.uintp(nodes[node, 1] + value)]
        if code >= 0:
            code = child[np.uintp(nodes[node, 2] + code)]
    return code


@compiled
def request(
    requests: Any,
    request_after: Any,
    asked: Any,
    nodes: Any,
    seen: Any,
    child: Any,
    values: Any,
    ctl: Any,
    start: Any,
    state: Any,
    tree: Any,
    slots: Any,
) -> Any:
    """Puts a missing path on the list, with the state after (for step invariants), unless its place is on the list or the list is full.

    `start`: where the walk began that did not find it.
    """
    n = ctl[codes.REQUESTS]
    if n == requests.shape[0]:
        return
    place = 2 * np.int64(start) + 1
    code = child[np.int64(start)]
    while code >= 0:
        cell = np.int64(nodes[code, 1] + values[nodes[code, 0]])
        what = seen[cell]
        if what < 0:
            place = 2 * cell + 2
            break
        cell = np.int64(nodes[code, 2] + what)
        place = 2 * cell + 1
        code = child[cell]
    at = np.int64(mix(SEED, np.uint64(place)) & np.uint64(asked.shape[0] - 1))
    while asked[at] != 0:
        if asked[at] == place:
            return
        at = (at + 1) & (asked.shape[0] - 1)
    asked[at] = place
    requests[n, 0] = state
    requests[n, 1] = tree
    requests[n, 2] = place
    for i in range(slots):
        request_after[n, i] = values[slots + i]
    ctl[codes.REQUESTS] = n + 1
