"""What can be proved of selectors; each yes is confirmed by evaluating, each no is tried against random devices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_spec.resources import Quantity, SemVer
from dra_spec.selectors import Selector, SelectorDevice, SelectorError, compile_selector
from dra_spec.selectors.analysis import Answer, Read, disjoint, fails_without, reads, satisfiable

D = "d.example.com"


def selector(text: str) -> Selector:
    """`A` for the attributes and `C` for the capacities of the domain."""
    return compile_selector(text.replace("A.", f"device.attributes['{D}'].").replace("C.", f"device.capacity['{D}']."))


def attribute(name: str) -> Read:
    return Read("attributes", D, name)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("A.model == 'a' && A.model == 'b'", "no"),
        ("A.index > 3 && A.index < 5", "yes"),
        ("A.index > 3 && A.index < 4", "no"),
        ("A.v.isGreaterThan(semver('1.0.0')) && A.v.isLessThan(semver('1.0.1'))", "yes"),
        ("A.v.isGreaterThan(semver('1.0.0-a')) && A.v.isLessThan(semver('1.0.0-a.0'))", "unknown"),  # there is none; not proved
        ("A.v.isGreaterThan(semver('2.0.0')) && A.v == semver('1.0.0')", "no"),
        ("C.memory.compareTo(quantity('10Gi')) >= 0 && C.memory.isLessThan(quantity('5Gi'))", "no"),
        ("C.memory.compareTo(quantity('10Gi')) >= 0 && C.memory.isLessThan(quantity('11Gi'))", "yes"),
        ("A.model.startsWith('H1') && A.model.endsWith('0')", "yes"),
        ("A.model.startsWith('H1') && A.model == 'A100'", "no"),
        ("A.x == 1 && A.x == 'a'", "no"),  # no attribute has two types
        ("!has(A.x) && A.x == 1", "no"),
        ("!has(A.x) && (A.x == 1 || device.driver == 'd')", "yes"),  # || absorbs the error
        ("A.model.matches('a')", "unknown"),
        ("['a', 'b'].exists(m, A.model == m) && A.model != 'a'", "yes"),
        ("cel.bind(g, A.index, g in [1, 2] && g > 2)", "no"),
        ("device.attributes['d.example.com'].?index.orValue(3) == 3", "yes"),
    ],
)
def test_satisfiable(text: str, answer: str) -> None:
    found = satisfiable(selector(text))
    assert found.answer.value == answer
    if found.device is not None:
        assert selector(text).matches(found.device) is True


def test_types_narrow_what_is_possible() -> None:
    both = selector("A.x != 1 && A.x != 2 && (A.x in [1, 2] || A.x == true)")
    assert satisfiable(both).answer is Answer.YES
    assert satisfiable(both, {attribute("x"): "int"}).answer is Answer.NO
    sums = selector("A.x + 1 < A.x")  # an overflow is an error, not a small number
    assert satisfiable(sums).answer is Answer.UNKNOWN
    assert satisfiable(sums, {attribute("x"): "int"}).answer is Answer.NO


def test_disjoint() -> None:
    assert disjoint(selector("A.i < 3"), selector("A.i > 3")).answer is Answer.YES
    met = disjoint(selector("A.i <= 3"), selector("A.i >= 3"))
    assert met.answer is Answer.NO
    assert met.device is not None
    assert met.device.attributes == {D: {"i": 3}}


def test_reads() -> None:
    assert reads(selector("A.a == 1 && has(A.b) && C.m.isGreaterThan(quantity('1'))")) == (
        {attribute("a"), attribute("b"), Read("capacity", D, "m")},
        True,
    )
    assert reads(selector(f"cel.bind(g, device.attributes['{D}'], g.a == 1 && 'b' in g)")) == ({attribute("a"), attribute("b")}, True)
    assert reads(selector("device.attributes.exists(d, d == 'x')")) == (set(), False)
    assert reads(selector(f"cel.bind(g, device.attributes['{D}'], size(g) > 1)"))[1] is False


def test_fails_without() -> None:
    found = fails_without(selector("A.a == 1 && (!has(A.b) || A.b == 2)"), {attribute("a"): "int"})
    assert found[attribute("a")].answer is Answer.YES
    assert found[attribute("b")].answer is Answer.NO


CONDITIONS = ["A.i > 1", "A.i == 1", "A.i != 2", "has(A.i)", "A.s == 'x'", "A.s != 'y'", "A.v == semver('1.0.0')", "A.b", "!A.b",
              "C.m.isLessThan(quantity('2'))", "C.m == quantity('2')", "A.i in [1, 3]", "A.v.compareTo(semver('2.0.0')) < 0"]  # fmt: skip
VALUES = st.one_of(
    st.integers(0, 3), st.booleans(), st.sampled_from(["x", "y"]), st.sampled_from([SemVer(1, 0, 0), SemVer(2, 0, 0), SemVer(3, 0, 0)])
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=4))
    return parts[0] + "".join(f" {draw(st.sampled_from(['&&', '||']))} {p}" for p in parts[1:])


@settings(max_examples=60, deadline=None)
@given(
    text=texts(),
    attributes=st.dictionaries(st.sampled_from("isvb"), VALUES),
    capacity=st.dictionaries(st.just("m"), st.integers(0, 3).map(Quantity.of)),
)
def test_no_device_contradicts_the_answers(text: str, attributes: dict[str, object], capacity: dict[str, Quantity]) -> None:
    chosen = selector(text)
    device = SelectorDevice("d/p/x", D, {D: attributes}, {D: capacity})  # type: ignore[dict-item]
    answer = satisfiable(chosen)
    assert answer.answer is not Answer.UNKNOWN
    result = chosen.matches(device)
    if result is True:
        assert answer.answer is Answer.YES
    if isinstance(result, SelectorError):
        known, complete = reads(chosen)
        assert complete
        assert known
