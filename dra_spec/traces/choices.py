"""Where a trace goes by an allocation that upstream's allocator would not have made (`allocation: any`)."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dra_spec.allocation.injected import Choice, parse
from dra_spec.traces.trace import Step, Trace


@attrs.frozen
class Departure:
    """A step with another choice than upstream's. `chosen`, `upstream`: the two answers of the allocator."""

    step: int
    chosen: str
    upstream: str

    def __str__(self) -> str:
        return f"at step {self.step} upstream's allocator would have answered {self.upstream}, not {self.chosen}"


def choice(step: Step) -> Choice | None:
    """The allocation that a step chose, None if there was no choice."""
    return parse(step.outcome) if step.step in ("F1", "E1") else None


def departures(trace: Trace) -> Iterator[Departure]:
    """The steps of a trace in which another allocation than upstream's was made."""
    for step in trace.steps:
        made = choice(step)
        if made is not None and made.instead:
            yield Departure(step.number, str(attrs.evolve(made, instead="")), made.instead)


def about_upstream(trace: Trace) -> str:
    """What a trace of a model with any allocation says about upstream's allocator, in one sentence."""
    found = list(departures(trace))
    if not found:
        return "upstream's allocator makes the same choices in this run"
    more = f" (and otherwise at {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{found[0]}{more}; whether upstream's choices break the promise too: --allocation upstream"
