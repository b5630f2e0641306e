"""Threads that do the same thing at the same time. Kernels run without the interpreter's lock, so several of them really do."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

MOST = 16  # threads; more would find nothing to do

_Job = Callable[[int], object]


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def size(threads: int) -> int:
    """How many threads a wish stands for; 0: as many as there are cores."""
    return max(1, min(threads or cores(), MOST))


class Crew:
    """So many workers; the caller is worker 0, the others are threads that start when they are needed for the first time."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._queues: list[SimpleQueue[tuple[_Job, list[BaseException | bool]] | None]] = []
        self._done: SimpleQueue[None] = SimpleQueue()

    def run(self, job: _Job) -> None:
        """Each worker calls `job` with its number. Returns when all have done it; raises what the first of them raised."""
        if not self._queues:
            self._start()
        said: list[BaseException | bool] = [False] * self.size  # True: done
        for queue in self._queues:
            queue.put((job, said))
        interrupt: BaseException | None = None
        try:
            job(0)
            said[0] = True
        except BaseException as error:
            said[0] = error
        while not all(said):  # also after an interrupt: nobody may be at work any more
            try:
                self._done.get()
            except KeyboardInterrupt as error:
                interrupt = error
        for failure in (interrupt, *said):
            if isinstance(failure, BaseException):
                raise failure

    def _start(self) -> None:
        for number in range(1, self.size):
            queue: SimpleQueue[tuple[_Job, list[BaseException | bool]] | None] = SimpleQueue()
            self._queues.append(queue)
            threading.Thread(target=_serve, args=(number, queue, self._done), daemon=True, name=f"dra-spec worker {number}").start()
        weakref.finalize(self, _dismiss, self._queues)

    def close(self) -> None:
        """Lets the threads end; they start again when they are needed again."""
        _dismiss(self._queues)
        self._queues = []


def _dismiss(queues: list[SimpleQueue[tuple[_Job, list[BaseException | bool]] | None]]) -> None:
    for queue in queues:
        queue.put(None)


def _serve(number: int, queue: SimpleQueue[tuple[_Job, list[BaseException | bool]] | None], done: SimpleQueue[None]) -> None:
    while (task := queue.get()) is not None:
        job, said = task
        try:
            job(number)
            said[number] = True
        except BaseException as error:
            said[number] = error
        del job, said, task
        done.put(None)
