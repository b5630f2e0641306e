"""What outcomes did before is remembered: it depends on some slots only, those that were looked at when it was worked out.

`need[o]` holds the bits of a packed row that any working out of outcome o has looked at or changed so far. A line of `memory` holds an
outcome, those bits of a state as they were, and as they became. Where the bits are the same again, the same tests would be made, all of
them on slots in `need`, so the same comes out. `need` only grows; a line from before holds zeros for the new bits, and so fits only where
they are zero: then the bits of that time are the same too, and the new ones stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from dra_spec.explorer.kernels_base import ONE, SEED, mix

_ODD, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@njit(inline="always")
def line_of(need: Any, memory: Any, rows: Any, state: Any, o: Any) -> Any:
    """The line for an outcome and the bits that it needs; there are a power of two of them."""
    h = np.uint64(o)
    for w in range(rows.shape[1]):
        h = (h ^ (rows[state, w] & need[o, w])) * _ODD
        h ^= h >> _HALF
    return np.uintp(h & np.uint64(memory.shape[0] - 1))


@njit(inline="always")
def recall(need: Any, memory: Any, rows: Any, state: Any, o: Any, buffer: Any, b: Any, hashes: Any) -> Any:
    """Puts the state after into place b of the buffer, with its hash; False if what the outcome does here is not remembered."""
    line = line_of(need, memory, rows, state, o)
    words = rows.shape[1]
    same = memory[line, 0] == np.uint64(o) + ONE
    if same:
        h = SEED
        for w in range(words):
            before, needed = rows[state, w], need[o, w]
            same &= memory[line, 1 + w] == before & needed
            after = (before & ~needed) | memory[line, 1 + words + w]
            buffer[b, w] = after
            h = mix(h, after)
        hashes[b] = h
    return same


@njit(inline="always")
def keep_in_mind(need: Any, memory: Any, rows: Any, state: Any, o: Any, buffer: Any, b: Any) -> Any:
    """Remembers that the outcome makes what is in place b of the buffer of the state."""
    line = line_of(need, memory, rows, state, o)
    words = rows.shape[1]
    memory[line, 0] = np.uint64(o) + ONE
    for w in range(words):
        memory[line, 1 + w] = rows[state, w] & need[o, w]
        memory[line, 1 + words + w] = buffer[b, w] & need[o, w]


@njit(inline="always")
def note(need: Any, o: Any, slot: Any, word: Any, shift: Any, mask: Any) -> Any:
    """The outcome looked at a slot, or changed it."""
    need[o, word[slot]] |= mask[slot] << shift[slot]


@njit(inline="always")
def watched_walk(
    start: Any,
    nodes: Any,
    seen: Any,
    child: Any,
    values: Any,
    slots: Any,
    need: Any,
    o: Any,
    word: Any,
    shift: Any,
    mask: Any,
) -> Any:
    """Like `walk`; notes where it looked."""
    code = child[start]
    while code >= 0:
        node = np.uintp(code)
        position = np.uintp(nodes[node, 0])
        slot = position if position < np.uintp(slots) else position - np.uintp(slots)
        note(need, o, slot, word, shift, mask)
        code = seen[np.uintp(nodes[node, 1] + values[position])]
        if code >= 0:
            code = child[np.uintp(nodes[node, 2] + code)]
    return code
