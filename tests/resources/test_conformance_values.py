"""Quantities and versions against answers of the Go implementation (k8s.io/apimachinery v0.37.2), from a corpus outside the repository."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dra_spec.resources import Quantity, QuantityError, SemVer

CORPUS = os.environ.get("DRA_SPEC_CORPUS", "")
pytestmark = pytest.mark.skipif(not CORPUS, reason="no corpus")


def entries(name: str) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = json.loads((Path(CORPUS) / "conformance" / "quantities" / name).read_text())
    assert len(content) > 100
    return content


def test_valid_quantities() -> None:
    for entry in entries("valid.json"):
        quantity = Quantity.parse(entry["input"])
        assert quantity.value == Fraction(entry["decimal"]), entry
        if not entry.get("canonicalLosesValue"):  # upstream prints 10^21 as 1; we do not
            assert str(quantity) == entry["canonical"], entry


def test_invalid_quantities() -> None:
    for entry in entries("invalid.json"):
        with pytest.raises(QuantityError):
            Quantity.parse(entry["input"])


def test_comparisons_sums_and_differences() -> None:
    for entry in entries("comparisons.json"):
        a, b = Quantity.parse(entry["a"]), Quantity.parse(entry["b"])
        assert ((a > b) - (a < b), str(a + b), str(a - b)) == (entry["compare"], entry["sum"], entry["difference"]), entry


def test_versions() -> None:
    for entry in entries("semver.json"):
        if entry["isSemver"]:
            assert str(SemVer.parse(entry["input"])) == entry["parsed"]
        else:
            with pytest.raises(ValueError, match="is not a"):
                SemVer.parse(entry["input"])


def test_versions_compared() -> None:
    for entry in entries("semver-comparisons.json"):
        a, b = SemVer.parse(entry["a"]), SemVer.parse(entry["b"])
        assert ((a > b) - (a < b), a == b) == (entry["compareTo"], entry["equal"]), entry
