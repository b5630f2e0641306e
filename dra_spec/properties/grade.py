"""True, trivially true or false: what an invariant says of a world, and whether it says anything.

`A || B || C` is trivially true if an operand before the last holds: the last is what is promised, the others are when it does not apply.
`all` over nothing is trivially true; a conjunction or an `all` is true if one of its parts is. Anything else that holds is true.
"""

from __future__ import annotations

from collections.abc import Callable

from dra_spec.explorer.model import Truth
from dra_spec.properties import nodes as n
from dra_spec.properties.cel import Environment, compile_node
from dra_spec.properties.errors import EvaluationError

Grader = Callable[[Environment], Truth]


def grader(node: n.Node) -> Grader:
    """A function that grades a boolean expression; the same truth as its closure, and the same errors."""
    whole, refine = compile_node(node), _refine(node)
    return lambda env: refine(env) if whole(env) else Truth.FALSE


def _refine(node: n.Node) -> Grader:
    """Grades an expression that is known to be true."""
    if isinstance(node, n.Or):
        before, last = [compile_node(item) for item in node.items[:-1]], _refine(node.items[-1])
        return lambda env: Truth.TRIVIAL if any(_holds(closure, env) for closure in before) else last(env)
    if isinstance(node, n.And):
        parts = [_refine(item) for item in node.items]
        return lambda env: max(part(env) for part in parts)
    if isinstance(node, n.Macro) and node.kind == "all":
        return _all(node)
    if isinstance(node, n.Cond):
        test, yes, no = compile_node(node.test), _refine(node.yes), _refine(node.no)
        return lambda env: yes(env) if test(env) else no(env)
    if isinstance(node, n.Literal):
        return lambda env: Truth.TRIVIAL
    return lambda env: Truth.TRUE


def _holds(closure: Callable[[Environment], bool], env: Environment) -> bool:
    try:
        return closure(env)
    except EvaluationError:  # absorbed by the operand that made the whole true
        return False


def _all(node: n.Macro) -> Grader:
    target, body, index = compile_node(node.target), _refine(node.body), node.index

    def run(env: Environment) -> Truth:
        best = Truth.TRIVIAL
        for item in target(env):
            env[index] = item
            best = max(best, body(env))
        return best

    return run
