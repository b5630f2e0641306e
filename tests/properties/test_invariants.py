"""Each shipped invariant on small worlds: where it holds, where it does not apply, where it is broken, and what is said then."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dra_spec.explorer.model import Truth
from dra_spec.properties.invariant import Invariant, Promise, find, load_all
from dra_spec.properties.judge import judge, why
from dra_spec.properties.world import PlainWorld, problems

World = dict[str, Any]
D0, D1 = "gpu.example.com/n1/g0", "gpu.example.com/n1/g1"


def claim(name: str = "c1", devices: tuple[str, ...] = (D0,), **changes: Any) -> World:
    found: World = {
        "name": name,
        "uid": f"uid-{name}",
        "deleting": False,
        "finalizer": True,
        "allocated": bool(devices),
        "devices": list(devices),
        "results": [
            {
                "request": "r",
                "device": d,
                "driver": d.partition("/")[0],
                "admin": False,
                "bindingConditions": [],
                "bindingFailureConditions": [],
            }
            for d in devices
        ],
        "nodes": ["n1"] if devices else None,
        "reservedFor": ["p1"] if devices else [],
        "conditions": [],
        "owner": "",
    }
    return {**found, **changes}


def pod(name: str = "p1", **changes: Any) -> World:
    return {"name": name, "deleting": False, "node": "n1", "phase": "Running", "claims": ["c1"], "running": True, **changes}


def entry(name: str = "c1", devices: tuple[str, ...] = (D0,), **changes: Any) -> World:
    return {"claim": name, "uid": f"uid-{name}", "devices": list(devices), **changes}


def cached(name: str = "c1", **changes: Any) -> World:
    return entry(name, pods=["p1"], **{"prepared": True, "unpreparing": False, **changes})


def plugin(**changes: Any) -> World:
    found: World = {
        "driver": "gpu.example.com",
        "running": True,
        "inventory": [D0],
        "checkpoint": [entry(state="Completed")],
        "cdi": ["c1"],
        "prepared": [entry()],
    }
    return {**found, **changes}


def node(**changes: Any) -> World:
    found: World = {
        "name": "n1",
        "kubelet": {"running": True, "cache": [cached()], "checkpoint": [entry(pods=["p1"])]},
        "plugins": [plugin()],
        "containers": [{"pod": "p1", "claims": ["c1"], "devices": [D0]}],
    }
    return {**found, **changes}


def scheduler(**changes: Any) -> World:
    return {"name": "scheduler", "running": True, "inFlight": [], "allocated": [D0], **changes}


def world(**changes: Any) -> World:
    """One pod that runs with one claim on one node."""
    found: World = {"claims": [claim()], "pods": [pod()], "nodes": [node()], "schedulers": [scheduler()]}
    found.update(changes)
    assert problems(found) == []
    return found


EMPTY = world(claims=[], pods=[], nodes=[], schedulers=[])

# name -> (a world that breaks it, what must be said)
BROKEN: dict[str, tuple[World, list[str]]] = {
    "no-double-allocation": (
        world(claims=[claim("c1"), claim("c2", (D1, D0))]),
        ["for a = claim c1:", "for b = claim c2:", f'for d = "{D0}":', "d in b.devices is true", f'b.devices = ["{D1}", "{D0}"]'],
    ),
    "reserved-implies-allocated": (
        world(claims=[claim(devices=(), reservedFor=["p1", "p2"])]),
        ["for c = claim c1:", "c.reservedFor.size() == 0 is false (c.reservedFor.size() = 2)", "c.allocated is false"],
    ),
    "finalizer-while-allocated": (world(claims=[claim(finalizer=False)]), ["for c = claim c1:", "c.finalizer is false"]),
    "no-unprepare-while-shared": (
        world(nodes=[node(plugins=[plugin(prepared=[])])]),
        ["for k = containers of a pod p1:", f'for d = "{D0}":', "is false (n.plugins = plugin gpu.example.com; k.claims"],
    ),
    "checkpoint-covers-prepared": (
        world(nodes=[node(kubelet={"running": True, "cache": [cached()], "checkpoint": []})]),
        ["for n = node n1:", "for e = prepared claim c1:", "n.kubelet.checkpoint is empty"],
    ),
    "prepared-device-exclusive": (
        world(nodes=[node(plugins=[plugin(prepared=[entry("c1"), entry("c2")])])]),
        ["for a = prepared claim c1:", "for b = prepared claim c2:", "d in b.devices is true"],
    ),
    "cdi-matches-allocation": (
        world(nodes=[node(plugins=[plugin(cdi=[])])]),
        ["for e = kubelet cache entry c1:", "e.claim in l.cdi is false", 'e.claim = "c1", l.cdi = []'],
    ),
    "container-start-needs-prepared": (
        world(nodes=[node(kubelet={"running": True, "cache": [], "checkpoint": []})]),
        ["for k = containers of a pod p1:", 'for c = "c1":', "n.kubelet.checkpoint is empty"],
    ),
    "bound-implies-reserved": (
        world(claims=[claim(reservedFor=["p2"])]),
        ["for p = pod p1:", 'p.node == "" is false (p.node = "n1")', 'for n = "c1":', "claims = claim c1"],
    ),
    "node-consistent": (
        world(claims=[claim(nodes=["n2"])]),
        ["for p = pod p1:", "p.node in c.nodes is false", 'p.node = "n1", c.nodes = ["n2"]'],
    ),
}


def shipped(*kinds: Promise) -> list[str]:
    return [name for name, invariant in load_all().items() if invariant.kind in kinds]


@pytest.mark.parametrize("name", shipped(Promise.STATE))
def test_a_state_invariant_holds_on_the_good_world_says_nothing_of_an_empty_one_and_breaks(name: str) -> None:
    invariant = find(name)
    pair = world(
        claims=[claim("c1"), claim("c2", (D1,))],
        nodes=[
            node(
                plugins=[
                    plugin(
                        prepared=[entry("c1"), entry("c2", (D1,))],
                        checkpoint=[entry("c1", state="Completed"), entry("c2", (D1,), state="Started")],
                    )
                ],
                kubelet={"running": True, "cache": [cached()], "checkpoint": [entry(pods=["p1"]), entry("c2", (D1,), pods=["p2"])]},
            )
        ],
    )
    assert judge(invariant, pair).truth is Truth.TRUE
    assert judge(invariant, EMPTY).truth is Truth.TRIVIAL
    broken, said = BROKEN[name]
    found = judge(invariant, broken)
    assert found.violated
    assert found.explanation.startswith(f"{name} does not hold: {invariant.statement}")
    for line in said:
        assert line in found.explanation, found.explanation


def step(action: str = "scheduler.deallocate_unavailable", **changes: Any) -> World:
    return {"writer": action.partition(".")[0], "action": action, "step": "", "outcome": "ok", "params": {}, **changes}


def conditional(*ready: str) -> World:
    """A claim whose device must be attached; for these devices somebody says that it is."""
    found = claim(conditions=[{"device": device, "type": "Attached"} for device in ready])
    found["results"][0]["bindingConditions"] = ["Attached"]
    return found


WAITING = pod(node="", running=False, phase="Pending")
SET_UP = step("plugin.set_up", params={"node": "n1", "driver": "gpu.example.com", "pod": "p1", "index": "0"})
RESERVE = step("claim-controller.reserve_for_pod", params={"pod": "p1"})
PREPARE = step("kubelet.prepare_send", params={"node": "n1", "pod": "p1"})
STEPS: dict[str, list[tuple[str, World, World, World, Truth, list[str]]]] = {
    "allocated-while-reserved": [
        ("still there", world(), world(), step(), Truth.TRUE, []),
        ("nobody uses it", world(claims=[claim(reservedFor=[])]), world(claims=[claim(devices=())]), step(), Truth.TRIVIAL, []),
        (
            "its only consumer gives up",
            world(pods=[pod(node="", running=False, phase="Pending")]),
            world(pods=[pod(node="", running=False, phase="Pending")], claims=[claim(devices=())]),
            step(),
            Truth.TRIVIAL,
            [],
        ),
        (
            "under a pod with a node",
            world(),
            world(claims=[claim(devices=())]),
            step(),
            Truth.FALSE,
            [
                "for c = claim c1:",
                "for p = pod p1:",
                'p.name in c.old.reservedFor is true (p.name = "p1", c.old.reservedFor = ["p1"])',
                "c.allocated is false",
            ],
        ),
        (
            "under another consumer that waits",
            world(claims=[claim(reservedFor=["p1", "p2"])], pods=[pod("p1", node=""), pod("p2", node="")]),
            world(claims=[claim(devices=())], pods=[pod("p1", node=""), pod("p2", node="")]),
            step(),
            Truth.FALSE,
            ["for p = pod p2:"],
        ),
        ("the claim is new", world(claims=[]), world(claims=[claim(devices=())]), step(), Truth.TRIVIAL, []),
    ],
    "prepare-only-when-reserved": [
        ("reserved", world(), world(), PREPARE, Truth.TRUE, []),
        (
            "for another pod, which holds nothing",
            world(claims=[]),
            world(claims=[]),
            step("kubelet.prepare_send", params={"node": "n1", "pod": "p2"}),
            Truth.TRIVIAL,
            [],
        ),
        (
            "not reserved",
            world(),
            world(claims=[claim(reservedFor=["p2"])]),
            PREPARE,
            Truth.FALSE,
            ["for e = kubelet cache entry c1:", 'step.params.pod = "p1"', "(claims = claim c1; e.claim"],
        ),
        ("reserved, but another claim of that name", world(), world(claims=[claim(uid="uid-new")]), PREPARE, Truth.FALSE, []),
    ],
    "bound-when-ready": [
        ("no conditions", world(pods=[WAITING]), world(), step("scheduler.bind"), Truth.TRIVIAL, []),
        ("ready", world(pods=[WAITING]), world(claims=[conditional(D0)]), step("scheduler.bind"), Truth.TRUE, []),
        ("bound before", world(), world(claims=[conditional()]), step("scheduler.bind"), Truth.TRIVIAL, []),
        (
            "not ready",
            world(pods=[WAITING]),
            world(claims=[conditional(D1)]),
            step("scheduler.bind"),
            Truth.FALSE,
            [
                "for p = pod p1:",
                "for c = claim c1:",
                "for r = allocation result r:",
                'for t = "Attached":',
                f'r.device = "{D0}", t = "Attached"',
            ],
        ),
    ],
    "shared-claim-unreserve-safe": [
        ("nothing", world(), world(), step("scheduler.give_back_reservation"), Truth.TRUE, []),
        (
            "two at once",
            world(claims=[claim(reservedFor=["p1", "p2"])], pods=[pod("p1", node=""), pod("p2", node="")]),
            world(claims=[claim(reservedFor=[])], pods=[pod("p1", node=""), pod("p2", node="")]),
            step("scheduler.give_back_reservation"),
            Truth.FALSE,
            ["<= 1 is false"],
        ),
        (
            "of a pod with a node",
            world(claims=[claim(reservedFor=["p1", "p2"])], pods=[pod("p1"), pod("p2")]),
            world(claims=[claim(reservedFor=["p1"])], pods=[pod("p1"), pod("p2")]),
            step("scheduler.give_back_reservation"),
            Truth.FALSE,
            ["for p = pod p2:", "p.name in c.reservedFor is false"],
        ),
    ],
    "prepare-only-existing-device": [
        ("there", world(nodes=[node(plugins=[plugin(prepared=[])])]), world(), SET_UP, Truth.TRUE, []),
        ("set up before, and gone since", world(), world(nodes=[node(plugins=[plugin(inventory=[])])]), SET_UP, Truth.TRIVIAL, []),
        (
            "gone",
            world(nodes=[node(plugins=[plugin(prepared=[])])]),
            world(nodes=[node(plugins=[plugin(inventory=[D1])])]),
            SET_UP,
            Truth.FALSE,
            ["for e = prepared claim c1:", f'd in p.inventory is false (d = "{D0}", p.inventory = ["{D1}"])'],
        ),
        (
            "another driver's step",
            world(nodes=[node(plugins=[plugin(prepared=[])])]),
            world(nodes=[node(plugins=[plugin(inventory=[])])]),
            step("plugin.set_up", params={"node": "n1", "driver": "nic.example.com", "pod": "p1", "index": "0"}),
            Truth.TRIVIAL,
            [],
        ),
    ],
    "finished-pods-stay-released": [
        ("runs", world(), world(), RESERVE, Truth.TRUE, []),
        (
            "finished",
            world(pods=[pod(phase="Succeeded")]),
            world(pods=[pod(phase="Succeeded")]),
            RESERVE,
            Truth.FALSE,
            ["for p = pod p1:", 'p.old.phase = "Succeeded"'],
        ),
        (
            "finished, but the write was refused",
            world(pods=[pod(phase="Succeeded")]),
            world(pods=[pod(phase="Succeeded")]),
            {**RESERVE, "outcome": "conflict"},
            Truth.TRIVIAL,
            [],
        ),
    ],
}


@pytest.mark.parametrize("name", shipped(Promise.STEP))
def test_a_step_invariant(name: str) -> None:
    truths = set()
    for case, before, after, taken, truth, said in STEPS[name]:
        found = judge(find(name), after, before, taken)
        assert found.truth is truth, (case, found)
        truths.add(truth)
        for line in said:
            assert line in found.explanation, (case, found.explanation)
    assert {Truth.FALSE, Truth.TRUE} <= truths


def test_a_step_of_another_writer_is_not_judged() -> None:
    before, after = world(claims=[claim(reservedFor=["p1", "p2"])]), world(claims=[claim(reservedFor=[])])
    found = judge(find("shared-claim-unreserve-safe"), after, before, step("claim-controller.release_consumers"))
    assert found.truth is None
    assert "not about claim-controller.release_consumers" in found.explanation


# name -> (a world where the goal is reached, one where it is not, what must be said)
GOALS: dict[str, tuple[World, World, list[str]]] = {
    "in-flight-cleared": (
        world(),
        world(schedulers=[scheduler(inFlight=[{"claim": "c1", "devices": [D0], "sharers": 1}])]),
        ["for s = scheduler scheduler:", "for f = in-flight allocation c1:", "f.sharers > 0 is true"],
    ),
    "unreserve-deadlock-freedom": (
        world(pods=[pod("p1"), {**WAITING, "name": "p2"}]),
        world(pods=[WAITING, {**WAITING, "name": "p2"}]),
        ["for a = pod p1:", "for b = pod p2:", 'b.node != "" is false (b.node = "")'],
    ),
    "pod-eventually-scheduled": (world(), world(pods=[WAITING]), ["for p = pod p1:", 'p.node != "" is false']),
    "pod-eventually-runs": (world(), world(pods=[pod(running=False)]), ["p.running is false"]),
    "claim-deletion-completes": (
        world(claims=[claim(deleting=True)]),
        world(claims=[claim(deleting=True, reservedFor=[])]),
        ["for c = claim c1:", "c.deleting is true"],
    ),
    "no-orphan-allocation": (world(), world(claims=[claim(reservedFor=["p2"])]), ["c.allocated is true", "pods = pod p1"]),
    "no-orphan-prepared": (world(), world(pods=[]), ["for e = prepared claim c1:", "pods is empty"]),
    "prepared-leads-to-unprepared": (world(), world(pods=[]), ["for e = prepared claim c1:", "pods is empty"]),
    "unused-leads-to-deallocated": (
        world(claims=[claim(allocated=False, devices=[], results=[], reservedFor=[])]),
        world(),
        ["for c = claim c1:", "c.allocated is true"],
    ),
    "pod-deletion-completes": (world(), world(pods=[pod(deleting=True)]), ["for p = pod p1:", "p.deleting is true"]),
    "no-dead-end": (world(), world(pods=[pod(running=False)]), ["p.running is false"]),
}


@pytest.mark.parametrize("name", shipped(Promise.ALWAYS_POSSIBLE, Promise.DEADLOCK_FREE, Promise.LEADS_TO))
def test_a_goal(name: str) -> None:
    invariant = find(name)
    reached, missed, said = GOALS[name]
    assert invariant.program.evaluate(PlainWorld(reached)) is True
    assert invariant.program.evaluate(PlainWorld(missed)) is False
    for line in said:
        assert line in why(invariant, PlainWorld(missed))
    assert judge(invariant, missed).truth is None  # one world does not decide what is possible


def test_every_invariant_has_its_worlds() -> None:
    assert set(BROKEN) | set(STEPS) | set(GOALS) == set(load_all())


@pytest.mark.parametrize("name", shipped(Promise.STATE))
def test_a_dump_without_a_section_is_not_applicable(name: str) -> None:
    api_only = {key: value for key, value in world().items() if key in ("claims", "pods")}
    invariant = find(name)
    found = judge(invariant, api_only)
    if "nodes.all" in invariant.program.text:
        assert found.truth is None
        assert found.explanation == "the world has no nodes"
    else:
        assert found.truth is not None


def test_a_field_that_a_dump_lacks_is_named() -> None:
    partial = copy.deepcopy(world())
    del partial["nodes"][0]["kubelet"]
    found = judge(find("checkpoint-covers-prepared"), partial)
    assert found.truth is None
    assert found.explanation == "the world has no nodes.kubelet"


def test_why_of_one_object() -> None:
    invariant = find("pod-eventually-scheduled")
    both = PlainWorld(world(pods=[WAITING, {**WAITING, "name": "p2"}]))
    assert "pod p1" not in why(invariant, both, {"p": "p2"})
    assert "pod p2" in why(invariant, both, {"p": "p2"})


def test_long_lists_are_cut() -> None:
    many = world(claims=[claim(f"c{i}", finalizer=False) for i in range(9)])
    text = judge(Invariant.adhoc("claims.all(c, c.finalizer)"), many).explanation
    assert "for c = claim c3:" in text
    assert "c4" not in text
    assert "and for 5 more" in text
