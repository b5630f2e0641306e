"""`check --allocation any`: what the verdicts mean, exit codes, trace files that stand for themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from dra_spec.allocation.validator import Broken
from dra_spec.reference import choice
from dra_spec.scenario import choices

Run = Callable[..., Result]
D = "accel.example.org/n1"
UPSTREAM, OTHER = (f"n1 c1:device={D}/{d} c2:port=fabric.example.org/n1/port" for d in ("d1", "d2"))


@pytest.fixture
def model(tmp_path: Path, manifests: Path) -> Path:
    """A model file in a folder of its own, small enough for each test."""
    path = tmp_path / "here" / "mine.yaml"
    path.parent.mkdir()
    text = "schema: dra-spec/model/v1\nname: mine\nallocation: any\nwriters: [scheduler]\nfaults: {api-refused: 1}\nbounds: {lag: 4}\n"
    path.write_text(f"{text}manifests: [{manifests / 'small-and-large.yaml'}]\ninvariants: [no-double-allocation]\nexpected: violated\n")
    return path


def test_a_violation_says_where_upstream_would_have_chosen_otherwise(run: Run, model: Path) -> None:
    result = run("check", model)
    assert result.exit_code == 0, result.output
    said = rf"no-double-allocation: at step (\d+) upstream's allocator would have answered {UPSTREAM}, not {OTHER}"
    found = re.search(said, result.stdout)
    assert found is not None
    assert "confirmed" in result.stdout
    (data,) = json.loads(run("check", model, "-o", "json").stdout)["models"]
    assert data["allocation"] == "any"
    assert data["departures"] == [{"invariant": "no-double-allocation", "step": int(found[1]), "chosen": OTHER, "upstream": UPSTREAM}]


def test_that_it_holds_is_said_to_hold_for_upstream(run: Run, model: Path) -> None:
    result = run("check", model, "--repaired")
    assert result.exit_code == 0, result.output
    assert "allocation any: with every feasible allocation, so also with upstream's, hold: no-double-allocation" in result.stdout
    assert "allocation any (at most 64 per call)" in result.stdout


def test_the_command_line_goes_before_the_file_and_then_nobody_expects_anything(run: Run, model: Path) -> None:
    (data,) = json.loads(run("check", model, "--allocation", "upstream", "-o", "json").stdout)["models"]
    assert (data["verdict"], data["expected"]) == ("holds", None)
    assert "departures" not in data


def test_bad_values_are_one_clear_error(run: Run, model: Path) -> None:
    assert run("check", "h1", "--allocation", "anny").exit_code == 2
    model.write_text(model.read_text().replace("allocation: any", "allocation: [any]"))
    result = run("check", model)
    assert result.exit_code == 2
    assert f"{model}:3" in result.stderr
    assert "Traceback" not in result.output


def test_a_bound_that_is_reached_is_undecided(run: Run, model: Path) -> None:
    result = run("check", model, "--bound", "allocations=1", "--repaired")
    assert result.exit_code == 3, result.output
    assert "there are more than 1 allocations of c1, c2 on node n1 (bound allocations=1)" in result.stdout


def test_a_counterexample_that_does_not_replay_is_undecided(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "broken_rules", lambda problem, solution: (Broken("whim", "today nobody gets anything"),))
    result = run("check", model)
    assert result.exit_code == 3, result.output
    said = r"no-double-allocation: undecided, its trace uses any allocation and does not replay: spurious \(step \d+: scheduler\.filter"
    assert re.search(said, result.stdout)
    assert "whim: today nobody gets anything" in result.stdout
    (data,) = json.loads(run("check", model, "-o", "json").stdout)["models"]
    assert (data["verdict"], data["invariants"]) == ("undecided", [{"name": "no-double-allocation", "verdict": "undecided"}])


def test_a_solver_that_is_wrong_is_a_doubt(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "every", lambda problem, limit, real=choices.every: real(problem, limit)[1:])
    result = run("check", model)
    assert result.exit_code == 4, result.output
    assert "Doubt: solver and validator disagree about" in result.stderr


def test_a_trace_is_replayed_from_another_directory(run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    checked = run("check", "mine.yaml", "--trace-dir", "../traces")
    assert checked.exit_code == 0, checked.output
    (path,) = (tmp_path / "traces").glob("*.yaml")
    assert "files: [../here/mine.yaml]" in path.read_text()
    monkeypatch.chdir("/")
    result = run("replay", path)
    assert result.exit_code == 0, result.output
    assert "confirmed" in result.stdout
    assert f"upstream's allocator would have answered {UPSTREAM}" in result.stdout


def test_the_command_lines_choice_is_in_the_trace(run: Run, tmp_path: Path) -> None:
    checked = run("check", "h1", "--allocation", "any", "--trace-dir", tmp_path)
    assert checked.exit_code == 1, checked.output
    (path,) = tmp_path.glob("*.yaml")
    assert "model: {name: h1, allocation: any}" in path.read_text()
    assert "command: dra-spec check h1 --allocation any --invariant no-double-allocation" in path.read_text()
    assert run("replay", path).exit_code == 0
    path.write_text(path.read_text().replace("allocation: any}", "allocation: anny}"))
    wrong = run("replay", path)
    assert wrong.exit_code == 2
    assert f"{path}:4" in wrong.stderr


def test_a_trace_with_a_wrong_choice_is_spurious_and_says_why(run: Run, model: Path, tmp_path: Path) -> None:
    run("check", model, "--trace-dir", tmp_path)
    (path,) = tmp_path.glob("*.yaml")
    good = path.read_text()
    for device, reason in (("d7", f"device {D}/d7: node n1 has no such device"), ("d1+accel.example.org/n1/d2", "2 devices, expected 1")):
        path.write_text(good.replace(f'outcome: "{OTHER}', f'outcome: "{OTHER.replace("d2", device)}', 1))
        assert path.read_text() != good
        result = run("replay", path)
        assert result.exit_code == 1, result.output
        assert re.search(r"spurious \(step \d+: scheduler\.filter\(pod=p1", result.stdout)
        assert reason in result.stdout
