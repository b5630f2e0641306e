"""Allocations that the driver of the world chooses in the allocator's place, if a validator accepts them.

The world asks for one by the outcome of the step (`dra_spec.allocation.injected`). The validator shares no code with the allocators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dra_spec.allocation.errors import DoesNotFit, FatalAllocation, UnsupportedFeature
from dra_spec.allocation.injected import Choice, describe, parse
from dra_spec.allocation.validator import broken_rules
from dra_spec.allocation.z3_problem import Pick, Problem, Solution
from dra_spec.reference.errors import Divergence

if TYPE_CHECKING:
    from dra_spec.reference.world import World


def injected(world: World, asked: str) -> Choice | None:
    """The choice that is asked for; None: the allocator is to go its own way."""
    return parse(asked) if world.instance.any_allocation is not None else None


def accepted(world: World, step: str, choice: Choice, claims: tuple[str, ...], in_use: frozenset[str]) -> Sequence[Any]:
    """The chosen allocations, one for each of the claims that are to be allocated. Raises Divergence if they are no allocation."""

    def refuse(why: str) -> Divergence:
        return Divergence(step, f"the allocation {choice}", "its refusal", why)

    if tuple(name for name, _ in choice.claims) != claims:
        raise refuse(f"the claims to be allocated are {', '.join(claims) or 'none'}")
    problem: Problem = world.instance.any_allocation.problem(claims, choice.node, in_use)
    picks = tuple(
        Pick(index, request, device, _admin(problem, index, request))
        for index, (_, devices) in enumerate(choice.claims)
        for request, device in devices
    )
    try:
        broken = broken_rules(problem, Solution((choice.node,), picks))
        if broken:
            raise refuse("; ".join(str(rule) for rule in broken))
        found: Sequence[Any] = world.instance.any_allocation.written(claims, choice.node, picks)
    except (FatalAllocation, UnsupportedFeature) as error:
        raise refuse(str(error)) from None
    return found


def _admin(problem: Problem, claim: int, request: str) -> bool:
    """Whether the request has admin access: the choice does not say."""
    leaves = dict(leaf for each in problem.claims[claim].spec.requests for leaf in each.leaves)
    return request in leaves and bool(leaves[request].admin_access)


def name_of_choice(world: World, node: str, claims: tuple[str, ...], in_use: frozenset[str], made: Sequence[Any]) -> str:
    """How a step is called that ended with these allocations: they are named where there was a choice, with upstream's if it is another."""
    if world.instance.any_allocation is None or not claims:
        return "ok"
    devices = [[(result.request, result.device) for result in allocation.results] for allocation in made]
    text = describe(node, claims, devices)
    own = upstream_answer(world, node, claims, in_use)
    return text if text == own else describe(node, claims, devices, own)


def upstream_answer(world: World, node: str, claims: tuple[str, ...], in_use: frozenset[str]) -> str:
    """What the allocator itself answers, in the same words."""
    try:
        made = world.allocate(claims, node, in_use)
    except DoesNotFit:
        return "no-fit"
    except FatalAllocation:
        return "error"
    return describe(node, claims, [[(result.request, result.device) for result in allocation.results] for allocation in made])
