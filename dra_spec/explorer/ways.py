"""All ways that a function can take through states of which some slots are known only in part."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from dra_spec.explorer.growing import Ints
from dra_spec.explorer.intern import Domains
from dra_spec.explorer.trees import Look
from dra_spec.explorer.values import key

MOST = 400
Rows = tuple[Ints, "Ints | None"]  # the state before, and the state after where there is one


class TooMany(Exception):
    """More ways than anybody wants to look at."""


def ways(
    run: Callable[[Rows], tuple[list[Look], int]], domains: Domains, rows: Rows, known: Mapping[int, Sequence[int]], most: int = MOST
) -> Iterator[tuple[list[Look], int, Rows]]:
    """What the function looks at, its leaf, and rows that lead there, for each way.

    `known`: for positions of which something is known the numbers of the possible values; all others may have any value of their domain.
    What the function does not look at stays as in `rows`. Raises `TooMany`.
    """
    slots = len(domains.slots)
    todo: list[dict[int, Sequence[int]]] = [dict(known)]
    count = 0
    while todo:
        possible = todo.pop()
        count += 1
        if count > most:
            raise TooMany
        before, after = rows[0].copy(), None if rows[1] is None else rows[1].copy()
        for position, numbers in possible.items():
            if position < slots:
                before[position] = numbers[0]
            elif after is not None:
                after[position - slots] = numbers[0]
        looks, code = run((before, after))
        for position, what, found in looks:
            slot = position % slots
            numbers = possible[position] if position in possible else range(int(domains.sizes[slot]))
            classes: dict[Hashable, list[int]] = {}
            for number in numbers:
                classes.setdefault(key(what.of(domains.values[slot][number])), []).append(number)
            taken = classes.pop(key(found))
            todo += [{**possible, position: others} for others in classes.values()]
            possible = {**possible, position: taken}
        yield looks, code, (before, after)
