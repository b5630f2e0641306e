"""What upstream's own search says of a pod: it can give up, or overlook something, where an allocation exists by the rules."""

from __future__ import annotations

import attrs

from dra_spec.allocation.allocator import Allocator, ClaimResult
from dra_spec.allocation.errors import DoesNotFit, FatalAllocation, UnsupportedFeature
from dra_spec.allocation.extended_nodes import shortages, wanted_on
from dra_spec.allocation.inventory import Inventory
from dra_spec.allocation.settings import Settings
from dra_spec.allocation.state import AllocatedState
from dra_spec.allocation.z3_problem import Problem
from dra_spec.resources.quantity import Quantity

ENOUGH_NODES = 100  # fitting nodes, after which kube-scheduler looks at no more (minFeasibleNodesToFind)


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
        return cls(Allocator(inventory, Settings.with_features(problem.version, problem.features)), state)

    def says(self, problem: Problem, node: str) -> tuple[str, str]:
        """(fits, no-fit, gives-up or unknown; its words) for the first call of the problem."""
        call = problem.calls[0]
        short = shortages(problem, call, node)
        if short:
            return "no-fit", short[0].text
        try:
            self.results(problem, node)
        except DoesNotFit as error:
            return "no-fit", str(error)
        except FatalAllocation as error:
            return "gives-up", str(error)
        except UnsupportedFeature as error:
            return "unknown", str(error)
        return "fits", ""

    def results(self, problem: Problem, node: str) -> tuple[ClaimResult, ...]:
        """The devices of the first call's claims that exist on the node. Raises what the reference allocator raises."""
        claims = [c.spec for c in problem.calls[0].claims if wanted_on(problem, c, node)]
        return self.allocator.allocate(claims, node, self.state)

    def gives_up(self, problem: Problem) -> str | None:
        """The first node whose search ends in a fatal error, which aborts the attempt on all nodes; None if there is none, or if enough
        nodes fit before it that upstream stops looking."""
        fitting = 0
        for node in problem.calls[0].nodes:
            says, _ = self.says(problem, node)
            if says == "gives-up":
                return node
            fitting += says == "fits"
            if fitting == ENOUGH_NODES:
                break
        return None
