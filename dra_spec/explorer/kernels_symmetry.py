"""The canonical representative of a state under a group of permutations: its least image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(inline="always")
def canonical(
    order: Any, source: Any, base: Any, tables: Any, values: Any, image: Any, written_slots: Any, slots: Any, written: Any
) -> Any:
    """Puts the least image in the place of the state after; the new number of written slots. `image`: room for one row."""
    later = np.uintp(slots)
    active = order.shape[0]
    best = -1
    for n in range(active):
        j = np.uintp(order[n])
        image[j] = values[later + j]
    for e in range(source.shape[0]):
        n = 0
        less = False
        while n < active:
            j = np.uintp(order[n])
            value = tables[base[e, j] + values[later + np.uintp(source[e, j])]]
            if value != image[j]:
                less = value < image[j]
                break
            n += 1
        if less:
            best = e
            while n < active:
                j = np.uintp(order[n])
                image[j] = tables[base[e, j] + values[later + np.uintp(source[e, j])]]
                n += 1
    if best >= 0:
        for n in range(active):
            j = np.uintp(order[n])
            if values[later + j] != image[j]:
                values[later + j] = image[j]
                written_slots[written] = j
                written += 1
    return written
