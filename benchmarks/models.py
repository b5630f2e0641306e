"""Measures the shipped models with each engine and each reduction, and writes docs/performance.md.

    python benchmarks/models.py --json FILE [--models a,b] [--all] [--time-limit 60] [--symbolic-limit 300] [--write docs/performance.md]
                                [--toy FILE] [--growth FILE] [--promises FILE] [--render]

Each search is a process of its own. FILE keeps what was measured before: models that are measured again replace what is there, all others
stay, so that long models may be measured one by one. Models whose tier is nightly are left out unless they are named or --all is given.
Where a promise breaks as released, the model is measured a second time with all repairs, as NAME+repaired.
--toy, --growth and --promises take the figures of run.py, growth.py and invariants.py into FILE. --render measures nothing and only writes
the page. Exit code 1 if two searches of a model contradict each other: in a count of the engines, in a verdict, or in the length of a
shortest counterexample.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import measure, performance
from benchmarks.one import REPAIRED
from dra_spec.scenario.content import shipped
from dra_spec.scenario.modelfile import ModelFile, load
from dra_spec.scenario.strict import InputError


@attrs.frozen
class Way:
    """One way to search. `exact`: it stores the same states; `lengths`: its counterexamples are shortest ones of the full model."""

    engine: str
    reduce: str = ""
    exact: bool = False
    lengths: bool = True

    @property
    def options(self) -> list[str]:
        return ["--reduce", self.reduce] if self.reduce else []


WAYS: Mapping[str, Way] = {
    "explicit": Way("explicit", exact=True),
    "symbolic": Way("symbolic", exact=True),
    "dead": Way("explicit", "dead"),
    "symmetry": Way("explicit", "symmetry"),
    "merge": Way("explicit", "merge", lengths=False),
    "cone": Way("explicit", "cone"),
    "por=safety": Way("explicit", "por=safety"),
    "por=stuck": Way("explicit", "por=stuck", lengths=False),
    "auto": Way("explicit", "auto", lengths=False),
}
_EXACT = ("states", "transitions", "stuck", "verdict")


def row(done: measure.Search) -> dict[str, Any]:
    """The figures of one search."""
    if done.problem:
        return {"problem": done.problem.removeprefix("Error: "), "wall": round(done.run.wall, 2)}
    said = done.said
    kept = ("states", "transitions", "stuck", "verdict", "complete", "stopped", "promises", "reductions")
    figures = {key: said[key] for key in kept if key in said}
    return figures | {"seconds": round(said["search"], 3), "wall": round(done.run.wall, 2), "peak": done.run.peak, "bytes": said["bytes"]}


def contradictions(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """How searches that came to their end differ where they may not, from the explicit engine's without reductions. A promise that one of
    them leaves undecided contradicts nothing."""
    full = rows.get("explicit", {})
    if not _ended(full):
        return
    for label, other in rows.items():
        way = WAYS[label]
        if not _ended(other):
            continue
        if way.exact:
            for count in _EXACT:
                if other[count] != full[count]:
                    yield f"{label}: {count} {other[count]}, explicit {full[count]}"
        for promise, (verdict, length) in other["promises"].items():
            wanted, shortest = full["promises"].get(promise, (verdict, length))
            if "undecided" in (verdict, wanted):
                continue
            if verdict != wanted:
                yield f"{label}: {promise} {verdict}, explicit {wanted}"
            elif way.lengths and length != shortest:
                yield f"{label}: {promise} after {length} steps, explicit {shortest}"


def _ended(row: Mapping[str, Any]) -> bool:
    return bool(row) and not row.get("problem") and row["stopped"] is None


def chosen(names: str, everything: bool) -> list[str]:
    """What is to be measured: models as released, and with all repairs where a promise breaks as released. Raises `InputError`."""
    files = {name: _file(path) for name, path in shipped("models").items()}
    known = [what for name, file in files.items() for what in ([name, name + REPAIRED] if file.expected == "violated" else [name])]
    if names:
        return measure.names(names, known, "--models")
    return [what for what in known if everything or files[what.removesuffix(REPAIRED)].tier != "nightly"]


def _file(path: Path) -> ModelFile:
    try:
        return load(path)
    except InputError as error:
        raise measure.InputError(str(error)) from None


def measured(
    name: str, ways: list[str], time_limit: Callable[[Way], float], memory: float, tell: Callable[[str], None]
) -> dict[str, dict[str, Any]]:
    """A row per way."""
    rows = {}
    for label in ways:
        way = WAYS[label]
        done = measure.search(name, way.engine, *way.options, "--memory", str(memory), time_limit=time_limit(way))
        rows[label] = row(done)
        tell(f"{name}, {label}: {performance.brief(rows[label])}")
    return rows


@click.command()
@click.option("--json", "file", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Where the figures are kept.")
@click.option("--models", "names", default="", help="Shipped models, or NAME+repaired, with commas; default: all but the nightly ones.")
@click.option("--ways", default=",".join(WAYS), show_default=True, help="Engines and reductions, separated by commas.")
@click.option("--all", "everything", is_flag=True, help="The nightly models too.")
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), default=60, show_default=True, help="Seconds of a search.")
@click.option(
    "--symbolic-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=300,
    show_default=True,
    help="Seconds of a search with decision diagrams, which take longer where every copy of an object hangs on every other.",
)
@click.option("--memory", type=click.FloatRange(min=0, min_open=True), default=8000, show_default=True, help="MB that a search may take.")
@click.option("--toy", type=click.Path(path_type=Path), help="Figures of run.py.")
@click.option("--growth", type=click.Path(path_type=Path), help="Figures of growth.py.")
@click.option("--promises", type=click.Path(path_type=Path), help="Figures of invariants.py.")
@click.option("--render", is_flag=True, help="Measure nothing.")
@click.option("--write", "page", type=click.Path(dir_okay=False, path_type=Path), help="Write the page to this file.")
def main(
    file: Path,
    names: str,
    ways: str,
    everything: bool,
    time_limit: float,
    symbolic_limit: float,
    memory: float,
    toy: Path | None,
    growth: Path | None,
    promises: Path | None,
    render: bool,
    page: Path | None,
) -> None:
    """Measures the shipped models with each engine and each reduction."""
    measure.writable(file, "--json")
    measure.writable(page, "--write")
    labels = measure.names(ways, list(WAYS), "--ways")
    figures: dict[str, Any] = measure.load(file, "--json") if file.exists() else {"machine": measure.machine(), "models": {}}
    if figures.get("machine") != measure.machine() and not render:
        raise measure.InputError(f"--json: the figures in {file} are of another machine, {figures.get('machine')}; name another file")
    for key, more in (("toy", toy), ("growth", growth), ("promises", promises)):
        if more is not None:
            figures[key] = measure.load(more, f"--{key}")
    wrong = []

    def limit(way: Way) -> float:
        return symbolic_limit if way.engine == "symbolic" else time_limit

    for name in [] if render else chosen(names, everything):
        rows = figures["models"].get(name, {}) | measured(name, labels, limit, memory, click.echo)
        figures["models"][name] = {label: rows[label] for label in WAYS if label in rows}
        measure.write(file, figures)
        wrong += [f"{name}: {told}" for told in contradictions(rows)]
    measure.write(file, figures)
    if page is not None:
        page.write_text(performance.page(figures), encoding="utf-8")
    for told in wrong:
        click.echo(f"contradiction: {told}", err=True)
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
