"""Runs of other processes, and what they cost: wall time from start to end, processor time, peak memory.

Everything that a run needs is counted: start of the interpreter, imports, loading of compiled code. The system counts what the measuring
process held when it started the other one, some 35 MB, as a floor of the peak memory.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from typing import Any

import attrs
import click

HERE = Path(__file__).resolve().parents[1]
GRACE = 30.0  # seconds beyond its own limit after which a process is ended


class InputError(click.ClickException):
    """A wrong argument: one line, exit code 2."""

    exit_code = 2


@attrs.frozen
class Run:
    """One run of a process. Seconds; bytes; `code` is negative if a signal ended it; `text`: what it printed."""

    wall: float
    cpu: float
    peak: int
    code: int
    text: str


def run(command: Sequence[str], folder: Path, limit: float | None = None, environment: Mapping[str, str] | None = None) -> Run:
    """Runs a command to its end, or ends it after `limit` seconds."""
    begin = time.perf_counter()
    with Popen(command, cwd=folder, env=environment, stdout=PIPE, stderr=STDOUT) as process:
        assert process.stdout is not None
        timer = threading.Timer(limit, process.kill) if limit is not None else None
        if timer is not None:
            timer.start()
        try:
            text = process.stdout.read().decode(errors="replace")
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            if timer is not None:
                timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Run(time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, peak, process.returncode, text)


@attrs.frozen
class Search:
    """A search in a process of its own: what `benchmarks.one` is told, and what it said."""

    run: Run
    said: dict[str, Any]
    problem: str = ""


def search(what: str, engine: str, *options: str, time_limit: float | None = None) -> Search:
    """Runs `python -m benchmarks.one`. `time_limit`: of the search; the process is ended when it goes far beyond it."""
    command = [sys.executable, "-m", "benchmarks.one", what, engine, *options]
    if time_limit is not None:
        command += ["--time-limit", str(time_limit)]
    done = run(command, HERE, None if time_limit is None else 2 * time_limit + GRACE)
    lines = done.text.strip().splitlines()
    if done.code == 0 and lines:
        return Search(done, json.loads(lines[-1]))
    if done.code < 0:
        return Search(done, {}, f"ended by signal {-done.code} after {done.wall:.0f} s")
    return Search(done, {}, lines[-1] if lines else f"exit code {done.code}")


def machine() -> dict[str, Any]:
    """The shape of the machine that the figures belong to."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return {"cores": cores, "memory_gb": round(memory / 1e9), "system": platform.system(), "python": platform.python_version()}


def names(text: str, known: Sequence[str], option: str) -> list[str]:
    """A list of names separated by commas. Raises `InputError`."""
    found = [name for name in text.split(",") if name]
    for name in found:
        if name not in known:
            raise InputError(f"{option}: found {name!r}, expected some of {', '.join(known)}")
    return list(dict.fromkeys(found))


def writable(file: Path | None, option: str) -> None:
    """Raises `InputError` for a file whose folder is not there: to be asked before hours of measuring, not after."""
    if file is not None and not file.resolve().parent.is_dir():
        raise InputError(f"{option}: no folder {file.parent}")


def write(file: Path | None, figures: object) -> None:
    """Writes figures as JSON."""
    if file is not None:
        file.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def load(file: Path, option: str) -> Any:
    """Reads what `write` wrote. Raises `InputError`."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{option}: {file}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{option}: {file}: not JSON: {error}") from None


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    return ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|", *("| " + " | ".join(row) + " |" for row in rows)]
