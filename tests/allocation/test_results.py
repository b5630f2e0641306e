"""What an allocation says besides its devices: configuration, node operations, derived attributes, node resources, kinds of failure."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from allocation_build import CLASS, DRIVER, claim, device, exact, node, slice_of

from dra_spec.allocation import AllocatedState, Allocator, ClaimResult, DoesNotFit, FatalAllocation, InvalidPools, Inventory, Settings
from dra_spec.allocation.gates import GATES
from dra_spec.allocation.nodeallocatable import claimed_resources, resources_missing
from dra_spec.allocation.results import configs_for, configs_for_request
from dra_spec.resources import Capacity, ClaimSpec, Constraint, DeviceRequest, Metadata, Node, Quantity, ResourceSlice, SubRequest
from dra_spec.resources.claims import AllocatedDevice, AllocationDevices, AllocationResult, CapacityRequirements, DerivedAttribute
from dra_spec.resources.core import NodeStatus
from dra_spec.resources.meta import DeviceConfig, Opaque
from dra_spec.resources.slices import AllocatableMapping, AllocatableOverhead, NodeAllocatable

EVERYTHING = Settings("1.37", frozenset(GATES), "experimental")


def q(number: int | str) -> Quantity:
    return Quantity.parse(str(number))


def allocate(slices: Sequence[ResourceSlice], spec: ClaimSpec, rules: Settings = EVERYTHING, at: Node | None = None) -> ClaimResult:
    return Allocator(Inventory.of([CLASS], slices, [at or node()]), rules).allocate([spec], at or node())[0]


def config(number: int, *requests: str, driver: str = DRIVER) -> DeviceConfig:
    return DeviceConfig(requests=requests, opaque=Opaque(driver=driver, parameters={"number": number}))


def with_config(spec: ClaimSpec, *entries: DeviceConfig) -> ClaimSpec:
    return attrs.evolve(spec, devices=attrs.evolve(spec.devices, config=entries))


def test_config_of_classes_comes_first_and_only_what_concerns_a_chosen_request() -> None:
    gpu = attrs.evolve(CLASS, spec=attrs.evolve(CLASS.spec, config=(config(1),)))
    other = attrs.evolve(CLASS, metadata=Metadata(name="other"), spec=attrs.evolve(CLASS.spec, config=(config(2), config(3))))
    choice = (
        SubRequest(name="s0", device_class_name="other", selectors=exact(1, "false").selectors),
        SubRequest(name="s1", device_class_name="c"),
    )
    spec = with_config(
        claim(exact(), DeviceRequest(name="pick", first_available=choice)),
        config(4, "pick/s0"),
        config(5, "pick/s1"),
        config(6),
        config(7, "r0", "pick"),
    )
    found = Allocator(Inventory.of([gpu, other], [slice_of(["a", "b"])], [node()]), EVERYTHING).allocate([spec], "n")[0]
    assert [(c.opaque and c.opaque.parameters["number"], c.requests, c.source) for c in found.config] == [
        (1, (), "FromClass"),  # used by all requests
        (5, ("pick/s1",), "FromClaim"),
        (6, (), "FromClaim"),
        (7, (), "FromClaim"),
    ]
    numbers = [c.opaque and c.opaque.parameters["number"] for c in configs_for(found.results[0], found.config)]
    assert numbers == [1, 6, 7]
    others = (config(8, "pick", driver="x.example.com"), config(9, "r0"))
    assert [c.opaque and c.opaque.parameters["number"] for c in configs_for_request("pick/s1", others)] == [8]  # whatever its driver
    assert configs_for(found.results[1], (config(8, "pick", driver="x.example.com"), config(9, "pick"))) == (config(9, "pick"),)


def test_the_result_as_it_is_written_to_the_claim_makes_the_state() -> None:
    slices = [slice_of([device("s", allow_multiple_allocations=True, capacity={"m": Capacity(value=q(4))}), "a"])]
    capacity = CapacityRequirements(requests={"m": q(1)})
    written = allocate(slices, claim(exact(1, capacity=capacity), exact(), exact(1, capacity=capacity, admin_access=True))).allocation
    results = [(r.device, bool(r.share_id), r.admin_access) for r in written.devices.results]
    assert results == [("s", True, False), ("a", False, False), ("s", True, True)]


def test_the_state_leaves_admin_access_out() -> None:
    def result(device: str, **more: object) -> AllocatedDevice:
        return AllocatedDevice(request="r", driver=DRIVER, pool="p", device=device, **more)  # type: ignore[arg-type]

    allocation = AllocationResult(
        devices=AllocationDevices(
            results=(
                result("a"),
                result("b", admin_access=True),
                result("c", share_id="1", consumed_capacity={"m": q(1)}),
                result("c", share_id="2", consumed_capacity={"m": q(2)}),
                result("d", share_id="3"),
            )
        )
    )
    state = AllocatedState.of([allocation])
    assert state.devices == {f"{DRIVER}/p/a"}
    assert state.shared_devices == {f"{DRIVER}/p/c", f"{DRIVER}/p/d"}
    assert state.consumed == {f"{DRIVER}/p/c": {"m": q(3)}}
    assert AllocatedState.of([allocation], shares=False).devices == {f"{DRIVER}/p/{d}" for d in "acd"}


@pytest.mark.parametrize(("declared", "fits"), [((), False), (("DRAOptionalNodeOperations",), True)])
def test_devices_that_skip_node_operations_need_a_node_that_can(declared: tuple[str, ...], fits: bool) -> None:
    at = attrs.evolve(node(), status=NodeStatus(declared_features=declared))
    slices = [slice_of(["a"], skip_node_operations=("*",))]
    if fits:
        assert allocate(slices, claim(exact()), at=at).results[0].skip_node_operations == ("*",)
    else:
        with pytest.raises(DoesNotFit):
            allocate(slices, claim(exact()), at=at)
    off = Settings("1.37", EVERYTHING.features - {"OptionalNodeOperations"}, "experimental")
    with pytest.raises(DoesNotFit):
        allocate(slices, claim(exact()), off, at)


def derived(expression: str, count: int = 1) -> ClaimSpec:
    attribute = DerivedAttribute(name="own/root", expression=expression)
    return claim(exact(count, derived_attributes=(attribute,)), constraints=(Constraint(match_attribute="own/root"),))


def test_derived_attributes_hide_those_of_the_device() -> None:
    devices = [device(n, attributes={"bus": bus, "own/root": "same"}) for n, bus in (("a", "1-a"), ("b", "2-a"), ("c", "1-b"))]
    root = f"device.attributes['{DRIVER}'].bus.split('-')[0]"
    assert [r.device for r in allocate([slice_of(devices)], derived(root, 2)).results] == ["a", "c"]
    numbers = f"[device.attributes['{DRIVER}'].bus.size(), 7]"
    assert [r.device for r in allocate([slice_of(devices)], derived(numbers, 3)).results] == ["a", "b", "c"]


@pytest.mark.parametrize("expression", [f"device.attributes['{DRIVER}'].none", "1 +", "{'a': 1}", "1.5"])
def test_a_derived_attribute_that_cannot_be_had_is_fatal(expression: str) -> None:
    with pytest.raises(FatalAllocation, match="derived attribute own/root"):
        allocate([slice_of([device("a", attributes={"bus": "1"})])], derived(expression))


def test_without_the_gate_derived_attributes_are_fatal() -> None:
    with pytest.raises(FatalAllocation, match="DRADerivedAttributes is off"):
        allocate([slice_of(["a"])], derived("1"), Settings.of("1.37"))


def test_no_fit_with_an_invalid_pool_is_an_error_of_this_node() -> None:
    twice = [slice_of(["a"], name="1", count=2), slice_of(["a"], name="2", count=2)]
    with pytest.raises(InvalidPools, match="two devices are called a"):
        allocate(twice, claim(exact()))
    incomplete = [slice_of(["a"], count=2)]
    with pytest.raises(DoesNotFit) as error:
        allocate(incomplete, claim(exact()))
    assert not isinstance(error.value, InvalidPools)
    other = slice_of(["b"], name="3", pool="q")
    assert [r.device for r in allocate([*twice, other], claim(exact())).results] == ["b"]


def test_a_list_that_would_exceed_the_results_is_left_for_the_next_alternative() -> None:
    def prefer(*counts: int) -> DeviceRequest:
        return DeviceRequest(
            name="p", first_available=tuple(SubRequest(name=f"s{i}", device_class_name="c", count=n) for i, n in enumerate(counts))
        )

    slices = [slice_of([f"d{i}" for i in range(40)])]
    found = allocate(slices, claim(exact(30), prefer(3, 2)))
    assert [r.request for r in found.results[30:]] == ["p/s1", "p/s1"]
    with pytest.raises(FatalAllocation, match="needs at least 33 devices"):
        allocate(slices, claim(exact(30), prefer(3, 4)))


def test_more_devices_than_calls_can_nest() -> None:
    slices = [slice_of([f"d{i}" for i in range(128)], name=str(n), pool=str(n)) for n in range(10)]
    claims = [claim(exact(32)) for _ in range(39)]
    found = Allocator(Inventory.of([CLASS], slices, [node()]), EVERYTHING).allocate(claims, "n")
    assert len({r.name for c in found for r in c.results}) == 39 * 32


def test_the_first_slice_given_decides_how_many_a_pool_has() -> None:
    slices = [slice_of(["a"], name="2", count=2), slice_of(["b"], name="1", count=1)]
    assert [r.device for r in allocate(slices, claim(exact(2))).results] == ["b", "a"]
    with pytest.raises(DoesNotFit):
        allocate(list(reversed(slices)), claim(exact(2)))


def test_what_devices_cost_of_the_node() -> None:
    cpu = NodeAllocatable(mapping=AllocatableMapping(device_multiplier=q(2)))
    memory = NodeAllocatable(
        mapping=AllocatableMapping(capacity_key=f"{DRIVER}/m", capacity_multiplier=q("500m")),
        overhead=AllocatableOverhead(per_pod=q(10), per_container=q(3)),
    )
    shared = device(
        "s", allow_multiple_allocations=True, capacity={"m": Capacity(value=q(8))}, node_allocatable_resources={"memory": memory}
    )
    slices = [slice_of([device("a", node_allocatable_resources={"cpu": cpu}), shared])]
    inventory = Inventory.of([CLASS], slices, [node()])
    capacity = CapacityRequirements(requests={"m": q(4)})
    found = Allocator(inventory, EVERYTHING).allocate([claim(exact()), claim(exact(1, capacity=capacity))], "n")
    cost = claimed_resources(inventory, node(), found, [1, 2])
    assert (cost.mapped, cost.overhead) == ({"cpu": q(2), "memory": q(2)}, {"memory": q(16)})
    assert cost.total == {"cpu": q(2), "memory": q(18)}
    at = attrs.evolve(node(), status=NodeStatus(allocatable={"cpu": q(2), "memory": q(20)}))
    assert resources_missing(at, [cost.total]) == {}
    assert resources_missing(at, [cost.total, {"cpu": q("100m"), "memory": q(2)}]) == {"cpu": q("100m")}
    whole = attrs.evolve(found[1], results=tuple(attrs.evolve(r, consumed_capacity={}) for r in found[1].results))
    with pytest.raises(FatalAllocation, match="consumes no capacity"):
        claimed_resources(inventory, node(), [whole], [1])
