"""Other model checkers on the same toy protocol: building them, their command lines, what they say.

Their sources are not part of this project; `sources` is the folder that has `spin/`, `stateright/` and `tlc/`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from benchmarks.toy import CONFIGS, Config

NAMES = ("spin", "stateright", "tlc")
_BUILD_LIMIT = 900  # seconds
_NAMED = frozenset("gcdiemlqo")  # configurations that Stateright's and TLC's sources know by these names


class PeerError(Exception):
    """A peer cannot be built or run, or says something that is not understood."""


@attrs.frozen
class Counts:
    """What a contender reports; None: it counts that otherwise or not at all. `depth`: states on the longest shortest path."""

    states: int
    transitions: int | None = None
    depth: int | None = None

    def differs(self, config: Config) -> str:
        """In what it differs from the table; empty if it agrees."""
        pairs = {
            "states": (self.states, config.states),
            "transitions": (self.transitions, config.transitions),
            "depth": (self.depth, config.depth),
        }
        return ", ".join(
            f"{name} {got:,}, expected {wanted:,}"
            for name, (got, wanted) in pairs.items()
            if got is not None and wanted is not None and got != wanted
        )


@attrs.frozen
class Contender:
    """Something to be measured on a configuration: a command, where it runs, and how its output is read."""

    name: str
    config: str
    command: Sequence[str]
    folder: Path
    read: Callable[[str], Counts]


def find(text: str, pattern: str) -> int:
    """The number in the first group. Raises `PeerError` if the pattern is not there."""
    found = re.search(pattern, text)
    if found is None:
        raise PeerError(f"output without {pattern!r}:\n{text[-2000:]}")
    return int(found[1].replace(",", ""))


# this project


def ours(engine: str, config: str) -> Contender:
    """One engine of this project, in a process of its own."""
    here = Path(__file__).resolve().parents[1]
    return Contender(engine, config, [sys.executable, "-m", "benchmarks.one", config, engine], here, read_ours)


def read_ours(text: str) -> Counts:
    """Reads the line that `benchmarks.one` prints; a depth of 0 is one that the engine did not need to know."""
    try:
        said = json.loads(text)
    except ValueError:
        raise PeerError(f"output that is not JSON:\n{text[-2000:]}") from None
    if said["verdict"] != "holds":
        raise PeerError(f"it does not hold:\n{text}")
    return Counts(said["states"], said["transitions"], said["depth"] or None)


# SPIN


def masks(config: Config) -> tuple[int, int]:
    """First and second claim of each pod, a hexadecimal digit per pod; digit f is none."""
    first = sum(uses[0] << 4 * pod for pod, uses in enumerate(config.uses))
    second = sum((uses[1] if len(uses) > 1 else 15) << 4 * pod for pod, uses in enumerate(config.uses))
    return first, second


def spin(sources: Path, build: Path, name: str) -> Contender:
    """Generates and compiles the verifier of a configuration."""
    _need("spin", "gcc")
    config, folder = CONFIGS[name], build / f"spin-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    first, second = masks(config)
    sizes = {"P": len(config.uses), "C": config.claims, "D": config.devices, "N": config.nodes, "FCM": first, "SCM": second}
    _run(["spin", "-a", *(f"-D{key}={value}" for key, value in sizes.items()), str((sources / "spin" / "dra.pml").resolve())], folder)
    _run(["gcc", "-O2", "-w", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=16000", "-o", "pan", "pan.c"], folder)
    return Contender("spin", name, ["./pan", "-m2000000", "-n", "-w22"], folder, read_spin)


def read_spin(text: str) -> Counts:
    """It counts the initial state as a transition."""
    if find(text, r"errors: (\d+)"):
        raise PeerError(f"SPIN found an error:\n{text}")
    return Counts(find(text, r"(\d+) states, stored"), find(text, r"(\d+) transitions") - 1)


# Stateright


def stateright(sources: Path, build: Path, name: str) -> Contender:
    """Compiles the program once for all configurations."""
    _need("cargo")
    folder = build / "stateright"
    program = folder / "target" / "release" / "dra_peer"
    if not program.exists():
        shutil.copytree(sources / "stateright", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target"))
        _run(["cargo", "build", "--release", "--quiet"], folder)
    return Contender("stateright", name, [str(program), name, "none", "1"], folder, read_stateright)


def read_stateright(text: str) -> Counts:
    """It counts the initial state as a transition."""
    return Counts(find(text, r"states (\d+)"), find(text, r"generated (\d+)") - 1, find(text, r"depth (\d+)"))


# TLC


def tlc(sources: Path, build: Path, name: str, jar: Path | None) -> Contender:
    """Writes the configuration; `jar` is tla2tools.jar."""
    _need("java", "sh")
    if jar is None or not jar.is_file():
        raise PeerError("TLC needs --tlc-jar or TLA2TOOLS_JAR, the path of tla2tools.jar")
    folder = build / "tlc"
    shutil.copytree(sources / "tlc", folder, dirs_exist_ok=True)
    _run(["sh", "make_cfg.sh", name], folder)
    # Older releases know the option of the command line only, newer ones both.
    configuration = folder / f"MC_{name}.cfg"
    kept = [line for line in configuration.read_text().splitlines() if line.split() != ["CHECK_DEADLOCK", "FALSE"]]
    configuration.write_text("\n".join(kept) + "\n")
    java = ["java", "-XX:+UseParallelGC", "-Xmx8g", "-cp", str(jar.resolve()), "tlc2.TLC"]
    command = [*java, "-workers", "2", "-deadlock", "-cleanup", f"MC_{name}"]
    return Contender("tlc", name, command, folder, read_tlc)


def read_tlc(text: str) -> Counts:
    """It counts a successor twice when two parts of a guard hold, so its transitions are not compared."""
    if "No error has been found" not in text:
        raise PeerError(f"TLC found an error:\n{text[-2000:]}")
    return Counts(find(text, r"([\d,]+) distinct states found, 0 states left"))


def prepare(peer: str, sources: Path, build: Path, name: str, jar: Path | None) -> Contender:
    """Builds a peer for a configuration. Raises `PeerError`."""
    if not sources.is_dir():
        raise PeerError(f"no folder {sources}; the peers' sources are looked for in --peers-dir or DRA_SPEC_CORPUS/peers")
    if peer != "spin" and name not in _NAMED:
        raise PeerError(f"its source does not have configuration {name}")
    if peer == "tlc":
        return tlc(sources, build, name, jar)
    made: dict[str, Any] = {"spin": spin, "stateright": stateright}
    contender: Contender = made[peer](sources, build, name)
    return contender


def _need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise PeerError(f"{program} is not installed")


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_BUILD_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        raise PeerError(f"{' '.join(command)}: not done in {_BUILD_LIMIT} s") from None
    if done.returncode:
        raise PeerError(f"{' '.join(command)}: exit code {done.returncode}\n{(done.stderr or done.stdout)[-2000:]}")
