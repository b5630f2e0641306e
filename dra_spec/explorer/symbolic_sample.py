"""What a look ahead by the explicit engine teaches: trees, domains, and the first states, by which the variables are put in order.

Only trees and an order are taken from it. Which states can be reached is found anew by the decision diagrams.
"""

from __future__ import annotations

import attrs
import numpy as np

from dra_spec.explorer import arrays as k
from dra_spec.explorer.control import Control
from dra_spec.explorer.growing import Ints
from dra_spec.explorer.intern import Domains, VersionTable
from dra_spec.explorer.model import Model
from dra_spec.explorer.result import Stopped
from dra_spec.explorer.semantics import Semantics
from dra_spec.explorer.trees import Trees


@attrs.define(eq=False)
class Lesson:
    """What is known of a model: values, their versions, decision trees, those of state invariants by property; initial states and others,
    a row each.
    """

    semantics: Semantics
    domains: Domains
    trees: Trees
    versions: VersionTable
    predicates: dict[int, int]
    initial: list[Ints]
    rows: Ints


def first(model: Model) -> Lesson:
    """Nothing but the initial states."""
    semantics, domains = Semantics(model), Domains(model)
    trees = Trees(model, semantics, domains)
    versions = VersionTable(domains)
    initial = [domains.numbers(state) for state in semantics.initial_states()]
    return Lesson(semantics, domains, trees, versions, {}, initial, np.array(initial, np.int32))


def ahead(model: Model, control: Control, most: int) -> Lesson:
    """The first states by breadth, `most` of them, with their trees. Raises `Stopped` where a limit of the search itself is met."""
    from dra_spec.explorer.explicit import ExplicitSearch  # Numba and its kernels take their time: only large searches need it

    search = ExplicitSearch(model, control)
    machine = search.machine
    machine.ctl[k.MAX_STATES] = min(most, int(machine.ctl[k.MAX_STATES]))
    try:
        search.look()
    except Stopped:
        if control.stop() is not None:
            raise
    word, shift, mask, _ = machine.store.layout.arrays
    rows = np.ascontiguousarray((machine.store.rows[: machine.states, word] >> shift) & mask, np.int32)
    return Lesson(machine.semantics, machine.domains, machine.trees, machine.versions, machine.predicates, machine.initial, rows)
