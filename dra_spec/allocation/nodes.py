"""Which nodes a selection means. Source: component-helpers nodeaffinity; structured allocator, NodeMatches and createNodeSelector."""

from __future__ import annotations

import re

from dra_spec.allocation.errors import FatalAllocation
from dra_spec.resources.core import Node
from dra_spec.resources.meta import NodeSelector, NodeSelectorTerm, Requirement, requirement_rule
from dra_spec.resources.slices import Device, SliceSpec

_NUMBER = re.compile(r"[-+]?\d+", re.ASCII)


def node_matches(node: Node, where: SliceSpec | Device) -> bool:
    """Whether the node is meant by nodeName, allNodes or nodeSelector, in this order of precedence. Raises FatalAllocation."""
    if where.node_name:
        return where.node_name == node.name
    if where.all_nodes:
        return True
    return where.node_selector is not None and selector_matches(where.node_selector, node)


def selector_matches(selector: NodeSelector, node: Node) -> bool:
    """Terms are alternatives; in a term everything must hold; an empty term holds nowhere. Raises FatalAllocation if malformed."""
    for term in selector.terms:
        for requirement in term.match_expressions + term.match_fields:
            _check(requirement)
    return any(_term_matches(term, node) for term in selector.terms)


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.name}
    return all(_holds(r, node.labels.get(r.key)) for r in term.match_expressions) and all(
        _holds(r, fields.get(r.key)) for r in term.match_fields
    )


def _check(requirement: Requirement) -> None:
    message = requirement_rule(requirement)
    if message:
        place = f"{requirement.at}: " if str(requirement.at) else ""
        raise FatalAllocation(f"{place}node selector on {requirement.key}: {message}")


def _holds(requirement: Requirement, value: str | None) -> bool:
    operator, values = requirement.operator, requirement.values
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return value is None or value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if value is None or not _NUMBER.fullmatch(value):
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def only_node(name: str) -> NodeSelector:
    """The selector that an allocation of a node-local device gets."""
    return NodeSelector(terms=(NodeSelectorTerm(match_fields=(Requirement(key="metadata.name", operator="In", values=(name,)),)),))


def merged(selectors: list[NodeSelector]) -> NodeSelector | None:
    """One term that asks for all that the given single-term selectors ask for; None if there is nothing to ask for."""
    expressions: list[Requirement] = []
    fields: list[Requirement] = []
    for selector in selectors:
        for term in selector.terms:
            _extend(expressions, term.match_expressions)
            _extend(fields, term.match_fields)
    if not expressions and not fields:
        return None
    return NodeSelector(terms=(NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields)),))


def _extend(known: list[Requirement], more: tuple[Requirement, ...]) -> None:
    for requirement in more:
        if not any((r.key, r.operator, set(r.values)) == (requirement.key, requirement.operator, set(requirement.values)) for r in known):
            known.append(requirement)
