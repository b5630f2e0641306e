"""How reports of searches are printed: as text while they come in, as one JSON object at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import click
from rich.console import Console
from rich.text import Text

from dra_spec.scenario.scenario import Report
from dra_spec.traces.counterexample import Counterexample
from dra_spec.traces.story import story

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
    return {
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
    }


def warnings(report: Report) -> list[str]:
    """Oddities of the manifests, promises that nothing put to the test, actions that no state enabled (when all states were seen)."""
    result = report.result
    found = list(report.scenario.warnings)
    idle_promises = [found.promise for found in result.properties if found.vacuous]
    if idle_promises:
        found.append(f"never put to the test, what they speak of does not occur: {', '.join(idle_promises)}")
    idle = [action.name for action in result.actions if action.never_enabled]
    if idle and result.complete:
        found.append(f"never enabled: {', '.join(idle)}")
    return found


class TextReport:
    """Prints one line per model as it is finished, then what there is to say about it."""

    def __init__(self, names: Sequence[str], stories: bool) -> None:
        self._width = max([len(name) for name in names] + [5])
        self._stories = stories
        self._console = Console(highlight=False, soft_wrap=True)
        self._console.print(
            Text(f"{'model':<{self._width}}  {'verdict':<9}  {'expected':<9}  {'states':>11}  {'depth':>5}  {'seconds':>7}", "bold")
        )

    def add(self, item: Finished) -> None:
        """Prints a finished model."""
        report, result = item.report, item.report.result
        scenario = report.scenario
        line = Text(f"{scenario.name:<{self._width}}  ")
        depth = result.depth if result.depth >= 0 else "-"
        line.append(f"{report.verdict:<9}", _COLOURS[report.verdict])
        line.append(f"  {scenario.expected or '-':<9}  {result.states:>11,}  {depth:>5}  {result.seconds:>7.1f}")
        line.append(f"  ({scenario.bounds})", "dim")
        self._console.print(line)
        for text in self._remarks(item):
            self._console.print(Text(f"    {text}"))
        for example in item.found:
            if self._stories or not report.as_expected or example.spurious:
                self._console.print(story(example.trace), end="")
                self._console.print(Text(f"  {example.verdict}"))

    def _remarks(self, item: Finished) -> list[str]:
        report = item.report
        scenario, result = report.scenario, report.result
        remarks = [f"not encoded: {note}" for note in scenario.not_encoded]
        if result.stopped and not scenario.not_encoded:
            remarks.append(f"stopped: {result.stopped}")
        open_ = [found.promise for found in result.properties if found.verdict == "undecided"]
        if open_ and not scenario.not_encoded:
            remarks.append(f"undecided: {', '.join(open_)}")
        for found in result.properties:
            if found.verdict == "violated" and found.trace is not None:
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
