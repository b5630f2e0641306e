"""How long a command takes from start to end: `python benchmarks/start.py [--model node-reboot] [--rounds 5] [--cold] [--json FILE]`.

Whole processes, the commands in turn in each round; medians of wall time, of processor time, and of the time that the search itself says it
took. Caches are warm: each command runs once before it is measured, with Python's bytecode and machine code of the kernels kept. "Without
bytecode": the same where nobody keeps Python's bytecode (PYTHONDONTWRITEBYTECODE). With `--cold` one more run whose kernels have to be
compiled. Folders for both kinds of code are made for the measurement and removed.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import measure

WANTED = 1.5  # seconds from start to verdict of the smallest model, with warm caches
_START = [sys.executable, "-c", "from dra_spec.cli.main import main; main()"]
_SAID = re.compile(r"^\S+ +(?:holds|violated) .* ([0-9.]+)  \(", re.MULTILINE)


@attrs.frozen
class Command:
    """What is measured. `extra`: of the environment; an empty text takes a variable away."""

    name: str
    arguments: tuple[str, ...]
    extra: Mapping[str, str] = attrs.field(factory=dict)

    def run(self, environment: Mapping[str, str]) -> measure.Run:
        """Raises `ClickException` if the command fails."""
        changed = {key: value for key, value in {**environment, **self.extra}.items() if value}
        done = measure.run([*_START, *self.arguments], measure.HERE, environment=changed)
        if done.code not in (0, 1):  # 1 is a negative answer
            raise click.ClickException(f"{self.name}: exit code {done.code}: {done.text.strip()}")
        return done


@attrs.frozen
class Figures:
    """Medians in seconds; `search` is what the command says itself, None if it searches nothing."""

    name: str
    runs: int
    wall: float
    cpu: float
    search: float | None


def commands(model: str) -> list[Command]:
    """Commands that search nothing, and the search of a model."""
    return [
        Command("--version", ("--version",)),
        Command("--help", ("--help",)),
        Command("list", ("list",)),
        Command("explain", ("explain", "models/manifests/one-node-one-device.yaml", "models/manifests/two-pods.yaml")),
        Command(f"check {model}", ("check", model)),
        Command(f"check {model}, without bytecode", ("check", model), {"PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": "1"}),
    ]


def figures(name: str, runs: Sequence[measure.Run]) -> Figures:
    """The medians of a command's runs."""
    said = [float(found[1]) for run in runs if (found := _SAID.search(run.text))]
    search = statistics.median(said) if said else None
    return Figures(name, len(runs), statistics.median(r.wall for r in runs), statistics.median(r.cpu for r in runs), search)


def table(found: Sequence[Figures]) -> list[str]:
    """One line per command."""
    rows = [[f.name, f"{f.wall:.2f}", f"{f.cpu:.2f}", "-" if f.search is None else f"{f.search:.1f}", str(f.runs)] for f in found]
    return measure.table(["command", "wall s", "CPU s", "search s", "runs"], rows)


@click.command()
@click.option("--model", default="node-reboot", show_default=True, help="A shipped model; the default has the fewest states.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Runs of each command.")
@click.option("--cold", is_flag=True, help="Also one run whose kernels have to be compiled.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Also write the figures to this file.")
def main(model: str, rounds: int, cold: bool, file: Path | None) -> None:
    """Measures commands from start to end."""
    measure.writable(file, "--json")
    with tempfile.TemporaryDirectory() as bytecode, tempfile.TemporaryDirectory() as kernels, tempfile.TemporaryDirectory() as empty:
        ours = {"PYTHONPYCACHEPREFIX": bytecode, "NUMBA_CACHE_DIR": kernels, "PYTHONDONTWRITEBYTECODE": ""}
        environment = {**os.environ, "PYTHONPATH": str(measure.HERE), **ours}
        todo = commands(model)
        for command in todo:
            command.run(environment)
        runs: dict[str, list[measure.Run]] = {command.name: [] for command in todo}
        for _ in range(rounds):
            for command in todo:
                runs[command.name].append(command.run(environment))
        if cold:
            first = Command(f"check {model}, kernels to compile", ("check", model), {"NUMBA_CACHE_DIR": empty})
            runs[first.name] = [first.run(environment)]
    found = [figures(name, done) for name, done in runs.items()]
    for line in table(found):
        click.echo(line)
    warm = next(one.wall for one in found if one.name == f"check {model}")
    click.echo(f"\nstart to verdict of {model}: {warm:.2f} s; under {WANTED} wanted: {'met' if warm < WANTED else 'MISSED'}")
    measure.write(file, {"machine": measure.machine(), "model": model, "commands": [attrs.asdict(one) for one in found]})


if __name__ == "__main__":
    main()
