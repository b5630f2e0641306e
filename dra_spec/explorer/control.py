"""When a search stops: limits, interrupts, progress."""

from __future__ import annotations

import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType

from dra_spec.explorer.model import AlwaysPossible, DeadlockFree, LeadsTo, Model
from dra_spec.explorer.result import Limits, Progress

_STATM = Path("/proc/self/statm")
_INTERVAL = 0.1  # seconds between two reports of progress


def resident() -> int:
    """Bytes of memory that the process holds; where the system does not tell, the most it ever held."""
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def expands_all(model: Model, limits: Limits) -> bool:
    """Whether violating states are expanded: when asked, or when a property is about all states."""
    return limits.expand_violating or any(isinstance(p, (AlwaysPossible, DeadlockFree, LeadsTo)) for p in model.properties)


class Control:
    """Answers whether to go on. As a context it turns the first Ctrl-C into a request to stop; a second one raises as usual."""

    def __init__(
        self, limits: Limits, progress: Callable[[Progress], None] | None = None, interrupted: Callable[[], bool] | None = None
    ) -> None:
        self.limits = limits
        self._progress, self._asked = progress, interrupted
        self._start = time.monotonic()
        self._shown = self._start
        self._signalled = False
        self._most_seconds = limits.time_limit
        self._previous: signal._HANDLER = None

    def __enter__(self) -> Control:
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._previous = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._signalled:
            raise KeyboardInterrupt
        self._signalled = True

    @property
    def seconds(self) -> float:
        """Since the search began."""
        return time.monotonic() - self._start

    def extend(self) -> None:
        """A quarter of the time limit more from now on, to judge what was found."""
        if self.limits.time_limit is not None:
            self._most_seconds = self.seconds + self.limits.time_limit / 4

    def stop(self, extra: int = 0) -> str | None:
        """The reason to stop now, or None. `extra`: bytes that are about to be allocated."""
        if self._signalled or (self._asked is not None and self._asked()):
            return "interrupted"
        if self._most_seconds is not None and self.seconds > self._most_seconds:
            return "time"
        if self.limits.memory is not None and resident() + extra > self.limits.memory:
            return "memory"
        return None

    def report(self, states: int, frontier: int, depth: int, memory: int, last: bool = False) -> None:
        """Calls the progress callback, not more often than every tenth of a second."""
        if self._progress is None:
            return
        now = time.monotonic()
        if last or now - self._shown >= _INTERVAL:
            self._shown = now
            self._progress(Progress(states, frontier, states / max(now - self._start, 1e-9), depth, memory))
