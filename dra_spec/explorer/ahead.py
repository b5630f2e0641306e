"""A short search ahead of a large one, for a reduction that has to be decided before."""

from __future__ import annotations

from dra_spec.explorer.growing import Ints
from dra_spec.explorer.intern import Domains, VersionTable
from dra_spec.explorer.model import LeadsTo, Model, StepInvariant
from dra_spec.explorer.scout import Scout, Walker
from dra_spec.explorer.semantics import Semantics
from dra_spec.explorer.trees import Trees

_WALKS = 15  # random walks
_ROWS = 400  # states in which the promises are asked


class Ahead:
    """The trees of such a search, the states that it met, and what was learned, visit by visit: actions, parts and promises."""

    def __init__(self, model: Model) -> None:
        semantics, self.domains = Semantics(model), Domains(model)
        self.trees = Trees(model, semantics, self.domains)
        versions = VersionTable(self.domains)
        self.trees.log = []
        self.walker = Walker(self.trees)
        initial = [self.domains.numbers(state) for state in semantics.initial_states()]
        rows = Scout(self.walker, semantics, initial, versions).run(_WALKS)
        self.rows: list[Ints] = rows[:: max(1, len(rows) // _ROWS)]
        for index, promise in enumerate(model.properties):
            if not isinstance(promise, (StepInvariant, LeadsTo)):
                tree = self.trees.predicate_tree(index)
                for row in self.rows:
                    self.walker.reach(tree, row)
        self.log, self.trees.log = self.trees.log, None
