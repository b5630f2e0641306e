"""Growth, the cost of promises, and docs/performance.md: what the scripts make of their figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import dead, growth, invariants, measure, models, one, performance
from benchmarks.toy import CONFIGS
from dra_spec.explorer.reductions import NAMES, Reductions


def search(seconds: float = 1.0, problem: str = "", peak: int = 100, **changes: Any) -> measure.Search:
    said = {"states": 5, "transitions": 6, "stuck": 1, "verdict": "holds", "complete": True, "stopped": None, "bytes": 40.0}
    said |= {"promises": {"p": ["holds", None]}, "search": seconds} | changes
    return measure.Search(measure.Run(2.0, 2.0, peak, 0, ""), {} if problem else said, problem)


# growth


@given(
    exponent=st.floats(0.5, 2.5), factor=st.floats(1e-6, 1e3), sizes=st.lists(st.integers(1000, 10**8), min_size=2, max_size=6, unique=True)
)
def test_the_slope_is_the_exponent_of_a_power(exponent: float, factor: float, sizes: list[int]) -> None:
    assert growth.slope([(size, factor * size**exponent) for size in sizes]) == pytest.approx(exponent, rel=1e-3)


def test_slopes_between_neighbours() -> None:
    sizes = [growth.Size("a", 10, 1.0, 0, 40.0), growth.Size("b", 100, 10.0, 0, 40.0), growth.Size("c", 1000, 1000.0, 0, 40.0)]
    assert growth.between(sizes) == pytest.approx([1.0, 2.0])
    assert [line.split("|")[5].strip() for line in growth.table(sizes)[2:]] == ["-", "1.00", "2.00"]


def test_sizes_are_those_of_the_table_by_states() -> None:
    assert growth.chosen(10_000_000) == ["d", "e", "m", "o", "q"]
    assert growth.chosen(50_000_000)[-1] == "o5"
    states = [CONFIGS[name].states for name in growth.chosen(50_000_000)]
    assert states == sorted(states)


def test_a_size_that_was_not_searched_to_its_end_is_no_figure() -> None:
    good = search(seconds=3.0, states=CONFIGS["m"].states)
    assert growth.size("m", [good, search(seconds=1.0, states=CONFIGS["m"].states), good]).seconds == 3.0
    with pytest.raises(Exception, match=r"m: stopped by memory at 7 of 993,480 states"):
        growth.size("m", [good, search(states=7, stopped="memory")])
    with pytest.raises(Exception, match="m: ended by signal 9"):
        growth.size("m", [search(problem="ended by signal 9")])


def test_too_few_sizes() -> None:
    done = CliRunner().invoke(growth.main, ["--most", "400000"])
    assert (done.exit_code, done.output) == (2, "Error: --most: 400,000 leaves 2 sizes, expected at least 4\n")


# the cost of promises


def fake_searches(monkeypatch: pytest.MonkeyPatch, states: dict[int, int]) -> None:
    """A model with two promises; a search takes a second and half a second per promise."""

    def fake(what: str, engine: str, *options: str, time_limit: float) -> measure.Search:
        count = min(2, int(options[options.index("--promises") + 1]))
        promises = {f"p{i}": ["holds", None] for i in range(count)}
        return search(1.0 + count / 2, states=states.get(count, 1000), promises=promises)

    monkeypatch.setattr(measure, "search", fake)


def test_each_promise_more_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_searches(monkeypatch, {})
    found = invariants.costs("x", "explicit", 2, 10)
    assert [(cost.promises, cost.seconds) for cost in found] == [((), 1.0), (("p0",), 1.5), (("p0", "p1"), 2.0)]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in invariants.table(found)[2:]]
    assert rows[0] == ["0", "none", "1.000", "-", "-", "-", "0"]
    assert rows[2] == ["2", "p1", "2.000", "+0.500", "+50 %", "+500000", "0"]
    assert invariants.average(found) == "on average 0.500 s per promise, 50.0 % of the search without, 500000 ns per state"


def test_promises_must_not_change_the_states(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_searches(monkeypatch, {1: 999})
    with pytest.raises(Exception, match=r"the promises change the states: \[1000, 999, 1000\]"):
        invariants.costs("x", "explicit", 1, 10)


def test_some_promises_only() -> None:
    model, _ = one.model_of("g", "none")
    names = list(dict.fromkeys(p.promise for p in model.properties))
    assert len(names) >= 2
    assert {p.promise for p in one.with_promises(model, 1).properties} == {names[0]}
    assert not one.with_promises(model, 0).properties
    assert len(one.with_promises(model, 99).properties) == len(model.properties)


# models and reductions


def rows(**others: measure.Search) -> dict[str, dict[str, Any]]:
    return {label: models.row(done) for label, done in ({"explicit": search()} | others).items()}


@pytest.mark.parametrize(
    ("label", "other", "told"),
    [
        ("symbolic", search(transitions=7), ["symbolic: transitions 7, explicit 6"]),
        ("symbolic", search(stuck=0), ["symbolic: stuck 0, explicit 1"]),
        ("symbolic", search(states=4, stopped="time"), []),
        ("symbolic", search(problem="killed"), []),
        ("dead", search(states=3), []),
        ("dead", search(promises={"p": ["violated", 3]}), ["dead: p violated, explicit holds"]),
        ("por=stuck", search(promises={"p": ["undecided", None]}), []),
    ],
)
def test_contradictions(label: str, other: measure.Search, told: list[str]) -> None:
    assert list(models.contradictions(rows(**{label: other}))) == told


def test_lengths_are_compared_where_they_are_promised() -> None:
    figures = {
        label: models.row(search(promises={"p": ["violated", length]})) for label, length in (("explicit", 3), ("dead", 4), ("merge", 4))
    }
    assert list(models.contradictions(figures)) == ["dead: p after 4 steps, explicit 3"]


def test_every_reduction_is_measured() -> None:
    known = {str(name) for way in models.WAYS.values() if way.reduce for name in Reductions.parse(way.reduce)}
    assert known == set(NAMES)
    assert tuple(label for label, way in models.WAYS.items() if way.reduce) == performance.REDUCTIONS


def test_the_page() -> None:
    reduced = search(seconds=0.25, states=2, reductions=[["dead", True, "3 slots", ""]])
    refused = search(reductions=[["cone", False, "a leads-to promise | looks at all", ""]])
    stopped = search(states=4, stopped="time", reductions=[["merge", True, "", ""]])
    figures = {
        "machine": {"cores": 2, "memory_gb": 24, "system": "Linux", "python": "3.11.7"},
        "models": {"x": rows(symbolic=search(problem="killed"), dead=reduced, cone=refused, merge=stopped), "y": rows(cone=refused)},
    }
    figures["models"]["z"] = rows(
        explicit=search(states=4, stopped="time", verdict="undecided"), symbolic=search(states=40, transitions=60)
    )
    figures["models"]["endless"] = rows(explicit=search(states=4, stopped="memory", verdict="violated"), dead=reduced, symmetry=stopped)
    lines = performance.page(figures).splitlines()
    assert "2 cores, 24 GB of memory" in lines[2]
    assert "| x | 6 | 5 | 1.00 | 0 | 2.00 | - | killed | - | - | holds |" in lines
    assert "| z | 60 | 4, then time | 1.00 | 0 | 2.00 | - | 40 | 1.00 | 0 | holds |" in lines
    assert "| endless | - | 4, then memory | 1.00 | 0 | 2.00 | - | - | - | - | violated |" in lines
    assert "| endless | dead | 2 | 0.25 | 0 | ≥ 2.00 | ≥ 4.00 | dead: 3 slots |" in lines
    assert "| endless | symmetry | 4, then time | 1.00 | 0 | - | - |  |" in lines
    assert "| x | dead | 2 | 0.25 | 0 | 2.50 | 4.00 | dead: 3 slots |" in lines
    assert "| x | merge | 4, then time | 1.00 | 0 | - | - |  |" in lines
    assert "| cone | a leads-to promise \\| looks at all | x, y |" in lines
    assert not any(line.startswith("## Growth") for line in lines)


def test_the_page_takes_in_what_the_other_scripts_measured() -> None:
    growing = {"engine": "explicit", "rounds": 3, "slope": 1.04, "slopes": [1.04]}
    growing["sizes"] = [
        attrs.asdict(growth.Size(name, states, states / 1e6, states, 40.0)) for name, states in (("d", 10**6), ("m", 10**7))
    ]
    ratios = {"spin": {"wall": 3.5, "memory": 4.0}}
    row = {"config": "q", "contender": "explicit", "states": 5, "median_wall_seconds": 2.0, "median_peak_bytes": 1e8, "ratios": ratios}
    bar = {"config": "q", "engine": "explicit", "peer": "spin", "ratio": 3.5, "least": 3.0, "met": True}
    costs = [attrs.asdict(invariants.Cost(names, seconds, 0.0, 5)) for names, seconds in (((), 1.0), (("p",), 1.5))]
    figures = {
        "machine": measure.machine(),
        "models": {},
        "toy": {"rounds": 3, "rows": [row], "bars": [bar]},
        "growth": growing,
        "promises": {"engine": "explicit", "rounds": 3, "models": {"m": costs}},
    }
    lines = performance.page(figures).splitlines()
    assert "| q | explicit | 5 | 2.00 | 100 | 3.50 | 4.00 |" in lines
    assert "- q: explicit is 3.50 times as fast as spin; at least 3 is wanted: met" in lines
    assert "| m | 10,000,000 | 10.00 | 1,000,000 | 1.04 | 9 | 40.0 |" in lines
    assert "| m | 5 | p | 1.500 | +0.500 |" in lines


def test_models_are_measured_and_kept(tmp_path: Path) -> None:
    """Other ways are added to a file; figures of another machine are not mixed in."""
    file, page = tmp_path / "models.json", tmp_path / "page.md"
    arguments = ["--json", str(file), "--models", "node-reboot", "--write", str(page)]
    assert CliRunner().invoke(models.main, [*arguments, "--ways", "symbolic"]).exit_code == 0
    done = CliRunner().invoke(models.main, [*arguments, "--ways", "explicit"])
    assert done.exit_code == 0, done.output
    figures = json.loads(file.read_text())
    assert list(figures["models"]["node-reboot"]) == ["explicit", "symbolic"]
    counts = {(row["states"], row["transitions"]) for row in figures["models"]["node-reboot"].values()}
    assert len(counts) == 1
    assert "| node-reboot |" in page.read_text()
    file.write_text(json.dumps(figures | {"machine": {"cores": 99}}))
    done = CliRunner().invoke(models.main, arguments)
    assert done.exit_code == 2
    assert done.output.startswith("Error: --json: the figures in ")
    assert len(done.output.splitlines()) == 1


def test_models_that_break_a_promise_are_measured_repaired_too(tmp_path: Path) -> None:
    names = models.chosen("", True)
    assert "h1+repaired" in names
    assert "two-pods" in names
    assert "two-pods+repaired" not in names
    released, _ = one.model_of("h1", "none")
    repaired, _ = one.model_of("h1+repaired", "none")
    assert {a.type.fn for a in released.actions} != {a.type.fn for a in repaired.actions}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "no-such"], "Error: --models: found 'no-such', expected some of binding-conditions, "),
        (["--ways", "fast"], "Error: --ways: found 'fast', expected some of explicit, symbolic, dead, "),
        (["--toy", "/no/such.json"], "Error: --toy: /no/such.json: No such file or directory"),
        (["--write", "/no/such/page.md"], "Error: --write: no folder /no/such"),
    ],
)
def test_wrong_input_is_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(models.main, ["--json", str(tmp_path / "x.json"), *arguments])
    assert done.exit_code == 2
    assert done.output.startswith(message)
    assert len(done.output.splitlines()) == 1


def test_a_file_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{")
    done = CliRunner().invoke(models.main, ["--json", str(tmp_path / "x.json")])
    assert done.exit_code == 2
    assert "not JSON" in done.output


def test_one_search_says_what_the_scripts_read() -> None:
    done = CliRunner().invoke(one.main, ["g", "explicit", "--promises", "1", "--bug", "unprepare", "--time-limit", "50"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.output)
    assert said["states"] >= 11_000
    assert list(said["promises"]) == ["in-use-is-prepared"]
    unknown = CliRunner().invoke(one.main, ["no-such", "explicit"])
    assert unknown.exit_code == 2
    assert unknown.output.startswith("Error: no-such: no such file, directory or model")


# dead values


def test_factors_of_declarations_are_those_of_searches() -> None:
    """The declarations of two-pods, one by one; what a model declares not at all is an error of one line."""
    model, limits = one.model_of("two-pods", "none")
    none, every, found = dead.factors(model, attrs.evolve(limits, expand_violating=True))
    assert [f.declaration for f in found] == [str(declared) for declared in model.live]
    assert all(every <= f.alone <= none and every <= f.without <= none for f in found)
    assert every < none
    assert f"| all | {every:,} | {none / every:.2f} |" in "\n".join(dead.table(none, every, found))
    done = CliRunner().invoke(dead.main, ["--models", "node-reboot"])
    assert (done.exit_code, done.output) == (2, "Error: node-reboot: declares no dead values\n")
