"""Whether permuting names and acting commute, on the paths of the decision trees.

For a path of a tree (what was read, in order, and the outcomes) the renamed function is run in the renamed state. It may read only what
is the image of something that the path read, and must yield the images of the outcomes; where it reads something else, all
values that it may find there are tried. Then the same is true of every state that takes
the path, since the path is all that the function sees of it. What the paths look at through projections is checked value by value: of
two values that look the same the images must look the same. Images of paths are checked in their turn, so that the paths known at the end
are closed under the group; generators are enough then.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dra_spec.explorer import arrays as k
from dra_spec.explorer.growing import Ints
from dra_spec.explorer.intern import function_key
from dra_spec.explorer.model import AlwaysPossible, DeadlockFree, LiveWhen, ModelError, Projection
from dra_spec.explorer.naming import Acting
from dra_spec.explorer.scout import Piece, Walker
from dra_spec.explorer.symmetry_images import Images
from dra_spec.explorer.trees import Look, Trees
from dra_spec.explorer.values import identity, key
from dra_spec.explorer.ways import TooMany, ways

Visit = tuple[int, Ints, Ints | None]  # tree, row, row after (of step invariants)


class NotSymmetric(Exception):
    """A permutation that does not commute. `generator`: its number."""

    def __init__(self, generator: int, reason: str) -> None:
        super().__init__(reason)
        self.generator = generator


@attrs.frozen(eq=False)
class Path:
    """A way through a tree: a visit that takes it, the observers that it looks through in order, and its leaf."""

    visit: Visit
    looks: tuple[int, ...]
    code: int


@attrs.define(eq=False)
class Split:
    """A path whose image reads other things, and how large the domains were when all that it may find was tried."""

    generator: int
    path: Path
    partner: int
    sizes: dict[int, int] = attrs.field(factory=dict)


class Checker:
    """Checks visits of trees under all generators. `promises[g][i]`: the property that generator g makes of property i."""

    def __init__(
        self, trees: Trees, images: Images, promises: Sequence[Mapping[int, int]], closed: bool = True, live: Sequence[LiveWhen] = ()
    ) -> None:
        self.trees, self.images, self.promises, self.closed = trees, images, promises, closed
        self.walker = Walker(trees)
        self.todo: list[Visit] = []
        self._slots = len(trees.domains.slots)
        self._known: set[Hashable] = set()
        self._lives = [self._images_of(g, live) for g in range(len(images.generators))]  # per declaration its image
        self._partners: list[dict[int, dict[int, None]]] = [{} for _ in images.generators]  # of parts: tree -> trees
        self._done: dict[int, list[Path]] = {}  # of parts: to be checked for later partners
        self._split: list[Split] = []
        self._covered: dict[Hashable, bool] = {}  # (generator, looks, looks of the image)
        self._leaves: set[tuple[int, int, int]] = set()  # (generator, leaf, leaf): the second is the image of the first
        # looks of images that are not images of looks, and how many values were checked
        self._extra: dict[tuple[int, Hashable], list[Any]] = {}
        self._sights: set[Hashable] = set()  # (slot, projection, value): checked
        self._sees: dict[Hashable, dict[Hashable, Hashable]] = {}  # (generator, slot, projection): what is seen -> what is seen of images
        self._looked: list[int] = []  # per observer: how many of its values had been seen

    def _images_of(self, g: int, live: Sequence[LiveWhen]) -> dict[int, LiveWhen]:
        renaming, found = self.images.generators[g].renaming, {}
        for declared in live:
            image = {renaming.value(slot) for slot in declared.slots}
            other = next((other for other in live if set(other.slots) == image), None)
            alike = other is not None and all(key(renaming.value(s.initial)) == key(renaming.value(s).initial) for s in declared.slots)
            if other is None or not alike:
                raise NotSymmetric(g, f"where {declared} is live says no declaration of its image")
            found[id(declared)] = other
        return found

    def run(self) -> None:
        """Checks all that is to do, and all that follows from it. Raises `NotSymmetric`."""
        self.images.close()
        self._projections()
        while self.todo:
            visit = self.todo.pop()
            way, path = self._take(visit)
            known = (visit[0], way)
            if known in self._known:
                continue
            self._known.add(known)
            if self._is_part(visit[0]):
                self._done.setdefault(visit[0], []).append(path)
            for g in range(len(self.images.generators)):
                for partner in self._of(g, visit[0]):
                    self._check(g, path, partner)

    def _take(self, visit: Visit) -> tuple[Hashable, Path]:
        """The way that a visit takes, which is learned if it is not known. Raises `ModelError`."""
        way, code = self.walker.path(*visit)
        if code > k.LEAF:
            self.trees.learn(*visit)
            self.images.close()
            way, code = self.walker.path(*visit)
        nodes = self.trees.nodes.data
        return tuple(way), Path(visit, tuple(int(nodes[node, 3]) for node, _ in way), code)

    # -- which tree is the image of which

    def _is_part(self, tree: int) -> bool:
        return self.trees.is_part(tree)

    def _of(self, g: int, tree: int) -> list[int]:
        """The trees that a generator makes of one; of a part, those found so far."""
        if tree < len(self.trees.model.actions):
            return [self.images.generators[g].actions[tree]]
        if self._is_part(tree):
            return list(self._partners[g].get(tree, ()))
        live = self.trees.live_of(tree)
        if live is not None:
            return [self.trees.live_tree(self._lives[g][id(live[0])], live[1])]
        about = self.trees.step_of(tree)
        if about is not None:
            index, action, label = about
            generator = self.images.generators[g]
            return [self.trees.step_tree(self.promises[g][index], generator.actions[action], generator.renaming.text(label))]
        image = self.promises[g][self.trees.trees[tree].property]
        return [self.trees.predicate_tree(image)]

    def _pair(self, g: int, part: int, partner: int) -> None:
        """The part's image is another part: all visits of the first are checked, also later ones."""
        partners = self._partners[g].setdefault(part, {})
        if partner not in partners:
            partners[partner] = None
            for path in self._done.get(part, []):
                self._check(g, path, partner)

    # -- one path and its image

    def _check(self, g: int, path: Path, partner: int) -> None:
        tree, row, after = path.visit
        visit: Visit = partner, self.images.row(g, row), None if after is None else self.images.row(g, after)
        who = self.trees.trees[tree].who
        try:
            _, image = self._take(visit)
        except ModelError as error:
            raise NotSymmetric(g, f"the image of {who} fails: {str(error).splitlines()[0]}") from None
        if not self._covers(g, path.looks, image.looks):
            self._split.append(Split(g, path, partner))
            self._check_ways(self._split[-1])
        elif not self._same_leaf(g, path.code, image.code, tree):
            raise NotSymmetric(g, f"{who} and {self.trees.trees[partner].who} act differently")
        if self.closed:
            self.todo.append(visit)

    def _covers(self, g: int, looks: tuple[int, ...], image: tuple[int, ...]) -> bool:
        """Whether all that the image looks at corresponds to something that was looked at, or to a part of that."""
        asked = (g, looks, image)
        if asked not in self._covered:
            generator, observers = self.images.generators[g], self.trees.observers
            seen = {
                (self._position(generator, observers[o].position), _what(generator.renaming.projection(observers[o].what))) for o in looks
            }
            others = [(observers[o].position, _what(observers[o].what)) for o in image]
            self._covered[asked] = all((position, _WHOLE) in seen or (position, what) in seen for position, what in others)
        return self._covered[asked]

    def _check_ways(self, split: Split) -> None:
        """The image reads what does not correspond to what the path read: then all that it may find there must lead to the same."""
        g, path, partner = split.generator, split.path, split.partner
        tree, row, after = path.visit
        domains, generator = self.trees.domains, self.images.generators[g]
        who = f"{self.trees.trees[tree].who} and {self.trees.trees[partner].who}"
        known: dict[int, list[int]] = {}
        for o in path.looks:
            observer = self.trees.observers[o]
            image = self._position(generator, observer.position)
            found = int(row[observer.slot]) if observer.position < self._slots or after is None else int(after[observer.slot])
            seen = key(observer.what.of(domains.values[observer.slot][found]))
            numbers = [n for n, value in enumerate(domains.values[observer.slot]) if key(observer.what.of(value)) == seen]
            fits = {self.images.tables[g][observer.slot][n] for n in numbers}
            known[image] = sorted(fits & set(known[image]) if image in known else fits)
        rows = self.images.row(g, row), None if after is None else self.images.row(g, after)
        read: set[int] = set()
        try:
            for looks, code, taken in ways(lambda r: self._run((partner, *r)), domains, rows, known):
                read |= {position % self._slots for position, _, _ in looks}
                for position, what, _ in looks:
                    self._extra.setdefault((position % self._slots, _what(what)), [what, 0])
                if not self._same_leaf(g, path.code, code, tree):
                    raise NotSymmetric(g, f"{who} act differently")
                if self.closed:
                    self.todo.append((partner, *taken))
        except TooMany:
            raise NotSymmetric(g, f"{who} read different things") from None
        except ModelError as error:
            raise NotSymmetric(g, f"{who}: {str(error).splitlines()[0]}") from None
        split.sizes = {slot: int(domains.sizes[slot]) for slot in read | {position % self._slots for position in known}}

    def _run(self, visit: Visit) -> tuple[list[Look], int]:
        tree, row, after = visit
        domains = self.trees.domains
        answer = self.trees.trees[tree].run(domains.state(row), None if after is None else domains.state(after))
        self.images.close()
        return answer

    def finish(self) -> None:
        """Looks again at what depends on the values that slots have had: now there are more. Raises `NotSymmetric`."""
        for split in self._split:
            if any(self.trees.domains.sizes[slot] != size for slot, size in split.sizes.items()):
                self._check_ways(split)
        self._projections()
        if self.todo:
            self.run()
            self.finish()

    def _position(self, generator: Acting, position: int) -> int:
        if position < self._slots:
            return generator.slots[position]
        return generator.slots[position - self._slots] + self._slots

    def _same_leaf(self, g: int, code: int, image: int, tree: int) -> bool:
        if tree >= len(self.trees.model.actions) and not self._is_part(tree):
            about = self.trees.trees[tree].property
            if about >= 0 and isinstance(self.trees.model.properties[about], (AlwaysPossible, DeadlockFree)):
                return (code == k.LEAF) == (image == k.LEAF)  # false or not; how true a goal is makes no difference
            return code == image  # a truth
        if (g, code, image) not in self._leaves:
            if not self._same_pieces(g, code, image):
                return False
            self._leaves.add((g, code, image))
        return True

    def _same_pieces(self, g: int, code: int, image: int) -> bool:
        mine, others = self.walker.leaf(code), list(self.walker.leaf(image))
        if len(mine) != len(others):
            return False
        for piece in mine:
            match = next((i for i, other in enumerate(others) if self._same_piece(g, piece, other)), None)
            if match is None:
                return False
            del others[match]
        return True

    def _same_piece(self, g: int, piece: Piece, other: Piece) -> bool:
        generator = self.images.generators[g]
        constants = {(generator.slots[slot], self.images.tables[g][slot][value]) for slot, value in piece.constants}
        if (piece.beyond < 0) != (other.beyond < 0) or constants != set(other.constants) or len(piece.parts) != len(other.parts):
            return False
        if {tree for step in piece.steps for tree in self._of(g, step)} != set(other.steps):
            return False
        pairs: list[tuple[int, int]] = []
        left = list(other.parts)
        for by_name in (True, False):
            for part in piece.parts:
                if any(part == done for done, _ in pairs):
                    continue
                wanted = self._part_key(part, g) if by_name else self._part_key(part, None)[0]
                partner = next((p for p in left if (self._part_key(p, None) if by_name else self._part_key(p, None)[0]) == wanted), None)
                if partner is not None:
                    pairs.append((part, partner))
                    left.remove(partner)
        if left:
            return False
        for part, partner in pairs:
            self._pair(g, part, partner)
        return True

    def _part_key(self, tree: int, g: int | None) -> tuple[Hashable, Hashable]:
        """What tells parts apart; with a generator that of its image."""
        part = self.trees.part_of(tree)
        args = part.args if g is None else self.images.generators[g].renaming.value(part.args)
        return function_key(part.fn), identity(args)

    # -- what is seen of values

    def _projections(self) -> None:
        """What is seen of a value decides what is seen of its image: for each observer, each value seen through it, and the images of
        both. Where an image reads other things, all values count."""
        observers = self.trees.observers
        self._looked += [0] * (len(observers) - len(self._looked))
        todo: list[tuple[int, Projection, int]] = []
        for o, observer in enumerate(observers):
            size = int(self.trees.domains.sizes[observer.slot])
            seen = np.flatnonzero(self.trees.seen.data[observer.base : observer.base + size] >= 0)
            if not observer.whole and len(seen) != self._looked[o]:
                self._looked[o] = len(seen)
                todo += [(observer.slot, observer.what, int(number)) for number in seen]
        for (slot, _), looked in self._extra.items():
            what, size = looked[0], int(self.trees.domains.sizes[slot])
            todo += [(slot, what, number) for number in range(looked[1], size)]
            looked[1] = size
        while todo:
            slot, what, number = todo.pop()
            sight = (slot, _what(what), number)
            if sight not in self._sights:
                self._sights.add(sight)
                for g in range(len(self.images.generators)):
                    image = self._see(g, slot, what, number)
                    if self.closed:
                        todo.append(image)

    def _see(self, g: int, slot: int, what: Projection, number: int) -> tuple[int, Projection, int]:
        """Compares what is seen of a value and of its image; returns the image: slot, projection, value."""
        generator = self.images.generators[g]
        there, renamed = generator.slots[slot], generator.renaming.projection(what)
        image = self.images.tables[g][slot][number]
        found = what.of(self.trees.domains.values[slot][number])
        name = f"{self.trees.domains.slots[slot]}{what}"
        try:
            other = renamed.of(self.trees.domains.values[there][image])
        except Exception as error:  # whatever a function of the model raises
            raise NotSymmetric(g, f"{name} fails for an image: {type(error).__name__}: {error}") from None
        before = self._sees.setdefault((g, slot, _what(what)), {}).setdefault(key(found), key(other))
        if before != key(other):
            raise NotSymmetric(g, f"{name} shows {found!r} of two values, but different things of their images")
        return there, renamed, image


def _what(what: Projection) -> Hashable:
    return (what.name, None if what.fn is None else function_key(what.fn), identity(what.args))


_WHOLE = _what(Projection())
