"""`dra-spec describe`: all there is to say about one thing."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.text import Text

from dra_spec.cli.catalogue import CATALOGUE, Entry
from dra_spec.cli.options import output_option
from dra_spec.scenario.strict import InputError, nearest


@click.command("describe")
@click.argument("name")
@output_option
def command(name: str, output: str) -> None:
    """Describes the model, invariant, variant, action or counterexample called NAME: what it is, where it comes from, what it needs."""
    entries = [entry for kind in CATALOGUE.values() for entry in kind()]
    found = [entry for entry in entries if entry.name == name]
    if not found:
        hint = nearest(name, [entry.name for entry in entries])
        raise InputError(f"nothing is called {name!r}{hint if 'did you mean' in hint else '; see `dra-spec list`'}")
    if output == "json":
        click.echo(json.dumps([_data(entry) for entry in found], indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    for entry in found:
        console.print(Text.assemble((f"{entry.kind} ", "dim"), (entry.name, "bold")))
        for label, text in entry.details:
            console.print(Text.assemble((f"  {label}: ", "cyan"), text) if label else Text("  " + text.replace("\n", "\n  ")))


def _data(entry: Entry) -> dict[str, object]:
    details = [{"label": label, "text": text} for label, text in entry.details]
    return {"kind": entry.kind, "name": entry.name, "summary": entry.summary, "details": details}
