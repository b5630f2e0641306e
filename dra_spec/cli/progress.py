"""The progress line: on a terminal only, on standard error, gone when the search is over."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dra_spec.explorer.result import Progress


@contextmanager
def progress_line(name: str) -> Iterator[Callable[[Progress], None] | None]:
    """A callback for the search, None when nobody is looking."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    with Live(Text(f"{name} ..."), console=console, transient=True, auto_refresh=False) as live:

        def show(now: Progress) -> None:
            line = f"{name}: {now.states:,} states, {now.frontier:,} to expand, depth {now.depth}, {now.rate:,.0f}/s"
            live.update(Text(f"{line}, {now.memory / 1e6:,.0f} MB"), refresh=True)

        yield show
