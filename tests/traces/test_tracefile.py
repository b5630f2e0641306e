"""The trace file: what is written is read again, what is wrong is located."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_spec.scenario.strict import InputError
from dra_spec.traces.trace import Belief, Change, ModelRef, Step, Trace
from dra_spec.traces.tracefile import dumps, loads

NAMES = st.text("aZ0189 /.-_@(),:'\"#[]{}!&*?|>%ä→", min_size=1, max_size=12).filter(lambda text: not text.startswith((":", "?")))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
STEPS = st.builds(
    Step,
    number=st.just(0),
    who=NAMES,
    action=NAMES,
    step=NAMES,
    what=NAMES,
    params=st.dictionaries(NAMES, NAMES, max_size=2),
    outcome=NAMES,
    because=st.lists(st.tuples(NAMES, PLAIN), max_size=3).map(tuple),
    changes=st.lists(st.builds(Change, NAMES, PLAIN, PLAIN), max_size=3).map(tuple),
    believed=st.lists(st.builds(Belief, NAMES, NAMES, PLAIN, PLAIN), max_size=2).map(tuple),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(STEPS, max_size=3), st.dictionaries(NAMES, st.integers(1, 3), max_size=2), NAMES)
def test_a_trace_is_read_as_it_was_written(steps: list[Step], bounds: dict[str, int], text: str) -> None:
    numbered = tuple(attrs.evolve(step, number=i) for i, step in enumerate(steps, 1))
    trace = Trace(ModelRef("m", bounds, {}, ("v",), True), "promise", numbered, text, text, "1.37.2", {"c": text}, (text,))
    assert loads(dumps(trace), "t.yaml") == trace


def test_the_file_is_short_enough_to_be_reviewed(double: Callable[[], Trace]) -> None:
    lines = dumps(double()).splitlines()
    assert max(map(len, lines)) < 200
    assert sum(line.startswith("  - number:") for line in lines) == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema: dra-spec/trace/v1", "schema: x", "t.yaml:1: schema: expected 'dra-spec/trace/v1', found 'x'"),
        ("promise: one-owner", "promis: one-owner", "t.yaml:5: unknown field 'promis'; did you mean 'promise'?"),
        ("    outcome: ok", "    outcom: ok", "unknown field 'outcom'; did you mean 'outcome'?"),
        ("- number: 2", "- number: 7", "steps[1]: expected step number 2, found 7"),
        ("model: {name: toy}", "model: toy", "t.yaml:4: model: expected a mapping, found 'toy'"),
    ],
)
def test_mistakes_are_located(double: Callable[[], Trace], old: str, new: str, message: str) -> None:
    text = dumps(double())
    assert old in text
    with pytest.raises(InputError) as error:
        loads(text.replace(old, new, 1), "t.yaml")
    assert message in str(error.value)
    assert str(error.value).startswith("t.yaml:")
