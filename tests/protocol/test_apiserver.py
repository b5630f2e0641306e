"""The rules of requests, watch channels, and the garbage collector."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_spec.explorer.model import Action, ActionType, Model, Outcome, Slot, View
from dra_spec.explorer.semantics import Semantics, State
from dra_spec.explorer.values import Version
from dra_spec.protocol.apiserver import Answer, Api, actions, slots, valid_status
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.objects import NO_POD, Allocation, Claim, DeviceResult, Phase, Pod
from tests.protocol.scheduler_models import cluster

D1 = Allocation((DeviceResult("r", "gpu/n1/d1"),))
D2 = Allocation((DeviceResult("r", "gpu/n1/d2"),))
Request = Callable[[Api, View], Iterable[Answer]]


class Server:
    """One API server in one state, to which requests are made one after another."""

    def __init__(self, instance: Instance | None = None, **budgets: int) -> None:
        faults = {f"api-{name.replace('_', '-')}": n for name, n in budgets.items()}
        self.instance = instance or cluster({"p1": "c1", "p2": "c1 c2"}, budgets=faults, writers={"apiserver", "scheduler"}, lag=3)
        self.api = Api.of(self.instance)
        self.semantics = Semantics(Model("api", slots(self.instance), actions(self.instance)))
        self.state: State = self.semantics.initial_states()[0]

    def get(self, slot: Slot[Any]) -> Any:
        return self.semantics.value(self.state, slot)

    def claim(self, name: str = "c1") -> Claim:
        found: Claim = self.get(self.api.claim[name])
        return found

    def pod(self, name: str = "p1") -> Pod:
        found: Pod = self.get(self.api.pod[name])
        return found

    def set(self, slot: Slot[Any], value: Any) -> None:
        self.state = tuple(value if s is slot else old for s, old in zip(self.semantics.model.slots, self.state, strict=True))

    def edit(self, name: str = "c1", **changes: Any) -> Claim:
        """Changes a claim behind everybody's back, as a new version."""
        old = self.claim(name)
        self.set(self.api.claim[name], attrs.evolve(old, rv=old.rv.next(), **changes))
        return self.claim(name)

    def ends(self, request: Request) -> list[str]:
        return [outcome.label for outcome in self._outcomes(request)[1]]

    def do(self, request: Request, label: str = "ok") -> Claim | None:
        """Makes a request that must be able to end as `label`, and goes on from there. Returns what the caller gets."""
        action, outcomes = self._outcomes(request)
        answer = next(o for o in outcomes if o.label == label)
        self.state = self.semantics.apply_raw(action, answer, self.state)
        assert isinstance(answer, Answer)
        return answer.claim

    def _outcomes(self, request: Request) -> tuple[Action, list[Outcome]]:
        kind = ActionType("test.request", lambda v, api: request(api, v), "test")
        action = Action(kind, {}, self.api.rooms, self.api)
        return action, list(self.semantics.observe(action, self.state).outcomes)

    def events(self, name: str = "c1", watcher: str = "scheduler") -> Any:
        return self.get(self.api.claim_channels[watcher].events[name])


@pytest.fixture
def server() -> Server:
    return Server()


# -- preconditions


def test_a_status_write_with_an_old_version_conflicts_and_changes_nothing(server: Server) -> None:
    old = server.claim()
    server.edit()
    before = server.state
    assert server.ends(lambda api, v: api.update_status(v, "c1", old, allocation=D1)) == ["conflict"]
    server.do(lambda api, v: api.update_status(v, "c1", old, allocation=D1), "conflict")
    assert server.state == before


def test_equal_content_of_an_older_version_conflicts(server: Server) -> None:
    old = server.claim()
    server.edit(finalizer=True)
    server.edit(finalizer=False)
    assert server.ends(lambda api, v: api.update(v, "c1", old, finalizer=True)) == ["conflict"]


def test_another_object_of_the_name_conflicts_with_an_update_and_is_invalid_for_a_patch(server: Server) -> None:
    old = server.claim()
    server.set(server.api.claim["c1"], attrs.evolve(old, uid=old.uid.next()))
    assert server.ends(lambda api, v: api.update(v, "c1", old, finalizer=True)) == ["conflict"]
    assert server.ends(lambda api, v: api.patch_status(v, "c1", lambda c: c, uid=old.uid)) == ["invalid"]
    assert server.ends(lambda api, v: api.delete_claim(v, "c1", uid=old.uid)) == ["conflict"]


def test_nothing_is_found_where_nothing_is(server: Server) -> None:
    copy = server.claim()
    server.do(lambda api, v: api.delete_claim(v, "c1"))
    assert not server.claim().exists
    for request in (
        lambda api, v: api.update(v, "c1", copy, finalizer=True),
        lambda api, v: api.update_status(v, "c1", copy, allocation=D1),
        lambda api, v: api.patch_status(v, "c1", lambda c: c),
        lambda api, v: api.delete_claim(v, "c1"),
        lambda api, v: api.touch_claim(v, "c1"),
    ):
        assert server.ends(request) == ["not-found"]


# -- rules of the status


def a_claim(**changes: Any) -> Claim:
    return Claim(Version("rv/claim/c1", 0), Version("uid/claim/c1", 0), **changes)


P1, BOTH = frozenset({"p1"}), frozenset({"p1", "p2"})


@pytest.mark.parametrize(
    ("old", "new", "valid"),
    [
        (a_claim(), a_claim(reserved_for=P1), False),  # a consumer without allocation
        (a_claim(), a_claim(allocation=D1, reserved_for=P1), True),
        (a_claim(allocation=D1, reserved_for=P1), a_claim(reserved_for=P1), False),  # deallocated under a consumer
        (a_claim(allocation=D1, reserved_for=P1), a_claim(), True),
        (a_claim(allocation=D1, deleting=True), a_claim(allocation=D1, deleting=True, reserved_for=P1), False),
        (a_claim(allocation=D1, deleting=True, reserved_for=BOTH), a_claim(allocation=D1, deleting=True, reserved_for=P1), True),
        (a_claim(deleting=True), a_claim(allocation=D1, deleting=True), True),  # not refused, only reservations are
        (a_claim(allocation=D1), a_claim(allocation=D2), False),
        (a_claim(allocation=D1), a_claim(allocation=D1), True),
        (a_claim(allocation=D1), a_claim(allocation=D1, conditions=frozenset({("gpu/n1/d1", "ready")})), True),
        (a_claim(allocation=D1), a_claim(allocation=D1, conditions=frozenset({("gpu/n1/d2", "ready")})), False),
        (a_claim(), a_claim(allocation=D1, reserved_for=frozenset(f"p{i}" for i in range(256))), True),
        (a_claim(), a_claim(allocation=D1, reserved_for=frozenset(f"p{i}" for i in range(257))), False),
    ],
)
def test_status_validation(old: Claim, new: Claim, valid: bool) -> None:
    assert valid_status(old, new) is valid


def test_an_invalid_write_is_answered_as_invalid(server: Server) -> None:
    assert server.ends(lambda api, v: api.update_status(v, "c1", server.claim(), reserved_for=P1)) == ["invalid"]
    assert server.ends(lambda api, v: api.patch_status(v, "c1", lambda c: attrs.evolve(c, reserved_for=P1))) == ["invalid"]


def test_conditions_of_devices_that_leave_the_allocation_are_dropped(server: Server) -> None:
    server.edit(allocation=D1, conditions=frozenset({("gpu/n1/d1", "ready")}))
    stored = server.do(lambda api, v: api.update_status(v, "c1", server.claim(), allocation=None))
    assert stored is not None
    assert stored.conditions == frozenset()


def test_a_write_that_changes_nothing_makes_no_version_and_no_event(server: Server) -> None:
    copy = server.edit(allocation=D1)
    before = server.state
    assert server.do(lambda api, v: api.update_status(v, "c1", copy, allocation=D1)) == copy
    assert server.do(lambda api, v: api.patch_status(v, "c1", lambda c: attrs.evolve(c, reserved_for=c.reserved_for - P1))) == copy
    assert server.state == before


# -- finalizers and deletion


def test_with_a_finalizer_a_deleted_claim_stays_until_the_finalizer_goes(server: Server) -> None:
    server.edit(finalizer=True)
    server.do(lambda api, v: api.delete_claim(v, "c1"))
    assert server.claim().deleting
    before = server.state
    server.do(lambda api, v: api.delete_claim(v, "c1"))
    assert server.state == before
    server.do(lambda api, v: api.update(v, "c1", server.claim(), finalizer=False))
    assert not server.claim().exists
    assert [event.exists for event in server.events()] == [True, False]


def test_no_finalizer_is_added_to_a_claim_that_is_being_deleted(server: Server) -> None:
    server.edit(deleting=True)
    assert server.ends(lambda api, v: api.update(v, "c1", server.claim(), finalizer=True)) == ["invalid"]


def test_removing_the_finalizer_of_a_claim_that_is_not_being_deleted_keeps_it(server: Server) -> None:
    server.edit(finalizer=True, allocation=D1)
    server.do(lambda api, v: api.update(v, "c1", server.claim(), finalizer=False))
    assert server.claim().exists
    assert server.claim().allocated


def test_a_claim_of_a_used_name_has_a_new_uid_and_a_newer_version(server: Server) -> None:
    first = server.claim()
    assert server.ends(lambda api, v: api.create_claim(v, "c1")) == ["conflict"]
    server.do(lambda api, v: api.delete_claim(v, "c1"))
    gone = server.events()[-1]
    server.do(lambda api, v: api.create_claim(v, "c1", owner="p1"))
    removed, created = server.events()
    assert (removed.exists, created.exists, created.owner) == (False, True, "p1")
    assert created.uid > removed.uid
    assert created.rv > removed.rv
    assert gone.uid.of == first.uid.of


# -- pods


def test_a_pod_is_bound_once(server: Server) -> None:
    assert server.ends(lambda api, v: api.bind(v, "p1", "n1")) == ["ok"]
    server.do(lambda api, v: api.bind(v, "p1", "n1"))
    assert server.pod().node == "n1"
    assert server.ends(lambda api, v: api.bind(v, "p1", "n2")) == ["conflict"]


def test_a_pod_that_is_gone_or_going_is_not_bound(server: Server) -> None:
    server.set(server.api.pod["p1"], Pod(deleting=True))
    assert server.ends(lambda api, v: api.bind(v, "p1", "n1")) == ["conflict"]
    server.set(server.api.pod["p1"], NO_POD)
    assert server.ends(lambda api, v: api.bind(v, "p1", "n1")) == ["not-found"]


@pytest.mark.parametrize(
    ("pod", "force", "after"),
    [
        (Pod(), False, NO_POD),
        (Pod(node="n1"), False, Pod(node="n1", deleting=True)),
        (Pod(node="n1"), True, NO_POD),
        (Pod(node="n1", phase=Phase.SUCCEEDED), False, NO_POD),
        (Pod(node="n1", deleting=True), False, Pod(node="n1", deleting=True)),
    ],
)
def test_a_pod_goes_at_once_unless_it_is_on_a_node(server: Server, pod: Pod, force: bool, after: Pod) -> None:
    server.set(server.api.pod["p1"], pod)
    server.do(lambda api, v: api.delete_pod(v, "p1", force=force))
    assert server.pod() == after


# -- faults


def test_a_refused_write_changes_nothing_and_uses_up_the_budget() -> None:
    server = Server(refused=1)
    request = lambda api, v: api.update_status(v, "c1", server.claim(), allocation=D1)  # noqa: E731
    assert server.ends(request) == ["ok", "refused"]
    before = server.claim()
    assert server.do(request, "refused") is None
    assert server.claim() == before
    assert server.ends(request) == ["ok"]


def test_a_write_can_be_applied_and_answered_with_an_error() -> None:
    server = Server(applied_error=1)
    assert server.do(lambda api, v: api.update_status(v, "c1", server.claim(), allocation=D1), "applied-error") is None
    assert server.claim().allocated
    assert len(server.events()) == 1
    assert server.ends(lambda api, v: api.update(v, "c1", server.claim(), finalizer=True)) == ["ok"]


def test_a_write_that_would_conflict_can_be_refused_but_not_applied() -> None:
    server = Server(refused=1, applied_error=1)
    old = server.claim()
    server.edit()
    assert server.ends(lambda api, v: api.update(v, "c1", old, finalizer=True)) == ["conflict", "refused"]


def test_an_unlimited_budget_is_never_used_up() -> None:
    server = Server(refused=-1)
    for _ in range(3):
        server.do(lambda api, v: api.touch_claim(v, "c1", faults=True), "refused")
    assert "refused" in server.ends(lambda api, v: api.touch_claim(v, "c1", faults=True))


# -- watch channels


def touch(name: str) -> Request:
    return lambda api, v: api.touch_claim(v, name)


def take(server: Server, name: str) -> Any:
    """Delivers the next event of a claim to the scheduler; None if it is not its turn."""
    channel = server.api.claim_channels["scheduler"]
    taken: list[Any] = []

    def deliver(v: View, _: Any) -> Iterable[Outcome]:
        event = channel.next(v, name)
        taken.append(event)
        out = v.outcome()
        if event is not None:
            channel.take(out, name)
        yield out

    action = Action(ActionType("test.take", deliver, "test"), {}, server.api.rooms)
    server.state = server.semantics.apply_raw(action, server.semantics.observe(action, server.state).outcomes[0], server.state)
    return taken[0]


def test_events_of_a_kind_come_in_the_order_of_the_writes(server: Server) -> None:
    for name in ("c2", "c1", "c2"):
        server.do(touch(name))
    assert take(server, "c1") is None
    assert take(server, "c2").rv < server.claim("c2").rv
    assert take(server, "c2") is None
    assert take(server, "c1").rv == server.claim("c1").rv
    assert take(server, "c2").rv == server.claim("c2").rv
    assert take(server, "c2") is None


def test_a_write_waits_while_a_channel_is_full_and_can_still_fail(server: Server) -> None:
    server = Server(refused=1)
    copy = server.claim()
    for _ in range(3):
        server.do(touch("c2"))
    assert server.ends(touch("c1")) == []
    assert server.ends(lambda api, v: api.update(v, "c1", copy, finalizer=True)) == ["refused"]
    assert server.ends(lambda api, v: api.update(v, "c2", copy_of_old(server), finalizer=True)) == ["conflict", "refused"]
    take(server, "c2")
    assert server.ends(touch("c1")) == ["ok"]


def copy_of_old(server: Server) -> Claim:
    return attrs.evolve(server.claim("c2"), rv=Version("rv/claim/c2", -1))


def test_pods_and_claims_have_no_common_order_and_no_common_room(server: Server) -> None:
    for _ in range(3):
        server.do(touch("c1"))
    assert server.ends(lambda api, v: api.patch_pod_status(v, "p1", phase=Phase.RUNNING)) == ["ok"]


def test_a_closed_channel_takes_no_event_and_blocks_nobody(server: Server) -> None:
    for name in ("c1", "c2", "c1"):
        server.do(touch(name))
    channel = server.api.claim_channels["scheduler"]

    def close(v: View, _: Any) -> Iterable[Outcome]:
        out = v.outcome()
        channel.close(out, "c1")
        yield out

    action = Action(ActionType("test.close", close, "test"), {}, server.api.rooms)
    server.state = server.semantics.apply_raw(action, server.semantics.observe(action, server.state).outcomes[0], server.state)
    assert server.get(channel.order) == ("c2",)
    for _ in range(5):
        server.do(touch("c1"))
    assert server.events("c1") is None
    assert server.get(channel.order) == ("c2",)


def test_who_binds_a_pod_closes_its_channel_and_needs_no_room_for_the_event(server: Server) -> None:
    channel = server.api.pod_channels["scheduler"]
    for phase in (Phase.RUNNING, Phase.PENDING, Phase.RUNNING):
        server.do(lambda api, v, phase=phase: api.patch_pod_status(v, "p2", phase=phase))  # type: ignore[misc]
    assert server.ends(lambda api, v: api.bind(v, "p1", "n1")) == []
    server.do(lambda api, v: api.bind(v, "p1", "n1", watcher="scheduler"))
    assert server.get(channel.events["p1"]) is None


def test_only_writers_that_take_part_watch() -> None:
    both = Server(cluster({"p1": "c1"}, writers={"apiserver", "scheduler", "claim-controller"}))
    assert set(both.api.claim_channels) == {"scheduler", "claim-controller"}
    none = Server(cluster({"p1": "c1"}, writers={"apiserver"}))
    assert not none.api.claim_channels
    assert none.ends(touch("c1")) == ["ok"]


def test_a_scheduler_watches_its_own_pods_only() -> None:
    server = Server(cluster({"p1": "c1", "p2": "c1"}, schedulers=("a", "b"), scheduler_of={"p2": "b"}))
    assert list(server.api.pod_channels["a"].events) == ["p1"]
    assert list(server.api.pod_channels["b"].events) == ["p2"]
    assert list(server.api.claim_channels["b"].events) == ["c1"]


# -- garbage collection


def test_a_generated_claim_is_collected_when_its_owner_is_gone() -> None:
    server = Server(cluster({"p1": "t:x c2"}))
    collect = server.semantics.model.actions
    assert [str(a) for a in collect] == ["apiserver.collect_claim(claim=t:x)"]
    server.do(lambda api, v: api.create_claim(v, "t:x", owner="p1"))
    assert not server.semantics.observe(collect[0], server.state).outcomes
    server.set(server.api.pod["p1"], NO_POD)
    outcomes = server.semantics.observe(collect[0], server.state).outcomes
    assert [o.label for o in outcomes] == ["ok"]
    server.state = server.semantics.apply_raw(collect[0], outcomes[0], server.state)
    assert not server.claim("t:x").exists
    assert not server.semantics.observe(collect[0], server.state).outcomes


# -- all of it together

WRITES = ["add", "drop", "status", "clear", "patch", "touch", "delete", "create"]


def write(what: str, copy: Claim, allocation: Allocation) -> Request:
    """A request of that kind, with the copy that its sender holds."""
    requests: dict[str, Request] = {
        "add": lambda api, v: api.update(v, "c1", copy, finalizer=True),
        "drop": lambda api, v: api.update(v, "c1", copy, finalizer=False),
        "status": lambda api, v: api.update_status(v, "c1", copy, allocation=allocation, reserved_for=copy.reserved_for | P1),
        "clear": lambda api, v: api.update_status(v, "c1", copy, allocation=None, reserved_for=frozenset()),
        "patch": lambda api, v: api.patch_status(v, "c1", lambda c: attrs.evolve(c, reserved_for=c.reserved_for - P1)),
        "touch": touch("c1"),
        "delete": lambda api, v: api.delete_claim(v, "c1"),
        "create": lambda api, v: api.create_claim(v, "c1"),
    }
    return requests[what]


@given(st.lists(st.tuples(st.sampled_from(WRITES), st.booleans()), max_size=25))
def test_what_the_store_promises_whoever_writes(steps: list[tuple[str, bool]]) -> None:
    """I1, I3, I4 and I8 of the store, and: the events are the history of the object, in order."""
    server = Server(cluster({"p1": "c1"}, lag=100))
    copy = server.claim()
    for what, fresh in steps:
        before = server.claim()
        copy = before if fresh else copy
        request = write(what, copy, D1 if fresh else D2)
        count = len(server.events())
        (label,) = server.ends(request)
        server.do(request, label)
        after, events = server.claim(), server.events()
        assert (len(events) == count + 1) == (after != before)
        if len(events) > count:
            assert label == "ok"
            assert events[-1] == after
        assert not after.reserved_for or after.allocated
        if after.exists and before.exists and before.deleting:
            assert after.deleting
            assert after.finalizer <= before.finalizer
            assert after.reserved_for <= before.reserved_for
        if before.allocated and after.allocated:
            assert after.allocation == before.allocation
        versions = [event.rv for event in events]
        assert versions == sorted(set(versions))
