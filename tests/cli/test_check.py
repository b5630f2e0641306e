"""`dra-spec check`: the JSON object, the exit codes, traces on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from dra_spec.scenario import run as searching

Run = Callable[..., Result]
SCHEMA: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "verdict": (str,),
    "expected": (str, type(None)),
    "invariants": (list,),
    "states": (int,),
    "transitions": (int,),
    "depth": (int,),
    "seconds": (float, int),
    "engine": (str,),
    "python_calls": (int,),
    "bytes_per_state": (float, int),
    "trace": (str, type(None)),
    "reductions": (list,),
}


def checked(text: str) -> list[dict[str, Any]]:
    """The models of the JSON object, after a look at every field."""
    data = json.loads(text)
    assert list(data) == ["models"]
    for model in data["models"]:
        assert list(model) == list(SCHEMA)
        for name, types in SCHEMA.items():
            assert isinstance(model[name], types), name
        assert model["verdict"] in ("holds", "violated", "undecided")
        for invariant in model["invariants"]:
            assert list(invariant) == ["name", "verdict"]
            assert invariant["verdict"] in ("holds", "violated", "undecided")
    models: list[dict[str, Any]] = data["models"]
    return models


def test_json_has_the_promised_shape(run: Run, tmp_path: Path) -> None:
    result = run("check", "h1", "touched-claim", "-o", "json", "--trace-dir", tmp_path)
    assert result.exit_code == 0, result.stderr
    first, second = checked(result.stdout)
    assert (first["name"], first["verdict"], first["expected"]) == ("h1", "violated", "violated")
    assert {"name": "no-double-allocation", "verdict": "violated"} in first["invariants"]
    assert Path(first["trace"]).is_file()
    assert (second["name"], second["verdict"], second["trace"]) == ("touched-claim", "holds", None)
    assert first["states"] > 1000
    assert first["depth"] > 20


def test_an_expected_violation_is_a_success_and_is_told_as_a_story(run: Run) -> None:
    result = run("check", "h1")
    assert result.exit_code == 0
    assert "no-double-allocation: violated, 25 steps, confirmed" in result.stdout
    assert "lag 4, api-refused 1" in result.stdout
    assert "After the entry went, the cache goes back to what the informer stored" in result.stdout
    assert "now out of date: scheduler/assumed/c1 has claim/c1" in result.stdout


def test_the_repaired_protocol_keeps_the_promise(run: Run) -> None:
    result = run("check", "h1", "--repaired", "-o", "json")
    assert result.exit_code == 0
    (model,) = checked(result.stdout)
    assert (model["verdict"], model["expected"]) == ("holds", "holds")


def test_an_expected_violation_that_does_not_come_is_a_negative_answer(run: Run, tmp_path: Path, manifests: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(
        f"schema: dra-spec/model/v1\nname: m\nmanifests: [{manifests}/one-node-one-device.yaml, {manifests}/one-pod.yaml]\n"
        "writers: [scheduler]\ninvariants: [no-double-allocation]\nexpected: violated\n"
    )
    result = run("check", path)
    assert result.exit_code == 1
    assert "expected violated, found holds" in result.stdout


def test_a_violation_that_nobody_expects_is_a_negative_answer(run: Run) -> None:
    result = run("check", "touched-claim", "--assert", "claims.all(c, !c.allocated)")
    assert result.exit_code == 1
    assert "assert-1" in result.stdout
    assert "confirmed" in result.stdout


@pytest.mark.parametrize(("option", "value", "reason"), [("--max-states", "20", "max-states"), ("--depth", "3", "depth")])
def test_a_limit_makes_it_undecided(run: Run, option: str, value: str, reason: str) -> None:
    result = run("check", "touched-claim", option, value)
    assert result.exit_code == 3
    assert f"stopped: {reason}" in result.stdout
    assert "undecided" in result.stdout


def test_behind_violating_states_the_other_promises_get_their_verdicts(run: Run) -> None:
    def verdicts(*more: str) -> dict[str, str]:
        (model,) = checked(run("check", "h1", "-o", "json", *more).stdout)
        return {promise["name"]: promise["verdict"] for promise in model["invariants"]}

    assert verdicts()["reserved-implies-allocated"] == "undecided"
    found = verdicts("--expand-violating")
    assert found.pop("no-double-allocation") == "violated"
    assert set(found.values()) == {"holds"}


def test_bounds_and_budgets_of_the_command_line_are_used_and_printed(run: Run) -> None:
    result = run("check", "touched-claim", "--bound", "lag=3", "--bound", "pods=1", "--fault", "touch-claim=2")
    assert result.exit_code == 0, result.output
    assert "lag 3, touch-claim 2" in result.stdout


def test_engines_agree(run: Run) -> None:
    answers = [
        checked(run("check", "touched-claim", "--bound", "pods=1", "-o", "json", "--engine", engine).stdout)[0]
        for engine in ("explicit", "plain")
    ]
    for field in ("verdict", "states", "transitions", "depth", "invariants"):
        assert answers[0][field] == answers[1][field]
    assert [answer["engine"] for answer in answers] == ["explicit", "plain"]


def test_a_variant_is_found_in_the_model_that_shows_it(run: Run, tmp_path: Path) -> None:
    result = run("check", "--variant", "allocation-only-assumed", "-o", "json", "--trace-dir", tmp_path)
    assert result.exit_code == 0, result.output
    (model,) = checked(result.stdout)
    assert (model["name"], model["verdict"], model["expected"]) == ("touched-claim", "violated", "violated")
    assert model["trace"] == str(tmp_path / "allocation-only-assumed.yaml")
    assert run("check", "--variant", "B02").exit_code == 0


def test_plain_manifests_get_a_model_of_the_control_plane_and_one_of_each_node(run: Run, manifests: Path) -> None:
    result = run("check", manifests / "one-node-one-device.yaml", manifests / "one-pod.yaml", "-o", "json")
    assert result.exit_code == 0, result.output
    control, node = checked(result.stdout)
    assert control["name"].endswith("control plane")
    assert node["name"].endswith("node n1")
    assert control["expected"] is None
    assert {i["name"] for i in control["invariants"]} >= {"no-double-allocation", "finalizer-while-allocated"}
    assert {i["name"] for i in node["invariants"]} >= {"checkpoint-covers-prepared", "no-unprepare-while-shared"}


def test_an_interrupt_is_its_own_code(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(searching, "run", interrupted)
    result = run("check", "h1")
    assert result.exit_code == 130
    assert "interrupted" in result.stderr


def test_an_internal_error_is_short_and_says_whose_fault_it_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the table is on fire")

    monkeypatch.setattr(searching, "run", broken)
    result = run("check", "h1")
    assert result.exit_code == 4
    assert "internal error: RuntimeError: the table is on fire" in result.stderr
    assert "Traceback" not in result.output


def test_no_progress_line_without_a_terminal(run: Run) -> None:
    assert run("check", "touched-claim").stderr == ""
