"""How an allocation attempt can end without an allocation."""


class DoesNotFit(Exception):
    """No allocation exists on this node for the claims; another node may do."""


class FatalAllocation(Exception):
    """An error that aborts the whole scheduling attempt (a selector that fails at run time, a bad class)."""
