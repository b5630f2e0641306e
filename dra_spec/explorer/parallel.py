"""Several threads on one block of states. What comes out is the same for every number of them: states, their numbers, lists, statistics.

A block is cut into pieces; each worker takes the next piece as soon as it is done with one. Nobody changes what others read: successors
go to the worker's own buffer, what is missing to its own lists. When all pieces are done, the lists are put together in the order of the
pieces, so they are those that one worker would have made; and the successors are put into the table in that order (kernels_share.py).

One thread does the rest: initial states, small blocks, pairs that are tried again, blocks in which the limit on states is met, and the
choice of stubborn sets. Those are short, or, the last, would need scratch space per worker for nothing: it is used where it saves most of
the states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dra_spec.explorer import arrays as k
from dra_spec.explorer.crew import Crew
from dra_spec.explorer.hand import Hand, apart
from dra_spec.explorer.native import Bound, Kernel
from dra_spec.explorer.result import EngineError, Stopped

if TYPE_CHECKING:
    from dra_spec.explorer.machine import Machine

PIECES = 16  # of a block, at most
SHARES = 2  # of the table, per worker: who is late takes fewer
LEAST = 1 << 10  # states of a block for several threads
_BATCH = 256  # places in the table that are fetched together
_FINGERPRINT = Kernel("kernels_store", "fingerprint")
_INSERT_LATE, _WITHDRAW = Kernel("kernels_share", "insert_late"), Kernel("kernels_share", "withdraw")
_LINK = Kernel("kernels_share", "link")
_MOST_NUMBER = (1 << 32) - 2
_TOO_LONG = "a block of states was too long for the list of what is to be tried again"


class Parallel:
    """Expands and judges blocks of states of a machine with a crew."""

    def __init__(self, machine: Machine, crew: Crew) -> None:
        self.machine, self.crew = machine, crew
        self.hands = [Hand(machine) for _ in range(crew.size)]
        self._pile: k.Pile | None = None
        self._parts: list[k.Pile] = []
        self._room = 0  # successors per worker
        self._first = np.zeros(PIECES, np.int64)  # per piece: the number of its first new state
        self._own = [apart(PIECES + 1, np.int64) for _ in self.hands]  # how many pieces a worker did, and which
        self._edges = np.zeros(PIECES, np.int64)  # per piece
        self.learned = False
        self._pending = False  # new states have numbers but are not written yet
        self._insert = [Bound("kernels_share", "insert") for _ in range(SHARES * crew.size)]
        self._settle = [Bound("kernels_share", "settle") for _ in self.hands]
        self._shares: list[k.Share] = []

    @property
    def memory(self) -> int:
        """Bytes of the arrays that are its own, as far as they were used."""
        return sum(int(a.nbytes) for hand in self.hands for a in (hand.work.request_after, hand.work.asked))

    # a block of states is expanded

    def expand(self, begin: int, end: int) -> bool:
        """Fires all actions in the states; False if that is nothing for several threads, and nothing was done.

        `learned` says whether what was missing is learned already.
        """
        machine = self.machine
        most = machine.states + self.crew.size * (end - begin) * int(machine.ctl[k.WIDEST])
        if most > _MOST_NUMBER:
            return False
        self._fit(end - begin)
        self._do_pieces(begin, end)
        total = self._number_pieces()
        if not machine.store.grow_table(machine.states, total):
            raise Stopped("memory")
        self.learned = machine.states + total <= machine.ctl[k.MAX_STATES]
        if self.learned:  # the limit cannot be met in this block: the caller may learn while others insert
            self._gather()
        if not self._insert_all(total):
            for hand in self.hands:
                hand.forget_statistics()
            machine.store.flags[begin:end] &= k.VIOLATING
            return False
        if not self.learned:
            self._gather()
        return True

    def _fit(self, states: int) -> None:
        machine = self.machine
        words, narrow = machine.store.layout.words, machine.store.narrow
        room = states * int(machine.ctl[k.WIDEST])
        pile = self._pile
        if pile is None or room > self._room or pile.rows.shape[1] != words or (pile.kept is not pile.rows) != narrow:
            self.finish()
            self._room = max(1 << (room - 1).bit_length(), self._room) if room else self._room
            self._make_pile(words, narrow)
        for hand, part in zip(self.hands, self._parts, strict=True):
            hand.fit(machine, part)

    def _make_pile(self, words: int, narrow: bool) -> None:
        workers, room = self.crew.size, self._room
        total = workers * room  # address space; memory is used as it is written
        rows = np.empty((total, words), np.uint64)
        kept = np.empty((total, 2), np.uint64) if narrow else rows
        source, via = np.empty(total, np.uint32), np.empty(total, np.uint32)
        hashes, became = np.empty(total, np.uint64), np.empty(total, np.uint64)
        pieces = np.zeros((PIECES, 2), np.int64)
        self._pile = k.Pile(rows, kept, source, via, hashes, became, pieces)
        self._parts = []
        for w in range(workers):
            there = slice(w * room, (w + 1) * room)
            part = rows[there]
            own = part if kept is rows else kept[there]
            self._parts.append(k.Pile(part, own, source[there], via[there], hashes[there], became[there], pieces))
        self._shares = [
            k.Share(apart(5, np.int64), apart(PIECES, np.int64), np.empty((total, 2), np.int64), apart(_BATCH, np.int64))
            for _ in self._insert
        ]

    def _do_pieces(self, begin: int, end: int) -> None:
        machine, hands = self.machine, self.hands
        todo = iter(_pieces(begin, end))
        store = machine.store.arrays()
        forest, packed, layout = machine.trees.forest(), machine.packed, machine.store.layout.arrays

        def work(w: int) -> None:
            hand = hands[w]
            if self._pending:
                self._settle_own(w)
            hand.begin()
            expand = hand.expand.ready(
                forest, hand.merged, packed, hand.effects, layout, store, hand.work, hand.versions, hand.dead, hand.symmetry, hand.ctl
            )
            for number, first, last in todo:
                hand.take(number, first, last)
                status = expand()
                hand.took()
                if status == k.CONFLICT:
                    conflicts.append((int(hand.ctl[k.POS]), int(hand.ctl[k.FAULTY])))
                elif status != k.DONE:
                    raise EngineError(_TOO_LONG)
                elif machine.store.narrow:
                    self._take_fingerprints(hand)

        conflicts: list[tuple[int, int]] = []
        self.crew.run(work)
        self._pending = False
        if conflicts:
            machine.raise_conflict(*min(conflicts))
        if machine.deaths:
            machine.deaths.check([hand.dead.fault for hand in hands])

    def _take_fingerprints(self, hand: Hand) -> None:
        store, work = self.machine.store.arrays(), hand.work
        there = slice(*hand.pieces[-1].successors)
        args = self.machine.store.layout.arrays, work.rows[there], there.stop - there.start, store.keys, store.key_first
        _FINGERPRINT(*args, work.kept[there], work.hashes[there])

    # their successors are put into the table

    def _number_pieces(self) -> int:
        """Notes where the successors of each piece are; how many there are in all."""
        pile = self._pile
        assert pile is not None
        pile.pieces[:] = 0
        for w, hand in enumerate(self.hands):
            for piece in hand.pieces:
                pile.pieces[piece.number] = [w * self._room + at for at in piece.successors]
            self._own[w][0] = len(hand.pieces)
            self._own[w][1 : 1 + len(hand.pieces)] = [piece.number for piece in hand.pieces]
        return int(np.sum(pile.pieces[:, 1] - pile.pieces[:, 0]))

    def _insert_all(self, total: int) -> bool:
        """Gives numbers to the new states; False if there are more than may be, and then they are out of the table again."""
        machine, pile = self.machine, self._pile
        states = machine.states
        store = machine.store.arrays()
        shares = self._shares
        for s, share in enumerate(shares):
            share.bounds[:] = len(store.table) * s // len(shares), len(store.table) * (s + 1) // len(shares), 0, 0, states
        todo = iter(range(len(shares)))

        def insert(w: int) -> None:
            if w == 0 and self.learned:
                machine.learn_paths()
            for s in todo:
                self._insert[s](store, pile, shares[s])

        self.crew.run(insert)
        for share in shares:
            if share.bounds[2]:
                _INSERT_LATE(store, pile, share)
        fresh = np.sum([share.fresh for share in self._shares], axis=0)
        new = int(fresh.sum())
        if states + new > machine.ctl[k.MAX_STATES]:
            _WITHDRAW(store, pile)
            return False
        edges = total if len(machine.store.edges) else 0
        if not machine.store.grow_states(states, new) or not machine.store.grow_edges(int(machine.ctl[k.EDGES]), edges):
            raise Stopped("memory")
        self._first[:] = states + np.cumsum(fresh) - fresh
        self._pending = True
        machine.ctl[k.STATES] = states + new
        if edges:
            self._link()
        return True

    def _settle_own(self, w: int) -> None:
        self._settle[w](self.machine.store.arrays(), self._pile, self._first, self._own[w], self._edges, self.machine.work.action_class)

    def _link(self) -> None:
        """Writes the edges, when all states are written."""
        machine = self.machine
        self._edges[:] = 0
        self.finish()
        self._first[:] = int(machine.ctl[k.EDGES]) + np.cumsum(self._edges) - self._edges
        store, action_class = machine.store.arrays(), machine.work.action_class
        self.crew.run(lambda w: _LINK(store, self._pile, self._first, self._own[w], action_class))
        machine.ctl[k.EDGES] += self._edges.sum()

    def finish(self) -> None:
        """Writes the new states of the last block; before anybody looks at them, or at the table."""
        if self._pending:
            self.crew.run(self._settle_own)
            self._pending = False

    # what the workers noted is put together

    def _gather(self) -> None:
        """Statistics, retries and requests, in the order of the pieces."""
        work = self.machine.work
        for hand in self.hands:
            hand.add_statistics(work)
        for index in np.flatnonzero(work.step_bad[:, 0] < 0):
            found = [tuple(hand.work.step_bad[index]) for hand in self.hands if hand.work.step_bad[index, 0] >= 0]
            if found:
                work.step_bad[index] = min(found)
        if any(hand.ctl[k.RETRIES] for hand in self.hands):
            self._gather_lists()
        for hand in self.hands:
            hand.forget_statistics()

    def _gather_lists(self) -> None:
        machine, work, ctl = self.machine, self.machine.work, self.machine.ctl
        retries = requests = names = 0
        places: set[int] = set()
        known: set[tuple[int, int]] = set()
        done = {piece.number: (piece, hand) for hand in self.hands for piece in hand.pieces}
        for _, (piece, hand) in sorted(done.items()):
            begin, end = piece.retries
            work.retries[retries : retries + end - begin] = hand.work.retries[begin:end]
            retries += end - begin
            for at in range(*piece.requests):
                place = int(hand.work.requests[at, 2])
                if place not in places and requests < len(work.requests):
                    places.add(place)
                    work.requests[requests], work.request_after[requests] = hand.work.requests[at], hand.work.request_after[at]
                    requests += 1
            for at in range(*piece.names):
                name = int(hand.versions.requests[at, 0]), int(hand.versions.requests[at, 1])
                if name not in known and names < len(machine.name_requests):
                    known.add(name)
                    machine.name_requests[names] = name
                    names += 1
        ctl[k.RETRIES], ctl[k.REQUESTS], ctl[k.RENAMES] = retries, requests, names

    # a block of states is judged

    def judge(self, begin: int, end: int) -> None:
        """Asks the state invariants about the states."""
        machine = self.machine
        self._fit(0)
        hands, todo = self.hands, iter(_pieces(begin, end))
        store, forest, layout = machine.store.arrays(), machine.trees.forest(), machine.store.layout.arrays
        reads = machine.reads()

        def work(w: int) -> None:
            hand = hands[w]
            hand.begin()
            judge = hand.judge.ready(forest, layout, store, hand.work, hand.ctl, machine.state_trees, reads, hand.first_bad)
            for number, first, last in todo:
                hand.take(number, first, last)
                if judge() != k.DONE:
                    raise EngineError(_TOO_LONG)
                hand.took()

        self.crew.run(work)
        for hand in hands:
            for index in np.flatnonzero(hand.first_bad >= 0):
                known = machine.first_bad[index]
                machine.first_bad[index] = hand.first_bad[index] if known < 0 else min(known, hand.first_bad[index])
            hand.first_bad[:] = -1
        self._gather()


def _pieces(begin: int, end: int) -> list[tuple[int, int, int]]:
    """Number, first and last state of the pieces of a block."""
    size = -(-(end - begin) // PIECES)
    return [(number, at, min(at + size, end)) for number, at in enumerate(range(begin, end, size))]
