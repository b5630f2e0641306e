"""Permutations of names, and how they act on values, slots, actions and promises.

Names occur in values as texts, or as pieces of texts between slashes (the name of a slot, the object that a version is of). A
permutation renames them wherever they occur. Nothing is assumed about that: whether a renamed model behaves the same is checked by
`symmetry`.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from dra_spec.explorer.model import Action, Model, Projection, Slot
from dra_spec.explorer.values import key

MOST_CANDIDATES = 5_000
Names = Mapping[str, Sequence[str]]


class Renaming:
    """One permutation of the names of a model."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = {old: new for old, new in names.items() if old != new}
        self.slots: Mapping[Slot[Any], Slot[Any]] = {}
        self._texts: dict[str, str] = {}
        self._fields: dict[type, tuple[str, ...]] = {}

    @property
    def identity(self) -> Hashable:
        """Equal for permutations that rename alike."""
        return frozenset(self.names.items())

    def __str__(self) -> str:
        """In cycles: "(p1 p2)(c1 c2)"."""
        left, cycles = dict(self.names), []
        while left:
            first, name = left.popitem()
            cycle = [first]
            while name != first:
                cycle.append(name)
                name = left.pop(name)
            least = cycle.index(min(cycle))
            cycles.append("(" + " ".join(cycle[least:] + cycle[:least]) + ")")
        return "".join(sorted(cycles)) or "()"

    def then(self, other: Renaming) -> Renaming:
        """First this one, then the other."""
        both = {old: other.names.get(new, new) for old, new in self.names.items()}
        return Renaming({**{old: new for old, new in other.names.items() if old not in both}, **both})

    def text(self, text: str) -> str:
        """A text with its names, or those of its pieces, renamed."""
        if text not in self._texts:
            self._texts[text] = self._text(text)
        return self._texts[text]

    def _text(self, text: str) -> str:
        if text in self.names:
            return self.names[text]
        pieces, renamed, at = text.split("/"), [], 0
        while at < len(pieces):
            end = next((e for e in range(len(pieces), at, -1) if "/".join(pieces[at:e]) in self.names), None)
            renamed.append(self.names["/".join(pieces[at:end])] if end else pieces[at])
            at = end or at + 1
        return "/".join(renamed)

    def value(self, value: Any) -> Any:
        """A value, or an argument of a function, with all names in it renamed; a slot becomes the slot of the new name."""
        kind = type(value)
        if kind is str:
            return self.text(value)
        if isinstance(value, Slot):
            return self.slots.get(value, value)
        if isinstance(value, (tuple, list)) and kind in (tuple, list):
            return kind(self.value(item) for item in value)
        if kind in (frozenset, set):
            return kind(self.value(item) for item in value)
        if kind is dict:
            return {self.value(k): self.value(v) for k, v in value.items()}
        if attrs.has(kind) and kind.__hash__ is not object.__hash__:
            if kind not in self._fields:
                self._fields[kind] = tuple(field.name for field in attrs.fields(kind))
            return kind(**{name.lstrip("_"): self.value(getattr(value, name)) for name in self._fields[kind]})
        return value

    def projection(self, what: Projection) -> Projection:
        """What of a renamed value is to be looked at."""
        return Projection(what.name, what.fn, self.value(what.args)) if what.fn is not None else what


@attrs.frozen(eq=False)
class Acting:
    """A permutation that maps the slots and actions of a model onto each other, with the initial states: `slots[i]`, `actions[i]`
    are the numbers of the images."""

    renaming: Renaming
    slots: tuple[int, ...]
    actions: tuple[int, ...]

    def __str__(self) -> str:
        return str(self.renaming)

    def state(self, state: Sequence[Any]) -> tuple[Any, ...]:
        """The image of a state."""
        image = [None] * len(state)
        for slot, value in zip(self.slots, state, strict=True):
            image[slot] = self.renaming.value(value)
        return tuple(image)


def movable(names: Names) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """The names of each sort that mean one thing only, where there are two or more; and those left out since two sorts have them."""
    everywhere = [name for sort in names.values() for name in dict.fromkeys(sort)]
    double = sorted({name for name in everywhere if everywhere.count(name) > 1})
    left = {sort: tuple(name for name in dict.fromkeys(of) if name not in double) for sort, of in names.items()}
    return {sort: of for sort, of in left.items() if len(of) > 1}, double


def candidates(names: Names) -> Iterator[Renaming]:
    """Permutations within the sorts, not the identity; those that move few names first. If there are too many, only exchanges of two
    names in each of some sorts."""
    sorts, _ = movable(names)
    count = 1
    for of in sorts.values():
        for n in range(2, len(of) + 1):
            count *= n
    per_sort: list[list[dict[str, str]]] = []
    for of in sorts.values():
        if count <= MOST_CANDIDATES:
            per_sort.append([dict(zip(of, image, strict=True)) for image in itertools.permutations(of)])
        else:
            per_sort.append([{}, *({a: b, b: a} for a, b in itertools.combinations(of, 2))])
    found = []
    for chosen in itertools.islice(itertools.product(*per_sort), MOST_CANDIDATES):
        renaming = Renaming({old: new for mapping in chosen for old, new in mapping.items()})
        if renaming.names:
            found.append(renaming)
    yield from sorted(found, key=lambda renaming: len(renaming.names))


def acting(model: Model, renaming: Renaming) -> Acting | None:
    """The permutation as it acts on the model; None if a slot, an action or an initial state has no image."""
    by_name = {slot.name: i for i, slot in enumerate(model.slots)}
    slots = [by_name.get(renaming.text(slot.name)) for slot in model.slots]
    if None in slots or len(set(slots)) != len(slots):
        return None
    image = tuple(slot for slot in slots if slot is not None)
    renaming.slots = {slot: model.slots[image[i]] for i, slot in enumerate(model.slots)}
    numbers = {_call(action, None): i for i, action in enumerate(model.actions)}
    actions = [numbers.get(_call(action, renaming)) for action in model.actions]
    if len(numbers) != len(model.actions) or None in actions or len(set(actions)) != len(actions):
        return None
    found = Acting(renaming, image, tuple(action for action in actions if action is not None))
    initial = {key(state) for state in model.initial_states()}
    return found if {key(found.state(state)) for state in model.initial_states()} == initial else None


def _call(action: Action, renaming: Renaming | None) -> Hashable:
    params = dict(action.params)
    given = params if renaming is None else renaming.value(params)
    return action.type.name, frozenset((name, key(value)) for name, value in given.items())
