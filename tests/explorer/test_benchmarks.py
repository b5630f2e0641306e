"""The benchmark script: it believes nobody's counts, and says what it leaves out."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import peers, run
from benchmarks.toy import CONFIGS

SPIN = "State-vector 116 byte, depth reached 319, errors: 0\n    11414 states, stored\n    37643 transitions (= stored+matched)\n"


def contender(tmp_path: Path, text: str, name: str = "spin") -> peers.Contender:
    return peers.Contender(name, "g", [sys.executable, "-c", f"print({text!r})"], tmp_path, peers.read_spin)


def test_what_the_peers_say() -> None:
    assert peers.read_spin(SPIN) == peers.Counts(11414, 37642)
    assert peers.read_stateright("states 11414 generated 37643 depth 43 seconds 0.014 rate 842326") == peers.Counts(11414, 37642, 43)
    done = (
        "Model checking completed. No error has been found.\n58,700 states generated, 11414 distinct states found, 0 states left on queue."
    )
    assert peers.read_tlc(done) == peers.Counts(11414)
    assert peers.read_ours("engine=x states=5 transitions=6 depth=0 holds=1") == peers.Counts(5, 6)


def test_errors_are_not_counts() -> None:
    with pytest.raises(peers.PeerError, match="found an error"):
        peers.read_spin(SPIN.replace("errors: 0", "errors: 1"))
    with pytest.raises(peers.PeerError, match="found an error"):
        peers.read_tlc("Error: Invariant NoDoubleAllocation is violated.")
    with pytest.raises(peers.PeerError, match="output without"):
        peers.read_stateright("thread panicked")
    with pytest.raises(peers.PeerError, match="does not hold"):
        peers.read_ours("states=5 transitions=6 depth=0 holds=0")


def test_differences_are_named() -> None:
    assert peers.Counts(11414, 37642, 43).differs(CONFIGS["g"]) == ""
    assert peers.Counts(11414).differs(CONFIGS["g"]) == ""
    assert peers.Counts(11413, 37642, 44).differs(CONFIGS["g"]) == "states 11,413, expected 11,414, depth 44, expected 43"


def test_masks_of_spin() -> None:
    """The figures that the peers' own instructions give."""
    assert {name: peers.masks(CONFIGS[name]) for name in "mqdgl"} == {
        "m": (256, 4095),
        "q": (528, 4095),
        "d": (0, 31),
        "g": (0, 255),
        "l": (272, 4095),
    }


def test_contenders_take_turns(tmp_path: Path) -> None:
    """One that is wrong is run once; the table has medians and ratios for the others."""
    rows = run.rounds(
        [contender(tmp_path, SPIN), contender(tmp_path, SPIN, "other"), contender(tmp_path, SPIN.replace("11414", "7"), "wrong")], 3
    )
    assert [len(row.walls) for row in rows] == [3, 3, 1]
    assert [row.problem for row in rows] == ["", "", "states 7, expected 11,414"]
    assert all(0 < row.wall < 60 and min(row.peaks) > 1_000_000 for row in rows[:2])
    lines = run.table(rows, ["spin"])
    assert "11,414" in lines[2]
    assert "1.00" in lines[2].split("|")[-2]
    assert "states 7, expected 11,414" in lines[4]


def test_a_crash_is_a_problem(tmp_path: Path) -> None:
    broken = peers.Contender("x", "g", [sys.executable, "-c", "raise SystemExit('no')"], tmp_path, peers.read_spin)
    row = run.rounds([broken], 2)[0]
    assert row.problem.startswith("exit code 1: no")


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both engines agree with the table; a peer without sources is named and left out."""
    monkeypatch.delenv("DRA_SPEC_CORPUS", raising=False)
    file = tmp_path / "figures.json"
    done = CliRunner().invoke(run.main, ["--configs", "g", "--rounds", "1", "--peers", "spin", "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert "spin is left out: no folder" in done.output
    figures = json.loads(file.read_text())
    assert [(row["contender"], row["states"], row["agrees"]) for row in figures] == [("explicit", 11414, True), ("symbolic", 11414, True)]


def test_unknown_names() -> None:
    done = CliRunner().invoke(run.main, ["--configs", "g,zz"])
    assert done.exit_code == 2
    assert "'zz': expected some of g" in done.output


@pytest.mark.full
@pytest.mark.skipif(not os.environ.get("DRA_SPEC_CORPUS"), reason="no corpus")
@pytest.mark.skipif(shutil.which("spin") is None or shutil.which("gcc") is None, reason="no SPIN")
def test_spin_agrees(tmp_path: Path) -> None:
    made = peers.prepare("spin", Path(os.environ["DRA_SPEC_CORPUS"]) / "peers", tmp_path, "c", None)
    assert run.rounds([made], 1)[0].problem == ""


def test_an_engine_says_its_rate_its_calls_and_its_bytes(tmp_path: Path) -> None:
    said = "engine=explicit states=500 transitions=6 depth=3 holds=1 calls=40 bytes=37.3 search=0.250"
    row = run.Row(contender(tmp_path, said, "explicit"), text=said)
    assert run.inside(row) == {"states_per_second": 2000, "python_calls": 40, "bytes_per_state": 37.3}
    assert run.inside(run.Row(contender(tmp_path, SPIN), text=SPIN)) == {}
