"""What each declaration of dead values brings: `python benchmarks/dead.py [--models two-nodes,two-pods] [--json FILE]`.

States with all declarations of a model, with none, with each alone, and with all but each. *Factor alone*: states without any through
states with that one; *lost without*: states with all but that one through states with all. All states are expanded, so that the figures
do not hang on which promise breaks first. Only counts are printed, no times; they are the same on each machine.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import attrs
import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import measure
from benchmarks.one import model_of
from dra_spec.explorer import Limits, explore
from dra_spec.explorer.model import LiveWhen, Model
from dra_spec.explorer.reductions import Reductions

_DEAD = Reductions.parse("dead")


@attrs.frozen
class Factor:
    """One declaration: states with it alone, and with all others but not it."""

    declaration: str
    alone: int
    without: int


def states(model: Model, live: Sequence[LiveWhen], limits: Limits) -> int:
    """Raises `ClickException` if the search did not end."""
    reductions = _DEAD if live else Reductions.parse("none")
    found = explore(attrs.evolve(model, live=live), limits, reductions=reductions)
    if found.stopped is not None:
        raise click.ClickException(f"{model.name}: stopped: {found.stopped}")
    return found.states


def factors(model: Model, limits: Limits) -> tuple[int, int, list[Factor]]:
    """States without and with all declarations, and what each one does."""
    live = list(model.live)
    found = [Factor(str(one), states(model, [one], limits), states(model, [o for o in live if o is not one], limits)) for one in live]
    return states(model, [], limits), states(model, live, limits), found


def table(none: int, every: int, found: Sequence[Factor]) -> list[str]:
    """One line per declaration, and one for all together."""
    rows = [[f.declaration, f"{f.alone:,}", f"{none / f.alone:.2f}", f"{f.without:,}", f"{f.without / every:.2f}"] for f in found]
    rows.append(["all", f"{every:,}", f"{none / every:.2f}", f"{none:,}", f"{none / every:.2f}"])
    return measure.table(["declaration of", "states with it alone", "factor alone", "states with all but it", "lost without"], rows)


@click.command()
@click.option("--models", default="two-nodes,two-pods,touched-claim", show_default=True, help="Shipped models.")
@click.option("--time-limit", type=float, default=120, show_default=True, help="Seconds of a search.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Also write the figures to this file.")
def main(models: str, time_limit: float, file: Path | None) -> None:
    """Counts the states with and without each declaration of dead values."""
    measure.writable(file, "--json")
    figures = {}
    for what in filter(None, models.split(",")):
        model, limits = model_of(what, "none")
        if not model.live:
            raise measure.InputError(f"{what}: declares no dead values")
        none, every, found = factors(model, attrs.evolve(limits, time_limit=time_limit, expand_violating=True))
        click.echo(f"\n{what}: {none:,} states without, {every:,} with all\n")
        for line in table(none, every, found):
            click.echo(line)
        figures[what] = {"none": none, "all": every, "declarations": [attrs.asdict(f) for f in found]}
    measure.write(file, figures)


if __name__ == "__main__":
    main()
