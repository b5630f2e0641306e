"""Runs the command line in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dra_spec.cli.main import main
from dra_spec.content import directory

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """`run("check", "h1")`: the result with exit code, standard output and standard error."""

    def call(*arguments: str | Path) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="dra-spec")

    return call


@pytest.fixture
def manifests() -> Path:
    """The folder with the manifests of the shipped models."""
    return directory("models") / "manifests"
