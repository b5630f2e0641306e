"""The benchmark script: it believes nobody's counts, and says what it leaves out."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import measure, peers, run
from benchmarks.toy import CONFIGS

SPIN = "State-vector 116 byte, depth reached 319, errors: 0\n    11414 states, stored\n    37643 transitions (= stored+matched)\n"


def said(**changes: object) -> str:
    figures = {"engine": "x", "states": 5, "transitions": 6, "depth": 3, "verdict": "holds", "calls": 40, "bytes": 37.3, "search": 0.25}
    return json.dumps(figures | changes)


def contender(tmp_path: Path, text: str, name: str = "spin") -> peers.Contender:
    return peers.Contender(name, "g", [sys.executable, "-c", f"print({text!r})"], tmp_path, peers.read_spin)


def test_what_the_peers_say() -> None:
    assert peers.read_spin(SPIN) == peers.Counts(11414, 37642)
    assert peers.read_stateright("states 11414 generated 37643 depth 43 seconds 0.014 rate 842326") == peers.Counts(11414, 37642, 43)
    done = (
        "Model checking completed. No error has been found.\n58,700 states generated, 11414 distinct states found, 0 states left on queue."
    )
    assert peers.read_tlc(done) == peers.Counts(11414)
    assert peers.read_ours(said(depth=0)) == peers.Counts(5, 6)
    assert peers.read_ours(said(depth=7)) == peers.Counts(5, 6, 7)


def test_errors_are_not_counts() -> None:
    with pytest.raises(peers.PeerError, match="found an error"):
        peers.read_spin(SPIN.replace("errors: 0", "errors: 1"))
    with pytest.raises(peers.PeerError, match="found an error"):
        peers.read_tlc("Error: Invariant NoDoubleAllocation is violated.")
    with pytest.raises(peers.PeerError, match="output without"):
        peers.read_stateright("thread panicked")
    with pytest.raises(peers.PeerError, match="does not hold"):
        peers.read_ours(said(verdict="violated"))
    with pytest.raises(peers.PeerError, match="not JSON"):
        peers.read_ours("Traceback")


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
    assert [len(row.runs) for row in rows] == [3, 3, 1]
    assert [row.problem for row in rows] == ["", "", "states 7, expected 11,414"]
    assert all(0 < row.wall < 60 and row.peak > 1_000_000 for row in rows[:2])
    lines = run.table(rows, ["spin"])
    assert "11,414" in lines[2]
    assert lines[2].split("|")[-3:] == [" 1.00 ", " 1.00 ", ""]
    assert "states 7, expected 11,414" in lines[4]


def measured(name: str, config: str, wall: float, peak: int, problem: str = "") -> run.Row:
    contender = peers.Contender(name, config, [], Path(), peers.read_ours)
    runs = [measure.Run(wall * factor, 0.0, peak, 0, said()) for factor in (1.0, 50.0, 0.5)]
    return run.Row(contender, runs, peers.Counts(5), problem)


def test_ratios_are_of_medians_and_of_one_configuration() -> None:
    rows = [measured("explicit", "q", 2.0, 100), measured("spin", "q", 7.0, 400), measured("spin", "m", 1.0, 400)]
    assert run.ratios(rows[0], rows) == {"spin": {"wall": 3.5, "memory": 4.0}}
    assert run.ratios(rows[0], [rows[0], measured("spin", "q", 7.0, 400, "states 7")]) == {}
    table = run.table(rows[:2], ["spin"])
    assert table[0].endswith("| spin s / this | spin MB / this |")
    assert table[2].endswith("| 3.50 | 4.00 |")


def test_bars() -> None:
    """An engine that is not fast enough misses its bar; where a peer failed nothing is claimed."""
    rows = [measured("explicit", "q", 2.0, 1), measured("symbolic", "q", 1.0, 1), measured("spin", "q", 7.0, 1)]
    assert [(bar["engine"], bar["ratio"], bar["met"]) for bar in run.bars(rows)] == [("explicit", 3.5, True), ("symbolic", 7.0, False)]
    assert list(run.bars([rows[0], measured("spin", "q", 7.0, 1, "states 7")])) == []
    assert list(run.bars([measured("explicit", "g", 2.0, 1), measured("spin", "g", 7.0, 1)])) == []


def test_a_crash_is_a_problem(tmp_path: Path) -> None:
    broken = peers.Contender("x", "g", [sys.executable, "-c", "raise SystemExit('no')"], tmp_path, peers.read_spin)
    row = run.rounds([broken], 2)[0]
    assert row.problem.startswith("exit code 1: no")


def test_a_run_is_ended_when_its_time_is_over(tmp_path: Path) -> None:
    done = measure.run([sys.executable, "-c", "import threading; threading.Event().wait()"], tmp_path, 0.3)
    assert done.code == -9


def test_memory_is_that_of_the_process() -> None:
    """200 MB more are 200 MB more. Measured from a small process, since what the measuring one holds is a floor."""
    program = "import sys; from benchmarks import measure; print(measure.run([sys.executable, '-c', sys.argv[1]], measure.HERE).peak)"
    small, large = (int(measure.run([sys.executable, "-c", program, f"x = b'x' * {size}"], measure.HERE).text) for size in (1, 200_000_000))
    assert 150_000_000 < large - small < 250_000_000


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both engines agree with the table; a peer without sources is named and left out."""
    monkeypatch.delenv("DRA_SPEC_CORPUS", raising=False)
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    file = tmp_path / "figures.json"
    done = CliRunner().invoke(run.main, ["--configs", "g", "--rounds", "1", "--peers", "spin", "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert "spin is left out: no folder" in done.output
    figures = json.loads(file.read_text())
    assert figures["machine"]["cores"] >= 1
    rows = figures["rows"]
    assert [(row["contender"], row["states"], row["agrees"]) for row in rows] == [("explicit", 11414, True), ("symbolic", 11414, True)]


def test_what_memory_does_not_hold_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "spin").mkdir()
    done = CliRunner().invoke(run.main, ["--configs", "x1", "--engines", "explicit", "--peers", "spin", "--peers-dir", str(tmp_path)])
    assert done.exit_code == 0
    assert "x1: explicit is left out: more states than fit into memory" in done.output
    assert "x1: spin is left out: more states than fit into memory" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--configs", "g,zz"], "Error: --configs: found 'zz', expected some of g, c, "),
        (["--engines", "fast"], "Error: --engines: found 'fast', expected some of explicit, symbolic, plain"),
        (["--peers", "nusmv"], "Error: --peers: found 'nusmv', expected some of spin, stateright, tlc"),
        (["--peers", "spin", "--peers-dir", "/no/such"], "Error: --peers-dir: no folder /no/such"),
        (["--peers", "tlc", "--tlc-jar", "/no/such.jar"], "Error: --tlc-jar: no file /no/such.jar"),
        (["--json", "/no/such/file.json"], "Error: --json: no folder /no/such"),
    ],
)
def test_wrong_input_is_one_line(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(run.main, arguments)
    assert done.exit_code == 2
    assert done.output.startswith(message)
    assert len(done.output.splitlines()) == 1


@pytest.mark.full
@pytest.mark.skipif(not os.environ.get("DRA_SPEC_CORPUS"), reason="no corpus")
@pytest.mark.parametrize(
    ("peer", "programs"), [("spin", ("spin", "gcc")), ("stateright", ("cargo",)), ("tlc", ("java",))], ids=["spin", "stateright", "tlc"]
)
def test_peers_agree(tmp_path: Path, peer: str, programs: tuple[str, ...]) -> None:
    """Built from their sources, they report the numbers of the table."""
    if any(shutil.which(program) is None for program in programs):
        pytest.skip(f"no {peer}")
    jar = os.environ.get("TLA2TOOLS_JAR")
    if peer == "tlc" and not jar:
        pytest.skip("no tla2tools.jar")
    made = peers.prepare(peer, Path(os.environ["DRA_SPEC_CORPUS"]) / "peers", tmp_path, "c", Path(jar) if jar else None)
    assert run.rounds([made], 1)[0].problem == ""


def test_an_engine_says_its_rate_its_calls_and_its_bytes() -> None:
    row = measured("explicit", "g", 1.0, 1)
    assert run.inside(row) == {"states_per_second": 20, "python_calls": 40, "bytes_per_state": 37.3}
    assert run.inside(measured("spin", "g", 1.0, 1)) == {}
