"""What promises cost: `python benchmarks/invariants.py [--models m,two-pods] [--rounds 3] [--json FILE]`.

The same search with none, one, ... all of a model's promises, each in a process of its own, in turn in each round. A model is a
configuration of the toy protocol or a shipped model. States that violate a promise are expanded all the same, so that the states are the
same in all runs; that they are is checked. Printed are the median seconds of the search, without start-up, and what each promise added.
Promises about graphs (always-possible, leads-to) need the edges, so their cost is of another kind than that of a promise about a state.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs
import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import measure

_ALL = 1_000_000  # more promises than any model has


@attrs.frozen
class Cost:
    """A search with the first promises of a model: their names, median seconds and peak bytes, states."""

    promises: tuple[str, ...]
    seconds: float
    peak: float
    states: int

    @property
    def last(self) -> str:
        """The promise that this search has and the one before it has not."""
        return self.promises[-1] if self.promises else "none"


def median(what: str, searches: Sequence[measure.Search]) -> Cost:
    """Raises `ClickException` if a run failed or did not end."""
    for done in searches:
        if done.problem or not done.said["complete"]:
            raise click.ClickException(f"{what}: {done.problem or 'stopped: ' + str(done.said['stopped'])}")
    said = searches[-1].said
    seconds = statistics.median(done.said["search"] for done in searches)
    return Cost(tuple(said["promises"]), seconds, statistics.median(done.run.peak for done in searches), said["states"])


def costs(what: str, engine: str, rounds: int, time_limit: float) -> list[Cost]:
    """One per number of promises. Raises `ClickException`; `InputError` where there is no such model."""

    def search(count: int) -> measure.Search:
        return measure.search(what, engine, "--expand", "--promises", str(count), time_limit=time_limit)

    first = search(_ALL)  # says what promises there are; it may also have to compile, so it is not counted
    if first.problem:
        raise measure.InputError(first.problem.removeprefix("Error: "))
    runs: list[list[measure.Search]] = [[] for _ in range(len(first.said["promises"]) + 1)]
    for _ in range(rounds):
        for count, searches in enumerate(runs):
            searches.append(search(count))
    result = [median(what, searches) for searches in runs]
    if len({cost.states for cost in result}) > 1:
        raise click.ClickException(f"{what}: the promises change the states: {[cost.states for cost in result]}")
    return result


def average(found: Sequence[Cost]) -> str:
    """What all promises together cost, per promise, in one line."""
    none, everything, count = found[0], found[-1], max(1, len(found) - 1)
    each = (everything.seconds - none.seconds) / count
    share = 100 * each / none.seconds if none.seconds else 0.0
    return f"on average {each:.3f} s per promise, {share:.1f} % of the search without, {1e9 * each / everything.states:.0f} ns per state"


def table(found: Sequence[Cost]) -> list[str]:
    """One line per number of promises."""
    rows = []
    for before, cost in zip([found[0], *found], found, strict=False):
        more = cost.seconds - before.seconds
        share = f"{100 * more / found[0].seconds:+.0f} %" if found[0].seconds else "-"
        added = [f"{more:+.3f}", share, f"{1e9 * more / cost.states:+.0f}"] if cost.promises else ["-", "-", "-"]
        rows.append([str(len(cost.promises)), cost.last, f"{cost.seconds:.3f}", *added, f"{cost.peak / 1e6:.0f}"])
    return measure.table(["promises", "the last one", "search s", "more s", "of the search without", "ns per state", "peak MB"], rows)


@click.command()
@click.option("--models", default="m,two-pods", show_default=True, help="Configurations of the toy protocol, shipped models.")
@click.option("--engine", type=click.Choice(["explicit", "symbolic"]), default="explicit", show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Runs of each search.")
@click.option("--time-limit", type=float, default=120, show_default=True, help="Seconds of a search.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Also write the figures to this file.")
def main(models: str, engine: str, rounds: int, time_limit: float, file: Path | None) -> None:
    """Measures what each promise adds to a search."""
    measure.writable(file, "--json")
    figures = {}
    for what in filter(None, models.split(",")):
        found = costs(what, engine, rounds, time_limit)
        click.echo(f"\n{what}, {engine}: {found[0].states:,} states\n")
        for line in table(found):
            click.echo(line)
        click.echo(f"\n{average(found)}")
        figures[what] = [attrs.asdict(cost) for cost in found]
    measure.write(file, {"machine": measure.machine(), "engine": engine, "rounds": rounds, "models": figures})


if __name__ == "__main__":
    main()
