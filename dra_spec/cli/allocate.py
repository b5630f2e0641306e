"""`dra-spec allocate`: gives the waiting pods and claims of some manifests nodes and devices."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import attrs
import click
from rich.console import Console
from rich.table import Table
from rich.text import Text
from ruamel.yaml import YAML

from dra_spec.allocation import (
    AllocatedState,
    Allocator,
    DoesNotFit,
    FatalAllocation,
    Inventory,
    Settings,
    UnsupportedFeature,
    check_selectors,
)
from dra_spec.allocation.explain import on_node
from dra_spec.allocation.z3_manifests import Waiting, waiting
from dra_spec.allocation.z3_place import place
from dra_spec.allocation.z3_problem import Pick, Problem, Solution
from dra_spec.allocation.z3_solve import every, first, one
from dra_spec.cli.failure import NEGATIVE, OK, UNDECIDED
from dra_spec.resources import Loaded, ManifestError, Quantity, load_checked

output_option = click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True, help="Form of the answer."
)
manifests_argument = click.argument("manifests", nargs=-1, required=True, metavar="MANIFESTS...", type=click.Path(path_type=Path))
node_option = click.option("--node", default="", metavar="NAME", help="Only this node.")
claim_option = click.option("--claim", default="", metavar="NAME", help="Only this claim; one made from a template is POD-ENTRY.")


@attrs.frozen(eq=False)
class Answer:
    """One way to place the calls. `nodes` and `picks` as in a Solution; a call without node does not fit: `reasons` by call says why."""

    nodes: tuple[str | None, ...]
    picks: tuple[Pick, ...]
    reasons: dict[int, str] = attrs.field(factory=dict)


@click.command("allocate", short_help="Give the waiting pods and claims of manifests nodes and devices.")
@manifests_argument
@node_option
@claim_option
@click.option(
    "--solver",
    type=click.Choice(["reference", "z3"]),
    default="reference",
    show_default=True,
    help="reference: one pod after the other, the devices that kube-scheduler would take; z3: all pods together, if there is any way.",
)
@click.option("--all", "limit", type=click.IntRange(min=1), metavar="N", help="Show up to N different allocations (z3).")
@output_option
@click.pass_context
def command(ctx: click.Context, /, manifests: tuple[Path, ...], node: str, claim: str, solver: str, limit: int | None, output: str) -> None:
    """Allocates devices to the pods, claims and claim templates of MANIFESTS that have no allocation yet.

    Claims that are allocated already keep their devices. Exit codes: 0 all fit, 1 some do not, 2 input error, 3 not encoded.
    """
    loaded = read(manifests)
    todo = waiting(loaded, claim, node)
    undecided = ""
    answers: list[Answer] = []
    try:
        if not todo.problem.calls:
            answers = []
        elif limit is not None:
            answers = [Answer(s.nodes, s.picks) for s in every(todo.problem, limit)]
        elif solver == "z3":
            answers = _with_z3(todo.problem)
        else:
            answers = [_with_reference(loaded, todo.problem)]
    except FatalAllocation as error:
        answers = [Answer((None,) * len(todo.problem.calls), (), {0: str(error)})]
    except UnsupportedFeature as error:
        undecided = str(error)
    fits = bool(answers) and all(None not in a.nodes for a in answers)
    notes = [*todo.not_encoded, *([undecided] if undecided else [])]
    if output == "text":
        _print(todo, answers, notes)
    else:
        emit(output, _plain(todo, answers, notes, "z3" if limit is not None else solver, fits))
    ctx.exit(UNDECIDED if notes else OK if fits else NEGATIVE)


def read(manifests: tuple[Path, ...]) -> Loaded:
    """The manifests, with all selectors compiled. Raises ManifestError."""
    loaded = load_checked(manifests)
    errors = check_selectors(loaded.objects)
    if errors:
        raise ManifestError([p for e in errors for p in e.problems], loaded.warnings)
    return loaded


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


def _with_reference(loaded: Loaded, problem: Problem) -> Answer:
    """One pod after the other, each on the first node where it fits."""
    allocator = Allocator(Inventory.of_loaded(loaded), Settings())
    held = [c.status.allocation for c in loaded.claims if c.status.allocation]
    nodes: list[str | None] = []
    picks: list[Pick] = []
    reasons: dict[int, str] = {}
    start = 0
    for i, call in enumerate(problem.calls):
        nodes.append(None)
        why = []
        for name in call.nodes:
            try:
                results = allocator.allocate([c.spec for c in call.claims], name, AllocatedState.of(held))
            except DoesNotFit as error:
                why.append(str(error))
                continue
            except FatalAllocation as error:
                why = [str(error)]
                break
            nodes[-1] = name
            held += [r.allocation for r in results]
            for j, result in enumerate(results):
                for r in result.results:
                    taken = tuple(sorted((k, q.value) for k, q in r.consumed_capacity.items()))
                    picks.append(Pick(start + j, r.request, r.name, r.admin, taken))
            break
        if nodes[-1] is None:
            reasons[i] = why[0] if len(set(why)) == 1 else f"no node has room: {'; '.join(dict.fromkeys(why))}"
        start += len(call.claims)
    return Answer(tuple(nodes), tuple(picks), reasons)


def _with_z3(problem: Problem) -> list[Answer]:
    """All pods together; a single one on its first node, with the devices that come first."""
    if len(problem.calls) == 1:
        solutions = (first(on_node(problem, name)) for name in problem.calls[0].nodes)
        found: Solution | None = next((s for s in solutions if s is not None), None)
    else:
        found = place(problem)
    if found is not None:
        return [Answer(found.nodes, found.picks)]
    reasons = {}
    for i, call in enumerate(problem.calls):
        alone = any(one(on_node(attrs.evolve(problem, calls=(call,)), name)) is not None for name in call.nodes)
        reasons[i] = "fits alone, but not together with the others" if alone else "fits on no node, even alone"
    return [Answer((None,) * len(problem.calls), (), reasons)]


def _print(todo: Waiting, answers: list[Answer], notes: list[str]) -> None:
    console = wide_console()
    problem = todo.problem
    for number, answer in enumerate(answers, 1):
        if len(answers) > 1:
            console.print(Text(f"allocation {number}", "bold"))
        if answer.picks:
            console.print(_table(problem, answer))
        for i, reason in answer.reasons.items():
            console.print(Text(f"{problem.calls[i].label} does not fit: {reason}", "red"))
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
        table.add_row(node, problem.claims[pick.claim].label, pick.request, pick.device, remark)
    return table


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
        for index, claim in enumerate(problem.claims):
            if problem.call_of[index] == i:
                claims.append({"name": claim.label, "devices": [_plain_pick(p) for p in answer.picks if p.claim == index]})
        pods.append({"name": call.label, "node": answer.nodes[i], "reason": answer.reasons.get(i, ""), "claims": claims})
    return {"pods": pods}


def _plain_pick(pick: Pick) -> dict[str, Any]:
    driver, _, rest = pick.device.partition("/")
    pool, _, device = rest.rpartition("/")
    found: dict[str, Any] = {"request": pick.request, "driver": driver, "pool": pool, "device": device}
    if pick.admin:
        found["adminAccess"] = True
    if pick.consumed:
        found["consumedCapacity"] = {k: str(Quantity(v, "binary")) for k, v in pick.consumed}
    return found
