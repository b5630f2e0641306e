"""`dra-spec explain`: why the waiting pods and claims of some manifests do not fit, and what would help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dra_spec.allocation import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.explain import Explanation, explain
from dra_spec.allocation.explain_upstream import Upstream
from dra_spec.allocation.whatif import WhatIf, nodes_needed, template_of
from dra_spec.allocation.z3_leaf import Reason
from dra_spec.allocation.z3_manifests import pod_label, waiting
from dra_spec.allocation.z3_place import place
from dra_spec.allocation.z3_problem import Call, Problem
from dra_spec.cli.allocate import claim_option, emit, manifests_argument, node_option, output_option, read, wide_console
from dra_spec.cli.failure import NEGATIVE, OK, UNDECIDED
from dra_spec.resources import Loaded, load

SHOWN_DEVICES = 4
TOGETHER = "all together"


@attrs.frozen(eq=False)
class Told:
    """What is said of one pod. `node`: where it fits alone; "" if nowhere, then there is an explanation for each node."""

    name: str
    node: str
    explanations: tuple[Explanation, ...] = ()


@click.command("explain", short_help="Say why waiting pods and claims do not fit, and what would help.")
@manifests_argument
@node_option
@claim_option
@click.option(
    "--add-node",
    "template",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A manifest with one Node and its ResourceSlices: how many such nodes would make all pods fit?",
)
@output_option
@click.pass_context
def command(ctx: click.Context, /, manifests: tuple[Path, ...], node: str, claim: str, template: Path | None, output: str) -> None:
    """Says of each pod and claim of MANIFESTS that has no allocation yet whether it fits, and if not, why.

    The reasons are rules that together exclude every allocation, none of which could be left out. Then follow, for each device, the first
    rule against it, and the smallest changes that make the claims fit, each tried.

    Exit codes: 0 all fit (with --add-node: enough nodes would do), 1 they do not, 2 input error, 3 not encoded.
    """
    loaded = read(manifests)
    todo = waiting(loaded, claim, node)
    notes = list(todo.not_encoded)
    told: list[Told] = []
    together: Told | None = None
    needed: WhatIf | None = None
    try:
        told = [_tell(todo.problem, call) for call in todo.problem.calls]
        together = _together(todo.problem) if all(t.node for t in told) and len(told) > 1 else None
        if template is not None:
            pinned = {c.label: bool(_bound(loaded, c)) for c in todo.problem.calls}
            needed = nodes_needed(todo.problem, template_of(load([template])), pinned)
    except UnsupportedFeature as error:
        notes.append(str(error))
    fits = all(t.node for t in told) and together is None if needed is None else needed.needed is not None
    if output == "text":
        _print(told, together, needed, list(todo.hints), notes)
    else:
        emit(output, _plain(told, together, needed, list(todo.hints), notes, fits))
    ctx.exit(UNDECIDED if notes else OK if fits else NEGATIVE)


def _bound(loaded: Loaded, call: Call) -> bool:
    """Whether a pod of the call is for nodes that exist: the labels of new ones are not compared."""
    names = call.label.split(" and ")
    return any(p.spec.node_name or p.spec.node_selector for p in loaded.pods if pod_label(loaded, p) in names)


def _tell(problem: Problem, call: Call) -> Told:
    alone = attrs.evolve(problem, calls=(call,))
    upstream = Upstream.of(alone)
    found: list[Explanation] = []
    seen: dict[object, Explanation] = {}
    for name in call.nodes:
        explanation = explain(alone, name, False, upstream)
        if explanation is None:
            return Told(call.label, name)
        key = (explanation.causes, explanation.fatal)
        if key not in seen:  # what helps on one of several equal nodes helps on all
            seen[key] = explain(alone, name, True, upstream) or explanation
        found.append(attrs.evolve(explanation, relaxations=seen[key].relaxations))
    return Told(call.label, "", tuple(found))


def _together(problem: Problem) -> Told | None:
    """Why pods that fit alone do not fit together, None if they do."""
    try:
        if place(problem) is not None:
            return None
    except FatalAllocation as error:
        return Told(TOGETHER, "", (Explanation("", (), (), (), str(error)),))
    names = {n for c in problem.calls for n in c.nodes}
    if len(names) == 1:
        merged = Call(TOGETHER, problem.claims, tuple(names))
        found = explain(attrs.evolve(problem, calls=(merged,)), merged.nodes[0])
        if found is not None:
            return Told(TOGETHER, "", (found,))
    return Told(TOGETHER, "")


def _print(told: list[Told], together: Told | None, needed: WhatIf | None, hints: list[str], notes: list[str]) -> None:
    console = wide_console()
    for each in [*told, *([together] if together else [])]:
        _print_told(console, each)
    if needed is not None:
        _print_needed(console, needed)
    for hint in hints:
        console.print(Text(f"hint: {hint}"))
    for note in notes:
        console.print(Text(f"not encoded: {note}", "yellow"))


def _print_told(console: Console, each: Told) -> None:
    if each.node:
        console.print(Text.assemble((each.name, "bold"), f" {'fit' if ' and ' in each.name else 'fits'} on node {each.node}"))
        return
    if not each.explanations:
        console.print(Text(f"{each.name}: the pods fit alone, but their nodes have not enough for all of them", "red"))
        return
    by_cause: dict[object, list[Explanation]] = {}
    for explanation in each.explanations:
        by_cause.setdefault((explanation.causes, explanation.fatal), []).append(explanation)
    for alike in by_cause.values():
        names = _some(tuple(e.node for e in alike))
        verb = "do" if each.name == TOGETHER or " and " in each.name else "does"
        console.print(Text.assemble((each.name, "bold"), (f" {verb} not fit", "red"), f" on node{'s' if len(alike) > 1 else ''} {names}"))
        _print_explanation(console, alike[0])


def _print_explanation(console: Console, explanation: Explanation) -> None:
    if explanation.fatal:
        console.print(Text(f"  kube-scheduler gives up: {explanation.fatal}"))
    if explanation.causes:
        console.print(Text("  because"))
    for cause in explanation.causes:
        place = f" ({cause.reason.where.place})" if cause.reason.where.place else ""
        devices = f": {_some(cause.devices)}" if cause.devices else ""
        console.print(Text(f"    - {cause.reason.text}{devices}{place}"))
        for value, having in cause.values[:SHOWN_DEVICES]:
            console.print(Text(f"        {value or 'without the attribute'}: {_some(having)}"))
        if len(cause.values) > SHOWN_DEVICES:
            console.print(Text(f"        and {len(cause.values) - SHOWN_DEVICES} more values"))
    if explanation.relaxations:
        console.print(Text("  it would fit with any one of these changes"))
        for relaxation in explanation.relaxations:
            console.print(Text(f"    - {', and '.join(str(c) for c in relaxation)}"))
    elif explanation.causes:
        console.print(Text("  no change of up to three rules of the claims or holders helps"))
    if explanation.devices:
        console.print(_table(explanation))


def _table(explanation: Explanation) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    for column in ("  device", "request", "first rule against it"):
        table.add_column(column, overflow="fold")
    for verdict in explanation.devices:
        why = verdict.reason.text if verdict.reason else "none, it could be taken alone"
        table.add_row(f"  {verdict.device}", verdict.request.removeprefix("request "), why.removeprefix(f"{verdict.request}: "))
    return table


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - SHOWN_DEVICES} more" if len(names) > SHOWN_DEVICES else ""
    return ", ".join(names[:SHOWN_DEVICES]) + more


def _print_needed(console: Console, needed: WhatIf) -> None:
    if needed.needed is None:
        console.print(Text(f"no number of such nodes helps: {_some(needed.never)} would still not fit", "red"))
        return
    number = needed.needed
    console.print(
        Text(f"{number} more node{'' if number == 1 else 's'} like this make all pods fit" if number else "no more nodes are needed")
    )
    for load_ in needed.loads:
        pods = ", ".join(f"{n} like {name}" if n > 1 else name for name, n in load_.pods)
        console.print(Text(f"  {load_.number} x {load_.node}: {pods}"))


def _plain(
    told: list[Told], together: Told | None, needed: WhatIf | None, hints: list[str], notes: list[str], fits: bool
) -> dict[str, Any]:
    answer: dict[str, Any] = {"fits": fits, "pods": [_plain_told(t) for t in told]}
    if together is not None:
        answer["together"] = _plain_told(together)
    if needed is not None:
        loads = [{"node": x.node, "number": x.number, "pods": dict(x.pods)} for x in needed.loads]
        answer["addNode"] = {"needed": needed.needed, "loads": loads, "never": list(needed.never)}
    return answer | {"hints": hints, "notEncoded": notes}


def _plain_told(told: Told) -> dict[str, Any]:
    return {"name": told.name, "fits": bool(told.node), "node": told.node or None, "nodes": [_plain_node(e) for e in told.explanations]}


def _plain_node(explanation: Explanation) -> dict[str, Any]:
    return {
        "node": explanation.node,
        "fatal": explanation.fatal,
        "causes": [
            _plain_reason(c.reason) | {"devices": list(c.devices), "values": {v: list(d) for v, d in c.values}} for c in explanation.causes
        ],
        "relaxations": [[{"kind": c.kind, "text": c.text, "where": c.where.place} for c in r] for r in explanation.relaxations],
        "devices": [
            {"device": v.device, "request": v.request, "excludedBy": _plain_reason(v.reason) if v.reason else None}
            for v in explanation.devices
        ],
    }


def _plain_reason(reason: Reason) -> dict[str, Any]:
    return {"kind": reason.kind, "text": reason.text, "where": reason.where.place}
