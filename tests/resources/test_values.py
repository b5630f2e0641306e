"""Quantity, SemVer and the formats of names."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_spec.resources import Quantity, QuantityError, SemVer, names

SUFFIXES = {
    "": 1,
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
}
SUFFIXES |= {"P": 10**15, "E": 10**18, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}  # Pi and Ei could reach the cap


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1k", 1000),
        ("24480Mi", 24480 * 2**20),
        ("1.5Gi", 3 * 2**29),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("-2", -2),
        ("+2", 2),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("12e-3", Fraction(12, 1000)),
        ("100m", Fraction(1, 10)),
        ("0.1n", Fraction(1, 10**9)),  # below a nano: rounded away from zero
        ("-0.1n", -Fraction(1, 10**9)),
        ("9007199254740993", 9007199254740993),  # a float would lose the last digit
        ("0.000000003", Fraction(3, 10**9)),
        ("Gi", 0),  # upstream takes these for zero
        ("-", 0),
        ("9Ei", 2**63 - 1),  # capped, as upstream does with binary suffixes only
        ("10E", 10**19),
    ],
)
def test_quantities_are_exact(text: str, value: Fraction) -> None:
    assert Quantity.parse(text).value == value


@pytest.mark.parametrize(
    "text", ["", " ", "iG", "1 Gi", "1gi", "1K", "1ki", "0x10", "1e", "1_000", "1.2.3", "--1", "١", "1" * 65, "1e100", "nan", "1\n"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a"):
        Quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1024Mi", "1Gi"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5Gi", "1536Mi"),
        ("1000Ki", "1000Ki"),
        ("0Gi", "0"),
        ("1e3", "1e3"),
        ("1000", "1k"),
        ("500Ki", "500Ki"),
    ],
)
def test_the_canonical_notation(text: str, canonical: str) -> None:
    assert str(Quantity.parse(text)) == canonical


numbers = st.tuples(st.integers(-(10**6), 10**6), st.integers(0, 3), st.sampled_from(list(SUFFIXES)))


def written(number: tuple[int, int, str]) -> tuple[str, Fraction]:
    """A quantity's text and its value, computed apart from the parser; never below a nano."""
    digits, places, suffix = number
    if suffix in ("n", "u", "m") and places:
        places = 0
    sign = "-" if digits < 0 else ""
    text = str(abs(digits)).rjust(places + 1, "0")
    whole, fraction = (text[:-places], "." + text[-places:]) if places else (text, "")
    return f"{sign}{whole}{fraction}{suffix}", Fraction(digits, 10**places) * SUFFIXES[suffix]


@given(numbers, numbers)
def test_arithmetic_and_order_agree_with_fractions(a: tuple[int, int, str], b: tuple[int, int, str]) -> None:
    (ta, va), (tb, vb) = written(a), written(b)
    qa, qb = Quantity.parse(ta), Quantity.parse(tb)
    assert (qa.value, qb.value) == (va, vb)
    assert (qa + qb).value == va + vb
    assert (qa - qb).value == va - vb
    assert (qa < qb, qa == qb, qa >= qb) == (va < vb, va == vb, va >= vb)
    if va == vb:
        assert hash(qa) == hash(qb)


@given(numbers)
def test_printing_and_reading_gives_the_same_value(a: tuple[int, int, str]) -> None:
    quantity = Quantity.parse(written(a)[0])
    assert Quantity.parse(str(quantity)) == quantity


@given(st.text(max_size=20))
def test_no_text_makes_the_parser_fail_otherwise(text: str) -> None:
    try:
        Quantity.parse(text)
    except QuantityError:
        return


def test_versions_sort_by_precedence() -> None:
    texts = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.2.0",
        "1.10.0",
    ]
    versions = [SemVer.parse(t) for t in texts]
    assert sorted(versions, key=lambda v: v) == versions
    assert all(a < b for a, b in itertools.pairwise(versions))
    assert SemVer.parse("1.0.0+a") == SemVer.parse("1.0.0+b")
    assert [str(v) for v in versions] == texts


@pytest.mark.parametrize("text", ["1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0+", "", "1.0.0 ", "535.104.05"])
def test_other_versions_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a semantic version"):
        SemVer.parse(text)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (names.dns_label, ["a", "gpu-0", "0a", "a" * 63], ["", "A", "-a", "a-", "a.b", "a" * 64, "a\n"]),
        (names.dns_subdomain, ["a.b", "gpu.example.com"], ["", "a..b", ".a", "a_b", "a" * 254, "x-{{.Index}}"]),
        (names.driver_name, ["gpu.example.com", "GPU.example.com"], ["", "a/b", "a" * 64]),
        (names.pool_name, ["node-a", "rack/node-a"], ["", "a//b", "/a", "a/"]),
        (names.qualified_name, ["index", "dra.net/ifName", "_x"], ["", "a-b", "0a", "a/b/c", "x" * 33, "/a"]),
        (names.fully_qualified_name, ["dra.net/ifName"], ["ifName"]),
        (names.label_key, ["app", "example.com/app", "a.b_c-D"], ["", "a/", "/a", "-a", "a b"]),
        (names.label_value, ["", "true", "A.b_c"], ["-", "a b", "a" * 64]),
    ],
)
def test_formats_of_names(check: names.NameCheck, good: list[str], bad: list[str]) -> None:
    assert [t for t in good if check(t) is not None] == []
    assert [t for t in bad if check(t) is None] == []
