"""Recorded answers of Kubernetes 1.37.2 about lifecycle, kubelet, API server and validation, from a corpus outside the repository."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CORPUS = Path(os.environ.get("DRA_SPEC_CORPUS", "")) / "conformance"
RUN = Path(__file__).parent / "run.py"
pytestmark = pytest.mark.skipif("DRA_SPEC_CORPUS" not in os.environ, reason="no corpus")


def agreed(*paths: Path) -> int:
    """How many of the cases that are compared agree: all of them."""
    done = subprocess.run([sys.executable, str(RUN), *map(str, paths)], capture_output=True, text=True, check=False, timeout=1800)
    last = re.fullmatch(r"agreed (\d+) of (\d+)", done.stdout.splitlines()[-1])
    assert last, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout
    return int(last[1])


@pytest.mark.parametrize(
    ("path", "least"),
    [
        ("lifecycle/device-taint-rules.json", 14),
        ("lifecycle/claim-helpers.json", 31),
        ("kubelet/checkpoint-files.jsonl", 18),
        ("kubelet/hazards.jsonl", 414),
        ("apiserver/gc.jsonl.gz", 256),
        ("apiserver/sequences.jsonl.gz", 3870),
        ("validation", 260),
    ],
)
def test_recorded_answers(path: str, least: int) -> None:
    assert agreed(CORPUS / path) >= least


def test_some_sequences_of_the_kubelet(tmp_path: Path) -> None:
    some = tmp_path / "some.jsonl"
    with gzip.open(CORPUS / "kubelet" / "sequences.jsonl.gz", "rt") as lines:
        some.write_text("".join(line for number, line in enumerate(lines) if number % 8 == 0))
    assert agreed(some) > 1500


@pytest.mark.full
def test_all_sequences_of_the_kubelet() -> None:
    assert agreed(CORPUS / "kubelet" / "sequences.jsonl.gz") > 12000
