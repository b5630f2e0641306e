"""Models made of another model, whose actions stand for actions of the other one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import attrs

from dra_spec.explorer.model import Action, AlwaysPossible, LeadsTo, Property, StepInvariant, Truth, View


def about_originals(promise: Property, original: Mapping[Action, Action]) -> Property:
    """The promise for a model with actions that stand for others: it is asked about the originals."""
    if isinstance(promise, StepInvariant):

        def judge(before: View, after: View, action: Action, label: str) -> Truth:
            return promise.fn(before, after, original[action], label)

        return attrs.evolve(promise, applies=partial(_asked, promise.applies, original), fn=judge)
    if isinstance(promise, AlwaysPossible):
        return attrs.evolve(promise, allowed=partial(_asked, promise.allowed, original))
    if isinstance(promise, LeadsTo):
        return attrs.evolve(promise, fair=partial(_asked, promise.fair, original))
    return promise


def _asked(wanted: object, original: Mapping[Action, Action], action: Action) -> bool:
    assert callable(wanted)
    return bool(wanted(original[action]))
