"""What reductions share: how they are asked for, what is said about them, and that shipped models keep verdicts and lengths."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from dra_spec.cli.main import main
from dra_spec.explorer import explore
from dra_spec.explorer.reductions import NONE, ReductionReport, Reductions
from dra_spec.scenario.content import shipped
from dra_spec.scenario.modelfile import Overrides, load
from dra_spec.scenario.targets import scenarios

SMALL = ["touched-claim", "two-pods"]
OTHERS = sorted(name for name, path in shipped("models").items() if load(path).tier == "always" and name not in SMALL)


def test_parse() -> None:
    assert Reductions.parse("none") == NONE
    assert not NONE
    assert Reductions.parse("dead, symmetry") == Reductions(dead=True, symmetry=True)
    assert Reductions.parse("por").por == "safety"
    assert list(Reductions.parse("por=stuck,cone")) == ["cone", "por"]
    assert str(Reductions.parse("por=stuck,cone")) == "cone, por=stuck"
    assert Reductions.parse("auto").auto
    assert set(Reductions.parse("auto")) == {"dead", "merge", "symmetry", "cone", "por"}


@pytest.mark.parametrize("text", ["", "ded", "por=all", "dead=1", "none,dead"])
def test_what_is_no_list_of_reductions(text: str) -> None:
    with pytest.raises(ValueError, match="expected dead, merge"):
        Reductions.parse(text)


@pytest.mark.parametrize(
    ("text", "said"), [("por,por=stuck", "two modes of por"), ("none,dead", "none goes with no other"), ("dead,auto", "auto goes")]
)
def test_reductions_that_contradict_each_other(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Reductions.parse(text)


def test_a_report_in_words() -> None:
    assert str(ReductionReport("dead", True, "3 slots", "2 times fewer")) == "dead (3 slots), 2 times fewer"
    assert str(ReductionReport("dead", False, "no slots")) == "dead not used: no slots"


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.full) for name in OTHERS)])
def test_shipped_models_keep_verdicts_and_lengths(name: str) -> None:
    (scenario,) = scenarios([name], Overrides())
    full = explore(scenario.model)
    for text in ("dead", "dead,symmetry"):
        reduced = explore(scenario.model, reductions=Reductions.parse(text))
        assert reduced.states <= full.states
        assert (reduced.verdict, reduced.complete) == (full.verdict, full.complete)
        for one, other in zip(full.properties, reduced.properties, strict=True):
            assert (other.promise, other.verdict, other.vacuous) == (one.promise, one.verdict, one.vacuous)
            assert (None if other.trace is None else len(other.trace)) == (None if one.trace is None else len(one.trace)), one.promise


def test_the_declarations_of_the_protocol_hold() -> None:
    """None of those of the scheduler is refused, and they are not idle."""
    (scenario,) = scenarios(["two-pods"], Overrides())
    result = explore(scenario.model, reductions=Reductions(dead=True), audit=True)
    assert str(result.reductions[0]).startswith("dead (3 slots in 3 declarations), factor ")
    assert result.states < explore(scenario.model).states
    assert "dead slots: " in result.audit
    assert "dead slots: 0 runs" not in result.audit


def test_the_command_line_says_what_became_of_them() -> None:
    done = CliRunner().invoke(main, ["check", "touched-claim", "--reduce", "dead,symmetry", "-o", "json"], prog_name="dra-spec")
    assert done.exit_code == 0, done.output
    (model,) = json.loads(done.stdout)["models"]
    assert [(report["name"], report["applied"]) for report in model["reductions"]] == [("dead", True), ("symmetry", True)]
    assert "pod p1=p2, claim c1=c2" in model["reductions"][1]["reason"]
    wrong = CliRunner().invoke(main, ["check", "touched-claim", "--reduce", "ded"], prog_name="dra-spec")
    assert wrong.exit_code == 2
    assert "'ded': expected dead, merge" in wrong.output
