"""`dra-spec replay`: traces that `check` wrote are confirmed, edited ones name the step that fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from dra_spec.scenario.content import shipped

Run = Callable[..., Result]


@pytest.fixture
def trace(run: Run, tmp_path: Path) -> Path:
    """The trace file of h1."""
    assert run("check", "h1", "--trace-dir", tmp_path).exit_code == 0
    (path,) = tmp_path.glob("*.yaml")
    return path


def test_a_written_trace_is_confirmed(run: Run, trace: Path) -> None:
    result = run("replay", trace)
    assert result.exit_code == 0, result.output
    assert f"{trace}: confirmed (no-double-allocation, 25 steps)" in result.stdout


def test_json_and_story(run: Run, trace: Path) -> None:
    (found,) = json.loads(run("replay", trace, "-o", "json").stdout)["traces"]
    assert found == {"file": str(trace), "verdict": "confirmed", "confirmed": True, "step": None, "on": "model and reference"}
    (told,) = json.loads(run("replay", trace, "--story", "-o", "json").stdout)["traces"]
    assert len(told["trace"]["steps"]) == 25
    assert "Unreserve counts down the entry in flight" in run("replay", "--story", trace).stdout


@pytest.mark.parametrize("step", [1, 12, 25])
def test_an_edited_step_is_named(run: Run, trace: Path, step: int) -> None:
    head, mark, tail = trace.read_text().partition(f"  - number: {step}\n")
    trace.write_text(head + mark + tail.replace("outcome: ok", "outcome: conflict", 1))
    result = run("replay", trace)
    assert result.exit_code == 1
    assert f"spurious (step {step}: " in result.stdout


def test_the_repaired_model_does_not_take_the_trace(run: Run, trace: Path) -> None:
    text = trace.read_text()
    trace.write_text(text.replace("model: {name: h1}", "model: {name: h1, variants: [unreserve-no-restore]}"))
    before_restore = text.partition("action: scheduler.release_in_flight")[0].rpartition("- number: ")[2].partition("\n")[0]
    result = run("replay", trace)
    assert result.exit_code == 1
    assert f"spurious (step {before_restore}: " in result.stdout


def test_the_command_in_the_trace_finds_it_again(trace: Path) -> None:
    assert "command: dra-spec check h1 --invariant no-double-allocation" in trace.read_text()


def test_a_trace_of_plain_manifests_is_found_and_confirmed_again(run: Run, tmp_path: Path, manifests: Path) -> None:
    files = [manifests / "one-node-two-devices.yaml", manifests / "two-and-one.yaml"]
    checked = run("check", *files, "--fault", "api-refused=1", "--invariant", "no-double-allocation", "--trace-dir", tmp_path)
    assert checked.exit_code == 1, checked.output
    (path,) = tmp_path.glob("*.yaml")
    result = run("replay", path)
    assert result.exit_code == 0, result.output
    assert "confirmed" in result.stdout


def test_shipped_counterexamples_are_confirmed(run: Run) -> None:
    files = list(shipped("counterexamples").values())
    assert files
    result = run("replay", *files)
    assert result.exit_code == 0, result.output
