"""`dra-spec list`: what there is, by name."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.text import Text

from dra_spec.cli.catalogue import CATALOGUE, LISTED
from dra_spec.cli.options import output_option


@click.command("list")
@click.argument("kinds", nargs=-1, type=click.Choice(list(CATALOGUE)), metavar="[KIND]...")
@output_option
def command(kinds: tuple[str, ...], output: str) -> None:
    """Lists what ships with dra-spec. KIND: models, invariants, variants, counterexamples (all four by default), actions."""
    found = {kind: CATALOGUE[kind]() for kind in kinds or LISTED}
    if output == "json":
        data = {kind: [{"name": entry.name, "summary": entry.summary} for entry in entries] for kind, entries in found.items()}
        click.echo(json.dumps(data, indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    width = max((len(entry.name) for entries in found.values() for entry in entries), default=0)
    for number, (kind, entries) in enumerate(found.items()):
        console.print(Text(("\n" if number else "") + kind, "bold"))
        for entry in entries:
            console.print(Text.assemble(("  " + entry.name.ljust(width), "cyan"), "  " + entry.summary))
