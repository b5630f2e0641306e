"""Dead slots of the state after a step get their resting value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from dra_spec.explorer import arrays as codes
from dra_spec.explorer.kernels_base import request
from dra_spec.explorer.kernels_effects import note, watched_walk


@njit(inline="always")
def bury(
    first: Any,
    affected: Any,
    before: Any,
    after: Any,
    slot_first: Any,
    slots_of: Any,
    rest: Any,
    done: Any,
    fault: Any,
    roots: Any,
    nodes: Any,
    seen: Any,
    child: Any,
    requests: Any,
    request_after: Any,
    asked: Any,
    values: Any,
    written_slots: Any,
    stamps: Any,
    ctl: Any,
    slots: Any,
    written: Any,
    stamp: Any,
    state: Any,
    action: Any,
    need: Any,
    o: Any,
    word: Any,
    shift: Any,
    mask: Any,
) -> Any:
    """Asks the predicates that may have changed with the written slots, in the state after; the new number of written slots.

    -1 - that number if a path is missing. `fault`: a slot that becomes live without being written (how often; state, action, declaration).
    """
    complete = True
    changed = written
    later = np.uintp(slots)
    for n in range(changed):
        slot = np.uintp(written_slots[n])
        for j in range(first[slot], first[slot + np.uintp(1)]):
            d = np.uintp(affected[j])
            if done[d] == stamp:
                continue
            done[d] = stamp
            tree = after[d]
            code = watched_walk(np.uintp(roots[tree]), nodes, seen, child, values, slots, need, o, word, shift, mask)
            if code > codes.LEAF:
                request(requests, request_after, asked, nodes, seen, child, values, ctl, roots[tree], state, tree, slots)
                complete = False
            elif code == codes.LEAF:
                for m in range(slot_first[d], slot_first[d + np.uintp(1)]):
                    x = np.uintp(slots_of[m])
                    note(need, o, x, word, shift, mask)
                    if values[later + x] != rest[x]:
                        values[later + x] = rest[x]
                        if stamps[x] != stamp:
                            stamps[x] = stamp
                            written_slots[written] = x
                            written += 1
            else:
                all_written = True
                for m in range(slot_first[d], slot_first[d + np.uintp(1)]):
                    all_written &= stamps[np.uintp(slots_of[m])] == stamp
                if not all_written:
                    tree = before[d]
                    code = watched_walk(np.uintp(roots[tree]), nodes, seen, child, values, slots, need, o, word, shift, mask)
                    if code > codes.LEAF:
                        request(requests, request_after, asked, nodes, seen, child, values, ctl, roots[tree], state, tree, slots)
                        complete = False
                    elif code == codes.LEAF:
                        if fault[0] == 0:
                            fault[1], fault[2], fault[3] = state, action, d
                        fault[0] += 1
    return written if complete else -1 - written
