"""How time and memory grow with the number of states: `python benchmarks/growth.py [--engine explicit] [--most 10000000] [--json FILE]`.

Searches toy configurations of growing size, each in a process of its own, the sizes in turn in each round. Time is that of the search,
without start-up (interpreter, imports, compiled code); memory is the peak of the process less that of the smallest configuration's, so that
what the interpreter and the libraries hold does not count. Printed are the slope of log time over log states, fitted by least squares, and
the slope between neighbours; 1 is linear. The smallest sizes are dominated by learning the model's functions, so that they flatten the
fit: the slope between the largest two says more.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import attrs
import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import measure
from benchmarks.toy import CONFIGS

FLOOR = 100_000  # states; smaller configurations are over before there is something to measure
LEAST = 4  # sizes
WANTED = 1.1  # slope


@attrs.frozen
class Size:
    """One configuration: states, medians of the seconds of the search and of the peak bytes, and bytes per state in the engine's arrays."""

    name: str
    states: int
    seconds: float
    peak: float
    bytes_per_state: float


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of log y over log x by least squares."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x, mean_y = (statistics.fmean(log[i] for log in logs) for i in (0, 1))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def between(sizes: Sequence[Size]) -> list[float]:
    """The slope of log time over log states from each size to the next."""
    return [slope([(one.states, one.seconds), (other.states, other.seconds)]) for one, other in pairwise(sizes)]


def chosen(most: int) -> list[str]:
    """The configurations of one node between the floor and so many states, by size. Raises `InputError` if they are too few."""
    fit = [name for name, config in CONFIGS.items() if config.nodes == 1 and FLOOR <= config.states <= most]
    found = sorted(fit, key=lambda name: CONFIGS[name].states)
    if len(found) < LEAST:
        raise measure.InputError(f"--most: {most:,} leaves {len(found)} sizes, expected at least {LEAST}")
    return found


def size(name: str, searches: Sequence[measure.Search]) -> Size:
    """The medians of the runs of a configuration. Raises `ClickException` if one failed or counted otherwise than the table."""
    for done in searches:
        wanted = CONFIGS[name].states
        if done.problem or done.said["states"] != wanted:
            counted = f"stopped by {done.said['stopped']} at {done.said['states']:,} of {wanted:,} states" if done.said else ""
            raise click.ClickException(f"{name}: {done.problem or counted}")
    return Size(
        name,
        CONFIGS[name].states,
        statistics.median(max(done.said["search"], 1e-4) for done in searches),
        statistics.median(done.run.peak for done in searches),
        searches[-1].said["bytes"],
    )


def table(sizes: Sequence[Size]) -> list[str]:
    """One line per size."""
    slopes = ["-", *(f"{number:.2f}" for number in between(sizes))]
    rows = [
        [
            one.name,
            f"{one.states:,}",
            f"{one.seconds:.2f}",
            f"{one.states / one.seconds:,.0f}",
            up,
            f"{(one.peak - sizes[0].peak) / 1e6:.0f}",
            f"{one.bytes_per_state:.1f}",
        ]
        for one, up in zip(sizes, slopes, strict=True)
    ]
    return measure.table(["configuration", "states", "search s", "states/s", "slope", "MB more", "bytes per state"], rows)


@click.command()
@click.option("--engine", type=click.Choice(["explicit", "symbolic"]), default="explicit", show_default=True)
@click.option("--most", type=click.IntRange(min=1), default=10_000_000, show_default=True, help="States of the largest configuration.")
@click.option("--memory", type=float, default=4000, show_default=True, help="MB that a search may take.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Runs of each configuration.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Also write the figures to this file.")
def main(engine: str, most: int, memory: float, rounds: int, file: Path | None) -> None:
    """Measures how time and memory grow with the number of states."""
    measure.writable(file, "--json")
    names = chosen(most)
    runs: dict[str, list[measure.Search]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            runs[name].append(measure.search(name, engine, "--memory", str(memory)))
    sizes = [size(name, searches) for name, searches in runs.items()]
    fitted = slope([(one.states, one.seconds) for one in sizes])
    for line in table(sizes):
        click.echo(line)
    click.echo(f"\n{engine}: slope of log time over log states {fitted:.2f}, between the largest two {between(sizes)[-1]:.2f}")
    click.echo(f"at most {WANTED} wanted: {'met' if fitted <= WANTED else 'MISSED'}")
    figures = {
        "machine": measure.machine(),
        "engine": engine,
        "rounds": rounds,
        "slope": round(fitted, 3),
        "slopes": [round(number, 3) for number in between(sizes)],
        "sizes": [attrs.asdict(one) for one in sizes],
    }
    measure.write(file, figures)


if __name__ == "__main__":
    main()
