"""Judges invariants on one concrete world: the reference's, or a cluster's dump; and says in words why one is false."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dra_spec.explorer.model import Truth
from dra_spec.properties.errors import EvaluationError, InvariantError, NotInWorld, pointed
from dra_spec.properties.explain import explain
from dra_spec.properties.grade import grader
from dra_spec.properties.invariant import Invariant, Promise
from dra_spec.properties.values import Thing
from dra_spec.properties.world import PlainWorld


@attrs.frozen
class Judgement:
    """What an invariant says of a world. `truth` None: not applicable, `explanation` says why; for a truth other than false it is empty."""

    invariant: str
    truth: Truth | None
    explanation: str = ""

    @property
    def violated(self) -> bool:
        return self.truth is Truth.FALSE


def judge(
    invariant: Invariant,
    world: Mapping[str, Any] | Thing,
    before: Mapping[str, Any] | None = None,
    step: Mapping[str, Any] | None = None,
) -> Judgement:
    """Judges a state invariant on a world, a step invariant on two worlds and the step between them (see `PlainWorld`).

    Not applicable: a promise about what is possible later, a step invariant without a step or about other actions, and a world that lacks
    a section that the invariant reads. Raises `InvariantError` if the expression has no value on the world.
    """
    if invariant.kind not in (Promise.STATE, Promise.STEP):
        return Judgement(invariant.name, None, f"{invariant.kind.value}: one world does not decide it")
    if invariant.kind is Promise.STEP and isinstance(world, Mapping):
        if before is None or step is None:
            return Judgement(invariant.name, None, "it is about steps, and only one world is given")
        if not invariant.applies_to(str(step["action"])):
            return Judgement(invariant.name, None, f"it is not about {step['action']}")
    thing = world if isinstance(world, Thing) else PlainWorld(world, before, step)
    try:
        truth = grader(invariant.program.root)(invariant.program.environment(thing))
        return Judgement(invariant.name, truth, why(invariant, thing) if truth is Truth.FALSE else "")
    except NotInWorld as error:
        return Judgement(invariant.name, None, f"the world has no {error.path}")
    except EvaluationError as error:
        place = pointed(error.message, invariant.program.text, invariant.program.origin, error.span.line, error.span.column)
        raise InvariantError(f"invariant {invariant.name} has no value on this world: {place}") from None


def why(invariant: Invariant, world: Thing, binding: Mapping[str, str] | None = None) -> str:
    """Why an invariant (or, for always-possible, its goal) is false on a world: its statement, then the objects and values that decide.

    `binding`: the objects of the instance that is asked about, by variable.
    """
    lines = explain(invariant.program, invariant.program.environment(world), binding)
    return "\n".join([f"{invariant.name} does not hold: {invariant.statement}", *(f"  {line}" for line in lines)])
