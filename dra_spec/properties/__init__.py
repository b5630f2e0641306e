"""Invariants: loading, CEL to closures, evaluation on states, steps and worlds, and why one is false.

- `invariant`: `Invariant`, `find`, `load_all`, `from_file`; `Invariant.adhoc(text)` for `--assert`
- `bind`: an invariant and an instance of the protocol give the explorer's properties
- `judge`: an invariant on a plain world, `why` it is false
- `cel`: expressions as closures; `schema`: what the world looks like; `world`, `model_world`: where it is read from
"""

from dra_spec.properties.errors import InvariantError, PropertyError

__all__ = ["InvariantError", "PropertyError"]
