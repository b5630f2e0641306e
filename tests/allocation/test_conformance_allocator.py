"""The allocator against recorded answers of upstream (v0.37.2 and a development snapshot), from a corpus outside the repository."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CORPUS = os.environ.get("DRA_SPEC_CORPUS", "")
RUN = Path(__file__).parent.parent / "conformance" / "run.py"
needs_corpus = pytest.mark.skipif(not CORPUS, reason="no corpus")


def run(*paths: Path) -> tuple[int, list[str]]:
    """(exit code, lines of the output)."""
    done = subprocess.run([sys.executable, str(RUN), *map(str, paths)], capture_output=True, text=True, check=False, timeout=1800)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def cases(name: str) -> list[dict[str, Any]]:
    data = (Path(CORPUS) / "conformance" / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"problem": {}, "observed": {}}', ": case 1 is malformed: KeyError: 'node'"),
        ('[{"input": "1", "canonical": "1"}, {"id": "x", "canonical": "1"}]', ": case 2 (x) is malformed: KeyError: 'input'"),
        ('[{"kind": "selector", "expression": "true"}]', ": case 1 is malformed: KeyError: 'observed'"),
        ('{"problem": {}}\n{"problem": ', ":2: Expecting value"),
        ("[1]", "found no list of objects"),
    ],
)
def test_a_malformed_file_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "cases.json"
    file.write_text(text, encoding="utf-8")
    code, lines = run(file)
    assert code == 2
    assert len(lines) == 1
    assert words in lines[0]


@needs_corpus
@pytest.mark.parametrize("name", ["crafted.jsonl", "upstream.jsonl"])
def test_written_problems(name: str) -> None:
    code, lines = run(Path(CORPUS) / "conformance" / "allocator" / name)
    assert (code, lines[-1]) == (0, f"agreed {len(cases('allocator/' + name))} of {len(cases('allocator/' + name))}"), lines


@needs_corpus
@pytest.mark.parametrize("name", ["snapshot-divergences.jsonl.gz", "admin-access-order.jsonl.gz"])
def test_random_problems(name: str) -> None:
    code, lines = run(Path(CORPUS) / "conformance" / "allocator-random" / name)
    assert (code, lines[-1]) == (0, f"agreed {len(cases('allocator-random/' + name))} of {len(cases('allocator-random/' + name))}"), lines


@needs_corpus
def test_some_of_the_many_random_problems(tmp_path: Path) -> None:
    some = tmp_path / "some.jsonl"
    some.write_text("\n".join(json.dumps(c) for c in cases("allocator-random/problems.jsonl.gz")[::10]))
    code, lines = run(some)
    assert (code, lines[-1]) == (0, "agreed 200 of 200"), lines


@needs_corpus
@pytest.mark.full
def test_all_random_problems() -> None:
    code, lines = run(Path(CORPUS) / "conformance" / "allocator-random" / "problems.jsonl.gz")
    assert (code, lines[-1]) == (0, "agreed 2000 of 2000"), lines


EXACTLY = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
PROBLEM: dict[str, Any] = {
    "node": {"metadata": {"name": "n"}},
    "classes": [{"metadata": {"name": "c"}, "spec": {}}],
    "slices": [
        {
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d.example.com",
                "nodeName": "n",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "a"}, {"name": "b"}],
            },
        }
    ],
    "claims": [
        {
            "metadata": {"name": "x"},
            "spec": {
                "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}}]}
            },
        }
    ],
    "allocated": {"devices": [{"driver": "d.example.com", "pool": "p", "device": "a"}], "sharedDevices": [], "consumedCapacity": []},
}


def case(device: str) -> dict[str, Any]:
    """A case with one answer: the request gets this device."""
    place = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": device}
    answer = {"supported": True, "outcome": "fit", "allocations": [{"devices": {"results": [result]}, "nodeSelector": place}]}
    return {"id": f"own/{device}", "features": [], "problem": PROBLEM, "observed": {"v0.37.2": {"experimental": answer}}}


def test_a_right_and_a_wrong_answer(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text(json.dumps([case("b")]))
    assert run(path) == (0, ["allocator: own.json: 1 / 1 (1 answers of 1 cases compared)", "agreed 1 of 1"])
    (tmp_path / "more.jsonl.gz").write_bytes(gzip.compress("\n".join(json.dumps(case(d)) for d in "ba").encode()))
    code, lines = run(tmp_path)
    assert code == 1
    assert lines[0] == "allocator: more.jsonl.gz: 1 / 2 (2 answers of 2 cases compared)"
    assert lines[2].startswith("  more.jsonl.gz: own/a: expected v0.37.2/experimental: fit {'request': 'r',")
    assert lines[-1] == "agreed 2 of 3"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [("x.json", "[1, 2]", "found no list of objects"), ("x.json", "{", "Expecting"), ("x.json", '[{"a": 1}]', "nothing to compare")],
)
def test_what_cannot_be_compared(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    code, lines = run(tmp_path / name)
    assert code == 2
    assert message in lines[-1]


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    assert run(tmp_path / "none.json") == (2, [f"{tmp_path / 'none.json'}: no such file or directory"])
