"""Why a promise is false at the end of a run, in words and with the objects that decide."""

from __future__ import annotations

from collections.abc import Mapping

from dra_spec.explorer.semantics import Semantics
from dra_spec.properties.invariant import Invariant, Promise
from dra_spec.properties.judge import why
from dra_spec.properties.model_world import ModelWorld, Sources
from dra_spec.protocol.instance import Instance
from dra_spec.traces.replay import Run


def explain(invariant: Invariant, instance: Instance, semantics: Semantics, run: Run, binding: Mapping[str, str]) -> list[str]:
    """Lines of text; the first names the promise."""
    sources = Sources.of(instance)
    after = semantics.view(run.end)
    if invariant.kind is Promise.STEP and run.moves:
        last = run.moves[-1]
        world = ModelWorld(sources, after, semantics.view(run.states[-2]), (last.action, last.label))
    else:
        world = ModelWorld(sources, after)
    lines = why(invariant, world, binding).splitlines()
    if invariant.kind is Promise.ALWAYS_POSSIBLE:
        where = f" for {', '.join(f'{name} = {value}' for name, value in binding.items())}" if binding else ""
        kinds = ", ".join(sorted(kind.value for kind in invariant.without))
        lines.append(f"  from this state no run without {kinds} actions reaches the goal{where}")
    if invariant.kind is Promise.LEADS_TO:
        counted = ", ".join(invariant.fair)
        lines.append(
            f"  and this may go on for ever: each action that the promise counts on ({counted}) is taken or disabled again and again"
        )
    if invariant.kind is Promise.DEADLOCK_FREE:
        lines.append("  no action is enabled in this state")
    return lines
