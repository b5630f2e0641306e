"""The questions that the solver answers beside feasibility: the best node, several pods, more nodes; and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from allocation_build import CLASS, DRIVER, claim, device, exact, node, slice_of

from dra_spec.allocation import FatalAllocation, UnsupportedFeature
from dra_spec.allocation import z3_solve as solve
from dra_spec.allocation.validator import Broken, broken_rules
from dra_spec.allocation.whatif import Template, nodes_needed, template_of
from dra_spec.allocation.z3_place import place
from dra_spec.allocation.z3_problem import Call, Holding, Problem, WantedClaim
from dra_spec.resources import ClaimSpec, Constraint, DeviceRequest, ManifestError, ResourceSlice, SubRequest, load_text


def local(name: str, devices: Sequence[object]) -> ResourceSlice:
    return slice_of(devices, name=f"s-{name}", pool=name, node_name=name)  # type: ignore[arg-type]


def pods(slices: Sequence[ResourceSlice], specs: Sequence[ClaimSpec], nodes: Sequence[str], holdings: Sequence[Holding] = ()) -> Problem:
    calls = tuple(Call(f"pod {i}", (WantedClaim(f"claim {i}", s),), tuple(nodes)) for i, s in enumerate(specs))
    return Problem({"c": CLASS}, tuple(slices), {n: node(n) for n in nodes}, calls, tuple(holdings))


def test_pods_are_placed_together() -> None:
    """One after the other the first pod would take the only device that the second one can use."""
    slices = [local("n", [device("a", attributes={"x": 1}), device("b", attributes={"x": 2})])]
    picky = claim(exact(1, f"device.attributes['{DRIVER}'].x == 1"))
    found = solve.one(pods(slices, [claim(exact()), picky], ["n"]))
    assert found is not None
    assert [p.device for p in found.picks] == [f"{DRIVER}/n/b", f"{DRIVER}/n/a"]
    assert solve.one(pods(slices, [picky, picky], ["n"])) is None


def test_each_pod_has_its_node() -> None:
    slices = [local("n", ["a", "b"]), local("m", ["c"])]
    found = solve.one(pods(slices, [claim(exact()), claim(exact(2))], ["n", "m"]))
    assert found is not None
    assert found.nodes == ("m", "n")
    assert solve.one(pods(slices, [claim(exact(2)), claim(exact(2))], ["n", "m"])) is None
    # all devices of the pod's own node
    everything = solve.one(pods(slices, [claim(exact(0)), claim(exact(0))], ["n", "m"]))
    assert everything is not None
    assert len(everything.picks) == 3


def test_many_pods_and_few_devices_are_told_at_once() -> None:
    slices = [local(f"n{i}", [f"d{j}" for j in range(8)]) for i in range(6)]
    assert solve.one(pods(slices, [claim(exact())] * 49, [f"n{i}" for i in range(6)])) is None


def test_equal_devices_are_counted_not_tried() -> None:
    devices = [device(f"d{i}", attributes={"numa": i % 4, "serial": i}) for i in range(128)]
    match = Constraint(match_attribute=f"{DRIVER}/numa")
    assert solve.one(Problem.of([CLASS], [slice_of(devices)], node(), [claim(*[exact(4)] * 8, constraints=(match,))])) is not None
    claims = [claim(exact(16, f"device.attributes['{DRIVER}'].numa == 0"))] * 3
    assert solve.one(Problem.of([CLASS], [slice_of(devices)], node(), claims)) is None


def test_the_best_node_satisfies_the_first_alternative() -> None:
    slices = [local("n", [device("a", attributes={"x": 2})]), local("m", [device("b", attributes={"x": 1})]), local("o", [])]
    selectors = [exact(1, f"device.attributes['{DRIVER}'].x == {x}").selectors for x in (1, 2)]
    wish = DeviceRequest(
        name="r", first_available=tuple(SubRequest(name=f"s{i}", device_class_name="c", selectors=s) for i, s in enumerate(selectors))
    )
    problem = pods(slices, [claim(wish)], ["n", "m", "o"])
    found = solve.best(problem, ["o", "n", "m"])
    assert found is not None
    assert (found.node, found.score) == ("m", 8)
    only = solve.best(problem, ["o", "n"])
    assert only is not None
    assert (only.node, only.score) == ("n", 7)
    assert solve.best(problem, ["o"]) is None


def test_the_limit_of_results() -> None:
    slices = [slice_of([f"d{i}" for i in range(40)])]
    assert solve.one(Problem.of([CLASS], slices, node(), [claim(exact(16), exact(16))])) is not None
    assert solve.one(Problem.of([CLASS], slices, node(), [claim(exact(0))])) is None
    with pytest.raises(FatalAllocation, match="at least 33 devices"):
        solve.one(Problem.of([CLASS], slices, node(), [claim(exact(16), exact(17))]))


def test_a_solution_that_the_validator_refuses_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "broken_rules", lambda problem, solution: (Broken("once", "twice"),))
    with pytest.raises(solve.Doubt, match="once: twice"):
        solve.one(Problem.of([CLASS], [slice_of(["a"])], node(), [claim(exact())]))


def test_what_is_not_encoded_is_said() -> None:
    skips = slice_of(["a"], skip_node_operations=("*",))
    with pytest.raises(UnsupportedFeature, match="skipNodeOperations"):
        solve.one(Problem.of([CLASS], [skips], node(), [claim(exact())]))


BIG = Template(node("big"), (local("big", ["x", "y"]),))


@pytest.mark.parametrize(("number", "needed"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (7, 3)])
def test_how_many_nodes_more(number: int, needed: int) -> None:
    found = nodes_needed(pods([local("n", ["a"])], [claim(exact())] * number, ["n"]), BIG)
    assert found.needed == needed


def test_more_nodes_for_several_kinds_of_pods() -> None:
    """Three pods want one device, two want two; the node that exists has three, of which one is held."""
    slices = [local("n", ["a", "b", "c"])]
    held = [Holding(f"{DRIVER}/n/a", "other")]
    found = nodes_needed(pods(slices, [claim(exact())] * 3 + [claim(exact(2))] * 2, ["n"], held), BIG)
    assert found.needed == 3
    placed: dict[str, int] = {}
    for load in found.loads:
        for pod, n in load.pods:
            placed[pod] = placed.get(pod, 0) + n * load.number
    assert placed == {"pod 0": 3, "pod 3": 2}


def test_more_nodes_may_never_help() -> None:
    found = nodes_needed(pods([local("n", ["a"])], [claim(exact(3)), claim(exact())], ["n"]), BIG)
    assert (found.needed, found.never) == (None, ("pod 0",))
    pinned = nodes_needed(pods([local("n", ["a"])], [claim(exact())] * 2, ["n"]), BIG, {"pod 0": True, "pod 1": True})
    assert (pinned.needed, pinned.never) == (None, ("pod 0",))


def test_more_nodes_agree_with_all_nodes_together() -> None:
    """The pattern answer is the least number for which the formula over the whole cluster has a model."""
    slices = [local("n", [device("a", attributes={"x": 1}), device("b", attributes={"x": 2})])]
    match = Constraint(match_attribute=f"{DRIVER}/x")
    specs = [
        claim(exact(2), constraints=(match,)),
        claim(exact(1, f"device.attributes['{DRIVER}'].x == 1")),
        claim(exact(3)),
        claim(exact()),
    ]
    template = [device(f"t{i}", attributes={"x": i // 2}) for i in range(4)]
    found = nodes_needed(pods(slices, specs * 2, ["n"]), Template(node("t"), (local("t", template),)))
    assert found.needed is not None
    for number in (found.needed - 1, found.needed):
        new = [f"t{i}" for i in range(number)]
        whole = pods([*slices, *(local(name, template) for name in new)], specs * 2, ["n", *new])
        assert (solve.one(whole) is not None) is (number == found.needed)


def test_places_for_many_pods() -> None:
    """One after the other the single devices would break up the pairs; and full means full."""
    slices = [local(n, [device(f"d{i}", attributes={"x": i // 2}) for i in range(4)]) for n in ("a", "b", "c")]
    match = Constraint(match_attribute=f"{DRIVER}/x")
    single, pair = claim(exact()), claim(exact(2), constraints=(match,))
    for specs, fits in [([single] * 4 + [pair] * 4, True), ([single] * 5 + [pair] * 3, True), ([single] * 5 + [pair] * 4, False)]:
        problem = pods(slices, specs, ["a", "b", "c"])
        found = place(problem)
        assert (found is not None) is fits
        if found is not None:
            assert broken_rules(problem, found) == ()


def test_places_on_devices_that_nodes_share() -> None:
    slices = [slice_of(["x"], name="x", pool="x", all_nodes=True), local("a", ["y"])]
    assert place(pods(slices, [claim(exact())] * 2, ["b", "a"])) is not None
    assert place(pods(slices, [claim(exact())] * 3, ["b", "a"])) is None


def test_devices_that_nodes_share_are_not_decided() -> None:
    problem = pods([slice_of(["a"], all_nodes=True)], [claim(exact())], ["n"])
    with pytest.raises(UnsupportedFeature, match="devices that several nodes can use"):
        nodes_needed(problem, BIG)
    other = [slice_of(["a"], name=n, node_name=n, count=2) for n in ("n", "m")]
    with pytest.raises(UnsupportedFeature, match="a pool that several nodes share"):
        nodes_needed(pods(other, [claim(exact())], ["n", "m"]), BIG)


NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: %s}\n---\n"
SLICE = """apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: d.example.com
  pool: {name: p, resourceSliceCount: 1}
  %s
  devices: [{name: a}]
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            NODE % "node-n" + NODE % "node-m" + SLICE % "nodeName: node-n",
            "t.yaml:7: metadata.name: the template has 2 Node objects, expected exactly one",
        ),
        (NODE % "node-n", "the template has no ResourceSlice for node node-n"),
        (NODE % "node-n" + SLICE % "nodeName: node-m", "found node-m, expected nodeName node-n"),
        (NODE % "node-n" + SLICE % "allNodes: true", "found no nodeName, expected nodeName node-n"),
    ],
)
def test_a_bad_template(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as error:
        template_of(load_text(text, file="t.yaml"))
    assert message in str(error.value)


def test_one_call_is_needed_for_an_order() -> None:
    problem = pods([local("n", ["a"])], [claim(exact())] * 2, ["n"])
    with pytest.raises(ValueError, match="one pod on one node"):
        solve.first(problem)
    with pytest.raises(ValueError, match="one pod on one node"):
        solve.first(attrs.evolve(problem, calls=(attrs.evolve(problem.calls[0], nodes=("n", "m")),)))
