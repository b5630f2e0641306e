"""Engines and reductions on random small models of the protocol itself: what random slots and guards do not have, such as versions that
several objects bear, outcomes of many parts, bounds and faults of every kind."""

from __future__ import annotations

from functools import lru_cache

import attrs
import pytest
from dra_models import scenario
from test_reductions_agree import WAYS, compare, compare_all

from dra_spec.explorer import Limits, explore, fingerprints, footprints, narrowed, parallel, por, symbolic

MOST = 2_500  # states; larger models are left out
MOST_PLAIN = 700  # the same for the plain search
MOST_RUNS = 2_500  # footprints of more are wider, and reductions do less
FEW = ("explicit", "symbolic", "dead,symmetry")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables; what is for wide rows and large blocks is for all; footprints are worked out once per model, and not to the end."""
    known = lru_cache(4)(lambda model: footprints.footprints.__wrapped__(model, MOST_RUNS))
    for module in (narrowed, por):
        monkeypatch.setattr(module, "footprints", lambda model, _: known(model))
    monkeypatch.setattr(symbolic, "NODES", 1 << 22)
    monkeypatch.setattr(symbolic, "CACHE", 1 << 18)
    monkeypatch.setattr(fingerprints, "_FULL_WORDS", 0)
    monkeypatch.setattr(parallel, "LEAST", 2)


def check(seed: int, names: tuple[str, ...]) -> bool:
    """Compares the ways on the model of a seed; False if there is no such model, or a large one. Raises `AssertionError`."""
    found = scenario(seed)
    if found is None:
        return False
    model, limits = found.model, Limits(expand_violating=seed % 2 == 0)
    base = explore(model, attrs.evolve(limits, max_states=MOST))
    whole = explore(model, Limits(max_states=MOST, expand_violating=True)) if base.unexpanded else base
    if found.unsupported or "max-states" in (base.stopped, whole.stopped):
        return False
    if base.states <= MOST_PLAIN:
        plain = explore(model, limits, "plain")
        compare(model, plain, whole, base, WAYS["explicit"])
    compare_all(seed, model, limits, base, whole, {name: WAYS[name] for name in names})
    return True


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.nightly) for part in range(1, 5))])
def test_few_ways_agree(part: int) -> None:
    """Some of the 12 models of a part do not fit together or are too large, but not all."""
    assert sum(check(seed, FEW) for seed in range(12 * part, 12 * (part + 1)))


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_all_ways_agree(part: int) -> None:
    assert sum(check(seed, tuple(WAYS)) for seed in range(1000 + 20 * part, 1000 + 20 * (part + 1)))
