"""The page docs/performance.md, made of figures that the other scripts here measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.measure import table

REDUCTIONS = ("dead", "symmetry", "merge", "cone", "por=safety", "por=stuck", "auto")
_Row = Mapping[str, Any]
_LONGEST = 160  # characters of a reason in a cell
_MANY = 10_000  # states; with fewer, bytes per state say what the smallest arrays take

_HEAD = """# Performance

This page is made by a script; do not edit it. The figures are of one machine ({machine}), and of single runs unless it says
otherwise: compare the ratios within a table, not the seconds. To make it again:

    python benchmarks/run.py --configs g,d,m,q --peers spin,stateright,tlc --json toy.json
    python benchmarks/growth.py --most 50000000 --json growth.json
    python benchmarks/invariants.py --json promises.json
    python benchmarks/models.py --all --json models.json --toy toy.json --growth growth.json --promises promises.json \\
        --write docs/performance.md

Seconds are those of the search, without start-up (interpreter, imports, loading of compiled code), unless it says "whole process"; MB is
the peak of the whole process, with interpreter and libraries.
"""

_ENGINES = """## The shipped models, per engine

Without reductions. "Then time" says where a search was stopped, after so many states. Where both engines came to an end, states,
transitions, stuck states, verdicts and lengths of shortest counterexamples are the same; the script fails if they are not. Violating
states are not expanded, unless a promise is about the whole graph. `+repaired` is the protocol with all repairs, shown where a promise
breaks as released.
"""
_REDUCTIONS = """## The shipped models, per reduction

With the explicit engine. Factor: states without reductions through states with this one (≥ where the search without was stopped); time:
the same for the seconds of the search.
`por=stuck` speaks of stuck states only. The script fails if a verdict is another one than without. Reductions that were refused follow,
with the reason.
"""
_TOY = """## The toy protocol, beside other model checkers

The same small protocol (benchmarks/toy.py) in Promela, TLA+ and Rust; all report the same numbers of states. Whole process: medians over
rounds ({rounds}) in which all take their turn; without the compilation of the peers' programs. SPIN runs depth first without its
partial-order reduction, which leaves nothing out here; Stateright breadth first with one thread.
"""
_GROWTH = """## Growth

Toy configurations with the {engine} engine, medians over rounds ({rounds}). The slope of log time over log states is {slope} over all sizes
(1 is linear); the column has it from the size before.
"""
_PROMISES = """## What promises cost

The same search with none, one, ... all promises, {engine} engine, medians over rounds ({rounds}); violating states are expanded here, so
that the states are the same in each run.
"""


def page(figures: Mapping[str, Any]) -> str:
    """The whole page. A part that was not measured is left out."""
    machine = figures["machine"]
    shape = f"{machine['cores']} cores, {machine['memory_gb']} GB of memory, {machine['system']}, Python {machine['python']}"
    lines = [_HEAD.format(machine=shape)]
    if figures["models"]:
        lines += [*_engines(figures), *_reductions(figures)]
    for key, part in (("toy", _toy), ("growth", _growth), ("promises", _promises)):
        if key in figures:
            lines += part(figures[key])
    return "\n".join(lines).rstrip() + "\n"


def brief(row: _Row) -> str:
    """A row in a few words."""
    if row.get("problem"):
        return f"failed: {_short(row['problem'])}"
    told = f"{row['states']:,} states, {row['seconds']:.2f} s, {row['peak'] / 1e6:.0f} MB, {row['verdict']}"
    return told if row["stopped"] is None else f"{told}, stopped: {row['stopped']}"


def _short(text: str) -> str:
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _cells(row: _Row | None) -> list[str]:
    """States, seconds, MB."""
    if row is None:
        return ["-", "-", "-"]
    if row.get("problem"):
        return [_short(row["problem"]), "-", "-"]
    states = f"{row['states']:,}" if row["stopped"] is None else f"{row['states']:,}, then {row['stopped']}"
    return [states, f"{row['seconds']:.2f}", f"{row['peak'] / 1e6:.0f}"]


def _engines(figures: Mapping[str, Any]) -> Iterator[str]:
    yield _ENGINES
    rows = []
    for name, model in sorted(figures["models"].items(), key=lambda item: _size(item[1])):
        one, other = model.get("explicit"), model.get("symbolic")
        done = [row for row in (one, other) if row is not None and not row.get("problem")]
        said = min(done, key=lambda row: row["stopped"] is not None, default=None)  # rather one that came to its end
        transitions = f"{said['transitions']:,}" if said and said["stopped"] is None else "-"
        verdict = said["verdict"] if said else "-"
        size = f"{one['bytes']:.0f}" if one is not None and one.get("states", 0) >= _MANY else "-"
        whole = f"{one['wall']:.2f}" if one is not None else "-"
        rows.append([name, transitions, *_cells(one), whole, size, *_cells(other), verdict])
    explicit = ["states, explicit", "s", "MB", "whole process s", "bytes per state"]
    titles = ["model", "transitions", *explicit, "states, symbolic", "s", "MB", "verdict"]
    yield from table(titles, rows)
    yield ""


def _size(model: Mapping[str, Any]) -> int:
    """States that an engine met without reductions."""
    return max(int(model.get(engine, {}).get("states", 0)) for engine in ("explicit", "symbolic"))


def _reductions(figures: Mapping[str, Any]) -> Iterator[str]:
    yield _REDUCTIONS
    rows, refused = [], dict[tuple[str, str], list[str]]()
    for name, model in sorted(figures["models"].items()):
        for label in [label for label in REDUCTIONS if label in model]:
            row = model[label]
            reports = row.get("reductions", [])
            if row.get("problem") or not reports or any(used for _, used, *_ in reports):
                rows.append([name, label, *_reduced(row, model.get("explicit"))])
            else:
                reason = "; ".join(reason if label.startswith(part) else f"{part}: {reason}" for part, _, reason, _ in reports)
                refused.setdefault((label, _short(reason)), []).append(name)
    yield from table(["model", "reduction", "states", "s", "MB", "factor", "time", "remark"], rows)
    yield ""
    order = sorted(refused, key=lambda key: (REDUCTIONS.index(key[0]), -len(refused[key]), key))
    yield from table(["refused", "reason", "models"], [[*key, ", ".join(refused[key])] for key in order])
    yield ""


def _reduced(row: _Row, full: _Row | None) -> list[str]:
    """A search with a reduction: states, seconds, MB, factors, and what the reduction says of itself."""
    if row.get("problem"):
        return [*_cells(row), "-", "-", ""]
    remark = "; ".join(f"{name}: {reason}" for name, used, reason, _ in row.get("reductions", []) if used and reason)
    return [*_cells(row), _factor("states", row, full), _factor("seconds", row, full), _short(remark)]


def _factor(what: str, row: _Row, full: _Row | None) -> str:
    """How many times more the search without reductions has; where it was stopped, it would have had that at least."""
    if full is None or full.get("problem") or row["stopped"] is not None:
        return "-"
    factor = full[what] / max(row[what], 1e-3)
    return f"{factor:.2f}" if full["stopped"] is None else f"≥ {factor:.2f}" if factor > 1 else "-"


def _toy(toy: Mapping[str, Any]) -> Iterator[str]:
    yield _TOY.format(rounds=toy["rounds"])
    against = list(dict.fromkeys(name for row in toy["rows"] for name in row["ratios"]))
    titles = ["configuration", "contender", "states", "s", "MB", *(f"{name} {what} / this" for name in against for what in ("s", "MB"))]
    rows = []
    for row in toy["rows"]:
        cells = [row["config"], row["contender"], f"{row['states']:,}" if row["states"] else _short(row["problem"])]
        cells += [f"{row['median_wall_seconds']:.2f}", f"{row['median_peak_bytes'] / 1e6:.0f}"]
        for name in against:
            found = row["ratios"].get(name)
            cells += ["-", "-"] if found is None else [f"{found['wall']:.2f}", f"{found['memory']:.2f}"]
        rows.append(cells)
    yield from table(titles, rows)
    yield ""
    for bar in toy["bars"]:
        told = f"{bar['engine']} is {bar['ratio']:.2f} times as fast as {bar['peer']}"
        yield f"- {bar['config']}: {told}; at least {bar['least']:g} is wanted: {'met' if bar['met'] else 'missed'}"
    yield ""


def _growth(growth: Mapping[str, Any]) -> Iterator[str]:
    yield _GROWTH.format(engine=growth["engine"], rounds=growth["rounds"], slope=f"{growth['slope']:.2f}")
    rows = []
    for slope, size in zip([None, *growth["slopes"]], growth["sizes"], strict=True):
        more = (size["peak"] - growth["sizes"][0]["peak"]) / 1e6
        up = "-" if slope is None else f"{slope:.2f}"
        cells = [size["name"], f"{size['states']:,}", f"{size['seconds']:.2f}", f"{size['states'] / size['seconds']:,.0f}", up]
        rows.append([*cells, f"{more:.0f}", f"{size['bytes_per_state']:.1f}"])
    yield from table(["configuration", "states", "s", "states/s", "slope", "MB more than the first", "bytes per state"], rows)
    yield ""


def _promises(promises: Mapping[str, Any]) -> Iterator[str]:
    yield _PROMISES.format(engine=promises["engine"], rounds=promises["rounds"])
    rows = []
    for name, costs in promises["models"].items():
        before = costs[0]["seconds"]
        for cost in costs:
            last = cost["promises"][-1] if cost["promises"] else "none"
            rows.append([name, f"{cost['states']:,}", last, f"{cost['seconds']:.3f}", f"{cost['seconds'] - before:+.3f}"])
            before = cost["seconds"]
    yield from table(["model", "states", "one promise more", "s", "more"], rows)
    yield ""
