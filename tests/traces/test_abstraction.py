"""Random walks of the model with the reference beside it: after each step every slot is the same, and so is the world that invariants see.

DRA_SPEC_WALK_STEPS: steps per walk instance, 120 unless told.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dra_spec.explorer.semantics import Semantics, State
from dra_spec.properties.model_world import ModelWorld, Sources, dump
from dra_spec.properties.schema import WORLD
from dra_spec.properties.world import problems
from dra_spec.protocol.instance import Instance
from dra_spec.reference import variants as reference_variants
from dra_spec.reference.assume import AssumeCache, Entry, InFlight
from dra_spec.reference.controller import ClaimController
from dra_spec.reference.errors import Divergence
from dra_spec.reference.kubelet import Kubelet
from dra_spec.reference.plugin import Plugin
from dra_spec.reference.scheduler import Scheduler
from dra_spec.reference.shapes import Object, name_of
from dra_spec.reference.world import World
from dra_spec.traces import cowalk
from dra_spec.traces.abstraction import differences
from dra_spec.traces.cowalk import Statistics, mirror, random_move, random_walk
from dra_spec.variants.base import variants

sys.path.insert(0, str(Path(__file__).parent))
import walk_instances as cases

STEPS = int(os.environ.get("DRA_SPEC_WALK_STEPS", "120"))
LENGTH = 120


def walk(instance: Instance, steps: int, seed: int, *names: str) -> Statistics:
    """Walks until `steps` steps are made."""
    semantics, rng, seen = cases.semantics_of(instance, *names), random.Random(seed), Statistics()
    while seen.steps < steps:
        with World(instance, names) as world:
            random_walk(semantics, world, rng, LENGTH, seen)
    return seen


@pytest.mark.parametrize("case", cases.CASES)
def test_reference_does_what_the_model_does(case: str) -> None:
    seen = walk(cases.CASES[case](), STEPS, seed=len(case))
    assert seen.steps >= STEPS
    assert len(seen.actions) > 8  # the walk gets somewhere


@pytest.mark.parametrize("name", sorted(variants()))
def test_reference_has_each_variant_of_the_model(name: str) -> None:
    assert name in cases.VARIANTS, "a new variant needs an instance to walk on"
    assert walk(cases.VARIANTS[name](), STEPS // 2, 7, name).steps >= STEPS // 2


def test_reference_has_no_variant_that_the_model_lacks() -> None:
    assert set(reference_variants.REGISTRY) == set(variants())


def test_all_repairs_together() -> None:
    repairs = [v.name for v in variants().values() if v.kind.value == "repair"]
    assert walk(cases.everybody(), STEPS // 2, 3, *repairs).steps >= STEPS // 2


def renamed(value: Any, names: dict[str, str]) -> Any:
    """Plain data with UIDs replaced by names that do not depend on how they are written."""
    if isinstance(value, dict):
        return {key: names.setdefault(item, f"{len(names)}") if key == "uid" else renamed(item, names) for key, item in value.items()}
    return [renamed(item, names) for item in value] if isinstance(value, list) else value


def seen_by_invariants(semantics: Semantics, instance: Instance, state: State) -> Any:
    return renamed(dump(ModelWorld(Sources.of(instance), semantics.view(state))), {})


@pytest.mark.parametrize("case", ["two_pods", "everybody", "one_node"])
def test_invariants_see_the_same_world(case: str) -> None:
    instance = cases.CASES[case]()
    semantics, rng, seen = cases.semantics_of(instance), random.Random(5), Statistics()
    state = semantics.initial_states()[0]
    with World(instance) as world:
        for _ in range(STEPS):
            found = world.snapshot()
            assert problems(found, WORLD) == []
            assert renamed(found, {}) == seen_by_invariants(semantics, instance, state)
            move = random_move(semantics, state, rng, seen)
            if move is None:
                break
            mirror(semantics, world, move)
            seen.count(move)
            state = move.after


def accept_equal(self: AssumeCache, obj: Object) -> bool:
    """An event of the version that was assumed counts."""
    old = self.entries.get(name_of(obj))
    self.entries[name_of(obj)] = Entry(obj, obj)
    self._emit(old.latest if old else None, obj)
    return True


def release_all(self: InFlight, uid: str, force: bool = False) -> bool:
    """Nobody counts the sharers."""
    return self.entries.pop(uid, None) is not None


def never(*_: Any) -> bool:
    return False


def no_problem(*_: Any) -> str:
    return ""


# a guard of the reference taken away, and an instance in which walks must notice
SABOTAGE: dict[str, tuple[type, str, Callable[..., Any], Callable[[], Instance]]] = {
    "assume cache takes equal versions": (AssumeCache, "deliver", accept_equal, cases.two_pods),
    "revision is not checked": (Scheduler, "moved_on", never, cases.racing),
    "Unreserve restores nothing": (
        Scheduler,
        "restore",
        reference_variants.SCHEDULER["unreserve-no-restore"]["Scheduler"]["restore"],
        cases.opposite,
    ),
    "a conflict is not tried again": (Scheduler, "tries_again", never, cases.shared),
    "finished pods keep claims": (ClaimController, "pod_done", never, cases.controlled),
    "anybody may join an entry": (Kubelet, "refusal", no_problem, cases.joined),
    "no checkpoint before the call": (
        Kubelet,
        "checkpoint",
        reference_variants.NODE["kubelet-late-checkpoint"]["Kubelet"]["checkpoint"],
        cases.one_node,
    ),
    "no overlap check": (Plugin, "overlaps", never, cases.reused_device),
    "record survives a reboot": (Plugin, "kept", lambda self, claims, boot: claims, cases.rebooted),
}


@pytest.mark.parametrize("guard", SABOTAGE)
def test_walks_notice_a_missing_guard(guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, method, fn, make = SABOTAGE[guard]
    monkeypatch.setattr(owner, method, fn)
    with pytest.raises(Divergence):
        walk(make(), 4000, 11)


def test_a_move_that_is_not_enabled_is_a_divergence_that_says_what_is() -> None:
    with World(cases.one_pod()) as world, pytest.raises(Divergence, match=r"not enabled.*resolve_claim"):
        world.step("scheduler.bind", {"scheduler": "scheduler", "pod": "p1"}, "ok")


def test_another_outcome_is_a_divergence() -> None:
    with World(cases.one_pod()) as world, pytest.raises(Divergence, match="expected unschedulable, observed ok"):
        world.step("scheduler.resolve_claim", {"scheduler": "scheduler", "pod": "p1", "index": 0}, "unschedulable")


def test_a_wrong_slot_is_named() -> None:
    instance = cases.one_pod()
    semantics = cases.semantics_of(instance)
    state = semantics.initial_states()[0]
    with World(instance) as world:
        world.api.touch("ResourceClaim", "c1")
        lines = differences(semantics.model.slots, state, cowalk.concrete_state(semantics, world))
    assert any(line.startswith("watch/scheduler/claim/c1: ") for line in lines)


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(reference_variants.UnknownVariant, match="no-such"):
        World(cases.one_pod(), ["no-such"])
