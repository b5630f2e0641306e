"""`dra-spec replay`: runs trace files again, through the model and on the reference."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from dra_spec.cli.failure import NEGATIVE, OK, worst
from dra_spec.cli.options import output_option
from dra_spec.traces import tracefile
from dra_spec.traces.choices import departures
from dra_spec.traces.plain import Plain
from dra_spec.traces.replayer import Replayed, replay
from dra_spec.traces.story import story


@click.command("replay")
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option("--story", "tell", is_flag=True, help="Tell each trace as well: as a story, or in full with -o json.")
@output_option
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], tell: bool, output: str) -> None:
    """Runs traces again, step by step: through the plain semantics of their model, and on the reference implementation, where every slot is
    compared after every step. A trace ends as `confirmed`, or as `spurious (step k: ...)`."""
    answers: list[tuple[str, Replayed]] = []
    traces: list[dict[str, Plain]] = []
    for name in files:
        trace = tracefile.load(Path(name))
        answer = replay(trace)
        answers.append((name, answer))
        traces.append(tracefile.as_data(trace))
        if output == "text":
            if tell:
                Console(highlight=False, soft_wrap=True).print(story(trace), end="")
            click.echo(f"{name}: {answer.verdict} ({trace.promise}, {len(trace.steps)} steps)")
            for each in departures(trace):
                click.echo(f"    {each}")
    if output == "json":
        data = [_data(name, answer) for name, answer in answers]
        if tell:
            data = [item | {"trace": trace} for item, trace in zip(data, traces, strict=True)]
        click.echo(json.dumps({"traces": data}, indent=2))
    ctx.exit(worst([OK if answer.confirmed else NEGATIVE for _, answer in answers]))


def _data(name: str, answer: Replayed) -> dict[str, object]:
    return {"file": name, "verdict": answer.verdict, "confirmed": answer.confirmed, "step": answer.step, "on": answer.judges}
