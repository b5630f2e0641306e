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
