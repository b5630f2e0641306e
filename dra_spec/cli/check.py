"""`dra-spec check`: explores models and says which promises break."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from dra_spec.cli.failure import DOUBT, INTERRUPTED, NEGATIVE, OK, UNDECIDED, worst
from dra_spec.cli.options import Change, change_options, output_option
from dra_spec.cli.progress import progress_line
from dra_spec.cli.reduce import reduce_options, reductions
from dra_spec.cli.report import Finished, TextReport, as_json, warnings
from dra_spec.explorer import crew
from dra_spec.explorer.reductions import Reductions
from dra_spec.scenario.run import run
from dra_spec.scenario.scenario import Report, Scenario
from dra_spec.scenario.strict import InputError
from dra_spec.scenario.targets import scenarios
from dra_spec.traces import tracefile
from dra_spec.traces.counterexample import Counterexample, counterexamples, weighed


@click.command("check", short_help="Explore models, or a model made of manifests, and say which promises break.")
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
    change = Change(**options)  # type: ignore[arg-type]
    overrides = change.overrides()
    todo = scenarios(targets, overrides)
    if not todo:
        raise InputError("there are no shipped models here; name a model file or manifests")
    printer = (
        TextReport([scenario.name for scenario in todo], stories=len(todo) == 1 or bool(overrides.variants)) if output == "text" else None
    )
    search = partial(run, audit=audit, reductions=chosen, fingerprints=fingerprints, threads=threads, expand_violating=expand_violating)
    finished: list[Finished] = []
    codes: list[int] = []
    for scenario in todo:
        item = _check(scenario, engine, search, trace_dir)
        finished.append(item)
        codes.append(_code(item))
        if printer is not None:
            printer.add(item)
        else:
            _remark(item)
        if item.report.interrupted:
            break
    code = worst(codes)
    if printer is not None:
        printer.finish(finished, code)
    else:
        click.echo(json.dumps(as_json(finished), indent=2))
    ctx.exit(code)


def _check(scenario: Scenario, engine: str | None, search: Callable[..., Report], trace_dir: Path | None) -> Finished:
    with progress_line(scenario.name) as show:
        report = search(scenario, engine or scenario.file.engine, show)
    if report.result.choice:
        click.echo(f"{scenario.name}: engine {report.result.engine}: {report.result.choice}", err=True)
    if report.result.audit:
        click.echo(f"{scenario.name}: audit passed: {report.result.audit}", err=True)
    found = counterexamples(report)
    report = weighed(report, found)
    files = _write(report, found, trace_dir) if trace_dir is not None else []
    return Finished(report, found, files)


def _write(report: Report, found: list[Counterexample], folder: Path) -> list[Path]:
    """One file per broken promise; under a defect one file, named after it, of a shortest trace to a promise that it is known to break."""
    files = []
    variants = report.scenario.overrides.variants
    for example in sorted(found, key=lambda example: not example.trace.steps):
        promise = example.trace.promise
        name = re.sub(r"[^A-Za-z0-9._+-]+", "-", f"{report.scenario.name}--{promise}").strip("-")
        if variants and report.scenario.expected == "violated":
            name = "+".join(variants)  # of several promises that it breaks the first
        path = folder / f"{name}.yaml"
        if path not in files:
            tracefile.save(example.trace, path)
            files.append(path)
    return files


def _remark(item: Finished) -> None:
    """What the JSON object has no room for goes to standard error."""
    scenario = item.report.scenario
    for note in scenario.not_encoded:
        click.echo(f"{scenario.name}: not encoded: {note}", err=True)
    for warning in warnings(item.report):
        click.echo(f"{scenario.name}: warning: {warning}", err=True)
    for surprise in item.report.surprises:
        click.echo(f"{scenario.name}: {surprise}", err=True)


def _code(item: Finished) -> int:
    """The exit code of one model."""
    report = item.report
    if report.interrupted:
        return INTERRUPTED
    if any(example.spurious and example.trace.promise not in report.spurious for example in item.found):
        return UNDECIDED if report.scenario.not_encoded else DOUBT
    if report.scenario.expected is not None and not report.surprises:
        return OK
    if report.verdict == "undecided":
        return UNDECIDED
    if report.surprises:
        return NEGATIVE
    return OK if report.verdict == "holds" else NEGATIVE
