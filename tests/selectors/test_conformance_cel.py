"""Selectors, quantities and versions against recorded answers of the Go implementation, from a corpus outside the repository."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

CORPUS = os.environ.get("DRA_SPEC_CORPUS", "")
pytestmark = pytest.mark.skipif(not CORPUS, reason="no corpus")
RUNNERS = Path(__file__).parent.parent / "conformance"


@pytest.mark.parametrize(
    ("category", "folder", "name", "least"),
    [
        ("cel", "cel", "upstream.json", 100),
        ("quantities", "quantities", "valid.json", 400),
        ("quantities", "quantities", "invalid.json", 100),
        ("quantities", "quantities", "comparisons.json", 400),
        ("semver", "quantities", "semver.json", 100),
        ("semver", "quantities", "semver-comparisons.json", 200),
    ],
)
def test_agreement(category: str, folder: str, name: str, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RUNNERS))
    report: Any = importlib.import_module(category).run([Path(CORPUS) / "conformance" / folder / name])
    assert [str(d) for d in report.disagreements] == []
    assert report.total > least
    assert report.agreed + len(report.exceptions) == report.total
    sys.modules.pop(category, None)
