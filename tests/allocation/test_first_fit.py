"""The first-fit promise: the answer is the lexicographically first of all solutions, which a brute-force search finds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from allocation_build import DRIVER, allocate, claim, device, exact, slice_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_spec.resources import Constraint, DeviceRequest, Quantity, ResourceSlice, SubRequest
from dra_spec.resources.slices import CounterConsumption, CounterSet

MATCH = Constraint(match_attribute=f"{DRIVER}/root")
DISTINCT = Constraint(distinct_attribute=f"{DRIVER}/root")


def uses(amount: int) -> tuple[CounterConsumption, ...]:
    return (CounterConsumption(counter_set="s", counters={"mem": Quantity.of(amount)}),)


def counters(total: int) -> ResourceSlice:
    return slice_of(
        [], name="counters", count=2, shared_counters=(CounterSet(name="s", counters={"mem": Quantity.of(total), "other": Quantity.of(0)}),)
    )


Request = tuple[int, int, bool]  # count, least root, admin


def brute_force(
    roots: Sequence[int],
    used: Sequence[int],
    claims: Sequence[tuple[Sequence[Request], Constraint | None]],
    costs: Sequence[int],
    total: int,
) -> list[list[str]] | None:
    """The lexicographically first choice that satisfies every rule, by trying all."""
    leaves = [(c, r, q) for c, (requests, _) in enumerate(claims) for r, q in enumerate(requests)]
    options = [list(itertools.combinations(range(len(roots)), q[0])) for _, _, q in leaves]
    for choice in itertools.product(*options):
        if all(rule(roots, used, claims, leaves, choice, costs, total) for rule in RULES):
            answer: list[list[str]] = [[] for _ in claims]
            for (c, r, _), positions in zip(leaves, choice, strict=True):
                answer[c] += [f"r{r}=d{i}" for i in positions]
            return answer
    return None


def selectors_hold(roots: Any, used: Any, claims: Any, leaves: Any, choice: Any, costs: Any, total: Any) -> bool:
    return all(roots[i] >= q[1] for (_, _, q), positions in zip(leaves, choice, strict=True) for i in positions)


def nothing_twice(roots: Any, used: Any, claims: Any, leaves: Any, choice: Any, costs: Any, total: Any) -> bool:
    taken: list[tuple[int, int]] = []  # (claim, device)
    for (c, _, (_, _, admin)), positions in zip(leaves, choice, strict=True):
        for i in positions:
            if (admin and (c, i) in taken) or (not admin and (i in used or any(d == i for _, d in taken))):
                return False
            taken.append((c, i))
    return True


def constraints_hold(roots: Any, used: Any, claims: Any, leaves: Any, choice: Any, costs: Any, total: Any) -> bool:
    for c, (_, constraint) in enumerate(claims):
        values = [roots[i] for (owner, _, _), positions in zip(leaves, choice, strict=True) if owner == c for i in positions]
        if constraint is MATCH and len(set(values)) > 1:
            return False
        if constraint is DISTINCT and len(set(values)) < len(values):
            return False
    return True


def counters_hold(roots: Any, used: Any, claims: Any, leaves: Any, choice: Any, costs: Any, total: Any) -> bool:
    charged = [costs[i] for positions in choice for i in positions]
    spent = sum(charged) + sum(costs[i] for i in used)
    return not any(charged) or spent <= total


RULES: tuple[Callable[..., bool], ...] = (selectors_hold, nothing_twice, constraints_hold, counters_hold)
request_sets = st.lists(st.tuples(st.integers(1, 2), st.integers(0, 2), st.booleans()), min_size=1, max_size=2)
claim_sets = st.lists(st.tuples(request_sets, st.sampled_from([None, MATCH, DISTINCT])), min_size=1, max_size=2)


@settings(max_examples=250, deadline=None)
@given(
    devices=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4),
    used=st.sets(st.integers(0, 3), max_size=2),
    claims=claim_sets,
    total=st.integers(0, 5),
)
def test_the_answer_is_the_first_of_all_solutions(
    devices: list[tuple[int, int]], used: set[int], claims: list[tuple[list[Request], Constraint | None]], total: int
) -> None:
    used = {i for i in used if i < len(devices)}
    written = [device(f"d{i}", attributes={"root": r}, consumes_counters=uses(c) if c else ()) for i, (r, c) in enumerate(devices)]
    specs = []
    for requests, constraint in claims:
        leaves = [exact(n, f"device.attributes['{DRIVER}'].root >= {least}", admin_access=admin or None) for n, least, admin in requests]
        specs.append(claim(*leaves, constraints=(constraint,) if constraint else ()))
    expected = brute_force([r for r, _ in devices], sorted(used), claims, [c for _, c in devices], total)
    assert allocate([slice_of(written, count=2), counters(total)], specs, [f"d{i}" for i in used]) == expected


# --- prioritized lists and requests for all --------------------------------------------------------------------------

Alternative = tuple[int, int]  # count (0: all), least root


def options(roots: Sequence[int], alternatives: Sequence[Alternative]) -> list[tuple[int, tuple[int, ...]]]:
    """(alternative, positions) in the order in which they are preferred."""
    found = []
    for index, (count, least) in enumerate(alternatives):
        able = [i for i, r in enumerate(roots) if r >= least]
        choices = itertools.combinations(able, count) if count else [tuple(able)] if able else []
        found += [(index, positions) for positions in choices]
    return found


def first_choice(roots: Sequence[int], used: set[int], claims: Sequence[Sequence[Sequence[Alternative]]]) -> list[list[str]] | None:
    leaves = [(c, r, alternatives) for c, requests in enumerate(claims) for r, alternatives in enumerate(requests)]
    for choice in itertools.product(*[options(roots, alternatives) for _, _, alternatives in leaves]):
        taken = [i for _, positions in choice for i in positions]
        if len(set(taken)) == len(taken) and not used.intersection(taken):
            answer: list[list[str]] = [[] for _ in claims]
            for (c, r, _), (index, positions) in zip(leaves, choice, strict=True):
                answer[c] += [f"r{r}/s{index}=d{i}" for i in positions]
            return answer
    return None


alternative_sets = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=3)


@settings(max_examples=250, deadline=None)
@given(
    roots=st.lists(st.integers(0, 2), min_size=1, max_size=5),
    used=st.sets(st.integers(0, 4), max_size=2),
    claims=st.lists(st.lists(alternative_sets, min_size=1, max_size=2), min_size=1, max_size=2),
)
def test_the_first_alternatives_that_work_together(roots: list[int], used: set[int], claims: list[list[list[Alternative]]]) -> None:
    used = {i for i in used if i < len(roots)}
    specs = []
    for requests in claims:
        written = []
        for r, alternatives in enumerate(requests):
            leaves = [exact(count, f"device.attributes['{DRIVER}'].root >= {least}") for count, least in alternatives]
            subs = tuple(
                SubRequest(name=f"s{i}", device_class_name="c", selectors=e.selectors, allocation_mode=e.allocation_mode, count=e.count)
                for i, e in enumerate(leaves)
            )
            written.append(DeviceRequest(name=f"r{r}", first_available=subs))
        specs.append(claim(*written))
    devices = [device(f"d{i}", attributes={"root": r}) for i, r in enumerate(roots)]
    assert allocate([slice_of(devices)], specs, [f"d{i}" for i in used]) == first_choice(roots, used, claims)
