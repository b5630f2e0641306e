"""Measures the engines, and other model checkers, on the toy protocol.

    python benchmarks/run.py [--configs g,d,m] [--engines explicit,symbolic] [--peers spin,stateright,tlc] [--rounds 3] [--json FILE]

Each run is a process of its own; measured are its wall time from start to end (start-up and imports included) and its peak memory (the
system counts what this script held when it started the process, some 35 MB, as a floor). In each round all contenders take their turn, so
that a busy machine is busy for all of them. The counts must be those of the table; exit code 1 if one differs. Compiling the peers is not
measured. A peer that is not installed is named and left out.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen

import attrs
import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import peers
from benchmarks.toy import CONFIGS

ENGINES = ("explicit", "symbolic", "plain")


@attrs.define
class Row:
    """What was measured of a contender. Seconds; peak resident memory in bytes."""

    contender: peers.Contender
    walls: list[float] = attrs.field(factory=list)
    cpus: list[float] = attrs.field(factory=list)
    peaks: list[int] = attrs.field(factory=list)
    counts: peers.Counts | None = None
    problem: str = ""
    text: str = ""  # what the last run printed

    @property
    def wall(self) -> float:
        """The median."""
        return statistics.median(self.walls)


def measure(row: Row) -> None:
    """One run in a process of its own. Peak memory is that of the process alone, as the system counts it."""
    contender = row.contender
    begin = time.perf_counter()
    with Popen(contender.command, cwd=contender.folder, stdout=PIPE, stderr=STDOUT) as process:
        assert process.stdout is not None
        text = process.stdout.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    row.text = text
    row.walls.append(time.perf_counter() - begin)
    row.cpus.append(usage.ru_utime + usage.ru_stime)
    row.peaks.append(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
    if process.returncode:
        row.problem = f"exit code {process.returncode}: {text[-500:]}"
        return
    try:
        row.counts = contender.read(text)
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
                measure(row)
    return rows


def table(rows: Sequence[Row], against: Sequence[str]) -> list[str]:
    """One line per contender: medians, the range of wall times, and how many times as long the peers took."""
    titles = ["contender", "states", "wall s (min-max)", "cpu s", "peak MB", *(f"{name} / this" for name in against)]
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    walls = {row.contender.name: row.wall for row in rows if not row.problem}
    for row in rows:
        if row.problem:
            lines.append(f"| {row.contender.name} | {row.problem.splitlines()[0]} |" + " |" * (len(titles) - 2))
            continue
        assert row.counts is not None
        ratios = [f"{walls[name] / row.wall:.2f}" if name in walls else "-" for name in against]
        wall = f"{row.wall:.2f} ({min(row.walls):.2f}-{max(row.walls):.2f})"
        peak = statistics.median(row.peaks) / 1e6
        cells = [row.contender.name, f"{row.counts.states:,}", wall, f"{statistics.median(row.cpus):.2f}", f"{peak:.0f}", *ratios]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def inside(row: Row) -> dict[str, float]:
    """Of one of our engines, what its last run says of itself: states per second of the search, after start-up; calls of the model's Python
    code; bytes per state in rows, parents and table. Empty for a peer, or where the run failed."""
    if row.problem or row.contender.name not in ENGINES:
        return {}
    said = dict(word.split("=", 1) for word in row.text.split() if "=" in word)
    rate = int(said["states"]) / max(float(said["search"]), 1e-3)
    return {"states_per_second": round(rate), "python_calls": int(said["calls"]), "bytes_per_state": float(said["bytes"])}


def as_json(row: Row) -> dict[str, object]:
    """The figures of a row."""
    return {
        "contender": row.contender.name,
        "config": row.contender.config,
        "wall_seconds": [round(wall, 3) for wall in row.walls],
        "cpu_seconds": [round(cpu, 3) for cpu in row.cpus],
        "peak_bytes": row.peaks,
        "median_wall_seconds": round(row.wall, 3),
        "states": row.counts.states if row.counts else None,
        "transitions": row.counts.transitions if row.counts else None,
        **inside(row),
        "agrees": not row.problem,
        "problem": row.problem,
    }


def _names(text: str, known: Sequence[str], option: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r}: expected some of {', '.join(known)}", param_hint=option)
    return names


@click.command()
@click.option("--configs", default="g,d,m", show_default=True, help="Names of configurations, separated by commas.")
@click.option("--engines", default="explicit,symbolic", show_default=True, help="Engines of this project, separated by commas.")
@click.option("--peers", "peer_names", default="", help="Other model checkers: spin, stateright, tlc.")
@click.option("--rounds", "count", default=3, show_default=True, type=click.IntRange(min=1), help="Runs of each contender.")
@click.option(
    "--build",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the peers are compiled; default: the folder for temporary files.",
)
@click.option("--tlc-jar", type=click.Path(dir_okay=False, path_type=Path), help="tla2tools.jar")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Also write the figures to this file.")
def main(configs: str, engines: str, peer_names: str, count: int, build: Path | None, tlc_jar: Path | None, file: Path | None) -> None:
    """Measures engines and other model checkers on configurations of the toy protocol."""
    names, ours = _names(configs, list(CONFIGS), "--configs"), _names(engines, ENGINES, "--engines")
    others = _names(peer_names, peers.NAMES, "--peers")
    sources = Path(os.environ.get("DRA_SPEC_CORPUS", "no corpus")) / "peers"
    folder = build or Path(tempfile.gettempdir()) / "dra-spec-peers"
    measured: list[Row] = []
    for name in names:
        contenders = [peers.ours(engine, name) for engine in ours]
        for other in others:
            try:
                contenders.append(peers.prepare(other, sources, folder, name, tlc_jar))
            except peers.PeerError as error:
                click.echo(f"{other} is left out: {error}", err=True)
        click.echo(f"\n{name}: {CONFIGS[name].states:,} states, {CONFIGS[name].transitions:,} transitions\n")
        rows = rounds(contenders, count)
        measured += rows
        for line in table(rows, [c.name for c in contenders if c.name in peers.NAMES]):
            click.echo(line)
        for row in rows:
            if said := inside(row):
                click.echo(
                    f"{row.contender.name}, after start-up: {said['states_per_second']:,.0f} states/s, "
                    f"{said['python_calls']:,.0f} calls of the model's Python code, {said['bytes_per_state']:.1f} bytes per state"
                )
    if file is not None:
        file.write_text(json.dumps([as_json(row) for row in measured], indent=2) + "\n")
    if any(row.problem for row in measured):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
