"""Why no number of new nodes makes a pod fit: what stands against it on an empty node like the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dra_spec.allocation.explain import Explanation, explain
from dra_spec.allocation.extended_nodes import with_specials
from dra_spec.allocation.whatif import Template
from dra_spec.allocation.z3_problem import Problem


@attrs.frozen(eq=False)
class Never:
    """A pod that fits on no new node. `explanation`: None if it may not go to such nodes at all."""

    name: str
    explanation: Explanation | None = None


def why_never(problem: Problem, template: Template, names: Sequence[str], pinned: Mapping[str, bool]) -> tuple[Never, ...]:
    """For each of these calls, by label. `pinned` as in `nodes_needed`. Raises UnsupportedFeature."""
    return tuple(Never(name, None if pinned.get(name) else _on_new_node(problem, template, name)) for name in names)


def _on_new_node(problem: Problem, template: Template, name: str) -> Explanation | None:
    node = template.node
    call = next(c for c in problem.calls if c.label == name)
    there = with_specials(attrs.evolve(call, nodes=(node.name,)), [node], problem.backing)
    alone = attrs.evolve(problem, slices=template.slices, nodes={node.name: node}, calls=(there,), holdings=(), running=())
    return explain(alone, node.name)
