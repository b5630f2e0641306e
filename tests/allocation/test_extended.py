"""Extended resources of pods: amounts, classes, and the claim that the scheduler makes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from extended_build import GPU, IMPLICIT, NIC, device_class, load, pod
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_spec.allocation.extended import INIT, MAIN, SIDECAR, Ask, PodAsks, asks_of, backing, is_extended, special_claim, totals
from dra_spec.resources import ManifestError

Spec = tuple[str, str, dict[str, int]]


def asks(*listed: Spec) -> tuple[Ask, ...]:
    return asks_of(load(pod("p", *listed)).pods[0])


def made(*listed: Spec, classes: dict[str, str] | None = None) -> tuple[dict[str, tuple[str, int]], set[tuple[str, str]]]:
    """Requests of the special claim (name -> class, count), and which container uses which."""
    known = classes or {GPU: "gpu"}
    wanted = PodAsks("pod p", asks(*listed))
    spec, special = special_claim(wanted, wanted.resources & set(known), known)
    requests = {r.name: (r.exactly.device_class_name, r.exactly.number) for r in spec.requests if r.exactly}
    return requests, {(u.container, u.request) for u in special.uses}


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("example.com/gpu", True),
        ("deviceclass.resource.kubernetes.io/gpu", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("kubernetes.io/batch-cpu", False),
        ("requests.example.com/gpu", False),
    ],
)
def test_which_names_are_extended_resources(name: str, extended: bool) -> None:
    assert is_extended(name) is extended


def test_one_request_for_each_container_and_resource_named_by_their_places() -> None:
    resources = {"cpu": 1, GPU: 2, NIC: 1, "memory": 1}
    requests, uses = made(("container", "a", resources), ("container", "b", {GPU: 1}), classes={GPU: "gpu", NIC: "nic"})
    # the second number is the place among the names that the container requests: cpu, example.com/gpu, example.com/nic, memory
    assert requests == {"container-0-request-1": ("gpu", 2), "container-0-request-2": ("nic", 1), "container-1-request-0": ("gpu", 1)}
    assert uses == {("a", "container-0-request-1"), ("a", "container-0-request-2"), ("b", "container-1-request-0")}


def test_init_containers_use_what_later_containers_hold_and_share_what_is_missing() -> None:
    requests, uses = made(
        ("init", "first", {GPU: 1}), ("sidecar", "side", {GPU: 1}), ("init", "second", {GPU: 3}), ("container", "main", {GPU: 1})
    )
    assert requests == {"container-1-request-0": ("gpu", 1), "container-3-request-0": ("gpu", 1), "container-2-request-0": ("gpu", 2)}
    assert {r for c, r in uses if c == "first"} == {"container-1-request-0"}
    assert {r for c, r in uses if c == "second"} == {"container-3-request-0", "container-2-request-0"}


def test_init_containers_share_the_largest_request_of_their_own() -> None:
    requests, uses = made(("init", "small", {GPU: 1}), ("init", "large", {GPU: 2}), ("container", "main", {NIC: 1}))
    assert requests == {"container-1-request-0": ("gpu", 2)}
    assert uses == {("small", "container-1-request-0"), ("large", "container-1-request-0")}


def test_requests_are_sorted_as_texts() -> None:
    wanted = PodAsks("pod p", asks(*(("container", f"c{i}", {GPU: 1}) for i in range(11))))
    spec, _ = special_claim(wanted, frozenset({GPU}), {GPU: "gpu"})
    assert [r.name for r in spec.requests][:3] == ["container-0-request-0", "container-1-request-0", "container-10-request-0"]


@given(
    st.lists(st.tuples(st.sampled_from([INIT, SIDECAR]), st.integers(0, 4)), max_size=5),
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
)
@settings(max_examples=150, deadline=None)
def test_the_special_claim_has_what_the_pod_needs_at_once_and_no_more(init: Sequence[tuple[str, int]], main: Sequence[int]) -> None:
    kinds = [*init, *((MAIN, n) for n in main)]
    listed = tuple(Ask(i, f"c{i}", kind, GPU, n, 0) for i, (kind, n) in enumerate(kinds) if n)
    # the most that runs at any moment: each init container with the sidecars before it, and all that stay
    moments = [sum(a.amount for a in listed if a.kind != INIT)]
    for each in listed:
        if each.kind == INIT:
            moments.append(each.amount + sum(a.amount for a in listed if a.kind == SIDECAR and a.index < each.index))
    assert totals(listed).get(GPU, 0) == max(moments)
    if not listed:
        return
    spec, special = special_claim(PodAsks("pod p", listed), frozenset({GPU}), {GPU: "gpu"})
    counts = {r.name: r.exactly.number for r in spec.requests if r.exactly}
    assert sum(counts.values()) == max(moments)
    for each in listed:
        mine = {u.request for u in special.uses if u.container == each.container}
        assert sum(counts[name] for name in mine) >= each.amount
        if each.kind != INIT:  # what stays shares with nobody that runs at the same time
            assert mine == {each.request}


def test_the_newest_class_serves_a_name_and_the_first_by_name_of_equally_new_ones() -> None:
    old, new = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00+01:00"
    found = backing(load(device_class("b", created=old), device_class("c", created=new), device_class("a", created=old)).classes)
    assert found.classes[GPU] == "c"
    assert found.outdone[GPU] == ("a", "b")
    assert found.classes[IMPLICIT + "b"] == "b"
    assert backing(load(device_class("b"), device_class("a")).classes).classes[GPU] == "a"
    assert backing(load(device_class("a"), device_class("b", created=old)).classes).classes[GPU] == "b"


def test_a_time_that_is_none_is_an_error_with_its_place() -> None:
    with pytest.raises(ManifestError, match=r"cluster.yaml:3.*found 'yesterday', expected a time"):
        backing(load(device_class("a", created="yesterday"), device_class("b")).classes)


def container(resources: str) -> str:
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  containers:\n    - {{name: c, resources: {{{resources}}}}}"


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ("limits: {example.com/gpu: 500m}", "found 500m, expected a whole number of devices"),
        ("requests: {example.com/gpu: 1}", "found a request of 1 and no limit, expected them to be equal"),
        ("requests: {example.com/gpu: 1}, limits: {example.com/gpu: 2}", "found a request of 1 and a limit of 2, expected them"),
    ],
)
def test_amounts_that_the_api_server_refuses(resources: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        asks_of(load(container(resources)).pods[0])
    assert str(caught.value).startswith("cluster.yaml:6: spec.containers[0].resources: container 'c': extended resource example.com/gpu: ")
    assert message in str(caught.value)


def test_an_implicit_name_needs_no_limit() -> None:
    assert [a.amount for a in asks_of(load(container(f"requests: {{{IMPLICIT}gpu: 2}}")).pods[0])] == [2]
