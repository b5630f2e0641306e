"""`dra-spec list` and `dra-spec describe`."""

from __future__ import annotations

import json
from collections.abc import Callable

from click.testing import Result

from dra_spec.cli.catalogue import CATALOGUE

Run = Callable[..., Result]


def test_everything_is_listed(run: Run) -> None:
    text = run("list").stdout
    for name in ("h1", "two-schedulers", "no-double-allocation", "unreserve-no-restore"):
        assert f"  {name} " in text


def test_json_lists_names_and_summaries(run: Run) -> None:
    data = json.loads(run("list", "models", "actions", "-o", "json").stdout)
    assert list(data) == ["models", "actions"]
    assert all(set(entry) == {"name", "summary"} and entry["summary"] for entries in data.values() for entry in entries)


def test_everything_listed_can_be_described(run: Run) -> None:
    for kind, entries in CATALOGUE.items():
        for entry in entries()[:1]:
            result = run("describe", entry.name)
            assert result.exit_code == 0
            assert f"{kind.removesuffix('s')} {entry.name}" in result.stdout


def test_a_description_names_source_and_step(run: Run) -> None:
    text = run("describe", "scheduler.restore").stdout
    assert "step: U2" in text
    assert "assume_cache.go" in text


def test_the_version_and_the_help_are_there(run: Run) -> None:
    assert run("--help").exit_code == 0
    assert "Exit codes" in run("--help").stdout
    assert run("check", "--help").exit_code == 0
