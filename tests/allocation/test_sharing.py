"""Shared devices, capacity policies, list attributes and compatibility groups: rule by rule, and against a brute-force search."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import pytest
from allocation_build import CLASS, DRIVER, claim, device, exact, node, slice_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dra_spec.allocation import AllocatedState, Allocator, DoesNotFit, FatalAllocation, Inventory, Settings
from dra_spec.allocation.gates import GATES
from dra_spec.resources import AttributeValue, Capacity, ClaimSpec, Constraint, Device, Quantity, ResourceSlice
from dra_spec.resources.claims import CapacityRequirements
from dra_spec.resources.slices import CounterConsumption, CounterSet, RequestPolicy, ValidRange

EVERYTHING = Settings("1.37", frozenset(GATES), "experimental")
MATCH = Constraint(match_attribute=f"{DRIVER}/root")
DISTINCT = Constraint(distinct_attribute=f"{DRIVER}/root")
NOTHING = AllocatedState()


def q(number: int | str) -> Quantity:
    return Quantity.parse(str(number))


def wants(amount: int | str | None, count: int = 1, **more: Any) -> Any:
    capacity = None if amount is None else CapacityRequirements(requests={"m": q(amount)})
    return exact(count, capacity=capacity, **more)


def shared(name: str, value: int | str | None = None, policy: RequestPolicy | None = None, **more: Any) -> Device:
    capacity = {} if value is None else {"m": Capacity(value=q(value), request_policy=policy)}
    return device(name, capacity=capacity, allow_multiple_allocations=True, **more)


def allocate(
    slices: Sequence[ResourceSlice], claims: Sequence[ClaimSpec], state: AllocatedState = NOTHING, rules: Settings = EVERYTHING
) -> list[list[str]] | None:
    """For each claim request=device[amount], in order."""
    try:
        found = Allocator(Inventory.of([CLASS], slices, [node()]), rules).allocate(claims, "n", state)
    except DoesNotFit:
        return None
    return [[f"{r.request}={r.device}" + (f"[{r.consumed_capacity.get('m', '')}]" if r.share_id else "") for r in c.results] for c in found]


def held(shares: Mapping[str, int | None] = {}, *devices: str) -> AllocatedState:
    """Devices of pool p held by other claims: shares with what they consume (None: no capacity), and whole devices."""
    names = {n: f"{DRIVER}/p/{n}" for n in [*shares, *devices]}
    consumed = {names[n]: {"m": q(a)} for n, a in shares.items() if a is not None}
    return AllocatedState(frozenset(names[n] for n in devices), frozenset((names[n], "1") for n in shares), consumed)


def test_a_device_is_shared_until_its_capacity_is_used_up() -> None:
    slices = [slice_of([shared("a", 4), shared("b", 4)])]
    assert allocate(slices, [claim(wants(3), wants(3), wants(1))]) == [["r0=a[3]", "r1=b[3]", "r2=a[1]"]]
    assert allocate(slices, [claim(wants(3)), claim(wants(3)), claim(wants(2))]) is None
    assert allocate(slices, [claim(wants(3))], held({"a": 2})) == [["r0=b[3]"]]
    assert allocate(slices, [claim(wants(2))], held({"a": 2})) == [["r0=a[2]"]]


def test_one_request_takes_a_shared_device_once() -> None:
    assert allocate([slice_of([shared("a", 4)])], [claim(wants(1, 2))]) is None
    assert allocate([slice_of([shared("a")])], [claim(exact(), exact()), claim(exact())]) == [["r0=a[]", "r1=a[]"], ["r0=a[]"]]


def test_a_device_that_is_held_as_a_whole_is_not_shared() -> None:
    assert allocate([slice_of([shared("a", 4)])], [claim(wants(1))], held({}, "a")) is None
    # upstream up to 1.37 gives a device that is no longer shared, though it has live shares
    assert allocate([slice_of(["a"])], [claim(exact())], held({"a": None})) == [["r0=a"]]


def test_shares_have_ids_of_their_own_and_no_share_without_the_feature() -> None:
    slices = [slice_of([shared("a", 4)])]
    allocator = Allocator(Inventory.of([CLASS], slices, [node()]), EVERYTHING)
    found = allocator.allocate([claim(wants(1), wants(1))], "n", NOTHING)[0].results
    assert len({r.share_id for r in found}) == 2
    without = Settings("1.37", EVERYTHING.features - {"ConsumableCapacity"}, "experimental")
    assert allocate(slices, [claim(exact())], rules=without) == [["r0=a"]]
    with pytest.raises(FatalAllocation, match="DRAConsumableCapacity is off"):
        allocate(slices, [claim(wants(1))], rules=without)


RANGE = RequestPolicy(default=q(2), valid_range=ValidRange(min=q(2), max=q(8), step=q(2)))
VALUES = RequestPolicy(default=q(2), valid_values=(q(2), q(5)))
MILLI = RequestPolicy(default=q("200m"), valid_range=ValidRange(min=q("200m"), max=q(1), step=q("100m")))


@pytest.mark.parametrize(
    ("policy", "wanted", "consumed"),
    [
        (None, 3, "3"),
        (None, None, "8"),  # the whole device
        (RANGE, 1, "2"),
        (RANGE, 3, "4"),
        (RANGE, 8, "8"),
        (RANGE, 9, None),
        (RANGE, None, "2"),
        (VALUES, 1, "2"),
        (VALUES, 3, "5"),
        (VALUES, 6, None),
        (VALUES, None, "2"),
        (MILLI, "250m", "300m"),
        (RequestPolicy(default=q(3), valid_range=ValidRange(min=q(1), max=q(2))), None, "3"),  # a default is never forbidden
        (RequestPolicy(default=q(3), valid_range=ValidRange(min=q(1), max=q(2))), 3, "3"),
    ],
)
def test_policies(policy: RequestPolicy | None, wanted: int | str | None, consumed: str | None) -> None:
    expected = None if consumed is None else [[f"r0=a[{consumed}]"]]
    assert allocate([slice_of([shared("a", 8, policy)])], [claim(wants(wanted))]) == expected


def test_without_thousandths_steps_are_counted_in_whole_numbers() -> None:
    rules = Settings("1.37", EVERYTHING.features - {"FractionalCapacityRange"}, "experimental")
    assert allocate([slice_of([shared("a", 8, MILLI)])], [claim(wants("250m"))], rules=rules) == [["r0=a[1]"]]


@pytest.mark.parametrize(("wanted", "policy"), [(-1, None), (2**63, RANGE), (2**63 - 1, RANGE)])
def test_amounts_that_cannot_be_counted_are_fatal(wanted: int, policy: RequestPolicy | None) -> None:
    with pytest.raises(FatalAllocation, match="capacity m"):
        allocate([slice_of([shared("a", 8, policy)])], [claim(wants(wanted))])


def test_a_capacity_that_the_device_lacks_passes_it_over() -> None:
    assert allocate([slice_of([shared("none"), shared("a", 2)])], [claim(wants(1))]) == [["r0=a[1]"]]


def test_all_counts_devices_by_what_they_have_in_all() -> None:
    slices = [slice_of([shared("a", 4), shared("b", 4), shared("small", 1)])]
    assert allocate(slices, [claim(wants(3, 0))]) == [["r0=a[3]", "r0=b[3]"]]
    assert allocate(slices, [claim(wants(3, 0))], held({"a": 2})) is None  # not: b alone


def counted(*costs: int, total: int, groups: Sequence[Sequence[str]] = ()) -> list[ResourceSlice]:
    devices = []
    for i, cost in enumerate(costs):
        use = CounterConsumption(counter_set="s", counters={"c": q(cost)}, compatibility_groups=tuple(groups[i]) if groups else ())
        devices.append(shared(f"d{i}", consumes_counters=(use,)) if not groups else device(f"d{i}", consumes_counters=(use,)))
    sets = slice_of([], name="counters", count=2, shared_counters=(CounterSet(name="s", counters={"c": q(total)}),))
    return [slice_of(devices, count=2), sets]


def test_only_the_first_share_is_charged_counters() -> None:
    assert allocate(counted(4, 4, total=4), [claim(exact(), exact())]) == [["r0=d0[]", "r1=d0[]"]]
    assert allocate(counted(4, 4, total=4), [claim(exact())], held({"d0": None})) == [["r0=d0[]"]]
    assert allocate(counted(4, 4, total=4), [claim(exact(2))]) is None


def test_compatibility_groups() -> None:
    def found(groups: Sequence[Sequence[str]], state: AllocatedState = NOTHING, count: int = 2) -> list[list[str]] | None:
        return allocate(counted(*[1] * len(groups), total=9, groups=groups), [claim(exact(count))], state)

    assert found([["g"], ["h"], ["g", "h"]]) == [["r0=d0", "r0=d2"]]
    assert found([["g"], ["h"], ["g", "h"]], count=3) is None
    assert found([[], ["g"], []]) == [["r0=d0", "r0=d2"]]
    assert found([["g"], ["h"], ["h"]], held({}, "d0"), 1) is None
    assert found([["g", "h"], ["h"], ["g"]], held({}, "d0"), 2) is None
    off = Settings("1.37", EVERYTHING.features - {"CompatibilityGroups"}, "experimental")
    assert allocate(counted(1, total=9, groups=[["g"]]), [claim(exact())], rules=off) is None  # the slice is left out


def rooted(*roots: tuple[int, ...] | int) -> list[Device]:
    return [
        Device(name=f"d{i}", attributes={"root": AttributeValue("ints", r) if isinstance(r, tuple) else AttributeValue("int", r)})
        for i, r in enumerate(roots)
    ]


@pytest.mark.parametrize(
    ("constraint", "roots", "found"),
    [
        (MATCH, ((1, 2), (2, 3), (1, 3)), ["d0", "d1"]),
        (MATCH, ((1, 2), 3, 2), ["d0", "d2"]),
        (MATCH, ((1, 2), 3, (4, 5)), None),
        (DISTINCT, ((1, 2), 2, (3, 4)), ["d0", "d2"]),
        (DISTINCT, (1, 1, (1, 2)), None),
    ],
)
def test_lists_in_constraints(constraint: Constraint, roots: Sequence[tuple[int, ...] | int], found: list[str] | None) -> None:
    answer = allocate([slice_of(rooted(*roots))], [claim(exact(2), constraints=(constraint,))])
    assert answer == ([[f"r0={d}" for d in found]] if found else None)


def test_three_lists_match_only_with_one_common_value() -> None:
    triangle = [slice_of(rooted((1, 2), (2, 3), (1, 3)))]
    assert allocate(triangle, [claim(exact(3), constraints=(MATCH,))]) is None
    # after (1, 2) and (2, 3) failed, the first device must again offer both its values
    assert allocate([slice_of(rooted((1, 2), (2, 3), 1, 1))], [claim(exact(3), constraints=(MATCH,))]) == [["r0=d0", "r0=d2", "r0=d3"]]


# --- against brute force ---------------------------------------------------------------------------------------------


@attrs.frozen
class D:
    """A device of a random problem. `steps`: (min, max, step) of a valid range, empty for none."""

    shared: bool
    amount: int | None
    steps: tuple[int, int, int] | tuple[()]
    cost: int
    groups: tuple[str, ...]
    roots: tuple[int, ...]


@attrs.frozen
class R:
    count: int
    wanted: int | None


Claims = Sequence[tuple[Sequence[R], Constraint | None]]


def consumption(d: D, wanted: int | None) -> int | None:
    """What a selection consumes; None: not allowed."""
    if d.amount is None:
        return 0 if wanted is None else None
    if not d.steps:
        amount = d.amount if wanted is None else wanted
    elif wanted is None:
        amount = d.steps[0]
    else:
        amount = next((n for n in range(d.steps[0], 20, d.steps[2]) if n >= wanted), 20)
        if amount > d.steps[1]:
            return None
    return amount if amount <= d.amount else None


Answer = list[list[str]]


def solutions(devices: Sequence[D], shares: Mapping[int, int], whole: frozenset[int], claims: Claims, total: int) -> Iterator[Answer]:
    """All choices that satisfy every rule, in lexicographic order."""
    leaves = [(c, r, q_) for c, (requests, _) in enumerate(claims) for r, q_ in enumerate(requests)]
    for choice in itertools.product(*[list(itertools.combinations(range(len(devices)), leaf.count)) for _, _, leaf in leaves]):
        picks = [(c, r, leaf, i) for (c, r, leaf), positions in zip(leaves, choice, strict=True) for i in positions]
        chosen = [i for _, _, _, i in picks]
        if any(i in whole or (not devices[i].shared and chosen.count(i) > 1) for i in chosen):
            continue
        eaten = [consumption(devices[i], leaf.wanted) for _, _, leaf, i in picks]
        if None in eaten:
            continue
        sums = {
            i: shares.get(i, 0) + sum(e or 0 for e, j in zip(eaten, chosen, strict=True) if j == i) for i in chosen if devices[i].shared
        }
        if any(devices[i].amount is not None and s > (devices[i].amount or 0) for i, s in sums.items()):
            continue
        charged = {i for i in chosen if devices[i].cost and not (devices[i].shared and i in shares)}
        drawing = [i for i, d in enumerate(devices) if d.cost and (i in charged or i in whole or i in shares)]
        if charged and sum(devices[i].cost for i in drawing) > total:
            continue
        if charged and not together([frozenset(devices[i].groups) for i in drawing]):
            continue
        if all(holds(constraint, [devices[i] for owner, _, _, i in picks if owner == c]) for c, (_, constraint) in enumerate(claims)):
            answer: Answer = [[] for _ in claims]
            for c, r, _, i in picks:
                answer[c].append(f"r{r}=d{i}")
            yield answer


def together(groups: Sequence[frozenset[str]]) -> bool:
    return not any(groups) or (all(groups) and bool(frozenset.intersection(*groups)))


def holds(constraint: Constraint | None, devices: Sequence[D]) -> bool:
    roots = [set(d.roots) for d in devices]
    if constraint is MATCH:
        return bool(set.intersection(*roots))
    return constraint is None or all(not a & b for a, b in itertools.combinations(roots, 2))


device_sets = st.lists(
    st.builds(
        D,
        shared=st.booleans(),
        amount=st.sampled_from([None, 2, 4, 5]),
        steps=st.sampled_from([(), (), (1, 4, 2), (2, 4, 1)]),
        cost=st.integers(0, 2),
        groups=st.sampled_from([(), (), ("g",), ("h",), ("g", "h")]),
        roots=st.sampled_from([(0,), (1,), (0, 1), (1, 2), (2,)]),
    ),
    min_size=1,
    max_size=4,
)
request_sets = st.lists(st.builds(R, count=st.integers(1, 2), wanted=st.sampled_from([None, None, 1, 2, 3])), min_size=1, max_size=2)


@settings(max_examples=400, deadline=None)
@given(
    devices=device_sets,
    held_whole=st.sets(st.integers(0, 3), max_size=1),
    held_shares=st.dictionaries(st.integers(0, 3), st.integers(0, 2), max_size=2),
    claims=st.lists(st.tuples(request_sets, st.sampled_from([None, None, MATCH, DISTINCT])), min_size=1, max_size=2),
    total=st.integers(0, 6),
)
def test_the_answer_is_the_first_of_all_solutions(
    devices: list[D], held_whole: set[int], held_shares: dict[int, int], claims: Claims, total: int
) -> None:
    whole = frozenset(i for i in held_whole if i < len(devices))
    shares = {i: a for i, a in held_shares.items() if i < len(devices) and devices[i].shared and i not in whole}
    # groups that contradict each other among what is allocated already have no meaning in the rules
    assume(together([frozenset(d.groups) for i, d in enumerate(devices) if d.cost and (i in whole or i in shares)]))
    written = []
    for i, d in enumerate(devices):
        policy = (
            RequestPolicy(default=q(d.steps[0]), valid_range=ValidRange(min=q(d.steps[0]), max=q(d.steps[1]), step=q(d.steps[2])))
            if d.steps
            else None
        )
        use = CounterConsumption(counter_set="s", counters={"c": q(d.cost)}, compatibility_groups=d.groups)
        root = AttributeValue("ints", d.roots) if len(d.roots) > 1 else AttributeValue("int", d.roots[0])
        written.append(
            Device(
                name=f"d{i}",
                attributes={"root": root},
                capacity={} if d.amount is None else {"m": Capacity(value=q(d.amount), request_policy=policy)},
                allow_multiple_allocations=d.shared,
                consumes_counters=(use,) if d.cost else (),
            )
        )
    sets = slice_of([], name="counters", count=2, shared_counters=(CounterSet(name="s", counters={"c": q(total)}),))
    specs = [claim(*(wants(r.wanted, r.count) for r in requests), constraints=(c,) if c else ()) for requests, c in claims]
    state = held({f"d{i}": a for i, a in shares.items()}, *(f"d{i}" for i in whole))
    found = allocate([slice_of(written, count=2), sets], specs, state)
    plain = found and [[text.partition("[")[0] for text in texts] for texts in found]
    assert plain == next(solutions(devices, shares, whole, claims, total), None)
