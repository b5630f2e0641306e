"""The command `dra-spec`: a group whose commands are loaded when they are used, and not to list them."""

from __future__ import annotations

import gc
import importlib
from typing import Any

import click

from dra_spec.cli.failure import guarded

_COMMANDS = {  # name: module, and what `--help` says of it
    "check": ("check", "Explore models, or a model made of manifests, and say which promises break."),
    "replay": ("replay", "Run counterexamples again and say whether they are confirmed."),
    "list": ("listing", "List models, invariants, variants, actions, counterexamples."),
    "describe": ("describe", "Describe a model, invariant, variant, action or counterexample."),
    "allocate": ("allocate", "Give the waiting pods and claims of manifests nodes and devices."),
    "explain": ("explain", "Say why waiting pods and claims do not fit, and what would help."),
}


class _Lazy(click.Group):
    """A group that imports the module of a command only when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"dra_spec.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, said) for name, (_, said) in _COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from dra_spec.scenario.strict import nearest

            raise click.UsageError(f"no command {args[0]!r}{nearest(args[0], _COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        gc.set_threshold(100_000, 20, 100)  # a run makes many objects that stay, so that looking for garbage finds little
        return guarded(lambda: super(_Lazy, self).invoke(ctx))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dra-spec", prog_name="dra-spec")
def main() -> None:
    """Checks the protocol of Kubernetes Dynamic Resource Allocation.

    \b
    Exit codes: 0 holds, or all as expected; 1 a negative answer; 2 usage or input error;
    3 undecided; 4 the tool doubts itself; 130 interrupted.
    """
