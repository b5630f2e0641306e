"""What `dra-spec check` does: explores models one after the other, prints what came out, and says it with the exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dra_spec.cli.failure import DOUBT, INTERRUPTED, NEGATIVE, OK, UNDECIDED, worst
from dra_spec.cli.progress import progress_line
from dra_spec.cli.report import Finished, TextReport, as_json, warnings
from dra_spec.scenario.modelfile import Overrides
from dra_spec.scenario.scenario import Report, Scenario
from dra_spec.scenario.strict import InputError
from dra_spec.scenario.targets import scenarios

if TYPE_CHECKING:
    from dra_spec.traces.counterexample import Counterexample


def check(
    targets: Sequence[str], overrides: Overrides, engine: str | None, search: Callable[..., Report], trace_dir: Path | None, output: str
) -> int:
    """The exit code. `search`: explores a scenario, with an engine, showing its progress; `output`: text or json."""
    todo = scenarios(targets, overrides)
    if not todo:
        raise InputError("there are no shipped models here; name a model file or manifests")
    printer = (
        TextReport([scenario.name for scenario in todo], stories=len(todo) == 1 or bool(overrides.variants)) if output == "text" else None
    )
    from dra_spec.explorer.native import before_compiling  # with NumPy, which bad arguments can do without

    before_compiling(_tell_of_compiling)
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
    return code


def _check(scenario: Scenario, engine: str | None, search: Callable[..., Report], trace_dir: Path | None) -> Finished:
    with progress_line(scenario.name) as show:
        report = search(scenario, engine or scenario.file.engine, show)
    if report.result.choice:
        click.echo(f"{scenario.name}: engine {report.result.engine}: {report.result.choice}", err=True)
    if report.result.audit:
        click.echo(f"{scenario.name}: audit passed: {report.result.audit}", err=True)
    if all(found.verdict != "violated" for found in report.result.properties):
        return Finished(report)
    from dra_spec.traces.counterexample import counterexamples, weighed

    found = counterexamples(report)
    report = weighed(report, found)
    files = _write(report, found, trace_dir) if trace_dir is not None else []
    return Finished(report, found, files)


def _tell_of_compiling(kept: bool) -> None:
    when = "once" if kept else "in each run, as there is no folder to keep it in (NUMBA_CACHE_DIR names one)"
    click.echo(f"compiling the search for this machine, {when}: this takes half a minute or more ...", err=True)


def _write(report: Report, found: list[Counterexample], folder: Path) -> list[Path]:
    """One file per broken promise; under a defect one file, named after it, of a shortest trace to a promise that it is known to break."""
    from dra_spec.traces import tracefile

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
