"""The two engines are each other's test: on random small models they agree on everything that a search says."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_models import Maker, agree

from dra_spec.explorer import Limits, explore


@pytest.mark.parametrize("versions", [False, True])
@given(seed=st.integers(0, 10**9), beyond=st.booleans(), expand=st.booleans(), depth=st.one_of(st.none(), st.integers(0, 5)))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_engines_agree(versions: bool, seed: int, beyond: bool, expand: bool, depth: int | None) -> None:
    model = Maker(seed, versions, beyond).model()
    limits = Limits(depth=depth if depth is not None else 8, expand_violating=expand)
    plain = explore(model, attrs.evolve(limits, max_states=20_000), "plain")
    assume(plain.stopped != "max-states")  # a few are too large for the plain engine
    agree(plain, explore(model, limits, "explicit"))
