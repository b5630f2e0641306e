"""The rules of the API server in memory, one by one."""

from __future__ import annotations

import copy
from typing import Any

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dra_spec.reference.apiserver import CLAIM, POD, ApiServer, without_finalizer
from dra_spec.reference.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound
from dra_spec.reference.shapes import (
    FINALIZER,
    MAX_CONSUMERS,
    Object,
    allocation,
    allocation_object,
    claim_object,
    conditions,
    consumer,
    consumers,
    deleting,
    device_id,
    exclusive,
    generated_claim,
    is_for,
    pod_object,
    results,
    rv_of,
    selected_nodes,
    uid_of,
)


@attrs.frozen
class Result:
    request: str
    device: str
    admin: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


@attrs.frozen
class Allocated:
    results: tuple[Result, ...]
    nodes: frozenset[str] | None = None


ONE = allocation_object(Allocated((Result("r", "drv/n1/d1"),), frozenset({"n1"})))
OTHER = allocation_object(Allocated((Result("r", "drv/n1/d2"),), frozenset({"n1"})))


@pytest.fixture
def api() -> ApiServer:
    server = ApiServer()
    server.create(CLAIM, claim_object("c1", ["r"]))
    server.create(POD, pod_object("p1", [("e", "c1", None)]))
    return server


def allocated(api: ApiServer, allocation: Any = ONE, *pods: str) -> Object:
    claim = api.get(CLAIM, "c1")
    claim["metadata"]["finalizers"] = [FINALIZER]
    claim = api.update(CLAIM, claim)
    claim["status"] = {"allocation": allocation}
    if pods:
        claim["status"]["reservedFor"] = [consumer(api.get(POD, pod)) for pod in pods]
    return api.update_status(CLAIM, claim)


def test_create_wipes_status_and_gives_uid_and_version() -> None:
    api = ApiServer()
    made = api.create(CLAIM, {**claim_object("c1", ["r"]), "status": {"allocation": ONE}})
    assert made["status"] == {}
    again = api.create(CLAIM, claim_object("c2", ["r"]))
    assert rv_of(again) > rv_of(made)
    assert uid_of(again) != uid_of(made)
    with pytest.raises(AlreadyExists):
        api.create(CLAIM, claim_object("c1", ["r"]))


def test_a_stale_version_conflicts_and_changes_nothing(api: ApiServer) -> None:
    stale = api.get(CLAIM, "c1")
    api.touch(CLAIM, "c1")
    now = api.get(CLAIM, "c1")
    for write in (api.update, api.update_status):
        with pytest.raises(Conflict):
            write(CLAIM, stale)
    assert api.get(CLAIM, "c1") == now


def test_a_recreated_object_conflicts_by_uid_even_without_version(api: ApiServer) -> None:
    old = api.get(CLAIM, "c1")
    api.delete(CLAIM, "c1")
    api.create(CLAIM, claim_object("c1", ["r"]))
    del old["metadata"]["resourceVersion"]
    with pytest.raises(Conflict, match="replaced"):
        api.update_status(CLAIM, old)


def test_writes_to_what_is_absent(api: ApiServer) -> None:
    claim = api.get(CLAIM, "c1")
    api.delete(CLAIM, "c1")
    for attempt in (lambda: api.update(CLAIM, claim), lambda: api.update_status(CLAIM, claim), lambda: api.delete(CLAIM, "c1")):
        with pytest.raises(NotFound):
            attempt()


def test_a_write_that_changes_nothing_gets_no_version_and_no_event(api: ApiServer) -> None:
    watch = api.watch(CLAIM, "w")
    claim = api.get(CLAIM, "c1")
    assert rv_of(api.update(CLAIM, claim)) == rv_of(claim)
    assert not watch.pending


def test_status_and_main_resource_keep_each_other_out(api: ApiServer) -> None:
    claim = api.get(CLAIM, "c1")
    claim["metadata"]["finalizers"] = [FINALIZER]
    claim["status"] = {"allocation": ONE}
    assert allocation(api.update(CLAIM, claim)) is None
    claim = api.get(CLAIM, "c1")
    claim["metadata"]["finalizers"] = []
    claim["status"] = {"allocation": ONE}
    stored = api.update_status(CLAIM, claim)
    assert stored["metadata"]["finalizers"] == [FINALIZER]
    assert allocation(stored) == ONE


def test_spec_is_immutable(api: ApiServer) -> None:
    claim = api.get(CLAIM, "c1")
    claim["spec"]["devices"]["requests"][0]["name"] = "other"
    with pytest.raises(Invalid, match="immutable"):
        api.update(CLAIM, claim)


def test_reserved_needs_allocated(api: ApiServer) -> None:
    claim = api.get(CLAIM, "c1")
    claim["status"] = {"reservedFor": [consumer(api.get(POD, "p1"))]}
    with pytest.raises(Invalid, match="allocated"):
        api.update_status(CLAIM, claim)


def test_allocation_is_immutable_while_set(api: ApiServer) -> None:
    claim = allocated(api)
    claim["status"]["allocation"] = OTHER
    with pytest.raises(Invalid, match="immutable"):
        api.update_status(CLAIM, claim)
    claim["status"] = {}
    cleared = api.update_status(CLAIM, claim)
    cleared["status"] = {"allocation": OTHER}
    assert allocation(api.update_status(CLAIM, cleared)) == OTHER


def test_an_allocation_must_name_requests_of_the_claim(api: ApiServer) -> None:
    claim = api.get(CLAIM, "c1")
    claim["status"] = {"allocation": allocation_object(Allocated((Result("nobody", "drv/n1/d1"),)))}
    with pytest.raises(Invalid, match="nobody"):
        api.update_status(CLAIM, claim)


def test_nothing_compares_devices_across_claims(api: ApiServer) -> None:
    allocated(api)
    api.create(CLAIM, claim_object("c2", ["r"]))
    other = api.get(CLAIM, "c2")
    other["status"] = {"allocation": ONE}  # and no finalizer is asked for
    assert exclusive(allocation(api.update_status(CLAIM, other))) == {"drv/n1/d1"}


def test_consumers_are_unique_and_at_most_256(api: ApiServer) -> None:
    claim = allocated(api)
    entry = consumer(api.get(POD, "p1"))
    claim["status"]["reservedFor"] = [entry, entry]
    with pytest.raises(Invalid, match="unique"):
        api.update_status(CLAIM, claim)
    claim["status"]["reservedFor"] = [{**entry, "uid": str(i)} for i in range(MAX_CONSUMERS + 1)]
    with pytest.raises(Invalid, match="at most 256"):
        api.update_status(CLAIM, claim)
    claim["status"]["reservedFor"].pop()
    assert len(consumers(api.update_status(CLAIM, claim))) == MAX_CONSUMERS


def test_no_new_consumer_while_deleting_but_removal_and_allocation_are_allowed(api: ApiServer) -> None:
    api.create(POD, pod_object("p2", []))
    claim = allocated(api, ONE, "p1")
    assert api.delete(CLAIM, "c1") is not None
    claim = api.get(CLAIM, "c1")
    more = copy.deepcopy(claim)
    more["status"]["reservedFor"].append(consumer(api.get(POD, "p2")))
    with pytest.raises(Invalid, match="deleted"):
        api.update_status(CLAIM, more)
    claim["status"] = {}
    claim = api.update_status(CLAIM, claim)
    claim["status"] = {"allocation": ONE}
    assert allocation(api.update_status(CLAIM, claim)) == ONE


def test_delete_waits_for_the_finalizer_and_the_last_one_removes(api: ApiServer) -> None:
    allocated(api)
    watch = api.watch(CLAIM, "w")
    first = api.delete(CLAIM, "c1")
    assert first is not None
    assert deleting(first)
    assert api.delete(CLAIM, "c1") == first  # again: accepted, changes nothing
    claim = api.get(CLAIM, "c1")
    claim["metadata"]["finalizers"] = [FINALIZER, "other"]
    with pytest.raises(Invalid, match="no new finalizers"):
        api.update(CLAIM, claim)
    api.update(CLAIM, without_finalizer(api.get(CLAIM, "c1")))
    assert api.find(CLAIM, "c1") is None
    assert [event.type for event in watch.pending] == ["MODIFIED", "DELETED"]


def test_the_removal_is_told_with_the_last_finalizer(api: ApiServer) -> None:
    claim = api.get(CLAIM, "c1")
    claim["metadata"]["finalizers"] = [FINALIZER]
    api.update(CLAIM, claim)
    api.delete(CLAIM, "c1")
    watch = api.watch(CLAIM, "w")
    before = api.get(CLAIM, "c1")
    answer = api.update(CLAIM, without_finalizer(before))
    event = watch.take()
    assert (event.type, event.object["metadata"]["finalizers"], rv_of(event.object)) == ("DELETED", [FINALIZER], rv_of(before) + 1)
    assert (rv_of(answer), answer["metadata"].get("finalizers") or []) == (rv_of(before), [])


def test_an_invalid_claim_is_invalid_even_if_its_name_is_taken(api: ApiServer) -> None:
    with pytest.raises(Invalid):
        api.create(CLAIM, claim_object("c1", ["r", "r"]))
    with pytest.raises(AlreadyExists):
        api.create(CLAIM, claim_object("c1", ["r"]))


@pytest.mark.parametrize(("request_name", "fits"), [("r/s", True), ("r", True), ("r/t", False), ("r/s/s", False), ("s", False)])
def test_results_name_requests_or_their_alternatives(api: ApiServer, request_name: str, fits: bool) -> None:
    claim = claim_object("c3", ["r"])
    claim["spec"]["devices"]["requests"] = [{"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "x"}]}]
    made = api.create(CLAIM, claim)
    made["status"]["allocation"] = allocation_object(Allocated((Result(request_name, "drv/n1/d1"),)))
    if fits:
        api.update_status(CLAIM, made)
    else:
        with pytest.raises(Invalid, match="is not one of the claim's"):
            api.update_status(CLAIM, made)


def test_a_claim_may_have_no_requests(api: ApiServer) -> None:
    claim = claim_object("c3", [])
    claim["spec"] = {"devices": {}}
    made = api.create(CLAIM, claim)
    made["status"]["allocation"] = allocation_object(Allocated(()))
    assert allocation(api.update_status(CLAIM, made)) == {"devices": {"results": []}}


def test_a_later_delete_only_shortens_the_time_of_a_pod(api: ApiServer) -> None:
    pod = pod_object("slow", [], "n1")
    pod["metadata"]["finalizers"] = ["example.com/slow"]
    api.create(POD, pod)
    seen = []
    for grace in (None, 40, None, 0, 5):
        found = api.delete(POD, "slow", grace=grace)
        assert found is not None
        seen.append((found["metadata"]["deletionGracePeriodSeconds"], rv_of(found) - rv_of(api.get(POD, "slow"))))
    assert seen == [(30, 0), (30, 0), (30, 0), (0, 0), (0, 0)]


def test_a_claim_is_for_the_pod_whose_uid_controls_it() -> None:
    pod = {"metadata": {"name": "p", "namespace": "a", "uid": "1"}}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": "1", "controller": True}

    def claim(space: str, **change: Any) -> Object:
        return {"metadata": {"name": "c", "namespace": space, "ownerReferences": [owner | change]}}

    assert is_for(claim("a"), pod)  # the name is not looked at
    assert not is_for(claim("b"), pod)
    assert not is_for(claim("a", uid="2"), pod)
    assert not is_for(claim("a", controller=False), pod)


def test_delete_preconditions(api: ApiServer) -> None:
    with pytest.raises(Conflict):
        api.delete(CLAIM, "c1", uid="other")
    with pytest.raises(Conflict):
        api.delete(CLAIM, "c1", version="0")
    assert api.delete(CLAIM, "c1", uid=uid_of(api.get(CLAIM, "c1"))) is None


def test_device_entries_follow_the_allocation(api: ApiServer) -> None:
    claim = allocated(api)
    entry = {**{k: results(ONE)[0][k] for k in ("driver", "pool", "device")}, "conditions": [{"type": "Ready", "status": "True"}]}
    claim["status"]["devices"] = [entry]
    claim = api.update_status(CLAIM, claim)
    assert conditions(claim) == {("drv/n1/d1", "Ready")}
    wrong = copy.deepcopy(claim)
    wrong["status"]["devices"].append({**entry, "device": "d9"})
    with pytest.raises(Invalid, match="d9 is not allocated"):
        api.update_status(CLAIM, wrong)
    del claim["status"]["allocation"]
    assert "devices" not in api.update_status(CLAIM, claim)["status"]  # dropped silently


def test_patch_ignores_versions_but_not_the_uid(api: ApiServer) -> None:
    claim = allocated(api, ONE, "p1")
    api.touch(CLAIM, "c1")
    patched = api.patch_status(CLAIM, "c1", lambda status: status.update(reservedFor=[]), uid=uid_of(claim))
    assert not consumers(patched)
    with pytest.raises(Invalid, match="uid"):
        api.patch_status(CLAIM, "c1", lambda status: None, uid="other")


def test_graceful_pod_deletion(api: ApiServer) -> None:
    assert api.delete(POD, "p1") is None  # without node: at once
    api.create(POD, pod_object("p2", [], "n1"))
    waiting = api.delete(POD, "p2")
    assert waiting is not None
    assert deleting(waiting)
    assert api.delete(POD, "p2", grace=0) is None
    api.create(POD, pod_object("p3", [], "n1"))
    api.patch_status(POD, "p3", lambda status: status.update(phase="Succeeded"))
    assert api.delete(POD, "p3") is None  # terminal: at once


def test_binding_is_once_and_never_of_a_deleting_or_replaced_pod(api: ApiServer) -> None:
    with pytest.raises(Conflict, match="UID"):
        api.bind("p1", "n1", uid="other")
    assert api.bind("p1", "n1")["spec"]["nodeName"] == "n1"
    with pytest.raises(Conflict, match="already assigned"):
        api.bind("p1", "n2")
    with pytest.raises(NotFound):
        api.bind("nobody", "n1")
    api.create(POD, {**pod_object("p2", []), "metadata": {"name": "p2", "finalizers": ["x"]}})
    api.delete(POD, "p2")
    with pytest.raises(Conflict, match="deleted"):
        api.bind("p2", "n1")


def test_garbage_collection_needs_all_owners_gone(api: ApiServer) -> None:
    api.create(CLAIM, generated_claim("g", "e", ["r"], api.get(POD, "p1")))
    assert not api.collectable(CLAIM, "g")
    with pytest.raises(Conflict):
        api.collect(CLAIM, "g")
    api.delete(POD, "p1")
    api.create(POD, pod_object("p1", []))  # same name, other UID: the owner is gone
    assert api.collectable(CLAIM, "g")
    assert api.collect(CLAIM, "g") is None
    assert not api.collectable(CLAIM, "c1")  # nobody owns it


def test_watches_have_their_own_pace(api: ApiServer) -> None:
    slow, fast = api.watch(CLAIM, "slow"), api.watch(CLAIM, "fast")
    api.touch(CLAIM, "c1")
    fast.take()
    api.delete(CLAIM, "c1")
    assert [e.type for e in slow.pending] == ["MODIFIED", "DELETED"]
    assert [e.type for e in fast.pending] == ["DELETED"]
    api.unwatch(slow)
    api.create(CLAIM, claim_object("c1", []))
    assert len(slow.pending) == 2


def test_node_selectors_come_back() -> None:
    for nodes in (None, frozenset({"n1"}), frozenset({"n1", "n2"})):
        found = selected_nodes(allocation_object(Allocated((), nodes)))
        assert (found if found is None else frozenset(found)) == nodes


class Machine(RuleBasedStateMachine):
    """Any clients in any order: what the store promises by itself (I1 to I4, I6, I8)."""

    def __init__(self) -> None:
        super().__init__()
        self.api = ApiServer()
        self.watch = self.api.watch(CLAIM, "w")
        self.copies: list[Object] = []
        self.last = 0

    def attempt(self, call: Any) -> None:
        try:
            found = call()
        except ApiError:
            return
        if found is not None:
            self.copies.append(found)

    @rule(finalizer=st.booleans())
    def create(self, finalizer: bool) -> None:
        claim = claim_object("c1", ["r"])
        if finalizer:
            claim["metadata"]["finalizers"] = [FINALIZER]
        self.attempt(lambda: self.api.create(CLAIM, claim))

    @rule()
    def delete(self) -> None:
        self.attempt(lambda: self.api.delete(CLAIM, "c1"))

    @rule(which=st.integers(0), allocation=st.sampled_from([None, ONE, OTHER]), pods=st.sets(st.sampled_from("xyz")), entry=st.booleans())
    def write_status(self, which: int, allocation: Object | None, pods: set[str], entry: bool) -> None:
        if not self.copies:
            return
        claim = copy.deepcopy(self.copies[which % len(self.copies)])
        claim["status"]["reservedFor"] = [{"resource": "pods", "name": pod, "uid": pod} for pod in sorted(pods)]
        claim["status"]["allocation"] = allocation
        if entry:
            claim["status"]["devices"] = [{"driver": "drv", "pool": "n1", "device": "d1", "conditions": []}]
        before = self.api.find(CLAIM, "c1")
        self.attempt(lambda: self.api.update_status(CLAIM, claim))
        after = self.api.find(CLAIM, "c1")
        if before != after:
            assert before is not None
            assert before["metadata"]["resourceVersion"] == claim["metadata"]["resourceVersion"]

    @rule(which=st.integers(0))
    def drop_finalizer(self, which: int) -> None:
        if self.copies:
            self.attempt(lambda: self.api.update(CLAIM, without_finalizer(self.copies[which % len(self.copies)])))

    @invariant()
    def store_promises(self) -> None:
        claim = self.api.find(CLAIM, "c1")
        if claim is None:
            return
        found = allocation(claim)
        assert found is not None or not consumers(claim)
        assert {device_id(e) for e in claim["status"].get("devices", ())} <= {device_id(r) for r in results(found)}
        assert not deleting(claim) or claim["metadata"].get("finalizers")

    @invariant()
    def events_tell_all_in_order(self) -> None:
        while self.watch.pending:
            event = self.watch.take()
            assert rv_of(event.object) > self.last
            self.last = rv_of(event.object)
        claim = self.api.find(CLAIM, "c1")
        assert claim is None or rv_of(claim) == self.last


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
