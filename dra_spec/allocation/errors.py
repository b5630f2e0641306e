"""How an allocation attempt can end without an allocation. The scheduler treats each of these differently (see KEP-4381, Filter)."""

from dra_spec.selectors.errors import UnsupportedFeature


class DoesNotFit(Exception):
    """No allocation exists on this node for the claims; another node may do."""


class InvalidPools(DoesNotFit):
    """No allocation exists on this node, and some pool of it is invalid: upstream returns an error that concerns this node only
    (ErrFailedAllocationOnNode), which a user sees if no other node fits either."""


class FatalAllocation(Exception):
    """An error that aborts the whole scheduling attempt (a selector that fails at run time, a bad class)."""


class AllocatorCrash(FatalAllocation):
    """Upstream's allocator would end the scheduler process here. Only variants with a known defect get there."""


# Something valid that the allocator does not encode, or a search that was cut off: the answer is undecided. Defined where selectors can
# raise it too.
__all__ = ["AllocatorCrash", "DoesNotFit", "FatalAllocation", "InvalidPools", "UnsupportedFeature"]
