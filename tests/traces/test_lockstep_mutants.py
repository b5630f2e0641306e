"""Lockstep notices a deleted guard: of the protocol, cut out of an action's text, and of the reference, by a defect that only it has."""

from __future__ import annotations

import ast
import functools
import inspect
import random
import textwrap
from typing import Any

import attrs
import pytest

from dra_spec.explorer.model import ActionType, ModelError
from dra_spec.scenario.modelfile import Overrides
from dra_spec.scenario.scenario import Scenario
from dra_spec.scenario.targets import scenarios
from dra_spec.traces.lockstep import Lockstep, OutOfStep, random_walk

BUDGETS = {
    "template-claim": {"api-refused": 1, "delete-pod": 1, "finish-pod": -1},
    "kubelet-restart": {"kubelet-crash": 2, "rpc-failed": 1, "rpc-lost": 1, "delete-pod": 1, "finish-pod": -1},
}
WALKS, STEPS = 10, 60


@functools.cache
def scenario(name: str) -> Scenario:
    (found,) = scenarios((name,), Overrides(bounds={"lag": 6}, budgets=BUDGETS[name], repaired=True))
    return found


class _Cut(ast.NodeTransformer):
    """Takes one `if ...: return` out of a function."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.condition = ""

    def visit_If(self, node: ast.If) -> ast.AST:
        if len(node.body) == 1 and isinstance(node.body[0], ast.Return) and node.body[0].value is None and not node.orelse:
            self.left -= 1
            if self.left == -1:
                self.condition = ast.unparse(node.test)
                return ast.Pass()
        return self.generic_visit(node)


def without_guard(kind: ActionType, number: int) -> ActionType:
    """The action type without its guard of that number, counted from 0."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind.fn)))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.decorator_list = []
    cut = _Cut(number)
    ast.fix_missing_locations(cut.visit(tree))
    assert cut.condition, f"{kind.name} has no guard {number}"
    names: dict[str, Any] = dict(kind.fn.__globals__)
    exec(compile(tree, f"<{kind.name} without guard {number}>", "exec"), names)
    return attrs.evolve(kind, fn=names[function.name])


def out_of_step(changed: Scenario) -> bool:
    for seed in range(WALKS):
        try:
            with Lockstep(changed) as lockstep:
                random_walk(lockstep, random.Random(seed), STEPS)
        except (OutOfStep, ModelError):
            return True
    return False


@pytest.mark.parametrize(
    ("name", "action", "guard"),
    [
        ("template-claim", "apiserver.collect_claim", 1),
        ("template-claim", "claim-controller.clear_allocation", 0),
        ("template-claim", "scheduler.check_in_flight", 0),
        ("template-claim", "scheduler.check_revision", 0),
        ("template-claim", "scheduler.filter", 0),
        ("kubelet-restart", "kubelet.add_pod", 1),
        ("kubelet-restart", "kubelet.begin_termination", 0),
        ("kubelet-restart", "kubelet.checkpoint_reference", 0),
        ("kubelet-restart", "kubelet.patch_phase", 0),
    ],
)
def test_a_deleted_guard_of_the_protocol_is_noticed(name: str, action: str, guard: int) -> None:
    whole = scenario(name)
    kind = next(a.type for a in whole.model.actions if a.name == action)
    cut = without_guard(kind, guard)
    actions = [attrs.evolve(a, type=cut) if a.name == action else a for a in whole.model.actions]
    assert out_of_step(attrs.evolve(whole, model=attrs.evolve(whole.model, actions=actions)))


@pytest.mark.parametrize(
    ("name", "defect"), [("kubelet-restart", "kubelet-late-checkpoint"), ("template-claim", "claim-controller-keeps-finished")]
)
def test_a_defect_of_the_reference_alone_is_noticed(name: str, defect: str) -> None:
    whole = scenario(name)
    assert out_of_step(attrs.evolve(whole, variants=(*whole.variants, defect)))


@pytest.mark.parametrize("name", BUDGETS)
def test_without_a_change_they_stay_in_step(name: str) -> None:
    assert not out_of_step(scenario(name))
