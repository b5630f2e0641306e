"""What upstream's own search says of a pod: it can give up, or overlook something, where an allocation exists by the rules."""

from __future__ import annotations

import attrs

from dra_spec.allocation.allocator import Allocator
from dra_spec.allocation.errors import DoesNotFit, FatalAllocation, UnsupportedFeature
from dra_spec.allocation.inventory import Inventory
from dra_spec.allocation.settings import Settings
from dra_spec.allocation.state import AllocatedState
from dra_spec.allocation.z3_problem import Problem
from dra_spec.resources.quantity import Quantity


@attrs.frozen(eq=False)
class Upstream:
    """The reference allocator on the inventory of a problem."""

    allocator: Allocator
    state: AllocatedState

    @classmethod
    def of(cls, problem: Problem) -> Upstream:
        inventory = Inventory.of(problem.classes.values(), problem.slices, problem.nodes.values(), problem.taint_rules)
        consumed: dict[str, dict[str, Quantity]] = {}
        for holding in problem.holdings:
            amounts = consumed.setdefault(holding.device, {}) if holding.consumed else {}
            for name, amount in holding.consumed:
                amounts[name] = amounts.get(name, Quantity.of(0)) + Quantity.of(amount)
        state = AllocatedState(
            frozenset(h.device for h in problem.holdings if not h.shared),
            frozenset((h.device, str(i)) for i, h in enumerate(problem.holdings) if h.shared),
            consumed,
        )
        return cls(Allocator(inventory, Settings(features=problem.features)), state)

    def says(self, problem: Problem, node: str) -> tuple[str, str]:
        """(fits, no-fit, gives-up or unknown; its words) for the first call of the problem."""
        try:
            self.allocator.allocate([c.spec for c in problem.calls[0].claims], node, self.state)
        except DoesNotFit as error:
            return "no-fit", str(error)
        except FatalAllocation as error:
            return "gives-up", str(error)
        except UnsupportedFeature as error:
            return "unknown", str(error)
        return "fits", ""
