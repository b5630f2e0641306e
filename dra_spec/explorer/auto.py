"""Which engine fits a model: by what its trees and rooms look like after a short look around."""

from __future__ import annotations

from collections import Counter
from math import log2

import attrs

from dra_spec.explorer.audit import scouted
from dra_spec.explorer.model import Model
from dra_spec.explorer.scout import Walker
from dra_spec.explorer.trees import Trees
from dra_spec.explorer.values import versions

_FEW_BITS = 30  # below, the explicit engine holds every state that there could be
_WIDE = 0.5  # share of the slots that one function may touch
_LARGE = 16  # values of one slot
_OWN_BITS = 8  # a part of a model has at least so many of its own
_SHARED = 0.3  # at most this share of the bits is common to the parts of a loosely coupled model


@attrs.frozen
class Parts:
    """Rooms that actions of most parts enter, and how many groups of other rooms there are that no action brings together.

    `shared` and `bits`: combinations of values of the slots in those rooms, and of all slots, as logarithms to base 2.
    """

    meet_in: tuple[str, ...]
    count: int
    shared: float
    bits: float

    @property
    def loose(self) -> bool:
        """Whether most of the state belongs to one part or another, so that a set of states is little more than a product."""
        return self.count >= 2 and self.shared <= _SHARED * self.bits


def parts(model: Model, trees: Trees) -> Parts:
    """The parts of a model by the rooms of its actions."""
    sizes: dict[str, float] = dict.fromkeys((slot.room for slot in model.slots), 0.0)
    for slot, values in zip(model.slots, trees.domains.values, strict=True):
        sizes[slot.room] += log2(max(1, len(values)))
    entered = Counter(room for action in model.actions for room in action.rooms)
    common = {room for room in sizes if 2 * entered[room] > len(model.actions)}
    part = {room: room for room in sizes if room not in common}
    for action in model.actions:
        own = {part[room] for room in action.rooms if room in part}
        for room, of in part.items():
            if of in own:
                part[room] = min(own)
    owned = dict.fromkeys(part.values(), 0.0)
    for room, of in part.items():
        owned[of] += sizes[room]
    count = sum(bits >= _OWN_BITS for bits in owned.values())
    return Parts(tuple(sorted(room for room in common if sizes[room])), count, sum(sizes[room] for room in common), sum(sizes.values()))


def choose(model: Model) -> tuple[str, str]:
    """The engine, and why: decision diagrams where slots are small and each action touches few of them, or where the model falls into
    parts that share little; else one state at a time.

    Raises `ModelError`, as a search would.
    """
    trees = scouted(model)
    values = trees.domains.values
    found = parts(model, trees)
    if found.bits < _FEW_BITS:
        return "explicit", f"the values seen so far have 2^{found.bits:.0f} combinations at most"
    if found.loose:
        where = f"meet only in {', '.join(found.meet_in)}" if found.meet_in else "do not meet"
        return "symbolic", f"{found.count} parts {where}, which is {found.shared:.0f} of {found.bits:.0f} bits"
    if any(next(versions(value), None) is not None for seen in values for value in seen):
        return "explicit", "its slots bear versions, so that each copy of an object hangs on every other"
    largest = max(range(len(values)), key=lambda slot: len(values[slot]))
    if len(values[largest]) > _LARGE:
        return "explicit", f"{model.slots[largest]} has {len(values[largest])} values or more"
    widest = max((len(group) for group in Walker(trees).groups()), default=0)
    if widest > _WIDE * len(values):
        return "explicit", f"one action touches {widest} of {len(values)} slots"
    return "symbolic", f"small slots, at most {widest} of {len(values)} touched together, up to 2^{found.bits:.0f} combinations"
