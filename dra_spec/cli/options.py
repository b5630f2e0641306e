"""Options that several commands share, and what they mean as overrides of a model file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import click

from dra_spec.scenario import names
from dra_spec.scenario.modelfile import LimitSpec, Overrides, parse_setting

F = TypeVar("F", bound=Callable[..., Any])
_BUDGETS = {**names.FAULTS, **names.ENVIRONMENT}


@attrs.frozen
class Change:
    """The options that change what is checked, as given."""

    variant: tuple[str, ...]
    repaired: bool
    allocation: str | None
    invariant: tuple[str, ...]
    assertion: tuple[str, ...]
    bound: tuple[str, ...]
    fault: tuple[str, ...]
    depth: int | None
    max_states: int | None
    time_limit: float | None
    memory: int | None

    def overrides(self) -> Overrides:
        """Raises `InputError` for an unknown name or a bad number."""
        return Overrides(
            bounds=dict(parse_setting(text, names.BOUNDS, "--bound") for text in self.bound),
            budgets=dict(parse_setting(text, _BUDGETS, "--fault") for text in self.fault),
            limits=LimitSpec(self.depth, self.max_states, self.time_limit, self.memory),
            variants=self.variant,
            repaired=self.repaired,
            allocation=self.allocation or "",
            invariants=self.invariant,
            assertions=self.assertion,
        )


_OPTIONS = [
    click.option("--variant", multiple=True, metavar="NAME", help="Replace an action: a known defect or a repair (see `list variants`)."),
    click.option("--repaired", is_flag=True, help="Apply all repairs: the protocol that must keep every promise."),
    click.option(
        "--allocation",
        type=click.Choice(names.ALLOCATIONS),
        help="Which devices a claim may get: those that upstream's allocator finds, or any that are feasible.",
    ),
    click.option("--invariant", multiple=True, metavar="NAME", help="Check only this promise (may be repeated)."),
    click.option("--assert", "assertion", multiple=True, metavar="CEL", help="Check this expression in every state, too."),
    click.option("--bound", multiple=True, metavar="NAME=N", help=f"Set a bound: {', '.join(names.BOUNDS)}."),
    click.option("--fault", multiple=True, metavar="NAME=N", help="Allow a fault or an environment event N times; -1: any number."),
    click.option("--depth", type=click.IntRange(min=1), metavar="N", help="Look at runs of at most N steps."),
    click.option("--max-states", type=click.IntRange(min=1), metavar="N", help="Give up after N states."),
    click.option(
        "--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Give up on a model after so many seconds."
    ),
    click.option("--memory", type=click.IntRange(min=1), metavar="MB", help="Give up when the process has grown to so many MB."),
]


def change_options(command: F) -> F:
    """Adds the options that `Change` holds."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


output_option = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the answer."
)
