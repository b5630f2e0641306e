"""The options that let a search leave states and transitions out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import click

from dra_spec.explorer.reductions import FORMS, NONE, Reductions

F = TypeVar("F", bound=Callable[..., Any])


class _Type(click.ParamType):  # type: ignore[type-arg]
    """A list of reductions."""

    name = "REDUCTIONS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Reductions:
        if isinstance(value, Reductions):
            return value
        try:
            return Reductions.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def reduce_options(command: F) -> F:
    """Adds `--reduce` and `--por`."""
    text = f"What the search may leave out without changing a verdict: {FORMS}."
    option = click.option("--reduce", type=_Type(), default=NONE, help=text)
    return click.option("--por", is_flag=True, help="Short for --reduce por, beside what --reduce says.")(option(command))


def reductions(chosen: Reductions, por: bool) -> Reductions:
    """What both options say together."""
    return attrs.evolve(chosen, por=chosen.por or "safety") if por else chosen
