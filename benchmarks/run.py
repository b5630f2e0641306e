"""Measures the explicit engine on the toy protocol: `python benchmarks/run.py [--configs g,d,m] [--json FILE]`.

The counts are compared with those that the peers (SPIN, TLC, Stateright) reported; exit code 1 if one differs. Seconds are those of the
search, after the compiled kernels were loaded; "cpu" is the process's own time, which a busy machine distorts less than the clock.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.toy import CONFIGS, toy
from dra_spec.explorer import explore


def warm_up() -> None:
    """Loads (or, the first time, compiles) the kernels."""
    explore(toy("g"))


def measure(name: str) -> dict[str, Any]:
    """One search, judged against the peers' counts."""
    config = CONFIGS[name]
    model = toy(name)
    wall, cpu = time.perf_counter(), time.process_time()
    result = explore(model)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    counts = (result.states, result.transitions, result.depth + 1)
    return {
        "config": name,
        "states": result.states,
        "transitions": result.transitions,
        "depth": result.depth + 1,
        "verdict": result.verdict,
        "agrees": counts == (config.states, config.transitions, config.depth) and result.verdict == "holds",
        "seconds": round(wall, 3),
        "cpu_seconds": round(cpu, 3),
        "states_per_second": round(result.states / wall),
        "states_per_cpu_second": round(result.states / cpu),
        "python_calls": result.python_calls,
        "bytes_per_state": round(result.bytes_per_state, 1),
    }


@click.command()
@click.option("--configs", default="g,d,m", show_default=True, help="Names of configurations, separated by commas.")
@click.option("--json", "file", type=click.Path(dir_okay=False), help="Also write the figures to this file.")
def main(configs: str, file: str | None) -> None:
    """Measures the explicit engine on configurations of the toy protocol."""
    names = configs.split(",")
    unknown = [name for name in names if name not in CONFIGS]
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r}: expected some of {', '.join(CONFIGS)}", param_hint="--configs")
    started = time.perf_counter()
    warm_up()
    click.echo(f"start-up (imports aside) {time.perf_counter() - started:.2f} s")
    titles = {"states": 10, "transitions": 11, "depth": 5, "s": 7, "cpu s": 7, "states/s": 10, "per cpu s": 10, "calls": 6, "B/state": 7}
    click.echo("   " + " ".join(f"{title:>{width}}" for title, width in titles.items()))
    rows = [measure(name) for name in names]
    for r in rows:
        click.echo(
            f"{r['config']:2} {r['states']:>10,} {r['transitions']:>11,} {r['depth']:>5} {r['seconds']:>7.2f} {r['cpu_seconds']:>7.2f} "
            f"{r['states_per_second']:>10,} {r['states_per_cpu_second']:>10,} {r['python_calls']:>6,} {r['bytes_per_state']:>7}"
            + ("" if r["agrees"] else "  DIFFERS FROM THE PEERS")
        )
    if file is not None:
        Path(file).write_text(json.dumps(rows, indent=2) + "\n")
    if not all(r["agrees"] for r in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
