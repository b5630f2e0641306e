"""How reports of searches are printed: as text while they come in, as one JSON object at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from dra_spec.explorer.fingerprints import WHOLE_GRAPH
from dra_spec.explorer.result import Result
from dra_spec.scenario.run import NOT_KEPT
from dra_spec.scenario.scenario import Report

if TYPE_CHECKING:
    from dra_spec.traces.counterexample import Counterexample
    from dra_spec.traces.trace import Trace

_COLOURS = {"holds": "green", "violated": "red", "undecided": "yellow"}


@attrs.frozen(eq=False)
class Finished:
    """A report with its counterexamples and the file of the first one, if it was written."""

    report: Report
    found: Sequence[Counterexample] = ()
    files: Sequence[Path] = ()


def as_json(finished: Sequence[Finished]) -> dict[str, Any]:
    """The object that `check -o json` prints. Its schema only grows."""
    return {"models": [_model(item) for item in finished]}


def _model(item: Finished) -> dict[str, Any]:
    report, result = item.report, item.report.result
    return (
        {
            "name": report.scenario.name,
            "verdict": report.verdict,
            "expected": report.scenario.expected,
            "invariants": [{"name": name, "verdict": verdict} for name, verdict in report.invariants()],
            "states": result.states,
            "transitions": result.transitions,
            "depth": result.depth,
            "seconds": round(result.seconds, 3),
            "engine": result.engine,
            "python_calls": result.python_calls,
            "bytes_per_state": round(result.bytes_per_state, 1),
            "trace": str(item.files[0]) if item.files else None,
            "reductions": [attrs.asdict(report) for report in result.reductions],
        }
        | _fingerprints(result)
        | (_any_allocation(item) if report.scenario.any_allocation else {})
    )


def _fingerprints(result: Result) -> dict[str, Any]:
    """What became of fingerprints, if they were asked for. `bits`: 0 where full rows were kept."""
    if result.fingerprints is None:
        return {}
    told = result.fingerprints
    return {"fingerprints": {"bits": told.bits, "omission_probability": told.omission, "text": str(told)}}


def _any_allocation(item: Finished) -> dict[str, Any]:
    """What is said more of a model with any allocation: where its traces leave upstream's choices."""
    from dra_spec.traces.choices import departures

    found = [(example.trace.promise, each) for example in item.found for each in departures(example.trace)]
    return {"allocation": "any", "departures": [{"invariant": promise, **attrs.asdict(each)} for promise, each in found]}


def warnings(report: Report) -> list[str]:
    """Oddities of the manifests, promises that nothing put to the test, actions that no state enabled (when all states were seen)."""
    result = report.result
    found = list(report.scenario.warnings)
    reduced = any(used.name == "por" and used.applied for used in result.reductions)
    seen = " in the states that were looked at" if reduced else ""
    idle_promises = [found.promise for found in result.properties if found.vacuous]
    if idle_promises:
        found.append(f"never put to the test, what they speak of does not occur{seen}: {', '.join(idle_promises)}")
    idle = [action.name for action in result.actions if action.never_enabled]
    if idle and result.complete:
        found.append(f"never enabled{seen}: {', '.join(idle)}")
    return found


def about_allocation(item: Finished) -> list[str]:
    """What verdicts that were reached with any allocation mean for upstream's allocator."""
    report = item.report
    if not report.scenario.any_allocation or report.scenario.not_encoded:
        return []
    from dra_spec.traces.choices import about_upstream

    verdicts = dict(report.invariants())
    told = []
    kept = [name for name, verdict in verdicts.items() if verdict == "holds"]
    if kept:
        told.append(f"allocation any: with every feasible allocation, so also with upstream's, hold: {', '.join(kept)}")
    open_ = [found.promise for found in report.result.properties if found.reason == NOT_KEPT]
    if open_:
        told.append(f"{', '.join(open_)}: {NOT_KEPT}")
    told += [f"{name}: undecided, its trace uses any allocation and does not replay: {why}" for name, why in report.spurious.items()]
    told += [f"{e.trace.promise}: {about_upstream(e.trace)}" for e in item.found if verdicts[e.trace.promise] == "violated"]
    return told


def _printer() -> Callable[..., None]:
    """Prints a line of pieces, each a text and its style. Styles, and the library for them, are for terminals."""
    if not sys.stdout.isatty() and "FORCE_COLOR" not in os.environ:
        return lambda *pieces: click.echo("".join(text for text, _ in pieces))
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    return lambda *pieces: console.print(Text.assemble(*pieces))


def _tell(trace: Trace) -> None:
    from rich.console import Console

    from dra_spec.traces.story import story

    Console(highlight=False, soft_wrap=True).print(story(trace), end="")


class TextReport:
    """Prints one line per model as it is finished, then what there is to say about it."""

    def __init__(self, names: Sequence[str], stories: bool) -> None:
        self._width = max([len(name) for name in names] + [5])
        self._stories = stories
        self._print = _printer()
        self._print(
            (f"{'model':<{self._width}}  {'verdict':<9}  {'expected':<9}  {'states':>11}  {'depth':>5}  {'seconds':>7}", "bold"),
        )

    def add(self, item: Finished) -> None:
        """Prints a finished model."""
        report, result = item.report, item.report.result
        scenario = report.scenario
        depth = result.depth if result.depth >= 0 else "-"
        self._print(
            (f"{scenario.name:<{self._width}}  ", ""),
            (f"{report.verdict:<9}", _COLOURS[report.verdict]),
            (f"  {scenario.expected or '-':<9}  {result.states:>11,}  {depth:>5}  {result.seconds:>7.1f}", ""),
            (f"  ({scenario.bounds})", "dim"),
        )
        for text in self._remarks(item):
            self._print((f"    {text}", ""))
        for example in item.found:
            if self._stories or not report.as_expected or example.spurious:
                _tell(example.trace)
                self._print((f"  {example.verdict}", ""))

    def _remarks(self, item: Finished) -> list[str]:
        report = item.report
        scenario, result = report.scenario, report.result
        remarks = [f"not encoded: {note}" for note in scenario.not_encoded]
        if result.stopped and not scenario.not_encoded:
            remarks.append(f"stopped: {result.stopped}")
        if result.reductions:
            remarks.append(f"engine {result.engine}, reductions: {'; '.join(map(str, result.reductions))}")
        if result.fingerprints:
            held = "holds " if report.verdict == "holds" else ""
            remarks.append(f"engine {result.engine}: {held}({result.fingerprints})")
            graph = [found.promise for found in result.properties if found.reason == WHOLE_GRAPH]
            remarks += [f"undecided: {', '.join(graph)}: {WHOLE_GRAPH}"] if graph else []
        open_ = [found.promise for found in result.properties if found.verdict == "undecided" and found.reason != WHOLE_GRAPH]
        if open_ and not scenario.not_encoded:
            remarks.append(f"undecided: {', '.join(open_)}")
        remarks += about_allocation(item)
        for found in result.properties:
            if found.verdict == "violated" and found.promise not in report.spurious and found.trace is not None:
                verdicts = [e.verdict for e in item.found if e.trace.promise == found.promise]
                remarks.append(f"{found.promise}: violated, {len(found.trace)} steps{', ' + verdicts[0] if verdicts else ''}")
            for assumption in scenario.assumptions.get(found.promise, ()):
                remarks.append(f"{found.promise} is promised only under {assumption}")
        remarks += [f"trace written: {path}" for path in item.files]
        remarks += report.surprises
        remarks += [f"warning: {text}" for text in warnings(report)]
        return remarks

    def finish(self, finished: Sequence[Finished], code: int) -> None:
        """The last line."""
        seconds = sum(item.report.result.seconds for item in finished)
        states = sum(item.report.result.states for item in finished)
        answers = {0: "holds, or all as expected", 1: "a promise is broken, or something is not as expected", 3: "undecided"}
        many = f"{len(finished)} models, {states:,} states, {seconds:.1f} s: " if len(finished) != 1 else ""
        click.echo(f"{many}{answers.get(code, 'stopped')}")
