"""Injected choices: model and reference go together on every feasible allocation, and the reference refuses one that is none."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from dra_spec.allocation.errors import DoesNotFit
from dra_spec.allocation.injected import parse
from dra_spec.explorer.model import Model
from dra_spec.explorer.semantics import Move, Semantics
from dra_spec.protocol.assembly import assemble
from dra_spec.protocol.instance import Instance
from dra_spec.reference.errors import Divergence
from dra_spec.reference.world import World
from dra_spec.scenario.build import build
from dra_spec.scenario.choices import EveryAllocation
from dra_spec.scenario.content import shipped
from dra_spec.scenario.modelfile import LimitSpec, Overrides, read
from dra_spec.scenario.run import NOT_KEPT, run
from dra_spec.scenario.scenario import Report, Scenario
from dra_spec.scenario.targets import scenarios
from dra_spec.traces.choices import about_upstream, departures
from dra_spec.traces.counterexample import Counterexample, counterexamples, weighed
from dra_spec.traces.cowalk import Statistics, compare, mirror, parameters, random_walk
from dra_spec.traces.lockstep import DISTURBED, Lockstep
from dra_spec.traces.story import text

ON_NODE = """\
schema: dra-spec/model/v1
name: any-on-node
manifests: [{manifests}/one-node-two-devices.yaml, {manifests}/two-and-one.yaml]
writers: [kubelet, plugin, workload]
environment: {{finish-pod: -1}}
allocation: any
"""
BUDGETS = {"api-refused": 3, "finish-pod": -1, "touch-claim": 1}


def one(name: str, **options: object) -> Scenario:
    (found,) = scenarios((name,), Overrides(**options))  # type: ignore[arg-type]
    return found


def on_node() -> Scenario:
    from dra_spec.content import directory

    return build(read(ON_NODE.format(manifests=directory("models") / "manifests"), Path("m.yaml")))


def fails(claims: tuple[str, ...], node: str, in_use: frozenset[str]) -> tuple[()]:
    raise DoesNotFit("upstream's search misses it")


def without_upstream(scenario: Scenario) -> Instance:
    """The same cluster with an allocator that finds nothing, though there are allocations."""
    choices = scenario.instance.any_allocation
    assert isinstance(choices, EveryAllocation)
    return attrs.evolve(scenario.instance, allocate=fails, any_allocation=attrs.evolve(choices, allocate=fails))


def semantics_of(instance: Instance) -> Semantics:
    parts = assemble(instance, [])
    return Semantics(Model("small", parts.slots, parts.actions))


def chosen(seen: Statistics) -> set[tuple[str, bool]]:
    """The actions that chose an allocation, and whether it was another than upstream's."""
    made = [(action, parse(label)) for action, label in seen.taken]
    return {(action, bool(choice.instead)) for action, choice in made if choice is not None}


@pytest.mark.parametrize(
    ("make", "action"),
    [
        (lambda: one("device-order", budgets=BUDGETS, bounds={"lag": 6}), "scheduler.filter"),
        (lambda: one("half-allocated", allocation="any", bounds={"lag": 6}), "scheduler.filter"),
        (on_node, "scheduler.place"),
    ],
)
def test_model_and_reference_walk_together_with_any_allocation(make: Callable[[], Scenario], action: str) -> None:
    scenario, seen = make(), Statistics()
    semantics = Semantics(scenario.model)
    for seed in range(6):
        with World(scenario.instance, scenario.variants) as world:
            random_walk(semantics, world, random.Random(seed), 40, seen)
    assert chosen(seen) == {(action, False), (action, True)}


@pytest.mark.parametrize(("make", "action"), [(lambda: one("device-order"), "scheduler.filter"), (on_node, "scheduler.place")])
def test_they_walk_together_where_upstream_misses_every_allocation(make: Callable[[], Scenario], action: str) -> None:
    instance, seen = without_upstream(make()), Statistics()
    semantics = semantics_of(instance)
    for seed in range(6):
        with World(instance) as world:
            random_walk(semantics, world, random.Random(seed), 40, seen)
    assert chosen(seen) == {(action, True)}
    assert ((action, "no-fit") in seen.taken) == (action == "scheduler.filter")


@pytest.mark.parametrize("make", [lambda: one("device-order", budgets=BUDGETS, bounds={"lag": 6}, repaired=True), on_node])
def test_the_model_allows_what_the_reference_does_with_any_allocation(make: Callable[[], Scenario]) -> None:
    scenario, made, rng = make(), [], random.Random(1)
    for walk in range(4):
        with Lockstep(scenario) as lockstep:
            for _ in range(40):
                choices = lockstep.choices()
                if not choices:
                    break
                move = lockstep.pick(choices, rng.randrange(DISTURBED * DISTURBED))
                allocations = [found for found in map(parse, lockstep.faults(move)) if found is not None]
                wanted = [found for found in allocations if bool(found.instead) == bool(walk % 2)] or allocations
                made.append(parse(lockstep.step(move, str(rng.choice(wanted)) if wanted else "")))
    assert {bool(choice.instead) for choice in made if choice is not None} == {False, True}


@functools.cache
def checked(name: str) -> tuple[Report, list[Counterexample]]:
    """The search with any allocation, and its counterexamples."""
    report = run(one(name, allocation="any"))
    return report, counterexamples(report)


@pytest.mark.parametrize("name", ["h1", "device-order", "kubelet-restart", "lost-answer", "two-schedulers"])
def test_every_counterexample_that_is_found_replays(name: str) -> None:
    report, found = checked(name)
    assert found
    assert [example.verdict for example in found] == ["confirmed"] * len(found)
    assert weighed(report, found).verdict == "violated"


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(shipped("models")))
def test_every_counterexample_of_the_shipped_models_replays(name: str) -> None:
    report = run(one(name, allocation="any", limits=LimitSpec(max_states=1_500_000)))
    assert {example.verdict for example in counterexamples(report)} <= {"confirmed"}
    assert report.verdict in ("violated" if one(name).expected == "violated" else "holds", "undecided")


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    sorted(shipped("models").keys() - {"two-schedulers", "three-nodes", "three-pods-two-nodes"}),  # a window left open; two too large
)
def test_with_all_repairs_no_choice_breaks_a_promise(name: str) -> None:
    report = run(one(name, allocation="any", repaired=True, limits=LimitSpec(max_states=3_000_000)))
    assert report.result.complete
    assert {p.verdict for p in report.result.properties if p.reason != NOT_KEPT} <= {"holds"}


# --- a choice that is none -------------------------------------------------------------------------------------------------------------


def at_filter(scenario: Scenario, world: World, pod: str) -> Move:
    """Brings the world to F1 of a pod, whatever else was done before; the model's move there."""
    semantics = Semantics(scenario.model)
    state = semantics.initial_states()[0]
    for _ in range(60):
        moves = [m for m in semantics.moves(state) if m.beyond is None and m.action.params.get("pod") == pod and m.label != "refused"]
        ready = [m for m in moves if m.action.name == "scheduler.filter"]
        if ready:
            compare(semantics, world, state, "before F1")
            return ready[0]
        mirror(semantics, world, moves[0])
        state = moves[0].after
    raise AssertionError("F1 is not reached")


D = "accel.example.org/n1"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (f"n1 c1:device={D}/d7 c2:port=fabric.example.org/n1/port", "inventory: c1, request device, device .*d7: node n1 has no such"),
        (f"n1 c1:gpu={D}/d1 c2:port=fabric.example.org/n1/port", "request: c1, request gpu, device .* is not a request"),
        (f"n1 c1:device={D}/d1 c2:port={D}/d2", "selector: c2"),
        (f"n1 c1:device={D}/d1+{D}/d2 c2:port=fabric.example.org/n1/port", "count: c1, request device: 2 devices, expected 1"),
        ("n1 c1:none c2:port=fabric.example.org/n1/port", "count: c1"),
        (f"n1 c1:device={D}/d1", "the claims to be allocated are c1, c2"),
    ],
)  # fmt: skip
def test_the_reference_refuses_what_its_validator_does_not_accept(asked: str, reason: str) -> None:
    scenario = one("device-order")
    with World(scenario.instance) as world:
        move = at_filter(scenario, world, "p1")
        with pytest.raises(Divergence, match=reason) as refused:
            world.step(move.action.name, parameters(move), asked)
    assert refused.value.observed == "its refusal"


def test_the_reference_refuses_a_device_in_use() -> None:
    scenario = one("device-order")
    with World(scenario.instance) as world:
        move = at_filter(scenario, world, "p2")
        (scheduler,) = world.schedulers.values()
        assert scheduler.cycle is not None
        assert scheduler.cycle.in_use == set()
        scheduler.cycle.in_use.add(f"{D}/d2")
        with pytest.raises(Divergence, match="another claim"):
            world.step(move.action.name, parameters(move), f"n1 c3:device={D}/d2")


def test_without_any_allocation_the_reference_takes_no_choice() -> None:
    scenario = one("device-order", allocation="upstream")
    with World(scenario.instance) as world:
        move = at_filter(scenario, world, "p1")
        with pytest.raises(Divergence, match="observed ok"):
            world.step(move.action.name, parameters(move), f"n1 c1:device={D}/d2 c2:port=fabric.example.org/n1/port")


# --- what is said ----------------------------------------------------------------------------------------------------------------------


def test_a_trace_says_where_it_leaves_upstreams_choices() -> None:
    (example,) = checked("device-order")[1]
    (where,) = departures(example.trace)
    step = example.trace.steps[where.step - 1]
    assert (step.step, step.params["pod"]) == ("F1", "p1")
    assert where.chosen == f"n1 c1:device={D}/d2 c2:port=fabric.example.org/n1/port"
    assert where.upstream == f"n1 c1:device={D}/d1 c2:port=fabric.example.org/n1/port"
    assert f"at step {where.step} upstream's allocator would have answered {where.upstream}" in about_upstream(example.trace)
    assert f"upstream's allocator would have answered otherwise: {where.upstream}\n" in text(example.trace)
    (same,) = checked("h1")[1]
    assert not list(departures(same.trace))
    assert about_upstream(same.trace) == "upstream's allocator makes the same choices in this run"
