"""The live versions of each object are counted anew after each step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from dra_spec.explorer import arrays as codes
from dra_spec.explorer.kernel_cache import compiled
from dra_spec.explorer.kernels_base import ONE, SEED, ZERO, mix
from dra_spec.explorer.kernels_effects import note


@compiled
def place_of(name: Any, mask: Any, size: Any) -> Any:
    """Where a search in the rename table begins."""
    return np.int64(mix(mix(SEED, np.uint64(name)), mask) & np.uint64(size - 1))


@compiled
def ask_name(requests: Any, ctl: Any, name: Any, mask: Any) -> Any:
    """Puts a name on the list of requests, unless it is there or the list is full."""
    n = ctl[codes.RENAMES]
    for i in range(n):
        if requests[i, 0] == name and requests[i, 1] == np.int64(mask):
            return
    if n < requests.shape[0]:
        requests[n, 0], requests[n, 1] = name, np.int64(mask)
        ctl[codes.RENAMES] = n + 1


@njit(inline="always")
def renamed(names: Any, name_masks: Any, name_values: Any, requests: Any, ctl: Any, bearer: Any, value: Any, mask: Any) -> Any:
    """The value with the object's live versions (mask) counted anew; -1: not known yet."""
    name = (np.int64(bearer) << 32 | np.int64(value)) + 1
    size = names.shape[0]
    at = np.int64(mix(mix(SEED, np.uint64(name)), mask) & np.uint64(size - 1))
    while names[at] != 0 and not (names[at] == name and name_masks[at] == mask):
        at = (at + 1) & (size - 1)
    found = np.int32(-1)
    if names[at] != 0:
        found = name_values[at]
    else:
        ask_name(requests, ctl, name, mask)
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
    need: Any,
    o: Any,
    word: Any,
    shift: Any,
    mask: Any,
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
            live = ZERO
            for i in range(first, last):
                at = np.uintp(i)
                bearer = np.uintp(object_bearers[at, 0])
                note(need, o, bearer, word, shift, mask)
                live |= masks[np.uintp(object_bearers[at, 2] + values[later + bearer])]
            if live & (live + ONE) == ZERO:
                continue
            high = ~((live ^ (live + ONE)) >> ONE)  # the versions above the first gap
            for i in range(first, last):
                at = np.uintp(i)
                other = np.uintp(object_bearers[at, 0])
                value = values[later + other]
                if masks[np.uintp(object_bearers[at, 2] + value)] & high != ZERO:
                    name = renamed(names, name_masks, name_values, name_requests, ctl, object_bearers[at, 1], value, live)
                    if name < 0:
                        complete = False
                    else:
                        values[later + other] = name
                        written_slots[written] = other
                        written += 1
    return written if complete else -1 - written
