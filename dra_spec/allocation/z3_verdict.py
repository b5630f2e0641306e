"""What becomes of one pod on a node: fits, does not fit, fatal, or unknown, told apart as kube-scheduler does.

The solver answers whether an allocation exists. It meets no errors on the way, because it takes no way: a selector that fails on a device
keeps the device away, no more. Upstream aborts if its search meets such a device, and which devices it meets depends on its order, so that
part of the answer is the reference allocator's. The two are compared: for Kubernetes 1.37 they find the same devices, or none both.
"""

from __future__ import annotations

from typing import Literal

import attrs

from dra_spec.allocation.errors import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.explain import on_node
from dra_spec.allocation.explain_upstream import Upstream
from dra_spec.allocation.extended_nodes import shortages
from dra_spec.allocation.z3_problem import Problem, Solution
from dra_spec.allocation.z3_solve import first

Kind = Literal["fits", "no-fit", "fatal", "unknown"]
_KINDS: dict[str, Kind] = {"fits": "fits", "no-fit": "no-fit", "gives-up": "fatal", "unknown": "unknown"}


@attrs.frozen(eq=False)
class Verdict:
    """`kind`: what the pod gets. `exists`: whether an allocation exists by the rules (None: not known, or refused before any search);
    `upstream`: how kube-scheduler's search ends. The two differ where a release has defects, and `remark` says so. `solution`: one if
    `kind` is fits. `words`: why it does not fit."""

    node: str
    kind: Kind
    exists: bool | None
    upstream: Kind
    solution: Solution | None = None
    words: str = ""
    remark: str = ""


def verdict(problem: Problem, node: str, upstream: Upstream | None = None) -> Verdict:
    """Of the first call of the problem on a node. `upstream`: made of the same problem, to save making it."""
    here = on_node(problem, node)
    short = shortages(problem, problem.calls[0], node)
    if short:  # NodeResourcesFit refuses the node before DynamicResources looks at it
        return Verdict(node, "no-fit", False, "no-fit", words="; ".join(s.text for s in short))
    said, upstream_words = (upstream or Upstream.of(here)).says(here, node)
    theirs = _KINDS[said]
    try:
        found = first(here)
    except FatalAllocation as error:
        return Verdict(node, "fatal", None, theirs, words=str(error))
    except UnsupportedFeature as error:
        kind: Kind = "fatal" if theirs == "fatal" else "unknown"
        return Verdict(node, kind, None, theirs, words=upstream_words if kind == "fatal" else str(error))
    exists = found is not None
    version = problem.version
    if theirs == "fatal":
        remark = f"without that error the claims would {'fit' if exists else 'not fit'} on node {node}"
        return Verdict(node, "fatal", exists, theirs, words=upstream_words, remark=remark)
    if found is not None:
        remark = f"an allocation exists, but the search of kube-scheduler {version} does not find it" if theirs == "no-fit" else ""
        return Verdict(node, "fits", True, theirs, found, remark=remark)
    remark = f"kube-scheduler {version} would give devices that break a rule" if theirs == "fits" else ""
    return Verdict(node, "no-fit", False, theirs, words=f"the claims do not fit on node {node}", remark=remark)


__all__ = ["Kind", "Verdict", "verdict"]
