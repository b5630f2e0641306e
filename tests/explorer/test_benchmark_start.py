"""The script that measures commands from start to end."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks import measure, start

REPORT = """\
model        verdict    expected        states  depth  seconds
node-reboot  holds      holds              120     36      {}  (lag 2, finish-pod any number, node-reboot 1)
holds, or all as expected
"""


def test_medians() -> None:
    runs = [
        measure.Run(wall, cpu, 1, 0, REPORT.format(search)) for wall, cpu, search in ((3.0, 1.0, 0.5), (1.0, 0.5, 0.1), (2.0, 4.0, 0.2))
    ]
    assert start.figures("check", runs) == start.Figures("check", 3, 2.0, 1.0, 0.2)
    silent = start.figures("list", [measure.Run(1.0, 1.0, 1, 0, "models\n  h1  Two pods (and more)\n")])
    assert silent.search is None
    assert start.table([silent])[-1] == "| list | 1.00 | 1.00 | - | 1 |"


def test_a_command_that_fails_is_an_error() -> None:
    with pytest.raises(click.ClickException, match=r"nonsense: exit code 2: (?s:.)*no command 'chek'"):
        start.Command("nonsense", ("chek",)).run(os.environ)


def test_variables_are_set_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def run(command: object, folder: object, environment: object) -> measure.Run:
        seen.append(environment)
        return measure.Run(1.0, 1.0, 1, 1, "")

    monkeypatch.setattr(measure, "run", run)
    start.Command("x", (), {"A": "", "B": "2"}).run({"A": "1", "C": "3"})
    assert seen == [{"B": "2", "C": "3"}]


def test_bad_arguments_are_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(start.main, ["--json", str(tmp_path / "missing" / "file.json")])
    assert result.exit_code == 2
    assert "--json: no folder" in result.output


def test_all_is_measured_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def run(command: list[str], folder: Path, environment: dict[str, str]) -> measure.Run:
        asked.append(tuple(command[3:]))
        return measure.Run(1.6 if "h1" in command else 0.1, 0.1, 1, 0, REPORT.format(0.1))

    monkeypatch.setattr(measure, "run", run)
    result = CliRunner().invoke(start.main, ["--model", "h1", "--rounds", "2", "--cold", "--json", str(tmp_path / "f.json")])
    assert result.exit_code == 0, result.output
    one = [command.arguments for command in start.commands("h1")]
    assert asked == [*one, *one, *one, ("check", "h1")]
    assert "start to verdict of h1: 1.60 s; under 1.5 wanted: MISSED" in result.output
    assert (tmp_path / "f.json").is_file()
