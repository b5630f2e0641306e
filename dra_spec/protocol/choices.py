"""The answers of an allocator as outcomes of a step: upstream's own, or under `allocation: any` every feasible allocation beside it.

Upstream's answer is always among them, also where it finds no fit or aborts though there is an allocation: so what holds of all outcomes
holds of upstream's.
"""

from __future__ import annotations

import attrs

from dra_spec.allocation.errors import DoesNotFit, FatalAllocation
from dra_spec.allocation.injected import describe
from dra_spec.protocol.instance import Instance
from dra_spec.protocol.objects import Allocation

NO_FIT, ABORTED = "no-fit", "error"


@attrs.frozen
class Chosen:
    """An allocation of the claims on a node; `label` names its devices where there is a choice, else it is "ok"."""

    node: str
    allocations: tuple[Allocation, ...]
    label: str = "ok"


@attrs.frozen
class Answers:
    """What may come of a call of the allocator.

    `upstream`: upstream's allocation; None: it has none (`fatal`: the attempt is aborted). `others`: what other allocators would answer.
    `beyond`: the bound because of which others are missing, or "".
    """

    upstream: Chosen | None
    others: tuple[Chosen, ...] = ()
    fatal: bool = False
    beyond: str = ""


def answers(instance: Instance, claims: tuple[str, ...], node: str, in_use: frozenset[str]) -> Answers:
    """All answers for these claims, in a fixed order. No claims: one answer without a choice."""
    if not claims:
        return Answers(Chosen(node, ()))
    own: tuple[Allocation, ...] | None = None
    failed = ""
    try:
        own = instance.allocate(claims, node, in_use)
    except DoesNotFit:
        failed = NO_FIT
    except FatalAllocation:
        failed = ABORTED
    if instance.any_allocation is None:
        return Answers(Chosen(node, own) if own is not None else None, fatal=failed == ABORTED)
    found = instance.others(claims, node, in_use)
    text = describe(node, claims, [a.picks for a in own]) if own is not None else failed
    others = tuple(Chosen(node, each, describe(node, claims, [a.picks for a in each], text)) for each in found.allocations)
    return Answers(Chosen(node, own, text) if own is not None else None, others, failed == ABORTED, found.beyond)
