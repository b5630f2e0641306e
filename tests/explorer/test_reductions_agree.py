"""Every engine and every reduction against the plain search on random small models: the same verdicts, shortest lengths where they are
promised, stuck states.

The models are of several kinds: dense ones (random_models), in which there is little to reduce, so that a reduction must refuse or do no
harm; loosely coupled ones, ones with slots that die and ones with alike objects, each made for one reduction; and families, in which there
is something for all of them (random_families).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loose_models import loose
from mortal_models import MortalMaker
from random_families import Family
from random_models import Maker, agree
from symmetric_models import SymmetricMaker

from dra_spec.explorer import EngineError, Limits, Result, explore, fingerprints, parallel, symbolic, symmetry_check
from dra_spec.explorer.model import ActionType, AlwaysPossible, DeadlockFree, LeadsTo, Model, Outcome, View
from dra_spec.explorer.reductions import NONE, ReductionReport, Reductions

MOST = 400  # states in the plain search; larger models are left out
SLOW = list(HealthCheck)


@attrs.frozen
class Way:
    """One way to search, and what it promises beside the verdicts of the promises that it decides.

    `exact`: everything else is the same as in the plain search too. `lengths`: counterexamples are shortest ones of the full model.
    `stuck`: "same" as many stuck states; "some" none if and only if there are none; "" nothing is said of them. `fewer`: no more states (in
    sub-models there may be more, taken together). `behind`: it need not meet the same violating states first, behind which nobody looks; so
    it may decide what the plain search leaves undecided for that reason, or leave undecided what that one decides. `narrow`: it keeps
    fingerprints.
    """

    reductions: Reductions = NONE
    engine: str = "explicit"
    exact: bool = False
    lengths: bool = True
    stuck: str = "some"
    fewer: bool = True
    behind: bool = False
    narrow: bool = False
    threads: int = 1


WAYS: Mapping[str, Way] = {
    "explicit": Way(exact=True, stuck="same"),
    "three threads": Way(exact=True, stuck="same", threads=3),
    "fingerprints": Way(exact=True, stuck="same", narrow=True, threads=3),
    "fingerprints,dead,symmetry": Way(Reductions(dead=True, symmetry=True), narrow=True),
    "fingerprints,merge,por": Way(Reductions(merge=True, por="safety"), narrow=True, lengths=False, stuck="", behind=True),
    "symbolic": Way(engine="symbolic", exact=True, stuck="same"),
    "dead": Way(Reductions(dead=True)),
    "symmetry": Way(Reductions(symmetry=True)),
    "dead,symmetry": Way(Reductions(dead=True, symmetry=True)),
    "merge": Way(Reductions(merge=True), lengths=False, behind=True),
    "cone": Way(Reductions(cone=True), stuck="", fewer=False, behind=True),
    "por=stuck": Way(Reductions(por="stuck"), lengths=False, stuck="same"),
    "por=safety": Way(Reductions(por="safety"), stuck="", behind=True),
    "auto": Way(Reductions.parse("auto"), lengths=False, stuck="", fewer=False, behind=True),
}
Search = Callable[[Model, Limits, Way], Result]
Make = Callable[[int], tuple[Model, Limits]]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables for small models, which would take longer to make than to use; and what is for wide rows and large blocks is for all."""
    monkeypatch.setattr(symbolic, "NODES", 1 << 20)
    monkeypatch.setattr(symbolic, "CACHE", 1 << 16)
    monkeypatch.setattr(fingerprints, "_FULL_WORDS", 0)
    monkeypatch.setattr(parallel, "LEAST", 2)


def search(model: Model, limits: Limits, way: Way) -> Result:
    limits = attrs.evolve(limits, fingerprints=way.narrow, threads=way.threads)
    return explore(model, limits, way.engine, reductions=way.reductions)


def widened(model: Model, plain: Result, other: Result) -> Result:
    """The result of a search with fingerprints as one with full rows would have it: what it must say otherwise is looked at here."""
    print_ = other.fingerprints
    assert print_ is not None
    assert print_.bits == 128
    about_graph = {promise.promise for promise in model.properties if isinstance(promise, (AlwaysPossible, LeadsTo))}
    told = []
    for one, found in zip(plain.properties, other.properties, strict=True):
        if found.promise in about_graph:
            assert (found.verdict, found.reason) == ("undecided", fingerprints.WHOLE_GRAPH)
            told.append(one)
        else:
            assert found.verdict != "holds" or found.reason == str(print_)
            told.append(attrs.evolve(found, reason="") if found.verdict == "holds" else found)
    return attrs.evolve(other, properties=told, warnings=plain.warnings)


def compare(model: Model, plain: Result, whole: Result, other: Result, way: Way) -> None:
    """Raises `AssertionError` where the other search says something that it may not say. `whole`: a plain search that also looked behind
    violating states, if the first one did not.

    A violation that a reduced search reports was run through the full model before; so what a reduction can do wrong is to miss one, to
    miss a bound that was met, or to show a longer way than it promises.
    """
    if way.narrow:
        other = widened(model, plain, other)
    if way.exact:
        depth = plain.depth if other.depth == symbolic.UNKNOWN_DEPTH else other.depth
        agree(plain, attrs.evolve(other, depth=depth))
    applied = any(report.applied for report in other.reductions)
    left_out = {report.name for report in other.reductions if report.applied}
    about_stuck = {promise.promise for promise in model.properties if isinstance(promise, DeadlockFree)}
    stuck_only = applied and way.reductions.por == "stuck"
    for one, every, found in zip(plain.properties, whole.properties, other.properties, strict=True):
        assert found.promise == one.promise
        if found.verdict == "undecided" and stuck_only and one.promise not in about_stuck:
            continue  # of other promises it says nothing
        right = {one.verdict, every.verdict} if way.behind and applied else {one.verdict}
        if way.behind and other.unexpanded:
            right.add("undecided")
        if "cone" in left_out and every.verdict == "undecided":
            right.add("holds")  # a bound that only writers met which cannot influence the promise
        assert found.verdict in right, f"{one.promise}: {found.verdict}, plain {one.verdict}"
        if found.trace is not None and found.trace.due is None:
            shortest = every if way.behind else one
            least, most = (len(p.trace) if p.trace is not None else None for p in (shortest, one))
            assert least is None or len(found.trace) >= least, f"{one.promise}: a trace shorter than the shortest"
            if way.lengths and most is not None and not (way.behind and other.unexpanded):
                assert len(found.trace) <= most, f"{one.promise}: {len(found.trace)} steps, shortest {most}"
    assert other.complete == plain.complete or stuck_only or way.behind, f"complete {other.complete}, plain {plain.complete}"
    assert other.states <= plain.states or not way.fewer, f"{other.states} states, plain {plain.states}"
    if way.stuck == "same" or not applied:
        assert other.stuck == plain.stuck, f"stuck states: {other.stuck}, plain {plain.stuck}"
    elif way.stuck == "some":
        assert bool(other.stuck) == bool(plain.stuck), f"stuck states: {other.stuck}, plain {plain.stuck}"


MAKERS: Mapping[str, Callable[[int, random.Random], Model]] = {
    "dense": lambda seed, dice: Maker(seed, dice.random() < 0.3, dice.random() < 0.3).model(),
    "dense with runs": lambda seed, dice: Maker(seed, dice.random() < 0.3, dice.random() < 0.3).model_with_runs(),
    "loose": lambda seed, dice: loose(seed, beyond=dice.random() < 0.3),
    "mortal": lambda seed, dice: MortalMaker(seed, dice.random() < 0.3, dice.random() < 0.7).model(),
    "symmetric": lambda seed, dice: SymmetricMaker(seed, dice.random() < 0.7).model(),
    "family": lambda seed, dice: Family(seed).model(),
    "lopsided": lambda seed, dice: Family(seed, lopsided=True).model(),
}


def model_of(seed: int) -> tuple[Model, Limits]:
    """A model of some kind."""
    dice = random.Random(seed)
    make = MAKERS[dice.choice([*MAKERS, "family"])]
    return make(seed, dice), Limits(expand_violating=dice.random() < 0.5)


def lopsided(seed: int) -> tuple[Model, Limits]:
    """A family that looks more symmetric than it is."""
    return Family(seed, lopsided=True).model(), Limits(expand_violating=seed % 2 == 0)


def compare_all(
    seed: int, model: Model, limits: Limits, plain: Result, whole: Result, ways: Mapping[str, Way], run: Search = search
) -> None:
    """Searches in all these ways, and compares each result. Raises `AssertionError` that names seed and way."""
    for name, way in ways.items():
        try:
            other = run(model, limits, way)
            compare(model, whole if way.reductions.por == "stuck" else plain, whole, other, way)
        except (AssertionError, EngineError) as error:
            raise AssertionError(f"seed {seed}, {name}: {error}") from error


def check(seed: int, ways: Mapping[str, Way], run: Search = search, make: Make = model_of) -> None:
    """Compares all ways on the model of a seed; nothing if the model is too large. Raises `AssertionError`."""
    model, limits = make(seed)
    plain = explore(model, attrs.evolve(limits, max_states=MOST), "plain")
    whole = explore(model, Limits(max_states=MOST, expand_violating=True), "plain") if plain.unexpanded else plain
    if "max-states" not in (plain.stopped, whole.stopped):
        compare_all(seed, model, limits, plain, whole, ways, run)


def some(seed: int) -> Mapping[str, Way]:
    """Three ways by chance."""
    return {name: WAYS[name] for name in random.Random(-seed).sample(list(WAYS), 3)}


@given(seed=st.integers(0, 10**9))
@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
def test_ways_agree(seed: int) -> None:
    check(seed, some(seed))


# A promise that no action can influence: its sub-model has no action and no slot. A way to a stuck state through a violating state.
@pytest.mark.parametrize("seed", [174, 5400562820])
def test_seeds_that_went_wrong(seed: int) -> None:
    check(seed, WAYS)


def limited(model: Model, limits: Limits, dice: random.Random) -> Limits:
    """The same, and a limit that most searches meet."""
    if dice.random() < 0.5:
        return attrs.evolve(limits, depth=dice.randint(0, 6))
    return attrs.evolve(limits, max_states=dice.randint(1, 60))


def check_limited(seed: int, ways: Mapping[str, Way], run: Search = search) -> None:
    """What a search says that was stopped is so in the whole model: what holds, what is violated, and in how many steps."""
    model, unlimited = model_of(seed)
    whole = explore(model, Limits(max_states=MOST, expand_violating=True), "plain")
    if whole.stopped == "max-states":
        return
    about_runs = {promise.promise for promise in model.properties if isinstance(promise, AlwaysPossible)}
    for name, way in ways.items():
        limits = limited(model, unlimited, random.Random(f"{seed} {name}"))
        try:
            found = run(model, limits, way)
            if limits.max_states is not None and way.engine != "symbolic":  # that one counts now and then
                assert found.states <= limits.max_states, f"{found.states} states"
            assert found.stopped is None or not found.complete
            for every, one in zip(whole.properties, found.properties, strict=True):
                right = {every.verdict, "undecided"} | ({"holds"} if every.verdict == "undecided" and way.reductions.cone else set())
                assert one.verdict in right, f"{one.promise}: {one.verdict} with a limit, {every.verdict} without"
                if one.trace is not None and one.trace.due is None:
                    assert every.trace is not None
                    assert limits.depth is None or len(one.trace) <= limits.depth
                    assert len(one.trace) >= len(every.trace), f"{one.promise}: a trace shorter than the shortest"
                    if way.lengths and not found.unexpanded and one.promise not in about_runs:  # what was not expanded may lead to a goal
                        assert len(one.trace) == len(every.trace), f"{one.promise}: {len(one.trace)} steps, shortest {len(every.trace)}"
        except (AssertionError, EngineError) as error:
            raise AssertionError(f"seed {seed}, {name}, {limits}: {error}") from error


@given(seed=st.integers(0, 10**9))
@settings(max_examples=30, deadline=None, suppress_health_check=SLOW)
def test_searches_that_are_stopped_say_what_is_so(seed: int) -> None:
    check_limited(seed, some(seed))


def test_a_verdict_beyond_a_limit_is_caught() -> None:
    """A search that forgets that it was stopped says of some promises that they hold."""

    def forgetful(model: Model, limits: Limits, way: Way) -> Result:
        found = search(model, limits, way)
        promises = [attrs.evolve(p, verdict="holds") if p.verdict == "undecided" else p for p in found.properties]
        return attrs.evolve(found, properties=promises)

    count = 0
    for seed in range(20):
        try:
            check_limited(seed, {"explicit": WAYS["explicit"]}, forgetful)
        except AssertionError:
            count += 1
    assert count >= 3


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(8))
def test_all_searches_that_are_stopped_say_what_is_so(part: int) -> None:
    """2,000 models in eight parts."""

    @given(seed=st.integers(part * 10**9, (part + 1) * 10**9))
    @settings(max_examples=250, deadline=None, suppress_health_check=SLOW)
    def so(seed: int) -> None:
        check_limited(seed, WAYS)

    so()


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(8))
def test_all_ways_agree(part: int) -> None:
    """2,000 models in eight parts."""

    @given(seed=st.integers(part * 10**9, (part + 1) * 10**9))
    @settings(max_examples=250, deadline=None, suppress_health_check=SLOW)
    def agrees(seed: int) -> None:
        check(seed, WAYS)

    agrees()


@pytest.mark.parametrize(
    ("way", "used", "less"),
    [("dead", 4, 2), ("symmetry", 8, 4), ("merge", 1, 1), ("cone", 3, 0), ("por=stuck", 4, 2), ("por=safety", 4, 2)],
)
def test_families_have_something_to_reduce(way: str, used: int, less: int) -> None:
    """Each reduction is used on some of them, and stores fewer states: else the tests above would compare little."""
    applied = fewer = 0
    limits = Limits(max_states=5000, expand_violating=True)
    for seed in range(20):
        reduced = search(Family(seed).model(), limits, WAYS[way])
        if any(report.applied for report in reduced.reductions):
            applied += 1
            fewer += reduced.states < explore(Family(seed).model(), limits).states
    assert applied >= used
    assert fewer >= less


def forgets_an_action(model: Model, limits: Limits, way: Way) -> Result:
    """A cone that does not ask whether a promise can see what it leaves out."""
    middle = len(model.actions) // 2
    found = explore(attrs.evolve(model, actions=[*model.actions[:middle], *model.actions[middle + 1 :]]), limits, way.engine)
    return attrs.evolve(found, reductions=[ReductionReport("cone", True)])


def takes_one_step_only(model: Model, limits: Limits, way: Way) -> Result:
    """A stubborn set of the first enabled action, whatever depends on it: an action may go only where those before it may not."""

    def alone(number: int) -> ActionType:
        kind = model.actions[number].type

        def function(v: View, context: object, **params: object) -> Iterator[Outcome]:
            """Enabled if none of the actions before it is."""
            if not any(before.run(v) for before in model.actions[:number]):
                yield from kind.fn(v, context, **params)

        return attrs.evolve(kind, fn=function)

    actions = [attrs.evolve(action, type=attrs.evolve(alone(i), name=f"{action.name} {i}")) for i, action in enumerate(model.actions)]
    found = explore(attrs.evolve(model, actions=actions), limits, way.engine)
    return attrs.evolve(found, reductions=[ReductionReport("por", True)])


def caught(seeds: int, way: str, run: Search = search, make: Make = model_of) -> int:
    """On how many of so many seeds the comparison notices something."""
    count = 0
    for seed in range(seeds):
        try:
            check(seed, {way: WAYS[way]}, run, make)
        except AssertionError:
            count += 1
    return count


@pytest.mark.parametrize(
    ("double", "way"), [(forgets_an_action, "cone"), (takes_one_step_only, "por=safety"), (takes_one_step_only, "por=stuck")]
)
def test_an_unsound_reduction_is_caught(double: Search, way: str) -> None:
    """By the comparison that the tests above make, on more than a few seeds."""
    assert caught(25, way, double) >= 3


def test_a_symmetry_that_is_none_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check that permuting and acting commute, on families that look more symmetric than they are; with it all is well."""
    assert caught(25, "symmetry", make=lopsided) == 0
    right = symmetry_check.Checker.run

    def careless(self: symmetry_check.Checker) -> None:
        try:
            right(self)
        except symmetry_check.NotSymmetric:
            self.todo.clear()

    monkeypatch.setattr(symmetry_check.Checker, "run", careless)
    assert caught(25, "symmetry", make=lopsided) >= 3
