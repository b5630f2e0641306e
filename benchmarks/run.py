"""Measures the engines, and other model checkers, on the toy protocol.

    python benchmarks/run.py [--configs g,d,m,q] [--engines explicit,symbolic] [--peers spin,stateright,tlc] [--rounds 3] [--json FILE]

Each run is a process of its own; measured are its wall time from start to end (start-up and imports included) and its peak memory. In each
round all contenders take their turn, so that a busy machine is busy for all of them. The counts must be those of the table; exit code 1
if one differs. Compiling the peers is not measured. A peer that is not installed is named and left out; so is one state by state on a
configuration that no memory holds. Their sources are looked for in DRA_SPEC_CORPUS/peers unless --peers-dir names a folder.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import measure, peers
from benchmarks.toy import CONFIGS

ENGINES = ("explicit", "symbolic", "plain")
MOST = 100_000_000  # states; above, only decision diagrams are tried
# how many times as fast as a peer an engine has to be: configuration, peer, engine
BARS = {
    ("m", "spin", "explicit"): 1.2,
    ("q", "spin", "explicit"): 3.0,
    ("q", "spin", "symbolic"): 10.0,
    ("q", "stateright", "explicit"): 3.0,
    ("q", "stateright", "symbolic"): 10.0,
    ("q", "tlc", "explicit"): 15.0,
    ("q", "tlc", "symbolic"): 50.0,
}


@attrs.define
class Row:
    """What was measured of a contender."""

    contender: peers.Contender
    runs: list[measure.Run] = attrs.field(factory=list)
    counts: peers.Counts | None = None
    problem: str = ""

    @property
    def wall(self) -> float:
        """The median, in seconds."""
        return statistics.median(run.wall for run in self.runs)

    @property
    def peak(self) -> float:
        """The median, in bytes."""
        return statistics.median(run.peak for run in self.runs)


def take_turn(row: Row) -> None:
    """One run more; what it says must be what the table says."""
    contender = row.contender
    done = measure.run(contender.command, contender.folder)
    row.runs.append(done)
    if done.code:
        row.problem = f"exit code {done.code}: {done.text[-500:]}"
        return
    try:
        row.counts = contender.read(done.text)
    except peers.PeerError as error:
        row.problem = str(error)
        return
    row.problem = row.counts.differs(CONFIGS[contender.config])


def rounds(contenders: Sequence[peers.Contender], count: int) -> list[Row]:
    """All contenders in turn, so many times; one that fails is not run again."""
    rows = [Row(contender) for contender in contenders]
    for _ in range(count):
        for row in rows:
            if not row.problem:
                take_turn(row)
    return rows


def ratios(row: Row, rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Per peer of the same configuration: how many times as long it took, and how many times as much memory."""
    return {
        other.contender.name: {"wall": round(other.wall / row.wall, 2), "memory": round(other.peak / row.peak, 2)}
        for other in rows
        if other.contender.name in peers.NAMES and not other.problem and other.contender.config == row.contender.config
    }


def table(rows: Sequence[Row], against: Sequence[str]) -> list[str]:
    """One line per contender: medians, the range of wall times, and how many times as much time and memory the peers took."""
    titles = ["contender", "states", "wall s (min-max)", "cpu s", "peak MB"]
    titles += [f"{name} {what} / this" for name in against for what in ("s", "MB")]
    lines = []
    for row in rows:
        if row.problem:
            lines.append([row.contender.name, row.problem.splitlines()[0], *[""] * (len(titles) - 2)])
            continue
        assert row.counts is not None
        walls = [run.wall for run in row.runs]
        found = ratios(row, rows)
        cells = [row.contender.name, f"{row.counts.states:,}", f"{row.wall:.2f} ({min(walls):.2f}-{max(walls):.2f})"]
        cells += [f"{statistics.median(run.cpu for run in row.runs):.2f}", f"{row.peak / 1e6:.0f}"]
        cells += [f"{found[name][what]:.2f}" if name in found else "-" for name in against for what in ("wall", "memory")]
        lines.append(cells)
    return measure.table(titles, lines)


def inside(row: Row) -> dict[str, float]:
    """Of one of our engines, what its last run says of itself: states per second of the search, after start-up; calls of the model's Python
    code; bytes per state in rows, parents and table. Empty for a peer, or where the run failed."""
    if row.problem or row.contender.name not in ENGINES:
        return {}
    said = json.loads(row.runs[-1].text)
    rate = said["states"] / max(said["search"], 1e-3)
    return {"states_per_second": round(rate), "python_calls": said["calls"], "bytes_per_state": said["bytes"]}


def bars(rows: Sequence[Row]) -> Iterator[dict[str, object]]:
    """For each engine that has to be so many times as fast as a peer: the ratio that was measured, and whether it suffices."""
    for row in rows:
        for peer, found in ratios(row, rows).items():
            least = BARS.get((row.contender.config, peer, row.contender.name))
            if least is not None and not row.problem:
                yield {
                    "config": row.contender.config,
                    "peer": peer,
                    "engine": row.contender.name,
                    "ratio": found["wall"],
                    "least": least,
                    "met": found["wall"] >= least,
                }


def as_json(row: Row, rows: Sequence[Row]) -> dict[str, object]:
    """The figures of a row."""
    return {
        "contender": row.contender.name,
        "config": row.contender.config,
        "wall_seconds": [round(run.wall, 3) for run in row.runs],
        "cpu_seconds": [round(run.cpu, 3) for run in row.runs],
        "peak_bytes": [run.peak for run in row.runs],
        "median_wall_seconds": round(row.wall, 3),
        "median_peak_bytes": round(row.peak),
        "states": row.counts.states if row.counts else None,
        "transitions": row.counts.transitions if row.counts else None,
        **inside(row),
        "ratios": {} if row.problem else ratios(row, rows),
        "agrees": not row.problem,
        "problem": row.problem,
    }


@click.command()
@click.option("--configs", default="g,d,m", show_default=True, help="Names of configurations, separated by commas.")
@click.option("--engines", default="explicit,symbolic", show_default=True, help="Engines of this project, separated by commas.")
@click.option("--peers", "peer_names", default="", help="Other model checkers: spin, stateright, tlc.")
@click.option("--rounds", "count", default=3, show_default=True, type=click.IntRange(min=1), help="Runs of each contender.")
@click.option("--peers-dir", type=click.Path(path_type=Path), help="Where the peers' sources are; default: DRA_SPEC_CORPUS/peers.")
@click.option(
    "--build",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the peers are compiled; default: the folder for temporary files.",
)
@click.option("--tlc-jar", envvar="TLA2TOOLS_JAR", type=click.Path(path_type=Path), help="tla2tools.jar; also TLA2TOOLS_JAR.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Also write the figures to this file.")
def main(
    configs: str,
    engines: str,
    peer_names: str,
    count: int,
    peers_dir: Path | None,
    build: Path | None,
    tlc_jar: Path | None,
    file: Path | None,
) -> None:
    """Measures engines and other model checkers on configurations of the toy protocol."""
    chosen, ours = measure.names(configs, list(CONFIGS), "--configs"), measure.names(engines, ENGINES, "--engines")
    others = measure.names(peer_names, peers.NAMES, "--peers")
    measure.writable(file, "--json")
    if peers_dir is not None and not peers_dir.is_dir():
        raise measure.InputError(f"--peers-dir: no folder {peers_dir}")
    if tlc_jar is not None and not tlc_jar.is_file():
        raise measure.InputError(f"--tlc-jar: no file {tlc_jar}")
    sources = peers_dir or Path(os.environ.get("DRA_SPEC_CORPUS", "no corpus")) / "peers"
    folder = build or Path(tempfile.gettempdir()) / "dra-spec-peers"
    measured: list[Row] = []
    for name in chosen:
        contenders = []
        for contender in (*ours, *others):
            try:
                contenders.append(_contender(contender, name, sources, folder, tlc_jar))
            except peers.PeerError as error:
                click.echo(f"{name}: {contender} is left out: {error}", err=True)
        config = CONFIGS[name]
        click.echo(f"\n{name}: {config.states:,} states, {config.transitions:,} transitions\n")
        rows = rounds(contenders, count)
        measured += rows
        for line in table(rows, [c.name for c in contenders if c.name in peers.NAMES]):
            click.echo(line)
        _remarks(rows)
    figures = {
        "machine": measure.machine(),
        "rounds": count,
        "rows": [as_json(row, measured) for row in measured],
        "bars": list(bars(measured)),
    }
    measure.write(file, figures)
    if any(row.problem for row in measured):
        raise SystemExit(1)


def _contender(contender: str, config: str, sources: Path, folder: Path, jar: Path | None) -> peers.Contender:
    if contender != "symbolic" and CONFIGS[config].states > MOST:
        raise peers.PeerError("more states than fit into memory one by one")
    return peers.ours(contender, config) if contender in ENGINES else peers.prepare(contender, sources, folder, config, jar)


def _remarks(rows: Sequence[Row]) -> None:
    for row in rows:
        if said := inside(row):
            click.echo(
                f"{row.contender.name}, after start-up: {said['states_per_second']:,.0f} states/s, "
                f"{said['python_calls']:,.0f} calls of the model's Python code, {said['bytes_per_state']:.1f} bytes per state"
            )
    for bar in bars(rows):
        met = "met" if bar["met"] else "MISSED"
        click.echo(f"{bar['engine']} against {bar['peer']}: {bar['ratio']:.2f} times as fast, at least {bar['least']} wanted: {met}")


if __name__ == "__main__":
    main()
