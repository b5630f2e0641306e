"""`dra-spec check`: explores models and says which promises break."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from dra_spec.cli.options import Change, change_options, output_option
from dra_spec.cli.reduce import reduce_options, reductions
from dra_spec.explorer import crew
from dra_spec.explorer.reductions import Reductions


@click.command("check")
@click.argument("targets", nargs=-1, metavar="[MODEL|MANIFESTS]...")
@change_options
@click.option(
    "--engine",
    type=click.Choice(["explicit", "plain", "symbolic", "auto"]),
    help="How to search: state by state, the same in plain Python (slow), with decision diagrams, or whatever fits the model. "
    "Default: as the model file says, else explicit.",
)
@reduce_options
@click.option(
    "--expand-violating",
    is_flag=True,
    help="Also look behind states that break a promise, so that each of the other promises gets its verdict in the same search.",
)
@click.option(
    "--fingerprints",
    is_flag=True,
    help="Where states have more than 256 bits keep fingerprints of 128 bits; the verdict gives the probability that one was overlooked.",
)
@click.option(
    "--threads",
    type=click.IntRange(0, crew.MOST),
    default=0,
    metavar="N",
    help="Of the explicit engine; 0, the default: as many as there are cores. What is found does not depend on it.",
)
@click.option(
    "--audit", is_flag=True, help="Afterwards run the model's functions again in other surroundings: they may see only what they read."
)
@click.option("--trace-dir", type=click.Path(file_okay=False, path_type=Path), help="Write each counterexample to a file in this folder.")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    targets: tuple[str, ...],
    engine: str | None,
    reduce: Reductions,
    por: bool,
    expand_violating: bool,
    fingerprints: bool,
    threads: int,
    audit: bool,
    trace_dir: Path | None,
    output: str,
    **options: object,
) -> None:
    """Explores bounded models and says which promises hold within the bounds, and which break, by the shortest run that breaks them.

    MODEL is the name of a shipped model (see `dra-spec list`) or a model file. MANIFESTS are files or folders with Kubernetes
    manifests: pods, claims, classes, slices. Without an argument all shipped models are checked, except those of the nightly tier.
    """
    chosen = reductions(reduce, por)
    overrides = Change(**options).overrides()  # type: ignore[arg-type]
    from dra_spec.cli.checking import check  # loaded when there is something to do, not for --help
    from dra_spec.scenario.run import run

    search = partial(run, audit=audit, reductions=chosen, fingerprints=fingerprints, threads=threads, expand_violating=expand_violating)
    ctx.exit(check(targets, overrides, engine, search, trace_dir, output))
