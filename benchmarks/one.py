"""One search in a process of its own: `python -m benchmarks.one WHAT ENGINE [options]`. Prints its figures as one line of JSON.

WHAT is a configuration of the toy protocol (`m`) or a shipped model (`two-pods`), with all repairs if `+repaired` follows.
"""

from __future__ import annotations

import json
from typing import Any

import attrs
import click

from benchmarks.measure import InputError
from benchmarks.toy import CONFIGS, toy
from dra_spec.explorer import Limits, Result, explore
from dra_spec.explorer.check import ENGINES
from dra_spec.explorer.model import Model

REPAIRED = "+repaired"


def model_of(what: str, bug: str) -> tuple[Model, Limits]:
    """The model of a name, and the limits of its model file. Raises `InputError`."""
    if what in CONFIGS:
        return toy(what, bug), Limits()
    # loaded only here: the toy needs none of it, and its start-up is measured
    from dra_spec.scenario.modelfile import Overrides
    from dra_spec.scenario.strict import InputError as Unreadable
    from dra_spec.scenario.targets import scenarios

    name = what.removesuffix(REPAIRED)
    try:
        (scenario,) = scenarios([name], Overrides(repaired=name != what))
    except Unreadable as error:
        raise InputError(str(error)) from None
    return scenario.model, Limits(max_states=scenario.file.limits.max_states, depth=scenario.file.limits.depth)


def with_promises(model: Model, count: int) -> Model:
    """The model with the first `count` promises only; instances that share a name are one promise."""
    promises = list(dict.fromkeys(p.promise for p in model.properties))[:count]
    return attrs.evolve(model, properties=[p for p in model.properties if p.promise in promises])


def figures(result: Result) -> dict[str, Any]:
    """`depth` counts the states on the longest shortest path, as the peers do; 0: not known. `search`: seconds after start-up."""
    said = {
        "engine": result.engine,
        "states": result.states,
        "transitions": result.transitions,
        "depth": result.depth + 1,
        "stuck": result.stuck,
        "verdict": result.verdict,
        "complete": result.complete,
        "stopped": result.stopped,
        "calls": result.python_calls,
        "bytes": round(result.bytes_per_state, 1),
        "search": round(result.seconds - result.startup, 4),
        "promises": {p.promise: [p.verdict, None if p.trace is None else len(p.trace)] for p in result.properties},
    }
    reductions = getattr(result, "reductions", ())
    if reductions:
        said["reductions"] = [[r.name, r.applied, r.reason, r.factor] for r in reductions]
    return said


@click.command()
@click.argument("what")
@click.argument("engine", type=click.Choice(ENGINES))
@click.option("--bug", default="none", type=click.Choice(["none", "unprepare", "inflight"]), help="A seeded bug of the toy protocol.")
@click.option("--reduce", "reduce", default="", help="Reductions, separated by commas.")
@click.option("--promises", type=click.IntRange(min=0), help="Only the first so many promises.")
@click.option("--expand", is_flag=True, help="Also look behind states that violate a promise.")
@click.option("--time-limit", type=float, help="Seconds.")
@click.option("--threads", type=click.IntRange(min=0), default=0, help="Of the explicit engine; 0: as many as there are cores.")
@click.option("--memory", type=float, help="MB of the whole process.")
def main(
    what: str,
    engine: str,
    bug: str,
    reduce: str,
    promises: int | None,
    expand: bool,
    time_limit: float | None,
    memory: float | None,
    threads: int,
) -> None:
    """Searches WHAT with ENGINE."""
    model, limits = model_of(what, bug)
    if promises is not None:
        model = with_promises(model, promises)
    room = None if memory is None else int(memory * 1e6)
    limits = attrs.evolve(limits, threads=threads, time_limit=time_limit, memory=room, expand_violating=expand)
    more: dict[str, Any] = {}
    if reduce:
        from dra_spec.explorer.reductions import Reductions

        more["reductions"] = Reductions.parse(reduce)
    click.echo(json.dumps(figures(explore(model, limits, engine, **more))))


if __name__ == "__main__":
    main()
