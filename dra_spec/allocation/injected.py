"""Whole devices that somebody else than upstream's search has chosen: what the choice is called, and the results that it makes.

A choice is written in one line, so that it can be the outcome of a step: the node, then for each claim and request the devices,
`n1 c1:gpu=gpu.example.org/n1/d2+gpu.example.org/n1/d3 c2:none`; after ` instead of ` the answer of upstream's allocator, where it differs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from dra_spec.allocation.inventory import Inventory
from dra_spec.allocation.nodes import selector_matches
from dra_spec.allocation.results import ClaimResult, Result, node_selector_of
from dra_spec.allocation.settings import Settings
from dra_spec.resources.meta import NodeSelector

if TYPE_CHECKING:
    from dra_spec.allocation.z3_problem import Pick

INSTEAD = " instead of "
NO_DEVICE = "none"
Devices = Sequence[tuple[str, str]]  # (request, driver/pool/device)


@attrs.frozen
class Choice:
    """An allocation of some claims on a node. `claims`: name and devices of each; `instead`: upstream's answer if it is another one."""

    node: str
    claims: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    instead: str = ""

    def __str__(self) -> str:
        text = " ".join([self.node, *(_claim(name, devices) for name, devices in self.claims)])
        return f"{text}{INSTEAD}{self.instead}" if self.instead else text


def describe(node: str, claims: Sequence[str], devices: Sequence[Devices], instead: str = "") -> str:
    """The choice in one line."""
    return str(Choice(node, tuple((name, tuple(each)) for name, each in zip(claims, devices, strict=True)), instead))


def _claim(name: str, devices: Devices) -> str:
    if not devices:
        return f"{name}:{NO_DEVICE}"
    groups = itertools.groupby(devices, key=lambda each: each[0])
    return " ".join(f"{name}:{request}={'+'.join(device for _, device in group)}" for request, group in groups)


def parse(text: str) -> Choice | None:
    """A choice from its line, None if the text is something else."""
    chosen, _, instead = text.partition(INSTEAD)
    node, *words = chosen.split(" ")
    found: dict[str, list[tuple[str, str]]] = {}
    for word in words:
        name, colon, rest = word.partition(":")
        if not colon:
            return None
        devices = found.setdefault(name, [])
        request, equals, names = rest.partition("=")
        if equals:
            devices += [(request, device) for device in names.split("+")]
        elif rest != NO_DEVICE:
            return None
    return Choice(node, tuple((name, tuple(devices)) for name, devices in found.items()), instead) if found else None


def written(inventory: Inventory, settings: Settings, node: str, claims: int, picks: Sequence[Pick]) -> tuple[ClaimResult, ...]:
    """The results of so many claims for devices that are allocated whole, as upstream writes them (configuration apart).

    Raises FatalAllocation if upstream cannot write the node selector, KeyError for a device that the node does not see.
    """
    there = inventory.node(node)
    devices = {d.name: d for pool in inventory.pools(there, settings.features) for d in pool.devices}
    found = []
    for claim in range(claims):
        mine = [pick for pick in picks if pick.claim == claim]
        chosen = [devices[pick.device] for pick in mine]
        results = tuple(
            Result(
                pick.request,
                d.driver,
                d.pool.name,
                d.device.name,
                pick.admin,
                d.device.binding_conditions,
                d.device.binding_failure_conditions,
            )
            for pick, d in zip(mine, chosen, strict=True)
        )
        selector = node_selector_of(chosen, there, settings)
        found.append(ClaimResult(results, selector, _nodes(inventory, selector)))
    return tuple(found)


def _nodes(inventory: Inventory, selector: NodeSelector | None) -> frozenset[str] | None:
    """The nodes that a selector accepts: those that it names, which need no object, or else of the inventory's."""
    if selector is None:
        return None
    only_names = len(selector.terms) == 1 and not selector.terms[0].match_expressions
    if only_names and all(requirement.operator == "In" for requirement in selector.terms[0].match_fields):
        named = [frozenset(requirement.values) for requirement in selector.terms[0].match_fields]
        if found := frozenset.intersection(*named) if named else frozenset[str]():
            return found
    return frozenset(name for name, there in inventory.nodes.items() if selector_matches(selector, there))
