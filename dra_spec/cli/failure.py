"""Exit codes, and how an exception becomes one clear message and one of them."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import click

OK = 0  # holds, or all as expected
NEGATIVE = 1  # violated, spurious, an expected violation that did not come
USAGE = 2  # usage or input error
UNDECIDED = 3  # a limit was reached, a feature is not encoded
DOUBT = 4  # the tool doubts itself
INTERRUPTED = 130


def worst(codes: list[int]) -> int:
    """The code of a command that did several things: doubt before input errors, a negative answer before an undecided one."""
    for code in (INTERRUPTED, DOUBT, USAGE, NEGATIVE, UNDECIDED):
        if code in codes:
            return code
    return OK


def input_errors() -> tuple[type[Exception], ...]:
    """The exceptions that mean bad input."""
    from dra_spec.properties.errors import InvariantError
    from dra_spec.resources.problems import ManifestError
    from dra_spec.scenario.strict import InputError

    return InputError, ManifestError, InvariantError


def guarded(run: Callable[[], Any]) -> Any:
    """Runs a command; an exception ends it with a message on standard error and its exit code, never with a traceback."""
    try:
        return run()
    except (click.ClickException, click.exceptions.Exit):
        raise
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(OK)
    except Exception as error:
        if isinstance(error, input_errors()):
            click.echo(str(error), err=True)
            sys.exit(USAGE)
        if os.environ.get("DRA_SPEC_DEBUG"):
            traceback.print_exc()
        lines = str(error).splitlines() or [""]
        click.echo(f"internal error: {type(error).__name__}: {lines[0]}", err=True)
        for line in lines[1:]:
            click.echo(line, err=True)
        click.echo("This is a fault of dra-spec, not of your input. DRA_SPEC_DEBUG=1 shows where it happened.", err=True)
        sys.exit(DOUBT)
