"""`allocation: any`: every feasible allocation is an outcome, upstream's always among them, and nothing is left out in silence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dra_spec.allocation.errors import DoesNotFit, FatalAllocation
from dra_spec.allocation.injected import Choice, describe, parse
from dra_spec.allocation.validator import broken_rules
from dra_spec.allocation.z3_problem import Pick, Solution
from dra_spec.allocation.z3_solve import Doubt
from dra_spec.content import directory
from dra_spec.explorer.model import ModelError
from dra_spec.explorer.result import Result
from dra_spec.explorer.semantics import Semantics
from dra_spec.protocol.choices import answers
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.objects import Allocation
from dra_spec.scenario import choices as module
from dra_spec.scenario.build import build
from dra_spec.scenario.modelfile import Overrides, read
from dra_spec.scenario.run import NOT_KEPT, run
from dra_spec.scenario.scenario import Scenario
from dra_spec.scenario.strict import InputError
from dra_spec.scenario.targets import scenarios

DRIVER = "x.org"
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
Question = tuple[Scenario, tuple[str, ...], frozenset[str]]


def one(name: str, **options: object) -> Scenario:
    (found,) = scenarios((name,), Overrides(**options))  # type: ignore[arg-type]
    return found


def small(
    devices: Sequence[dict[str, Any]],
    claims: dict[str, dict[str, Any]],
    more: str = "",
    where: dict[str, Any] | None = None,
    nodes: Sequence[str] = ("n1",),
    **options: object,
) -> Scenario:
    """A model of nodes (zone=z) with these devices on the first, or `where`, and one pod with these claims (name -> spec.devices)."""
    resource: dict[str, Any] = {"apiVersion": "resource.k8s.io/v1"}
    spec = {"driver": DRIVER, "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": list(devices)}
    spec |= {"nodeName": "n1"} if where is None else where
    objects: list[dict[str, Any]] = [
        *({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": {"zone": "z"}}} for node in nodes),
        resource | {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
        resource | {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec},
    ]
    objects += [resource | {"kind": "ResourceClaim", "metadata": {"name": n}, "spec": {"devices": d}} for n, d in claims.items()]
    entries = [{"name": f"e-{name}", "resourceClaimName": name} for name in claims]
    pod = {"containers": [{"name": "m", "image": "i", "resources": {"claims": [{"name": e["name"]} for e in entries]}}]}
    objects.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1"}, "spec": pod | {"resourceClaims": entries}})
    text = "schema: dra-spec/model/v1\nname: small\nallocation: any\nwriters: [scheduler]\n" + more
    text += yaml.safe_dump({"objects": objects}, sort_keys=False)
    return build(read(text, Path("small.yaml")), Overrides(**options))  # type: ignore[arg-type]


def exactly(count: int = 1, **more: Any) -> dict[str, Any]:
    return {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "count": count} | more}]}


def taken(allocations: Sequence[Allocation]) -> tuple[frozenset[tuple[str, str]], ...]:
    return tuple(frozenset(each.picks) for each in allocations)


def own(instance: Instance, claims: tuple[str, ...], in_use: frozenset[str] = frozenset()) -> tuple[Allocation, ...] | None:
    try:
        return instance.allocate(claims, instance.nodes[0], in_use)
    except (DoesNotFit, FatalAllocation):
        return None


# --- the set of allocations ------------------------------------------------------------------------------------------------------------


def test_all_ways_to_give_two_claims_three_devices() -> None:
    instance = small([{"name": f"d{i}"} for i in range(3)], {"a": exactly(), "b": exactly()}).instance
    found = answers(instance, ("a", "b"), "n1", frozenset())
    assert found.upstream is not None
    assert found.upstream.label == "n1 a:r=x.org/p/d0 b:r=x.org/p/d1"
    names = [[next(iter(a.devices)).removeprefix("x.org/p/") for a in other.allocations] for other in found.others]
    assert names == [["d0", "d2"], ["d1", "d0"], ["d1", "d2"], ["d2", "d0"], ["d2", "d1"]]
    assert found.others[0].label == f"n1 a:r=x.org/p/d0 b:r=x.org/p/d2 instead of {found.upstream.label}"
    assert all(a.nodes == {"n1"} for other in found.others for a in other.allocations)
    in_use = answers(instance, ("b",), "n1", frozenset({"x.org/p/d0"}))
    assert [taken(c.allocations) for c in in_use.others] == [(frozenset({("r", "x.org/p/d2")}),)]


ZONE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}]}
FIELD = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}


@pytest.mark.parametrize(
    ("where", "devices", "nodes"),
    [
        ({"allNodes": True}, [{}, {}], [None, None]),
        ({"nodeSelector": ZONE}, [{}, {}], [{"n1", "n2"}, {"n1", "n2"}]),
        ({"nodeSelector": FIELD}, [{}, {}], [{"n1"}, {"n1"}]),
        ({"perDeviceNodeSelection": True}, [{"nodeName": "n1"}, {"allNodes": True}], [{"n1"}, None]),
        ({"perDeviceNodeSelection": True}, [{"nodeSelector": ZONE}, {"nodeName": "n1"}], [{"n1", "n2"}, {"n1"}]),
        ({"allNodes": True}, [{"bindsToNode": True}, {}], [{"n1"}, None]),
    ],
)
def test_each_choice_is_usable_on_the_nodes_of_its_devices(where: dict[str, Any], devices: list[dict[str, Any]], nodes: list[Any]) -> None:
    named = [{"name": f"d{i}"} | device for i, device in enumerate(devices)]
    instance = small(named, {"a": exactly()}, where=where, nodes=("n1", "n2")).instance
    mine = own(instance, ("a",))
    assert mine is not None
    found = {a.devices: a.nodes for each in [mine, *instance.others(("a",), "n1", frozenset()).allocations] for a in each}
    assert found == {frozenset({f"x.org/p/d{i}"}): None if n is None else frozenset(n) for i, n in enumerate(nodes)}


def test_calls_are_remembered_by_claims_node_and_devices_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = small([{"name": "d0"}, {"name": "d1"}], {"a": exactly()}).instance
    asked = []
    monkeypatch.setattr(module, "every", lambda problem, limit, real=module.every: asked.append(1) or real(problem, limit))
    for in_use in (frozenset[str](), frozenset({"x.org/p/d0"})):
        assert instance.others(("a",), "n1", in_use) == instance.others(("a",), "n1", frozenset(sorted(in_use)))
    assert len(asked) == 2


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Up to four devices with an attribute, a taint, a share of a counter; one or two claims; some devices in use."""
    devices: list[dict[str, Any]] = []
    for i in range(draw(st.integers(1, 4))):
        found: dict[str, Any] = {"name": f"d{i}"}
        if draw(st.integers(0, 3)):
            found["attributes"] = {"numa": {"int": draw(st.integers(0, 1))}}
        if draw(st.integers(0, 3)) == 0:
            found["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        if draw(st.integers(0, 4)) == 0:
            found |= {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]}
        devices.append(found)
    claims: dict[str, Any] = {}
    for name in ("a", "b")[: draw(st.integers(1, 2))]:
        requests = []
        for i in range(draw(st.integers(1, 2))):
            leaf: dict[str, Any] = {"deviceClassName": "c"}
            kind = draw(st.integers(0, 6))
            if kind == 0:
                leaf["allocationMode"] = "All"
            elif kind == 1:
                leaf["count"] = 2
            if draw(st.booleans()):
                wanted = draw(st.integers(0, 2))
                leaf["selectors"] = [{"cel": {"expression": f'device.attributes["{DRIVER}"].?numa.orValue(2) != {wanted}'}}]
            if draw(st.booleans()):
                leaf["tolerations"] = [{"key": "k", "operator": "Exists"}]
            if draw(st.integers(0, 3)) == 0:
                requests.append({"name": f"r{i}", "firstAvailable": [leaf | {"name": "s0"}, {"name": "s1", "deviceClassName": "c"}]})
            else:
                requests.append({"name": f"r{i}", "exactly": leaf})
        claims[name] = {"requests": requests}
        if draw(st.integers(0, 2)) == 0:
            claims[name]["constraints"] = [{"matchAttribute": f"{DRIVER}/numa"}]
    in_use = draw(st.sets(st.sampled_from([f"{DRIVER}/p/{d['name']}" for d in devices]), max_size=2))
    return small(devices, claims), tuple(claims), frozenset(in_use)


@settings(max_examples=25, deadline=None, suppress_health_check=SLOW)
@given(questions())
def test_upstreams_answer_is_among_them_and_each_one_is_an_allocation(question: Question) -> None:
    check(*question)


@pytest.mark.full
@settings(max_examples=1000, deadline=None, suppress_health_check=SLOW)
@given(questions())
def test_upstreams_answer_is_among_them_on_many(question: Question) -> None:
    check(*question)


def check(scenario: Scenario, claims: tuple[str, ...], in_use: frozenset[str]) -> None:
    instance = scenario.instance
    assert instance.any_allocation is not None
    found = instance.others(claims, "n1", in_use)  # a Doubt if the sets of solver, validator and upstream do not go together
    assert not scenario.not_encoded
    assume(not found.beyond)  # more than the bound: nothing is claimed then
    mine = own(instance, claims, in_use)
    all_of_them = [*([] if mine is None else [mine]), *found.allocations]
    assert len({taken(each) for each in all_of_them}) == len(all_of_them)
    problem = instance.any_allocation.problem(claims, "n1", in_use)
    for each in all_of_them:
        picks = tuple(Pick(i, r.request, r.device, r.admin) for i, a in enumerate(each) for r in a.results)
        assert not broken_rules(problem, Solution(("n1",), picks))
    labels = [c.label for c in answers(instance, claims, "n1", in_use).others]
    for text, each in zip(labels, found.allocations, strict=True):
        choice = parse(text)
        assert choice is not None
        assert [(name, frozenset(devices)) for name, devices in choice.claims] == list(zip(claims, taken(each), strict=True))


def test_a_solver_that_forgets_an_allocation_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = small([{"name": "d0"}, {"name": "d1"}], {"a": exactly()})
    monkeypatch.setattr(module, "every", lambda problem, limit, real=module.every: real(problem, limit)[:-1])
    with pytest.raises(Doubt, match="solver and validator disagree"):
        scenario.instance.others(("a",), "n1", frozenset())
    with pytest.raises(ModelError, match="Doubt"):
        run(scenario, "plain")


def test_a_solver_that_forgets_upstreams_allocation_is_caught_also_where_not_all_can_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRIED_OUT", 0)
    scenario = small([{"name": "d0"}, {"name": "d1"}], {"a": exactly()})
    monkeypatch.setattr(module, "every", lambda problem, limit, real=module.every: real(problem, limit)[1:])
    with pytest.raises(Doubt, match="upstream's allocation of a on node n1 is not among the solver's"):
        scenario.instance.others(("a",), "n1", frozenset())


def test_a_shared_device_is_not_encoded_even_if_first_fit_takes_another() -> None:
    scenario = small([{"name": "d0"}, {"name": "d1", "allowMultipleAllocations": True}], {"a": exactly()})
    assert own(scenario.instance, ("a",)) is not None
    scenario.instance.others(("a",), "n1", frozenset())
    assert scenario.not_encoded


@pytest.mark.parametrize(
    "choice",
    [
        Choice("n1", (("c1", (("gpu", "x.org/p/a"), ("gpu", "x.org/p/b"), ("net/fast", "y.org/q/r/s"))), ("c2", ()))),
        Choice("n1", (("ns/c", (("r", "x.org/p/a"),)),), "no-fit"),
    ],
)
def test_a_choice_is_written_in_one_line_and_read_again(choice: Choice) -> None:
    assert parse(str(choice)) == choice
    assert describe(choice.node, [n for n, _ in choice.claims], [d for _, d in choice.claims], choice.instead) == str(choice)


@pytest.mark.parametrize("text", ["", "ok", "no-fit", "n1", "n1 c1", "n1 c1:r", "timed-out"])
def test_other_outcomes_are_no_choices(text: str) -> None:
    assert parse(text) is None


# --- where upstream has no answer ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "label"), [(DoesNotFit("missed"), "no-fit"), (FatalAllocation("gave up"), "error")])
def test_where_upstream_fails_its_failure_is_an_outcome_beside_the_allocations(error: Exception, label: str) -> None:
    scenario = small([{"name": "d0"}, {"name": "d1"}], {"a": exactly()})

    def fails(claims: tuple[str, ...], node: str, in_use: frozenset[str]) -> tuple[Allocation, ...]:
        raise error

    choices = scenario.instance.any_allocation
    assert isinstance(choices, module.EveryAllocation)
    instance = attrs.evolve(scenario.instance, allocate=fails, any_allocation=attrs.evolve(choices, allocate=fails))
    semantics = Semantics(module_model(instance))
    (state,) = semantics.initial_states()
    labels: list[str] = []
    while not labels:
        moves = list(semantics.moves(state))
        labels = [m.label for m in moves if m.action.name == "scheduler.filter"]
        state = next(m.after for m in moves if m.action.type.writer == "scheduler")
    assert labels == [label, f"n1 a:r=x.org/p/d0 instead of {label}", f"n1 a:r=x.org/p/d1 instead of {label}"]


def module_model(instance: Instance) -> Any:
    from dra_spec.explorer.model import Model
    from dra_spec.protocol.assembly import assemble

    parts = assemble(instance, [])
    return Model("small", parts.slots, parts.actions)


# --- the bound -------------------------------------------------------------------------------------------------------------------------


def test_a_bound_that_is_reached_is_named_and_leaves_the_promises_undecided() -> None:
    scenario = small([{"name": f"d{i}"} for i in range(4)], {"a": exactly(2)}, "bounds: {allocations: 5}\n")
    report = run(scenario)
    assert report.verdict == "undecided"
    assert report.result.stopped is not None
    assert "there are more than 5 allocations of a on node n1 (bound allocations=5)" in report.result.stopped
    enough = small([{"name": f"d{i}"} for i in range(4)], {"a": exactly(2)}, "bounds: {allocations: 6}\n")
    assert run(enough).result.complete


# --- the verdicts ----------------------------------------------------------------------------------------------------------------------


def verdicts(result: Result) -> dict[str, tuple[str, int | None]]:
    return {p.promise: (p.verdict, len(p.trace) if p.trace else None) for p in result.properties}


def test_h1_has_the_same_verdicts_and_lengths_with_about_twice_the_states() -> None:
    """As the prototype found: 3.88 M states against 1.90 M with the whole control plane."""
    first, every = run(one("h1")).result, run(one("h1", allocation="any")).result
    assert verdicts(first) == verdicts(every)
    assert verdicts(every)["no-double-allocation"] == ("violated", 25)
    assert first.depth == every.depth
    assert 1.5 < every.states / first.states < 3.5


def test_a_violation_that_first_fit_hides() -> None:
    hidden = run(one("device-order", allocation="upstream"))
    shown = run(one("device-order"))
    assert (hidden.verdict, shown.verdict) == ("holds", "violated")
    assert run(one("device-order", repaired=True)).verdict == "holds"


def test_with_another_order_of_the_slice_upstream_does_what_any_allocation_shows(tmp_path: Path) -> None:
    manifests = (directory("models") / "manifests" / "small-and-large.yaml").read_text()
    small_first, large_first = (
        "".join(f"  - name: {d}\n    attributes:\n      size:\n        string: {size}\n" for d, size in order)
        for order in ((("d1", "small"), ("d2", "large")), (("d2", "large"), ("d1", "small")))
    )
    assert small_first in manifests
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "small-and-large.yaml").write_text(manifests.replace(small_first, large_first))
    model = (directory("models") / "device-order.yaml").read_text().replace("allocation: any\n", "")
    (tmp_path / "model.yaml").write_text(model)
    assert verdicts(run(one(str(tmp_path / "model.yaml"))).result)["no-double-allocation"] == ("violated", 25)


def test_what_stays_possible_with_any_allocation_need_not_with_upstreams() -> None:
    more = "environment: {finish-pod: -1}\ninvariants: [pod-eventually-scheduled, no-double-allocation]\n"
    more = more.replace("environment", "bounds: {lag: 1}\nenvironment")
    choice = run(attrs.evolve(small([{"name": "d0"}, {"name": "d1"}], {"a": exactly()}, more)))
    kept = {p.promise: (p.verdict, p.reason) for p in choice.result.properties}
    assert kept["no-double-allocation"][0] == "holds"
    assert kept["pod-eventually-scheduled"] == ("undecided", NOT_KEPT)
    assert choice.verdict == "undecided"
    none = run(small([{"name": "d0"}], {"a": exactly()}, more))  # no choice anywhere: the models are the same
    assert none.verdict == "holds"


# --- the model file --------------------------------------------------------------------------------------------------------------------


def test_the_field_and_the_command_line() -> None:
    assert not one("h1").any_allocation
    assert one("h1", allocation="any").any_allocation
    assert one("device-order").any_allocation
    assert not one("device-order", allocation="upstream").any_allocation
    assert (one("device-order").expected, one("device-order", allocation="upstream").expected) == ("violated", None)
    assert "allocation any (at most 64 per call)" in one("device-order").bounds
    assert "allocation" not in one("h1").bounds


def test_an_unknown_allocation_is_one_located_error() -> None:
    text = "schema: dra-spec/model/v1\nname: m\nobjects: [{kind: Node}]\nallocation: anny\n"
    with pytest.raises(InputError, match=r"m\.yaml:4.*'anny'.*did you mean 'any'"):
        read(text, Path("m.yaml"))
