"""How an allocation attempt can end without an allocation."""

from dra_spec.selectors.errors import UnsupportedFeature


class DoesNotFit(Exception):
    """No allocation exists on this node for the claims; another node may do."""


class FatalAllocation(Exception):
    """An error that aborts the whole scheduling attempt (a selector that fails at run time, a bad class)."""


# Something valid that the allocator does not encode: the answer is undecided. Defined where selectors can raise it too.
__all__ = ["DoesNotFit", "FatalAllocation", "UnsupportedFeature"]
