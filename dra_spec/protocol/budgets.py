"""How many more faults and environment events of each kind may happen: one slot per kind, as separate budgets explore far fewer states
than one for all.

A budget of -1 is without limit and needs no slot; a budget of 0, or none, means never.
"""

from __future__ import annotations

import attrs

from dra_spec.explorer.model import Outcome, PartView, Slot, Storage, View
from dra_spec.protocol.instance import Instance

ROOM = "budget"


def _positive(n: int) -> bool:
    return n > 0


def _take_one(p: PartView, slot: Slot[int]) -> None:
    p.write(slot, max(p.value(slot) - 1, 0))


@attrs.frozen(eq=False)
class Budgets:
    """The budgets of an instance: slots `budget/<name>`, all in the room "budget"."""

    slots: dict[str, Slot[int]]
    unlimited: frozenset[str]

    @staticmethod
    def of(instance: Instance) -> Budgets:
        """The one `Budgets` object of the instance."""
        return instance.memo(_make)

    def left(self, v: View, name: str) -> bool:
        """Whether one more may happen."""
        if name in self.slots:
            return v.project(self.slots[name], _positive)
        return name in self.unlimited

    def spend(self, outcome: Outcome, name: str) -> None:
        """Makes the outcome use up one of the budget."""
        if name in self.slots:
            outcome.part(_take_one, self.slots[name])


def _make(instance: Instance) -> Budgets:
    limited = {name: n for name, n in sorted(instance.budgets.items()) if n > 0}
    return Budgets(
        {name: Slot(f"budget/{name}", n, ROOM, Storage.BUDGET) for name, n in limited.items()},
        frozenset(name for name, n in instance.budgets.items() if n < 0),
    )
