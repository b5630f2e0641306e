"""Which engine fits a model: by what its trees look like after a short look around."""

from __future__ import annotations

from math import log2

from dra_spec.explorer.audit import scouted
from dra_spec.explorer.model import Model
from dra_spec.explorer.scout import Walker
from dra_spec.explorer.values import versions

_FEW_BITS = 30  # below, the explicit engine holds every state that there could be
_WIDE = 0.5  # share of the slots that one function may touch
_LARGE = 16  # values of one slot


def choose(model: Model) -> tuple[str, str]:
    """The engine, and why: decision diagrams where slots are small and each action touches few of them, else one state at a time.

    Raises `ModelError`, as a search would.
    """
    trees = scouted(model)
    values = trees.domains.values
    bits = sum(log2(max(1, len(seen))) for seen in values)
    if bits < _FEW_BITS:
        return "explicit", f"the values seen so far have 2^{bits:.0f} combinations at most"
    if any(next(versions(value), None) is not None for seen in values for value in seen):
        return "explicit", "its slots bear versions, so that each copy of an object hangs on every other"
    largest = max(range(len(values)), key=lambda slot: len(values[slot]))
    if len(values[largest]) > _LARGE:
        return "explicit", f"{model.slots[largest]} has {len(values[largest])} values or more"
    widest = max((len(group) for group in Walker(trees).groups()), default=0)
    if widest > _WIDE * len(values):
        return "explicit", f"one action touches {widest} of {len(values)} slots"
    return "symbolic", f"small slots, at most {widest} of {len(values)} touched together, up to 2^{bits:.0f} combinations"
