"""Replays a run of the model on the reference implementation, step by step, and compares every slot after each."""

from __future__ import annotations

from dra_spec.explorer.semantics import Semantics
from dra_spec.reference.errors import Divergence
from dra_spec.reference.world import World
from dra_spec.scenario.scenario import Scenario
from dra_spec.traces.cowalk import mirror_run
from dra_spec.traces.replay import Run
from dra_spec.traces.trace import Trace

CONFIRMED = "confirmed"


def confirm(scenario: Scenario, trace: Trace, run: Run) -> str:
    """`confirmed`, or `spurious (step k: ...)` with the first step at which the concrete world is not in the state of the model."""
    del trace
    try:
        with World(scenario.instance, scenario.variants) as world:
            mirror_run(Semantics(scenario.model), world, run.states[0], run.moves)
    except Divergence as error:
        return f"spurious (step {error})"
    return CONFIRMED
