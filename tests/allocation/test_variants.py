"""Each allocator variant gives its wrong answer on a small problem, the release the right one; versions and gates select features."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import pytest
from allocation_build import CLASS, DRIVER, claim, device, exact, node, slice_of

from dra_spec.allocation import AllocatedState, Allocator, DoesNotFit, FatalAllocation, Inventory, Settings, UnsupportedFeature
from dra_spec.allocation.errors import AllocatorCrash
from dra_spec.allocation.gates import GATES, VERSIONS, features_of, gates_of, variant_for
from dra_spec.allocation.variants import RELEASES, VARIANTS, rules_with
from dra_spec.resources import (
    AttributeValue,
    Capacity,
    ClaimSpec,
    Constraint,
    Device,
    DeviceRequest,
    Quantity,
    ResourceSlice,
    SubRequest,
    Taint,
)
from dra_spec.resources.claims import CapacityRequirements
from dra_spec.resources.meta import DeviceConfig, Opaque
from dra_spec.resources.slices import CounterConsumption, CounterSet, RequestPolicy, ValidRange

Problem = tuple[Sequence[ResourceSlice], Sequence[ClaimSpec], AllocatedState]
ALL = frozenset(GATES)
ROOT = f"device.attributes['{DRIVER}'].root"
DISTINCT = Constraint(distinct_attribute=f"{DRIVER}/root")
MATCH = Constraint(match_attribute=f"{DRIVER}/root")
FREE = AllocatedState()


def q(number: int) -> Quantity:
    return Quantity.parse(str(number))


def rooted(name: str, *roots: int, **more: object) -> Device:
    value = AttributeValue("ints", roots) if len(roots) > 1 else AttributeValue("int", roots[0])
    return Device(name=name, attributes={"root": value}, **more)  # type: ignore[arg-type]


def cost(amount: int, *groups: str) -> tuple[CounterConsumption, ...]:
    return (CounterConsumption(counter_set="s", counters={"c": q(amount)}, compatibility_groups=groups),)


def counters(total: int, **more: object) -> ResourceSlice:
    sets = (CounterSet(name="s", counters={"c": q(total)}),)
    return slice_of([], name="counters", count=2, shared_counters=sets, **more)  # type: ignore[arg-type]


def wants(amount: int, count: int = 1) -> ClaimSpec:
    return claim(exact(count, capacity=CapacityRequirements(requests={"m": q(amount)})))


def memory(amount: int, policy: RequestPolicy | None = None) -> dict[str, Capacity]:
    return {"m": Capacity(value=q(amount), request_policy=policy)}


def tainted() -> Problem:
    taint = Taint(key="k", effect="NoSchedule")
    devices = [device("a", consumes_counters=cost(2), taints=(taint,)), device("b", consumes_counters=cost(2))]
    return [slice_of(devices, count=2), counters(2)], [claim(exact())], FREE


def shares_in_the_way() -> Problem:
    """The first choice, a, is no use for what follows; b costs the counters that a gave back."""
    devices = [
        rooted("a", 1, consumes_counters=cost(2), allow_multiple_allocations=True),
        rooted("b", 2, consumes_counters=cost(2)),
        rooted("c", 2),
    ]
    wanted = claim(exact(), exact(1, f"{ROOT} == 2"), constraints=(MATCH,))
    return [slice_of(devices, count=2), counters(2)], [wanted], FREE


def same_pool_name() -> Problem:
    other = "e.example.com"
    slices = []
    for driver in (DRIVER, other):
        slices += [
            slice_of([device("a", consumes_counters=cost(2))], name=f"{driver}-1", driver=driver, count=2),
            slice_of([], name=f"{driver}-2", driver=driver, count=2, shared_counters=(CounterSet(name="s", counters={"c": q(2)}),)),
        ]
    return slices, [claim(exact(2))], FREE


def same_root_twice() -> Problem:
    return [slice_of([rooted("a", 1), rooted("b", 2), rooted("c", 1)])], [claim(exact(3), constraints=(DISTINCT,))], FREE


def lists() -> Problem:
    return [slice_of([rooted("a", 1, 2), rooted("b", 2, 3), rooted("c", 1), rooted("d", 1)])], [claim(exact(3), constraints=(MATCH,))], FREE


def busy() -> Problem:
    devices = [device(n, capacity=memory(4), allow_multiple_allocations=True) for n in "ab"]
    name = f"{DRIVER}/p/a"
    return [slice_of(devices)], [wants(3, 0)], AllocatedState(shares={(name, "1")}, consumed={name: {"m": q(2)}})


def share_without_capacity() -> Problem:
    devices = [device("a", consumes_counters=cost(2), allow_multiple_allocations=True)]
    return [slice_of(devices, count=2), counters(2)], [claim(exact())], AllocatedState(shares={(f"{DRIVER}/p/a", "1")})


def huge_step() -> Problem:
    policy = RequestPolicy(default=q(2), valid_range=ValidRange(min=q(2), max=q(4), step=q(2)))
    return [slice_of([device("a", capacity=memory(4, policy), allow_multiple_allocations=True)])], [wants(2**64)], FREE


def huge_request() -> Problem:
    large = 10**21
    policy = RequestPolicy(default=q(large), valid_range=ValidRange(min=q(2)))
    devices = [device("a", capacity=memory(large + 2, policy), allow_multiple_allocations=True)]
    return [slice_of(devices)], [wants(2), wants(large)], FREE


def grouped() -> Problem:
    devices = [device("a", consumes_counters=cost(1, "g")), device("b", consumes_counters=cost(1, "h"))]
    return [slice_of(devices, count=2), counters(2)], [claim(exact(2))], FREE


def busy_alternative() -> Problem:
    """The first alternative is refused by the last check of all, because a share holds too much; the constraint knows its device."""
    devices = [rooted("a", 1, capacity=memory(4), allow_multiple_allocations=True), rooted("b", 2)]
    first = exact(0, f"{ROOT} == 1", capacity=CapacityRequirements(requests={"m": q(3)}))
    second = exact(1, f"{ROOT} == 2")
    both = [SubRequest(name=n, **attrs.asdict(r, recurse=False)) for n, r in (("all", first), ("one", second))]
    name = f"{DRIVER}/p/a"
    state = AllocatedState(shares={(name, "1")}, consumed={name: {"m": q(2)}})
    return [slice_of(devices)], [claim(DeviceRequest(name="r", first_available=tuple(both)), constraints=(MATCH,))], state


def solve(problem: Problem, rules: Settings) -> list[list[str]] | str:
    slices, claims, state = problem
    anything = CLASS.__class__(metadata=CLASS.metadata)
    try:
        found = Allocator(Inventory.of([anything], slices, [node()]), rules).allocate(claims, "n", state)
    except DoesNotFit:
        return "no-fit"
    except FatalAllocation:
        return "error"
    return [[r.device for r in c.results] for c in found]


@pytest.mark.parametrize(
    ("name", "problem", "right", "wrong"),
    [
        ("counters-kept-on-rejection", tainted, [["b"]], "no-fit"),
        ("shared-counters-kept-on-backtracking", shares_in_the_way, [["b", "c"]], "no-fit"),
        ("counters-by-pool-name", same_pool_name, [["a", "a"]], "no-fit"),
        ("distinct-by-request", same_root_twice, "no-fit", [["a", "b", "c"]]),
        ("list-match-not-restored", lists, [["a", "c", "d"]], "no-fit"),
        ("constraints-kept-on-rejection", busy_alternative, [["b"]], "no-fit"),
        ("all-drops-busy-devices", busy, "no-fit", [["b"]]),
        ("share-without-capacity-recharged", share_without_capacity, [["a"]], "no-fit"),
        ("capacity-wraps", huge_step, "error", [["a"]]),
        ("large-requests-grow", huge_request, [["a"], ["a"]], "no-fit"),
        ("compatibility-groups-unknown", grouped, "no-fit", [["a", "b"]]),
    ],
)
def test_each_variant_has_its_wrong_answer(name: str, problem: Callable[[], Problem], right: object, wrong: object) -> None:
    features = (
        ALL - {"CompatibilityGroups", "FractionalCapacityRange"} if name in ("compatibility-groups-unknown", "capacity-wraps") else ALL
    )
    assert solve(problem(), Settings("1.37", features, "experimental")) == right
    assert solve(problem(), Settings("1.37", features, "experimental", rules_with([name]))) == wrong


def test_lists_break_selectors_only_with_their_gate_off() -> None:
    problem = ([slice_of([rooted("a", 1, 2)])], [claim(exact(1, "true"))], FREE)
    rules = rules_with(["lists-break-selectors"])
    assert solve(problem, Settings("1.37", ALL - {"ListTypeAttributes"}, "experimental", rules)) == "error"
    assert solve(problem, Settings("1.37", ALL, "experimental", rules)) == [["a"]]


def test_a_config_for_all_requests_names_them_in_old_versions() -> None:
    config = DeviceConfig(requests=("r0", "r1"), opaque=Opaque(driver=DRIVER, parameters={"a": 1}))
    spec = claim(exact(), exact())
    spec = attrs.evolve(spec, devices=attrs.evolve(spec.devices, config=(config,)))
    inventory = Inventory.of([CLASS], [slice_of(["a", "b"])], [node()])
    found = {v: Allocator(inventory, Settings.of(v)).allocate([spec], "n")[0].config for v in ("1.36", "1.37")}
    assert {v: [(c.requests, c.source) for c in f] for v, f in found.items()} == {
        "1.36": [(("r0", "r1"), "FromClaim")],
        "1.37": [((), "FromClaim")],
    }


def test_huge_counts_crash_only_the_old_code() -> None:
    half = claim(exact(2**62), exact(2**62))
    allocator = Allocator(Inventory.of([CLASS], [slice_of(["a"])], [node()]), Settings(rules=rules_with(["device-total-overflows"])))
    with pytest.raises(AllocatorCrash, match="overflows 64 bits"):
        allocator.allocate([half], "n")
    assert solve(([slice_of(["a"])], [half], FREE), Settings()) == "error"


def test_every_variant_says_what_it_is_and_releases_name_known_ones() -> None:
    assert all(v.effect and v.versions and v.upstream and v.replaces for v in VARIANTS.values())
    assert all(name in VARIANTS for names in RELEASES.values() for name in names)
    with pytest.raises(ValueError, match="found allocator variant 'nothing', expected one of all-drops-busy-devices"):
        rules_with(["nothing"])


@pytest.mark.parametrize(
    ("version", "gates", "variant"),
    [
        ("1.34", {}, "incubating"),
        ("1.36", {}, "incubating"),
        ("1.37", {}, "incubating"),
        ("1.37", {"DRADeviceBindingConditions": False, "DRAConsumableCapacity": False, "DRAFractionalCapacityRange": False}, "stable"),
        ("1.37", {"DRAListTypeAttributes": True}, "experimental"),
        ("1.37", {"DRADerivedAttributes": True}, "experimental"),
    ],
)
def test_the_variant_that_the_scheduler_picks(version: str, gates: dict[str, bool], variant: str) -> None:
    assert Settings.of(version, gates).variant == variant


def test_features_follow_from_gates() -> None:
    assert features_of(gates_of("1.34")) == {"AdminAccess", "PrioritizedList"}
    assert features_of(gates_of("1.37")) - features_of(gates_of("1.36")) == {"FractionalCapacityRange"}
    assert "DeviceBindingAndStatus" not in features_of(gates_of("1.36", {"DRAResourceClaimDeviceStatus": False}))
    assert [variant_for(v, frozenset()) for v in VERSIONS] == ["stable"] * 4


@pytest.mark.parametrize(
    ("version", "gates", "message"),
    [
        ("1.33", {}, "found Kubernetes version '1.33', expected one of 1.34, 1.35, 1.36, 1.37"),
        ("1.34", {"DRADerivedAttributes": True}, "Kubernetes 1.34 has no feature gate 'DRADerivedAttributes'"),
        ("1.37", {"DRAAdminAccess": False}, "DRAAdminAccess is locked to true in Kubernetes 1.37"),
    ],
)
def test_wrong_gates(version: str, gates: dict[str, bool], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings.of(version, gates)


def test_features_that_no_allocator_supports_together() -> None:
    with pytest.raises(ValueError, match=r"no allocator of Kubernetes 1\.36 supports DerivedAttributes together"):
        variant_for("1.36", {"DerivedAttributes"})


def test_a_caller_that_knows_whole_devices_only_gets_no_answer_about_shares() -> None:
    slices = [slice_of([device("a", allow_multiple_allocations=True)])]
    with pytest.raises(UnsupportedFeature, match="allowMultipleAllocations"):
        Allocator(Inventory.of([CLASS], slices, [node()])).allocate([claim(exact())], "n", frozenset())
    assert Allocator(Inventory.of([CLASS], slices, [node()])).allocate([claim(exact())], "n", FREE)[0].results[0].share_id
