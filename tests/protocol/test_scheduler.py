"""The scheduler: its caches rule by rule, and small clusters explored completely."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from random import Random
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_spec.explorer import ModelError, explore
from dra_spec.explorer.model import Action, ActionType, Kind, Model, Outcome, Slot, StateInvariant, Truth, View
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.values import Version, key
from dra_spec.protocol.apiserver import Api
from dra_spec.protocol.assembly import assemble
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.objects import Allocation, Claim, DeviceResult, Pod
from dra_spec.protocol.scheduler import eligible, misfit
from dra_spec.protocol.scheduler_binding import conditions_pending, entry_step, readiness
from dra_spec.protocol.scheduler_cache import assumed, devices_in_flight, informed, maybe_remove, restored, signal, store
from dra_spec.protocol.scheduler_state import NOT_CACHED, Attempt, Cached, InFlight, Scheduler, Step
from dra_spec.protocol.scheduler_unreserve import gives_back
from dra_spec.variants.base import UnknownVariant, Variant, VariantKind, repairs, variant, variants
from tests.protocol.scheduler_models import (
    H1,
    SCHEDULING,
    all_can_be_bound,
    bound_implies_reserved,
    check,
    cluster,
    model,
    no_double_allocation,
    story,
)

Start = dict[Slot[Any], Any]
ON_A, ON_B = (Allocation((DeviceResult("r", f"gpu/{n}/d1"),), frozenset({n})) for n in "ab")
OWN = {"p1": "c1", "p2": "c2"}


def claim(rv: int = 0, uid: int = 0, **changes: Any) -> Claim:
    return Claim(Version("rv/claim/c1", rv), Version("uid/claim/c1", uid), **changes)


# -- the assume cache


def test_an_event_counts_only_if_it_is_newer_than_the_latest() -> None:
    cached = Cached(claim(3))
    assert informed(cached, claim(2)) is cached
    assert informed(cached, claim(3, allocation=ON_A)) is cached
    assert informed(cached, claim(4)) == Cached(claim(4))
    assert informed(NOT_CACHED, claim(1)) == Cached(claim(1))


def test_a_removal_counts_always() -> None:
    assert informed(Cached(claim(3)), claim(4, exists=False)) == NOT_CACHED


def test_assume_takes_an_equal_version_but_no_older_one_and_needs_an_entry() -> None:
    cached = Cached(claim(3))
    assert assumed(cached, claim(2)) is cached
    assert assumed(cached, claim(3, allocation=ON_A)) == Cached(claim(3, allocation=ON_A), claim(3))
    assert assumed(NOT_CACHED, claim(1)) is NOT_CACHED


def test_a_second_assume_keeps_what_the_informer_stored() -> None:
    twice = assumed(assumed(Cached(claim(1)), claim(2)), claim(3))
    assert restored(twice) == Cached(claim(1))


def test_restore_goes_back_behind_a_write_whose_event_was_dropped() -> None:
    """The core of the double allocation: the event of the assumed write itself does not reach the informer's pointer."""
    written = claim(5, allocation=ON_A)
    after_assume = assumed(Cached(claim(3)), written)
    after_event = informed(after_assume, written)
    assert restored(after_event) == Cached(claim(3))
    assert not restored(after_event).allocated


def test_restore_is_harmless_if_the_event_came_before_assume() -> None:
    written = claim(5, allocation=ON_A)
    assert restored(assumed(informed(Cached(claim(3)), written), written)) == Cached(written)


def test_a_newer_event_ends_what_was_assumed() -> None:
    cached = informed(assumed(Cached(claim(3)), claim(5, allocation=ON_A)), claim(6, allocation=ON_A))
    assert not cached.assumed
    assert restored(cached) is cached


# -- the allocated devices


def after_store(old: Cached, new: Cached, have: frozenset[str], attempt: Attempt) -> tuple[frozenset[str], bool]:
    """What the handler of the allocated devices makes of a change of the cached claim: the set, and whether the revision moved."""
    instance = cluster({"p1": "c1"})
    s = Scheduler.all(instance)["scheduler"]
    parts = assemble(instance)
    start: Start = {s.assumed["c1"]: old, s.allocated: have, s.attempt: attempt}
    semantics = Semantics(Model("store", parts.slots, (), initial=(start,)))

    def change(v: View, _: Any) -> Iterator[Outcome]:
        out = v.outcome()
        store(out, s, "c1", new)
        yield out

    action = Action(ActionType("test.store", change, "test"), {}, s.rooms)
    state = next(iter(semantics.initial_states()))
    after = semantics.apply(action, semantics.observe(action, state).outcomes[0], state)
    return semantics.value(after, s.allocated), semantics.value(after, s.changed)


A, B = ON_A.devices, ON_B.devices
UNALLOCATED, FOR_A, FOR_B = Cached(claim()), Cached(claim(allocation=ON_A)), Cached(claim(allocation=ON_B))
NO_DEVICES = Cached(claim(allocation=Allocation((DeviceResult("r", "gpu/a/d1", admin=True),))))


@pytest.mark.parametrize(
    ("old", "new", "have", "then", "moved"),
    [
        (UNALLOCATED, FOR_A, frozenset(), A, True),
        (FOR_A, UNALLOCATED, A, frozenset(), True),
        (FOR_A, FOR_B, A, A, False),  # set to set is ignored, even if the devices differ
        (NOT_CACHED, FOR_A, frozenset(), A, True),
        (FOR_A, NOT_CACHED, A, frozenset(), True),
        (UNALLOCATED, UNALLOCATED, B, B, False),
        (UNALLOCATED, NO_DEVICES, B, B, False),  # admin access does not use a device up
        (FOR_A, UNALLOCATED, A | B, B, True),
    ],
)
def test_allocated_devices_follow_the_cache(old: Cached, new: Cached, have: frozenset[str], then: frozenset[str], moved: bool) -> None:
    assert after_store(old, new, have, Attempt(Step.REVISION, "p1")) == (then, moved)
    assert after_store(old, new, have, Attempt(Step.FILTER, "p1")) == (then, False)


# -- allocations in flight


def in_flight(uid: int = 0, sharers: int = 1, allocation: Allocation = ON_A) -> InFlight:
    return InFlight(Version("uid/claim/c1", uid), allocation, sharers)


def test_a_second_signal_counts_a_sharer_and_ignores_the_allocation() -> None:
    assert signal((), in_flight().uid, in_flight()) == (in_flight(),)
    assert signal((in_flight(),), in_flight().uid, in_flight(allocation=ON_B)) == (in_flight(sharers=2),)


def test_objects_of_one_name_are_in_flight_beside_each_other() -> None:
    both = signal((in_flight(1, allocation=ON_B),), in_flight(0).uid, in_flight(0))
    assert [e.uid.n for e in both] == [0, 1]
    assert devices_in_flight(both) == A | B
    assert maybe_remove(both, in_flight(1).uid, force=False) == ((in_flight(0),), True)


@pytest.mark.parametrize(
    ("sharers", "force", "left", "removed"), [(1, False, 0, True), (2, False, 1, False), (3, False, 2, False), (3, True, 0, True)]
)
def test_the_last_sharer_or_force_removes_the_entry(sharers: int, force: bool, left: int, removed: bool) -> None:
    rest, gone = maybe_remove((in_flight(sharers=sharers),), in_flight().uid, force=force)
    assert gone is removed
    assert rest == ((in_flight(sharers=left),) if left else ())


def test_removing_what_is_not_there_removes_nothing() -> None:
    assert maybe_remove((in_flight(1),), in_flight(0).uid, force=True) == ((in_flight(1),), False)


# -- decisions on a copy


@pytest.mark.parametrize(
    ("copy", "carries", "step"),
    [
        (claim(), True, Step.FINALIZER),
        (claim(finalizer=True), True, Step.STATUS),
        (claim(finalizer=True, allocation=ON_A), True, None),  # allocated elsewhere
        (claim(finalizer=True, allocation=ON_A), False, Step.STATUS),
        (claim(allocation=ON_A), False, Step.STATUS),  # nobody looks for the finalizer of an allocated claim
        (claim(finalizer=True), False, None),  # deallocated elsewhere
        (claim(deleting=True, finalizer=True), True, None),
        (None, True, None),
    ],
)
def test_the_first_write_of_bind_claim(copy: Claim | None, carries: bool, step: Step | None) -> None:
    assert entry_step(copy, carries) is step


def test_post_filter_frees_only_what_nobody_else_has_reserved() -> None:
    assert eligible(claim(allocation=ON_A), "p1")
    assert eligible(claim(allocation=ON_A, reserved_for=frozenset({"p1"})), "p1")
    assert not eligible(claim(allocation=ON_A, reserved_for=frozenset({"p2"})), "p1")
    assert not eligible(claim(), "p1")


def test_unreserve_gives_back_only_what_the_copy_shows() -> None:
    assert gives_back(claim(allocation=ON_A, reserved_for=frozenset({"p1", "p2"})), "p1")
    assert not gives_back(claim(allocation=ON_A, reserved_for=frozenset({"p2"})), "p1")
    assert not gives_back(claim(), "p1")


WITH_CONDITIONS = Allocation((DeviceResult("r", "gpu/a/d1", False, ("ready",), ("failed",)),))


def test_readiness_of_binding_conditions() -> None:
    ready, failed = frozenset({("gpu/a/d1", "ready")}), frozenset({("gpu/a/d1", "ready"), ("gpu/a/d1", "failed")})
    assert readiness(NOT_CACHED) == "missing"
    assert readiness(UNALLOCATED) == "waiting"
    assert readiness(Cached(claim(allocation=WITH_CONDITIONS))) == "waiting"
    assert readiness(Cached(claim(allocation=WITH_CONDITIONS, conditions=ready))) == "ready"
    assert readiness(Cached(claim(allocation=WITH_CONDITIONS, conditions=failed))) == "failed"
    assert readiness(FOR_A) == "ready"
    assert misfit(claim(allocation=WITH_CONDITIONS, conditions=failed), "a")
    assert not misfit(claim(allocation=WITH_CONDITIONS), "a")
    assert conditions_pending(claim(allocation=WITH_CONDITIONS))
    assert not conditions_pending(claim())


def test_an_allocation_for_another_node_does_not_fit() -> None:
    assert misfit(claim(allocation=ON_A), "b")
    assert not misfit(claim(allocation=ON_A), "a")
    assert not misfit(claim(), "a")


# -- whole clusters


def test_without_faults_one_scheduler_allocates_no_device_twice() -> None:
    instance = cluster(H1, 2, lag=4)
    found = check(instance, promises=no_double_allocation(instance) + all_can_be_bound(instance)[:0])
    assert found.complete
    assert found.property("no-double-allocation").verdict == "holds"


def test_one_refused_write_lets_one_scheduler_allocate_a_device_twice() -> None:
    """H1 of 1.37.2: Unreserve of p1 takes c1's allocation out of the cache while p2 gathers what is in use."""
    instance = cluster(H1, 2, lag=4, budgets={"api-refused": 1})
    found = check(instance, promises=no_double_allocation(instance))
    steps = story(found, "no-double-allocation")
    assert len(steps) == 25
    order = [
        "write_allocation p1 ok",
        "assume p1 ok",
        "add_finalizer p1 refused",
        "release_in_flight p1 ok",
        "restore p1 ok",
        "read_allocated p2 ok",
        "write_allocation p2 ok",
    ]
    assert [steps.index(step) for step in order] == sorted(steps.index(step) for step in order)
    assert not any(step.startswith("observe") for step in steps)


def test_a_narrow_watch_makes_the_double_allocation_longer_not_impossible() -> None:
    instance = cluster(H1, 2, lag=2, budgets={"api-refused": 1})
    assert len(story(check(instance, promises=no_double_allocation(instance)), "no-double-allocation")) == 27


def test_without_restore_the_same_cluster_is_safe() -> None:
    instance = cluster(H1, 2, lag=4, budgets={"api-refused": 1})
    found = check(instance, variant("unreserve-no-restore"), promises=no_double_allocation(instance))
    assert found.complete
    assert found.property("no-double-allocation").verdict == "holds"
    assert found.states > 10_000


def test_two_schedulers_give_one_device_to_two_claims() -> None:
    instance = cluster(OWN, schedulers=("a", "b"), scheduler_of={"p2": "b"})
    found = check(instance, promises=no_double_allocation(instance))
    assert found.property("no-double-allocation").verdict == "violated"


def test_an_applied_write_with_an_error_loses_a_device() -> None:
    """H8: the allocation is written, but the scheduler drops its entry and does not know it yet."""
    instance = cluster(OWN, lag=4, budgets={"api-applied-error": 1})
    assert len(story(check(instance, promises=no_double_allocation(instance)), "no-double-allocation")) == 19
    repaired = cluster(OWN, lag=4, budgets={"api-applied-error": 1})
    found = check(repaired, variant("prebind-verifies-claim"), promises=no_double_allocation(repaired))
    assert found.complete
    assert found.verdict == "holds"


@pytest.mark.parametrize(
    ("budget", "steps", "repairs"),
    [
        ("api-applied-error", 15, ("bind-verifies-pod", "prebind-verifies-claim", "unreserve-assumes-answer")),
        ("api-refused", 19, ("unreserve-assumes-answer",)),
    ],
)
def test_a_failed_binding_leaves_a_pod_bound_and_unreserved(budget: str, steps: int, repairs: tuple[str, ...]) -> None:
    """H12: the pod is bound, the scheduler does not know. H13: the next attempt believes a reservation that was given back."""
    instance = cluster(OWN, 2, budgets={budget: 1})
    assert len(story(check(instance, promises=bound_implies_reserved(instance)), "bound-implies-reserved")) == steps
    found = check(instance, *map(variant, repairs), promises=bound_implies_reserved(instance))
    assert found.complete
    assert found.verdict == "holds"


@pytest.mark.parametrize("name", ["unchecked-revision", "allocation-only-assumed"])
def test_defects_that_give_one_device_to_two_claims(name: str) -> None:
    instance = cluster(OWN)
    promises = no_double_allocation(instance)
    assert check(instance, promises=promises).verdict == "holds"
    assert check(instance, variant(name), promises=promises).verdict == "violated"


@pytest.mark.parametrize("beside", [(), ("unreserve-no-restore",)])
def test_kept_reservations_block_a_pod_for_ever(beside: tuple[str, ...]) -> None:
    """B46: p1 keeps c1 on the first node, where p2 has taken the other device; nobody frees c1."""
    instance = cluster(H1, 2, nodes=("a", "b"), budgets={"api-refused": 1})
    others = [variant(name) for name in beside]
    assert check(instance, *others, promises=all_can_be_bound(instance)).verdict == "holds"
    assert check(instance, *others, variant("unreserve-keeps-reservation"), promises=all_can_be_bound(instance)).verdict == "violated"


def test_a_sharer_that_fails_takes_a_published_claim_out_of_the_cache_for_good() -> None:
    """p2 only joins c1, but its Unreserve removes p1's entry in flight and restores the cache; no event puts c1 right again."""
    instance = cluster({"p1": "c1 c2", "p2": "c1"}, 3, budgets={"api-refused": 1})
    steps = story(check(instance, promises=all_can_be_bound(instance)), "all-can-be-bound")
    assert steps[-2:] == ["write_allocation p2 refused", "release_in_flight p2 ok"]
    assert check(instance, variant("unreserve-no-restore"), promises=all_can_be_bound(instance)).verdict == "holds"


def test_all_repairs_together_keep_all_promises() -> None:
    names = ("unreserve-no-restore", "prebind-verifies-claim", "unreserve-assumes-answer", "bind-verifies-pod", "reserve-rejects-published")
    repairs = [variant(name) for name in names]
    for pods, devices in ((H1, 3), ({"p1": "c1 c2", "p2": "c1"}, 3)):
        instance = cluster(pods, devices, budgets={"api-refused": 1, "api-applied-error": 1})
        promises = no_double_allocation(instance) + bound_implies_reserved(instance) + all_can_be_bound(instance)
        assert check(instance, *repairs, promises=promises).verdict == "holds"


@pytest.mark.full
def test_an_allocation_that_is_not_in_flight_is_written_after_its_device_was_given_away() -> None:
    """H16 without groups: p2 carries the allocation that p1 has published; p1 ends, the claim is freed, p3 gets the device."""
    writers = SCHEDULING | {"claim-controller", "workload"}
    instance = cluster({"p1": "c1", "p2": "c1", "p3": "c2"}, 2, writers=writers, lag=1, budgets={"finish-pod": 1})
    steps = story(check(instance, promises=no_double_allocation(instance)), "no-double-allocation")
    assert "reserve p2 published" in steps
    assert steps[-1] == "write_allocation p2 ok"
    repairs = [variant(name) for name in ("unreserve-no-restore", "reserve-rejects-published")]
    found = check(instance, *repairs, promises=no_double_allocation(instance))
    assert found.complete
    assert found.verdict == "holds"


def test_a_crash_between_any_two_steps_loses_no_device() -> None:
    instance = cluster(H1, 2, budgets={"scheduler-crash": 1})
    found = check(instance, promises=no_double_allocation(instance))
    assert found.complete
    assert found.verdict == "holds"
    assert "scheduler.restart" not in {a.name for a in found.actions if a.never_enabled}


def test_a_pod_without_claims_is_bound() -> None:
    instance = cluster({"p1": "", "p2": "c1"}, budgets={"api-refused": 1})
    assert check(instance, promises=all_can_be_bound(instance)).verdict == "holds"


def test_a_pod_whose_claims_fit_nowhere_is_never_bound_and_costs_no_states() -> None:
    instance = cluster({"p1": "c1 c2"}, 1)
    s, api = Scheduler.all(instance)["scheduler"], Api.of(instance)
    never = StateInvariant("unbound", lambda v: Truth(2 * (v[api.pod["p1"]].node is None)))
    idle = StateInvariant("clean", lambda v: Truth(2 * (v[s.attempt].step is not Step.IDLE or v.value(s.cycle["p1"][0]) is None)))
    found = check(instance, promises=(never, idle))
    assert found.verdict == "holds"
    assert found.states == 8  # idle, C1, C2 twice, C3, C4, C5, F1, and back


def test_idle_goroutines_hold_nothing() -> None:
    """Dead values: with no attempt and no binding goroutine, every slot of the pod's cycle has its initial value."""
    instance = cluster({"p1": "c1 c2", "p2": "c1"}, 3, budgets={"api-refused": 1, "scheduler-crash": 1})
    s = Scheduler.all(instance)["scheduler"]

    def clean(v: View) -> Truth:
        for pod in s.binding:
            if v[s.binding[pod]].step is Step.IDLE and v[s.attempt].pod != pod:
                slots: list[Slot[Any]] = [s.node[pod], s.copy[pod], s.written[pod], *s.cycle[pod], *s.pending[pod]]
                if any(v.value(slot) is not None for slot in slots):
                    return Truth.FALSE
        return Truth.TRUE

    assert check(instance, promises=(StateInvariant("clean", clean),)).verdict == "holds"


# -- generated claims


def from_template(claim_names: tuple[tuple[str, str], ...], **claim_changes: Any) -> tuple[Instance, Model]:
    """A pod with a claim of a template, as the scheduler finds both at its start."""
    instance = cluster({"p1": "t:x"})
    s, api = Scheduler.all(instance)["scheduler"], Api.of(instance)
    changes: dict[str, Any] = {"exists": True, "owner": "p1"} | claim_changes
    there = attrs.evolve(api.claim["t:x"].initial, **changes)
    pod = Pod(claim_names=claim_names)
    start: Start = {api.claim["t:x"]: there, s.assumed["t:x"]: Cached(there), api.pod["p1"]: pod, s.pod["p1"]: pod}
    parts = assemble(instance)
    return instance, Model("template", parts.slots, parts.actions, all_can_be_bound(instance), (start,))


NAMED = (("t:x", "t:x"),)


@pytest.mark.parametrize(
    ("names", "changes", "schedulable"),
    [
        (NAMED, {}, True),
        ((), {}, False),  # the pod does not say yet what its claim is called
        (NAMED, {"owner": "p2"}, False),
        (NAMED, {"deleting": True, "finalizer": True}, False),
    ],
)
def test_a_generated_claim_must_be_recorded_and_owned(
    names: tuple[tuple[str, str], ...], changes: dict[str, Any], schedulable: bool
) -> None:
    _, made = from_template(names, **changes)
    assert (explore(made).verdict == "holds") is schedulable


# -- binding conditions


def reporting(instance: Instance, *types: str) -> Model:
    """The scheduler beside a driver that reports conditions of p1's device, one at a time, whenever the claim is allocated."""
    api = Api.of(instance)

    def report(v: View, _: Any, condition: str) -> Iterator[Outcome]:
        devices = v[api.claim["c1"]].devices
        pairs = frozenset((device, condition) for device in devices)
        if devices and not pairs <= v[api.claim["c1"]].conditions:
            yield from api.patch_status(v, "c1", lambda c: attrs.evolve(c, conditions=c.conditions | pairs))

    kind = ActionType("test.report", report, "driver-controller")
    made = model(instance, promises=all_can_be_bound(instance))
    return attrs.evolve(made, actions=(*made.actions, *(Action(kind, {"condition": t}, api.rooms) for t in types)))


def test_a_pod_waits_for_its_binding_conditions() -> None:
    instance = cluster({"p1": "c1"}, conditions=True)
    api = Api.of(instance)
    early = StateInvariant(
        "not before ready",
        lambda v: Truth(2 * (v[api.pod["p1"]].node is None or ("gpu/n1/d1", "ready") in v[api.claim["c1"]].conditions)),
    )
    made = reporting(instance, "ready")
    found = explore(attrs.evolve(made, properties=(*made.properties, early)))
    assert found.verdict == "holds"
    assert explore(reporting(instance)).verdict == "violated"  # nobody reports: no way to be bound


def test_a_failed_or_late_device_is_given_back_and_another_attempt_made() -> None:
    instance = cluster({"p1": "c1"}, conditions=True)
    api = Api.of(instance)
    freed = StateInvariant("never freed", lambda v: Truth(2 * (v[api.claim["c1"]].allocated or not v[api.claim["c1"]].finalizer)))
    made = reporting(instance, "ready", "failed")
    found = explore(attrs.evolve(made, properties=(*made.properties, freed)))
    taken = {a.name: a.taken for a in found.actions}
    assert taken["scheduler.conditions_time_out"] > 0
    assert taken["scheduler.deallocate_unavailable"] > 0
    assert found.property("all-can-be-bound").verdict == "holds"


# -- the model's text


@pytest.mark.parametrize(
    "instance",
    [
        cluster({"p1": "c1 c2"}, 2, budgets={"api-refused": 1}),
        cluster({"p1": "c1", "p2": "c1"}, 2),
        cluster(OWN, schedulers=("a", "b"), scheduler_of={"p2": "b"}, lag=1),
    ],
)
def test_the_engines_agree(instance: Instance) -> None:
    explicit, plain = (check(instance, promises=no_double_allocation(instance), engine=engine) for engine in ("explicit", "plain"))
    assert (explicit.states, explicit.transitions, explicit.depth) == (plain.states, plain.transitions, plain.depth)


def test_an_action_enters_only_the_rooms_of_its_scheduler() -> None:
    instance = cluster(OWN, schedulers=("a", "b"), scheduler_of={"p2": "b"})
    for action in assemble(instance).actions:
        other = "b" if action.params["scheduler"] == "a" else "a"
        assert other not in action.rooms


def test_assemble_knows_its_writers_and_refuses_two_variants_of_one_action() -> None:
    with pytest.raises(ModelError, match="unknown writer 'sheduler'"):
        assemble(cluster(OWN, writers={"sheduler"}))
    with pytest.raises(ModelError, match=r"two variants replace the action scheduler\.release_in_flight"):
        assemble(cluster(OWN), (variant("unreserve-no-restore"), variant("allocation-only-assumed")))
    assert assemble(cluster(OWN, writers={"apiserver"}), (variant("unchecked-revision"),)).unused == {"scheduler.check_revision"}


def test_a_variant_replaces_the_function_and_keeps_the_step() -> None:
    made = [a for a in assemble(cluster(OWN), (variant("unchecked-revision"),)).actions if a.name == "scheduler.check_revision"]
    plain = [a for a in assemble(cluster(OWN)).actions if a.name == "scheduler.check_revision"]
    assert [a.type.step for a in made] == ["C5", "C5"]
    assert made[0].type.fn is not plain[0].type.fn


@functools.cache
def rich_model(repaired: bool) -> tuple[Semantics, dict[Slot[Any], list[Any]]]:
    """A model with nearly everything, and the values that its slots take on random walks."""
    instance = cluster(
        {"p1": "c1 t:x", "p2": "c1"},
        2,
        nodes=("a", "b"),
        conditions=True,
        any_node=True,
        schedulers=("s1", "s2"),
        scheduler_of={"p2": "s2"},
        budgets={"api-refused": 1, "api-applied-error": 1, "scheduler-crash": 1},
    )
    api = Api.of(instance)

    def disturb(v: View, _: Any, what: str) -> Iterator[Outcome]:
        if what == "create":
            yield from api.create_claim(v, "t:x", owner="p1", faults=False)
        elif what == "name":
            yield from api.patch_pod_status(v, "p1", claim_names=(("t:x", "t:x"),), faults=False)
        elif what == "delete":
            yield from api.delete_claim(v, "c1", faults=False)
        elif what == "pod":
            yield from api.delete_pod(v, "p2")
        else:
            pairs = frozenset((device, what) for device in v[api.claim["c1"]].devices)
            yield from api.patch_status(v, "c1", lambda c: attrs.evolve(c, conditions=c.conditions | pairs), faults=False)

    kind = ActionType("test.disturb", disturb, "workload")
    more = [Action(kind, {"what": w}, api.rooms) for w in ("create", "name", "delete", "pod", "ready", "failed")]
    mended = map(variant, ("prebind-verifies-claim", "unreserve-assumes-answer", "bind-verifies-pod"))
    parts = assemble(instance, mended if repaired else ())
    semantics = Semantics(Model("rich", parts.slots, (*parts.actions, *more)))
    domains: dict[Slot[Any], dict[Any, Any]] = {slot: {} for slot in parts.slots}
    random = Random(1)
    for _ in range(40):
        state = next(iter(semantics.initial_states()))
        for _ in range(150):
            for slot, value in zip(parts.slots, state, strict=True):
                domains[slot].setdefault(key(value), value)
            state = _any_step(semantics, state, random)
    return semantics, {slot: list(values.values()) for slot, values in domains.items()}


def _any_step(semantics: Semantics, state: State, random: Random) -> State:
    """The state after one outcome of one enabled action; the same state if none is."""
    actions = list(semantics.model.actions)
    random.shuffle(actions)
    actions.sort(key=lambda a: a.type.kind is Kind.FAULT or (a.name == "test.disturb" and random.random() < 0.9))
    for action in actions:
        outcomes = semantics.observe(action, state).outcomes
        if outcomes:
            return semantics.apply(action, random.choice(outcomes), state)
    return state


@pytest.mark.parametrize("repaired", [False, True])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_actions_are_total(repaired: bool, data: st.DataObject) -> None:
    """Any combination of values that slots can have, also an unreachable one, gives outcomes or none, never an error."""
    semantics, domains = rich_model(repaired)
    random = data.draw(st.randoms(use_true_random=False))
    state: State = tuple(random.choice(domains[slot]) for slot in semantics.model.slots)
    for action in semantics.model.actions:
        for outcome in semantics.observe(action, state).outcomes:
            semantics.apply(action, outcome, state)


def test_the_rich_model_reaches_most_steps() -> None:
    """Otherwise the test of totality would say little."""
    _, domains = rich_model(False)
    bindings = {v.step for slot, values in domains.items() if "/binding/" in slot.name for v in values}
    attempts = {v.step for slot, values in domains.items() if slot.name.endswith("/attempt") for v in values}
    assert attempts >= {Step.RESOLVE, Step.PENDING, Step.ALLOCATED, Step.IN_FLIGHT, Step.REVISION, Step.FILTER, Step.RESERVE}
    assert bindings >= {Step.GET, Step.FINALIZER, Step.STATUS, Step.ASSUME, Step.CONDITIONS, Step.RELEASE, Step.RESTORE, Step.END}


# -- variants


def test_every_variant_says_what_it_is_and_replaces_known_actions() -> None:
    scheduling = cluster(OWN, budgets={"scheduler-crash": 1})
    names = {a.name for a in assemble(scheduling).actions}
    for name, each in variants().items():
        assert each.name == name
        assert each.bug
        assert each.source
        assert each.found_by
        assert each.replaces
        mine = {action for action in each.replaces if action.startswith("scheduler.")}
        assert mine <= names


def test_an_unknown_variant_is_named_with_those_that_exist() -> None:
    with pytest.raises(UnknownVariant, match=r"unknown variant 'nope'; there are: .*unreserve-no-restore"):
        variant("nope")


def test_repairs_can_be_applied_together() -> None:
    mine: list[Variant] = [v for v in repairs() if any(name.startswith("scheduler.") for name in v.replaces)]
    assert len(mine) == 5
    assert all(v.kind is VariantKind.REPAIR for v in mine)
    assert not assemble(cluster(OWN), mine).unused
