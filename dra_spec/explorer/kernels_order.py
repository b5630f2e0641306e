"""How many different rests a set of states has behind some of its slots: what a decision diagram pays for having them in front."""

from __future__ import annotations

from typing import Any

import numpy as np

from dra_spec.explorer.kernel_cache import compiled

_UP, _FIRST, _SECOND, _ONE = np.uint64(33), np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(1)


@compiled
def spread(word: Any) -> Any:
    """The bits of a word, mixed: the last step of MurmurHash3."""
    word ^= word >> _UP
    word *= _FIRST
    word ^= word >> _UP
    word *= _SECOND
    return word ^ (word >> _UP)


@compiled
def rests(before: Any, more: Any, whole: Any, table: Any, sums: Any) -> Any:
    """Counts the different sets of rests. `before`, `more`: per state the hash of the slots in front, in two summands; `whole`: that of
    all its slots. `table`, `sums`: room; both have the length of a power of two, and are longer than the states are many.
    """
    mask = np.uint64(table.shape[0] - 1)
    table[:] = 0
    sums[:] = 0
    for i in range(before.shape[0]):
        front = before[i] + more[i]
        name = front | _ONE
        at = spread(name) & mask
        while table[at] != 0 and table[at] != name:
            at = (at + _ONE) & mask
        table[at] = name
        sums[at] += spread(whole[i] - front)
    sets = 0
    for j in range(table.shape[0]):
        if table[j] != 0:
            table[sets] = sums[j] | _ONE
            sets += 1
    sums[:] = 0
    found = 0
    for j in range(sets):
        name = table[j]
        at = spread(name) & mask
        while sums[at] != 0 and sums[at] != name:
            at = (at + _ONE) & mask
        if sums[at] == 0:
            sums[at] = name
            found += 1
    return found
