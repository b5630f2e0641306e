"""Symmetry reduction: which permutations of names a search may use, and the tables with which it uses them.

Docs: docs/decisions/0023-symmetry.md. A permutation is used if it maps slots, actions, initial states and promises of the model onto
each other, and if applying it and acting commute on all paths of the decision trees. That is looked at twice: on the trees of a
short search ahead, to find the group, and on every path that the search itself meets; there a failure ends the search, which
starts again without that permutation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import attrs

from dra_spec.explorer.ahead import Ahead
from dra_spec.explorer.growing import Ints
from dra_spec.explorer.model import AlwaysPossible, LeadsTo, LiveWhen, Model, Property, StepInvariant
from dra_spec.explorer.naming import Acting, acting, candidates, movable
from dra_spec.explorer.reductions import ReductionReport, Refuted, refused
from dra_spec.explorer.semantics import State
from dra_spec.explorer.symmetry_check import Checker, NotSymmetric
from dra_spec.explorer.symmetry_images import Element, Images, generated
from dra_spec.explorer.trees import Trees

NAME = "symmetry"


@attrs.frozen(eq=False)
class Group:
    """Permutations that commute: generators with what they make of each promise, and all elements but the identity.

    `used`: the numbers of those that states are made canonical with: they keep the goals of the always-possible promises that are
    looked at. `implied`: always-possible promises that are not looked at, as another one answers for them.
    """

    generators: Sequence[Acting]
    promises: Sequence[Mapping[int, int]]
    elements: Sequence[Element]
    used: Sequence[int]
    implied: frozenset[int]
    report: ReductionReport

    @property
    def in_use(self) -> Sequence[Element]:
        return [self.elements[e] for e in self.used]


NO_GROUP = Group((), (), (), (), frozenset(), refused(NAME, ""))


def find(model: Model, excluded: Mapping[Hashable, str], live: Sequence[LiveWhen] = ()) -> Group:
    """The permutations that a search of the model may use. `excluded`: those that failed before, with the reason; `live`: the declarations
    of dead values that it uses.

    Raises `ModelError`, as a search would.
    """
    sorts, double = movable(model.names)
    if any(isinstance(promise, LeadsTo) for promise in model.properties):
        return _none("fairness to single objects does not survive the exchange of their names (leads-to)")
    if not sorts:
        both = f"; two sorts share the names {', '.join(double)}" if double else ""
        return _none(f"no two objects of one kind{both}")
    found = _Candidates(model)
    chosen: list[tuple[Acting, Mapping[int, int]]] = []
    elements: list[Element] = []
    known: set[Hashable] = set()
    reasons: dict[str, str] = {}
    for renaming in candidates(model.names):
        if renaming.identity in known:
            continue
        if renaming.identity in excluded:
            reasons[str(renaming)] = excluded[renaming.identity]
            continue
        candidate = acting(model, renaming)
        if candidate is None:
            reasons[str(renaming)] = "the model has not the slots, actions or initial states that it would need"
            continue
        try:
            promises = found.commutes(candidate, live)
        except NotSymmetric as error:
            reasons[str(renaming)] = str(error)
            continue
        more = generated([*(acting for acting, _ in chosen), candidate])
        if more is None:
            reasons[str(renaming)] = "the group would become too large"
        elif any(element.renaming.identity in excluded for element in more):
            reasons[str(renaming)] = "together with the others it makes a permutation that does not commute"
        else:
            chosen.append((candidate, promises))
            elements = more
            known = {element.renaming.identity for element in more}
    moved = {name for element in elements for name in element.renaming.names}
    why = _reasons(reasons, {sort: of for sort, of in sorts.items() if not moved & set(of)})
    if not chosen:
        return _none(why or next(f"{name}: {reason}" for name, reason in reasons.items()))
    used, implied = _kept(model, elements, [promises for _, promises in chosen])
    size = len(used) + 1
    if size == 1:
        return _none(f"each of the {len(elements) + 1} permutations moves a goal that must stay possible")
    reason = f"{size} permutations: {', '.join(_orbits(sorts, [elements[e] for e in used]))}"
    if size <= len(elements):
        reason += f"; others of {len(elements) + 1} move a goal that must stay possible"
    report = ReductionReport(NAME, True, reason + (f"; not {why}" if why else ""), f"at most {size} times fewer states")
    return Group([candidate for candidate, _ in chosen], [promises for _, promises in chosen], elements, used, implied, report)


def _kept(model: Model, elements: Sequence[Element], promises: Sequence[Mapping[int, int]]) -> tuple[list[int], frozenset[int]]:
    """The elements that keep the goals that are looked at, and the goals that are not: if one of two goals that a permutation exchanges can
    always be reached, so can the other, since the reachable states are the same after the exchange."""
    goals = [i for i, promise in enumerate(model.properties) if isinstance(promise, AlwaysPossible)]
    made: list[Mapping[int, int]] = []  # per element
    for element in elements:
        last = promises[element.generator]
        before = made[element.before] if element.before >= 0 else {i: i for i in goals}
        made.append({i: last[before[i]] for i in goals})
    first = {i: min([i, *(images[i] for images in made)]) for i in goals}  # of each orbit the first one is looked at
    looked_at = set(first.values())
    used = [e for e, images in enumerate(made) if all(images[i] == i for i in looked_at)]
    return used, frozenset(goals) - looked_at


def _none(reason: str) -> Group:
    return attrs.evolve(NO_GROUP, report=refused(NAME, reason))


def _orbits(sorts: Mapping[str, Sequence[str]], elements: Sequence[Element]) -> Iterator[str]:
    """The names of each sort that some permutation exchanges."""
    for sort, names in sorts.items():
        left = list(names)
        while left:
            first = left[0]
            orbit = {first} | {element.renaming.names.get(first, first) for element in elements}
            left = [name for name in left if name not in orbit]
            if len(orbit) > 1:
                yield f"{sort} {'='.join(sorted(orbit))}"


def _reasons(reasons: Mapping[str, str], sorts: Mapping[str, Sequence[str]]) -> str:
    """One reason per sort at most: that of the first exchange of two of its names."""
    told = []
    for names in sorts.values():
        single = [(name, reason) for name, reason in reasons.items() if set(name.strip("()").split()) <= set(names) and ")(" not in name]
        if single:
            told.append(f"{single[0][0]}: {single[0][1]}")
    return "; ".join(told)


class _Candidates:
    """What a short search ahead says of candidates."""

    def __init__(self, model: Model) -> None:
        self.model, self.ahead = model, Ahead(model)
        self.trees = self.ahead.trees
        self.reads = [self._reads(i, promise) for i, promise in enumerate(model.properties)]

    def _reads(self, index: int, promise: Property) -> frozenset[int]:
        """The slots that a promise looks at in the states ahead."""
        trees = [tree for tree in range(len(self.trees.trees)) if self.trees.trees[tree].property == index]
        return frozenset().union(*(self.ahead.walker.reads(tree) for tree in trees))

    def commutes(self, candidate: Acting, live: Sequence[LiveWhen]) -> dict[int, int]:
        """What the candidate makes of each promise. Raises `NotSymmetric`."""
        promises = self._promises(candidate)
        images = Images(self.ahead.domains, [candidate], [], [])
        checker = Checker(self.trees, images, [promises], closed=False, live=live)
        checker.todo = list(self.ahead.log)
        checker.run()
        return promises

    def _promises(self, candidate: Acting) -> dict[int, int]:
        """A one-to-one map of the promises: same kind and name, objects renamed; of several that fit one that looks at the image."""
        properties = self.model.properties
        chosen: dict[int, int] = {}
        for i, promise in enumerate(properties):
            wanted = frozenset(candidate.slots[slot] for slot in self.reads[i])
            objects = sorted(map(candidate.renaming.text, promise.binding.values()))
            fits = [
                j
                for j, other in enumerate(properties)
                if type(other) is type(promise)
                and other.promise == promise.promise
                and sorted(other.binding.values()) == objects
                and j not in chosen.values()
                and self._allows(candidate, promise, other)
            ]
            if not fits:
                raise NotSymmetric(0, f"the promise {promise.promise} is not made of its image")
            chosen[i] = min(fits, key=lambda j: (self.reads[j] != wanted, j != i))
        return chosen

    def _allows(self, candidate: Acting, promise: Property, other: Property) -> bool:
        """Whether the two speak of corresponding actions."""
        if isinstance(promise, StepInvariant) and isinstance(other, StepInvariant):
            mine, theirs = promise.applies, other.applies
        elif isinstance(promise, AlwaysPossible) and isinstance(other, AlwaysPossible):
            mine, theirs = promise.allowed, other.allowed
        else:
            return True
        actions = self.model.actions
        return all(bool(mine(action)) == bool(theirs(actions[candidate.actions[a]])) for a, action in enumerate(actions))


class Orbits:
    """The group at work in one search: checks what the search learns, and makes states canonical."""

    def __init__(self, group: Group, trees: Trees, live: Sequence[LiveWhen]) -> None:
        self.group, self.trees = group, trees
        self.images = Images(trees.domains, group.generators, group.elements, group.used)
        trees.log = []
        self.checker = Checker(trees, self.images, group.promises, live=live)

    def check(self) -> None:
        """Checks the paths that were learned since the last call. Raises `Refuted`."""
        self._check(self.checker.run)

    def finish(self) -> None:
        """Checks what can be checked only when all values are known: when the search is over. Raises `Refuted`."""
        self._check(self.checker.finish)

    def _check(self, how: Callable[[], None]) -> None:
        assert self.trees.log is not None
        self.checker.todo += self.trees.log
        self.trees.log.clear()
        try:
            how()
        except NotSymmetric as error:
            raise Refuted(NAME, self.group.generators[error.generator].renaming.identity, str(error)) from None

    def canonical(self, row: Ints) -> Ints:
        """The representative of a state, as the kernel finds it."""
        return self.images.canonical(row)

    def normal(self, state: State) -> State:
        """The representative of a state that is given by values."""
        domains = self.trees.domains
        return domains.state(self.canonical(domains.numbers(state)))
