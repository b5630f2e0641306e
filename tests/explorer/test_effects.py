"""What outcomes did before is remembered, and what promises said of the state before: nothing comes out differently."""

from __future__ import annotations

import pytest
from mortal_models import MortalMaker
from random_models import Maker
from test_threads import NONE, same, seen

from dra_spec.explorer import Limits, machine
from dra_spec.explorer.machine import Machine
from dra_spec.explorer.model import Model
from dra_spec.explorer.reductions import Reductions
from dra_spec.scenario.modelfile import Overrides
from dra_spec.scenario.targets import scenarios

LINES = (0, 1, 8, 1 << 12)


def compare(model: Model, limits: Limits, reductions: Reductions = NONE) -> int:
    """Searches that remember nothing, little and much; gives how many effects were remembered at last."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Machine, "reads", lambda self: self.store.rows[:0])  # each promise is asked about each state
        patch.setattr(machine, "_EFFECTS", 0)
        without = seen(model, limits, reductions)
    most = 0
    for lines in LINES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(machine, "_EFFECTS", lines)
            made: list[Machine] = []
            begin = Machine.__init__

            def kept(self: Machine, *args: object, begin: object = begin, made: list[Machine] = made) -> None:
                made.append(self)
                begin(self, *args)  # type: ignore[operator]

            patch.setattr(Machine, "__init__", kept)
            found = seen(model, limits, reductions)
        same(without, found)
        most = max(most, int((made[-1].effects.memory[:, 0] > 0).sum()))
    return most


@pytest.mark.parametrize("seed", range(40))
def test_random_models(seed: int) -> None:
    compare(Maker(seed, versions=seed % 4 > 0, beyond=seed % 5 == 0).model(), Limits(3000, threads=1, expand_violating=seed % 3 == 0))


@pytest.mark.parametrize("seed", range(16))
def test_dead_values(seed: int) -> None:
    compare(MortalMaker(seed, seed % 2 == 0, honest=seed % 4 > 0).model(), Limits(3000, threads=1), Reductions(dead=True))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(40, 1000))
def test_many_random_models(seed: int) -> None:
    test_random_models(seed)
    test_dead_values(seed)


@pytest.mark.parametrize(
    ("name", "reductions"), [("h1", Reductions(dead=True)), ("finished-pods", NONE), ("two-pods", Reductions(symmetry=True))]
)
def test_shipped_models(name: str, reductions: Reductions) -> None:
    limits = Limits(8_000, threads=1, expand_violating=True)
    assert compare(scenarios([name], Overrides())[0].model, limits, reductions) > 0 or reductions.symmetry
