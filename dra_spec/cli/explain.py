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
from dra_spec.allocation.explain import Cause, Explanation, explain, explain_together
from dra_spec.allocation.explain_selectors import Insight, insights
from dra_spec.allocation.explain_upstream import Upstream
from dra_spec.allocation.whatif import Template, WhatIf, nodes_needed, template_of
from dra_spec.allocation.whatif_why import Never, why_never
from dra_spec.allocation.z3_leaf import Reason
from dra_spec.allocation.z3_manifests import daemons, may_join, waiting
from dra_spec.allocation.z3_place import place
from dra_spec.allocation.z3_problem import Problem
from dra_spec.cli.allocate import claim_option, emit, manifests_argument, node_option, output_option, read, wide_console
from dra_spec.cli.failure import NEGATIVE, OK, UNDECIDED
from dra_spec.cli.server import api_server, print_warnings, server_options
from dra_spec.cli.solve import Solving
from dra_spec.resources import load

SHOWN_DEVICES = 4
UNBROKEN = 36  # characters of device names that are not broken in a narrow table
TOGETHER = "all together"


@attrs.frozen(eq=False)
class Told:
    """What is said of one pod. `node`: where it fits alone; "" if nowhere, then there is an explanation for each node on which it does not
    fit, and `insights` about the selectors. `remark`: what a release with known defects does all the same."""

    name: str
    node: str
    explanations: tuple[Explanation, ...] = ()
    insights: tuple[Insight, ...] = ()
    remark: str = ""


@click.command("explain")
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
@server_options
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    manifests: tuple[Path, ...],
    node: str,
    claim: str,
    template: Path | None,
    kubernetes: str,
    gates: tuple[str, ...],
    output: str,
) -> None:
    """Says of each pod and claim of MANIFESTS that has no allocation yet whether it fits, and if not, why.

    The reasons are rules that together exclude every allocation, none of which could be left out. Then follow, for each device, the first
    rule against it, and the smallest changes that make the claims fit, each tried.

    Exit codes: 0 all fit (with --add-node: enough nodes would do), 1 they do not, 2 input error, 3 not encoded.
    """
    server = api_server(kubernetes, gates)
    loaded, warnings = read(manifests, server)
    new: Template | None = None
    if template is not None:
        admitted, more = server.admit(load([template]))
        print_warnings(more)
        warnings += more
        new = template_of(admitted)
    todo = waiting(loaded, claim, node, server.settings, new.node if new else None)
    notes = list(todo.not_encoded)
    told: list[Told] = []
    together: Told | None = None
    needed: WhatIf | None = None
    never: tuple[Never, ...] = ()
    try:
        solving = Solving(loaded, todo, server.settings)
        told = [_tell(solving, i) for i in range(len(todo.problem.calls))]
        together = _together(todo.problem) if all(t.node for t in told) and len(told) > 1 else None
        if solving.ledger().matters and (new is not None or (len(told) > 1 and all(t.node for t in told))):
            notes.append("ordinary resources that devices cost, with several pods at once")
        if new is not None:
            calls = zip(todo.problem.calls, todo.pods, strict=True)
            pinned = {call.label: not all(may_join(loaded, p, new.node) for p in pods) for call, pods in calls}
            needed = nodes_needed(todo.problem, new, pinned, daemons(loaded, new.node))
            never = why_never(todo.problem, new, needed.never, pinned)
    except UnsupportedFeature as error:
        notes.append(str(error))
    fits = all(t.node for t in told) and together is None if needed is None else needed.needed is not None
    if output == "text":
        _print(told, together, needed, never, list(todo.hints), notes)
    else:
        answer = _plain(told, together, needed, never, list(todo.hints), notes, fits)
        emit(output, {"kubernetes": kubernetes} | answer | {"warnings": [str(w) for w in warnings]})
    ctx.exit(UNDECIDED if notes else OK if fits else NEGATIVE)


def _tell(solving: Solving, index: int) -> Told:
    call = solving.problem.calls[index]
    alone = attrs.evolve(solving.problem, calls=(call,))
    upstream = Upstream.of(alone)
    given_up = upstream.gives_up(alone)
    found: list[Explanation] = []
    seen: dict[object, Explanation] = {}
    for name in call.nodes:
        explanation = explain(alone, name, False, upstream)
        if explanation is None:
            short = solving.short(index, name, upstream) if given_up is None else ""
            if short:
                found.append(Explanation(name, (Cause(Reason("node-resources", (name,), short)),)))
            elif given_up is None:
                return Told(call.label, name)
            continue  # an error on another node ends the attempt on all
        key = (explanation.causes, explanation.fatal)
        if key not in seen:  # what helps on one of several equal nodes helps on all
            seen[key] = explain(alone, name, True, upstream) or explanation
        found.append(attrs.evolve(explanation, relaxations=seen[key].relaxations))
    version = solving.settings.version
    wrong = given_up is None and any(e.causes and upstream.says(alone, e.node)[0] == "fits" and not _is_short(e) for e in found)
    remark = f"kube-scheduler {version} would give it devices all the same, which break a rule" if wrong else ""
    return Told(call.label, "", tuple(found), insights(alone, call), remark)


def _is_short(explanation: Explanation) -> bool:
    """Whether devices fit, and the node has too little besides."""
    return any(c.reason.kind == "node-resources" for c in explanation.causes)


def _together(problem: Problem) -> Told | None:
    """Why pods that fit alone do not fit together, None if they do."""
    try:
        if place(problem) is not None:
            return None
    except FatalAllocation as error:
        return Told(TOGETHER, "", (Explanation("", (), (), (), str(error)),))
    found = explain_together(problem)
    return Told(TOGETHER, "", () if found is None else (found,))


def _print(
    told: list[Told], together: Told | None, needed: WhatIf | None, never: tuple[Never, ...], hints: list[str], notes: list[str]
) -> None:
    console = wide_console()
    for each in [*told, *([together] if together else [])]:
        _print_told(console, each)
    if needed is not None:
        _print_needed(console, needed, never)
    for hint in hints:
        console.print(Text(f"hint: {hint}"))
    for note in notes:
        console.print(Text(f"not encoded: {note}", "yellow"))


def _print_told(console: Console, each: Told) -> None:
    if each.node:
        console.print(Text.assemble((each.name, "bold"), f" {'fit' if ' and ' in each.name else 'fits'} on node {each.node}"))
        return
    if not each.explanations and each.name != TOGETHER:
        console.print(Text(f"{each.name} may go to none of the nodes that exist", "red"))
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
        plural = "s" if ", " in names else ""
        console.print(Text.assemble((each.name, "bold"), (f" {verb} not fit", "red"), f" on node{plural} {names}"))
        _print_explanation(console, alike[0])
    if each.remark:
        console.print(Text(f"note: {each.remark}"))
    for insight in each.insights:
        place = f" ({insight.where.place})" if insight.where.place else ""
        console.print(Text(f"selectors: {insight.text}{place}"))


def _print_explanation(console: Console, explanation: Explanation) -> None:
    if explanation.fatal:
        console.print(Text(f"  kube-scheduler gives up, on all nodes: {explanation.fatal}"))
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
    whole = max(len(v.device) for v in explanation.devices) <= UNBROKEN
    table.add_column("  device", overflow="fold", no_wrap=whole)
    for column in ("request", "first rule against it"):
        table.add_column(column, overflow="fold")
    for verdict in explanation.devices:
        why = verdict.reason.text if verdict.reason else "none, it could be taken alone"
        table.add_row(f"  {verdict.device}", verdict.request.removeprefix("request "), why.removeprefix(f"{verdict.request}: "))
    return table


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - SHOWN_DEVICES} more" if len(names) > SHOWN_DEVICES else ""
    return ", ".join(names[:SHOWN_DEVICES]) + more


def _print_needed(console: Console, needed: WhatIf, never: tuple[Never, ...]) -> None:
    if needed.needed is None:
        console.print(Text(f"no number of such nodes helps: {_some(needed.never)} would still not fit", "red"))
        for each in never[:SHOWN_DEVICES]:
            if each.explanation is None:
                console.print(Text.assemble((each.name, "bold"), " may not go to such nodes"))
            else:
                console.print(Text.assemble((each.name, "bold"), " on an empty node like this:"))
                _print_explanation(console, each.explanation)
        return
    number = needed.needed
    more = "1 more node like this makes" if number == 1 else f"{number} more nodes like this make"
    console.print(Text(f"{more} all pods fit" if number else "no more nodes are needed"))
    for load_ in needed.loads:
        pods = ", ".join(f"{n} like {name}" if n > 1 else name for name, n in load_.pods)
        console.print(Text(f"  {load_.number} x {load_.node}: {pods}"))


def _plain(
    told: list[Told], together: Told | None, needed: WhatIf | None, never: tuple[Never, ...], hints: list[str], notes: list[str], fits: bool
) -> dict[str, Any]:
    answer: dict[str, Any] = {"fits": fits, "pods": [_plain_told(t) for t in told]}
    if together is not None:
        answer["together"] = _plain_told(together)
    if needed is not None:
        loads = [{"node": x.node, "number": x.number, "pods": dict(x.pods)} for x in needed.loads]
        why = {n.name: _plain_node(n.explanation) if n.explanation else None for n in never}
        answer["addNode"] = {"needed": needed.needed, "loads": loads, "never": list(needed.never), "why": why}
    return answer | {"hints": hints, "notEncoded": notes}


def _plain_told(told: Told) -> dict[str, Any]:
    return {
        "name": told.name,
        "fits": bool(told.node),
        "node": told.node or None,
        "nodes": [_plain_node(e) for e in told.explanations],
        "remark": told.remark,
        "selectors": [
            {"kind": i.kind, "request": i.request, "text": i.text, "where": i.where.place, "other": i.other.place if i.other else None}
            for i in told.insights
        ],
    }


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
