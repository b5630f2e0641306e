"""Options that say which Kubernetes it is about: the version and the feature gates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from dra_spec.allocation.admission import ApiServer
from dra_spec.allocation.gates import DEFAULT_VERSION, VERSIONS
from dra_spec.resources.problems import Problem

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--kubernetes", type=click.Choice(VERSIONS), default=DEFAULT_VERSION, show_default=True, help="The version, with its default gates."
    ),
    click.option("--gate", "gates", multiple=True, metavar="NAME=true|false", help="Set a feature gate (may be repeated)."),
)


def server_options(command: F) -> F:
    """Adds --kubernetes and --gate; `api_server` takes what they give."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def api_server(version: str, gates: Sequence[str]) -> ApiServer:
    """The API server that the options mean. Raises click.BadParameter for a gate that the version does not have or has locked."""
    changed: dict[str, bool] = {}
    for text in gates:
        name, _, value = text.partition("=")
        if value.lower() not in ("true", "false") or not name:
            raise click.BadParameter(f"found {text!r}, expected NAME=true or NAME=false", param_hint="--gate")
        changed[name] = value.lower() == "true"
    try:
        return ApiServer.of(version, changed)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--gate") from None


def print_warnings(warnings: Sequence[Problem]) -> None:
    """On standard error, so that JSON stays JSON; there the answer lists them too."""
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
