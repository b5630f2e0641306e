"""The reference at random, the model beside it: the model allows each step, and no promise breaks on the concrete world."""

from __future__ import annotations

import functools
import os
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from dra_spec.scenario.modelfile import Overrides
from dra_spec.scenario.scenario import Scenario
from dra_spec.scenario.targets import scenarios
from dra_spec.traces.lockstep import DISTURBED, Lockstep, Seen

# A model of the control plane and one of the node, each with faults; a wide watch, so that writes hardly ever wait.
MODELS = {
    "template-claim": {"api-refused": 1, "delete-pod": 1, "finish-pod": -1},
    "kubelet-restart": {"kubelet-crash": 2, "rpc-failed": 1, "rpc-lost": 1, "delete-pod": 1, "finish-pod": -1},
}
WALKS = int(os.environ.get("DRA_SPEC_LOCKSTEP_WALKS", "25"))
PHASES = (Phase.explicit, Phase.generate)  # a failing walk is short enough to be read as it is
TURNS = st.lists(st.tuples(st.integers(0, DISTURBED * DISTURBED - 1), st.integers(0, 5)), min_size=4, max_size=12)
LEAST = 500


@functools.cache
def scenario(name: str) -> Scenario:
    (found,) = scenarios((name,), Overrides(bounds={"lag": 6}, budgets=MODELS[name], repaired=True))
    return found


def machine(name: str, seen: Seen) -> type[RuleBasedStateMachine]:
    """A state machine over one model that counts its steps in `seen`."""
    made = scenario(name)

    class Walk(RuleBasedStateMachine):
        lockstep: Lockstep

        @initialize()
        def begin(self) -> None:
            self.lockstep = Lockstep(made, seen)
            self.stuck = False

        @precondition(lambda self: not self.stuck)
        @rule(turns=TURNS)
        def go(self, turns: list[tuple[int, int]]) -> None:
            for number, fault in turns:
                choices = self.lockstep.choices()
                if not choices:
                    self.stuck = True
                    return
                move = self.lockstep.pick(choices, number)
                faults = self.lockstep.faults(move)
                self.lockstep.step(move, faults[fault] if fault < len(faults) else "")

        @precondition(lambda self: self.stuck)
        @rule()
        def rest(self) -> None:
            assert not self.lockstep.choices()

        def teardown(self) -> None:
            if hasattr(self, "lockstep"):
                self.lockstep.close()

    return Walk


@pytest.mark.parametrize("name", MODELS)
def test_the_model_allows_what_the_reference_does(name: str) -> None:
    seen = Seen()
    bounds: dict[str, Any] = {"max_examples": WALKS, "stateful_step_count": 12, "deadline": None, "derandomize": True, "phases": PHASES}
    run_state_machine_as_test(machine(name, seen), settings=settings(**bounds))
    assert seen.steps >= LEAST / len(MODELS)
    assert len(seen.taken) >= 15
