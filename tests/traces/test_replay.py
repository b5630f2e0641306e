"""Replay through the model: a true trace goes through, an edited one names the step that fails."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from dra_spec.explorer.semantics import Semantics
from dra_spec.traces.replay import StepFailed, breaks, follow
from dra_spec.traces.story import text
from dra_spec.traces.trace import Belief, Trace
from dra_spec.traces.tracefile import dumps, loads


def test_a_true_trace_is_followed_to_the_broken_promise(semantics: Semantics, double: Callable[[], Trace]) -> None:
    run = follow(double(), semantics)
    assert len(run.states) == 4
    assert breaks(double(), semantics, run) is True


def test_a_trace_that_ends_too_early_does_not_break_the_promise(semantics: Semantics, double: Callable[[], Trace]) -> None:
    short = attrs.evolve(double(), steps=double().steps[:2])
    assert breaks(short, semantics, follow(short, semantics)) is False


def test_a_promise_that_the_model_does_not_have_cannot_be_judged(semantics: Semantics, double: Callable[[], Trace]) -> None:
    other = attrs.evolve(double(), promise="something else")
    assert breaks(other, semantics, follow(other, semantics)) is None


@pytest.mark.parametrize(
    ("old", "new", "step", "reason"),
    [
        ("owner: bob}", "owner: ann}", 3, "changes thing"),
        ("params: {who: bob}", "params: {who: eve}", 3, "the model has no writer.take(who=eve)"),
        ("action: writer.watch", "action: writer.wacth", 2, "did you mean 'writer.watch'?"),
        ("    outcome: ok", "    outcome: conflict", 1, "cannot end as 'conflict' here, only as ok, refused"),
        ("    outcome: ok", "    outcome: refused", 1, "does not change"),
        ("found: false}", "found: true}", 1, "the reads of"),
        ("    who: scheduler", "    who: kubelet", 1, "step 'T1' of scheduler"),
        ("      - {slot: ann/owns, before: false, after: true}\n", "", 1, "also changes ann/owns"),
        ("actual: {owner: ann}", "actual: {owner: eve}", 2, "the beliefs of"),
    ],
)
def test_an_edited_step_is_named(semantics: Semantics, double: Callable[[], Trace], old: str, new: str, step: int, reason: str) -> None:
    original = dumps(double())
    assert old in original
    with pytest.raises(StepFailed) as failure:
        follow(loads(original.replace(old, new, 1), "t.yaml"), semantics)
    assert failure.value.number == step
    assert reason in failure.value.reason


def test_a_removed_step_is_noticed_at_the_next(semantics: Semantics, double: Callable[[], Trace]) -> None:
    _, second, third = double().steps
    cut = attrs.evolve(double(), steps=(attrs.evolve(second, number=1), attrs.evolve(third, number=2)))
    with pytest.raises(StepFailed, match=r"step 1: .* is not enabled"):
        follow(cut, semantics)


def test_words_about_a_step_may_change(semantics: Semantics, double: Callable[[], Trace]) -> None:
    follow(loads(dumps(double()).replace("Brings the cache up to date", "Reads the news"), "t.yaml"), semantics)


def test_an_outdated_copy_is_recorded_as_a_belief(double: Callable[[], Trace]) -> None:
    last = double().steps[-1]
    assert last.believed == (Belief("bob/thing", "thing/t", {"owner": None}, {"owner": "ann"}),)


def test_the_story_says_who_what_why_and_what_was_believed(double: Callable[[], Trace]) -> None:
    told = text(double())
    assert "one-owner is broken in toy after 3 steps" in told
    assert "3. scheduler  Takes the thing if the cache says that nobody has it   [T1 writer.take(who=bob)]" in told
    assert "because bob/thing.owner is none, bob/owns is no" in told
    assert "acts on what is out of date: bob/thing has thing/t with owner none (API: ann)" in told
    assert told.count("now out of date: bob/thing has thing/t with owner none (API: ann)") == 1
    assert "thing: owner ann -> bob" in told
    assert told.endswith("  => ann and bob\n")
