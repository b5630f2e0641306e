"""`dra-spec allocate`: gives the waiting pods and claims of some manifests nodes and devices."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text
from ruamel.yaml import YAML

from dra_spec.allocation import FatalAllocation, Inventory, UnsupportedFeature
from dra_spec.allocation.admission import ApiServer
from dra_spec.allocation.check import broken_pools
from dra_spec.allocation.extended_answer import Served, served
from dra_spec.allocation.extended_nodes import wanted_on
from dra_spec.allocation.ledger import Charge
from dra_spec.allocation.z3_manifests import Waiting, waiting
from dra_spec.allocation.z3_problem import Pick, Problem
from dra_spec.cli.failure import NEGATIVE, OK, UNDECIDED
from dra_spec.cli.server import api_server, print_warnings, server_options
from dra_spec.cli.solve import Answer, Solving, failed
from dra_spec.resources import Loaded, Quantity, load_checked
from dra_spec.resources import Problem as Remark

MAX_PODS = 500  # of one workload

output_option = click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True, help="Form of the answer."
)
manifests_argument = click.argument("manifests", nargs=-1, required=True, metavar="MANIFESTS...", type=click.Path(path_type=Path))
node_option = click.option("--node", default="", metavar="NAME", help="Only this node.")
claim_option = click.option("--claim", default="", metavar="NAME", help="Only this claim; one made from a template is POD-ENTRY.")


@click.command("allocate")
@manifests_argument
@node_option
@claim_option
@click.option(
    "--solver",
    type=click.Choice(["reference", "z3"]),
    default="reference",
    show_default=True,
    help="reference: one pod after the other, the devices that kube-scheduler would take; z3: all pods together, if there is any way; "
    "whether a selector that fails on a device ends the attempt is kube-scheduler's order in both.",
)
@click.option("--all", "limit", type=click.IntRange(min=1), metavar="N", help="Show up to N different allocations (z3).")
@click.option("--best-node", is_flag=True, help="For one pod: the node where it gets most of its first alternatives (z3).")
@server_options
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    manifests: tuple[Path, ...],
    node: str,
    claim: str,
    solver: str,
    limit: int | None,
    best_node: bool,
    kubernetes: str,
    gates: tuple[str, ...],
    output: str,
) -> None:
    """Allocates devices to the pods, claims and claim templates of MANIFESTS that have no allocation yet.

    Claims that are allocated already keep their devices. A cluster of the version with these feature gates is meant: fields whose gate is
    off are dropped, with a warning. Exit codes: 0 all fit, 1 some do not, 2 input error, 3 not encoded.
    """
    server = api_server(kubernetes, gates)
    loaded, warnings = read(manifests, server)
    todo = waiting(loaded, claim, node, server.settings)
    solving = Solving(loaded, todo, server.settings)
    undecided = ""
    if best_node and (limit is not None or len(todo.problem.calls) != 1):
        raise click.UsageError("--best-node is about one pod or claim, and one allocation: name one with --claim, and leave out --all")
    answers: list[Answer] = []
    try:
        if not todo.problem.calls:
            answers = []
        elif best_node:
            answers = [solving.best()]
        elif limit is not None:
            answers = solving.all(limit)
        else:
            answers = [solving.z3() if solver == "z3" else solving.reference()]
    except FatalAllocation as error:
        answers = [failed(todo.problem, error)]
    except UnsupportedFeature as error:
        undecided = str(error)
    fits = bool(answers) and all(None not in a.nodes for a in answers)
    notes = [*todo.not_encoded, *([undecided] if undecided else [])]
    if output == "text":
        _print(todo, answers, notes)
    else:
        told = _plain(todo, answers, notes, "z3" if limit is not None or best_node else solver, fits)
        emit(output, {"kubernetes": kubernetes} | told | {"warnings": [str(w) for w in warnings]})
    ctx.exit(UNDECIDED if notes else OK if fits else NEGATIVE)


def read(manifests: tuple[Path, ...], server: ApiServer) -> tuple[Loaded, tuple[Remark, ...]]:
    """The manifests as the API server keeps them, and warnings about what it drops and about broken pools, which are printed.

    Raises ManifestError.
    """
    loaded, warnings = server.admit(load_checked(manifests, max_replicas=MAX_PODS))
    warnings += broken_pools(loaded, Inventory.of_loaded(loaded))
    print_warnings(warnings)
    return loaded, warnings


def wide_console() -> Console:
    """A console for tables: as wide as the terminal, and without one wide enough that no name is broken."""
    console = Console(highlight=False, soft_wrap=True)
    return console if console.is_terminal else Console(highlight=False, soft_wrap=True, width=300)


def emit(form: str, answer: dict[str, Any]) -> None:
    """Prints plain data as JSON or YAML."""
    if form == "json":
        click.echo(json.dumps(answer, indent=2))
        return
    stream = io.StringIO()
    yaml = YAML()
    yaml.width = 140
    yaml.dump(answer, stream)
    click.echo(stream.getvalue(), nl=False)


def _print(todo: Waiting, answers: list[Answer], notes: list[str]) -> None:
    console = wide_console()
    problem = todo.problem
    for number, answer in enumerate(answers, 1):
        if len(answers) > 1:
            console.print(Text(f"allocation {number}", "bold"))
        table = _table(problem, answer)
        if table.row_count:
            console.print(table)
        for text in _costs(problem, answer):
            console.print(Text(text))
        for i, reason in answer.reasons.items():
            fatal = answer.kind(i) == "fatal"
            verdict = "does not fit, kube-scheduler gives up" if fatal else "does not fit"
            console.print(Text(f"{problem.calls[i].label} {verdict}: {reason}", "red"))
        for remark in answer.remarks:
            console.print(Text(f"note: {remark}"))
    if not answers and not notes:
        console.print(Text("there is no allocation", "red"))
    for hint in todo.hints:
        console.print(Text(f"hint: {hint}"))
    for note in notes:
        console.print(Text(f"not encoded: {note}", "yellow"))
    if any(a.reasons for a in answers) or (not answers and not notes):
        console.print(Text("dra-spec explain tells why"))


def _table(problem: Problem, answer: Answer) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("node", "claim", "request", "device", ""):
        table.add_column(column, overflow="fold")
    for pick in answer.picks:
        amounts = ", ".join(f"{k} {Quantity(v, 'binary')}" for k, v in pick.consumed)
        remark = "admin access" if pick.admin else f"shared, takes {amounts}" if amounts else ""
        node = answer.nodes[problem.call_of[pick.claim]] or ""
        remark = ", ".join([*([remark] if remark else []), *_users(problem, answer, pick)])
        table.add_row(node, problem.claims[pick.claim].label, pick.request, pick.device, remark)
    for call, name in zip(problem.calls, answer.nodes, strict=True):
        for got in served(problem, call, name, answer.picks) if name is not None else ():
            if not got.by_dra:
                table.add_row(name, got.pod, f"{got.kind} {got.container}", f"{got.amount} of {got.resource}", "by a device plugin")
    return table


def _costs(problem: Problem, answer: Answer) -> Iterator[str]:
    """What the devices cost the nodes."""
    for i, charges in answer.charges.items():
        for charge in charges:
            if not charge.cost.total:
                continue
            parts = [f"{q} of {r}" for r, q in charge.cost.mapped.items()]
            parts += [f"{q} of {r} (overhead)" for r, q in charge.cost.overhead.items()]
            unsaid = ", which does not say what it has" if charge.unknown else ""
            owner = f"pod {charge.pod}" if charge.pod else problem.calls[i].label
            yield f"the devices of {owner} cost {', '.join(parts)} of node {answer.nodes[i]}{unsaid}"


def _users(problem: Problem, answer: Answer, pick: Pick) -> list[str]:
    """The containers that use the device for an extended resource."""
    i = problem.call_of[pick.claim]
    node = answer.nodes[i]
    if node is None or problem.claims[pick.claim].special is None:
        return []
    users = [u for u in served(problem, problem.calls[i], node, answer.picks) if pick.device in u.devices]
    return [f"{u.resource} for {u.kind} {u.container}" for u in users]


def _plain(todo: Waiting, answers: list[Answer], notes: list[str], solver: str, fits: bool) -> dict[str, Any]:
    return {
        "fits": fits,
        "solver": solver,
        "allocations": [_plain_answer(todo.problem, a) for a in answers],
        "hints": list(todo.hints),
        "notEncoded": notes,
    }


def _plain_answer(problem: Problem, answer: Answer) -> dict[str, Any]:
    pods = []
    for i, call in enumerate(problem.calls):
        claims: list[dict[str, Any]] = []
        node = answer.nodes[i]
        for index, claim in enumerate(problem.claims):
            exists = wanted_on(problem, claim, node) if node is not None else claim.special is None
            if problem.call_of[index] == i and exists:
                claims.append({"name": claim.label, "devices": [_plain_pick(p) for p in answer.picks if p.claim == index]})
        resources = [_plain_served(s) for s in served(problem, call, node, answer.picks)] if node is not None else []
        reason = answer.reasons.get(i, "")
        pod = {"name": call.label, "node": node, "verdict": answer.kind(i), "reason": reason, "claims": claims}
        costs = [_plain_charge(c) for c in answer.charges.get(i, ()) if c.cost.total]
        pods.append(pod | {"extendedResources": resources, "nodeResources": costs})
    return {"pods": pods, "remarks": list(answer.remarks)}


def _plain_charge(charge: Charge) -> dict[str, Any]:
    cost = charge.cost
    return {
        "pod": charge.pod,
        "mapped": {r: str(q) for r, q in cost.mapped.items()},
        "overhead": {r: str(q) for r, q in cost.overhead.items()},
        "checked": not charge.unknown,
    }


def _plain_served(one: Served) -> dict[str, Any]:
    found: dict[str, Any] = {"pod": one.pod, "container": one.container, "kind": one.kind, "resource": one.resource, "amount": one.amount}
    if not one.by_dra:
        return found | {"servedBy": "device plugin"}
    return found | {"servedBy": "DRA", "requests": list(one.requests), "devices": list(one.devices)}


def _plain_pick(pick: Pick) -> dict[str, Any]:
    driver, _, rest = pick.device.partition("/")
    pool, _, device = rest.rpartition("/")
    found: dict[str, Any] = {"request": pick.request, "driver": driver, "pool": pool, "device": device}
    if pick.admin:
        found["adminAccess"] = True
    if pick.consumed:
        found["consumedCapacity"] = {k: str(Quantity(v, "binary")) for k, v in pick.consumed}
    return found
