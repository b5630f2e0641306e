"""What a selector reads, whether any device can satisfy it, whether two exclude each other, and what it cannot do without.

Answers are proofs or say that they are none: "no" comes from Z3, "yes" from a device on which the selector was evaluated, and what lies
outside the encoded part of CEL, or cannot be confirmed, is "unknown".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import attrs
import z3

from dra_spec.resources.quantity import Quantity
from dra_spec.resources.semver import SemVer
from dra_spec.selectors.access import LOOK_UPS
from dra_spec.selectors.compiler import Selector
from dra_spec.selectors.device import CelAttribute, SelectorDevice
from dra_spec.selectors.errors import SelectorError
from dra_spec.selectors.symbolic import KINDS, Encoder, Inputs, Read, Undecidable
from dra_spec.selectors.tree import Call, Fold, Ident, Literal, Node, Select, walk

TIMEOUT_MS = 2_000


class Answer(enum.Enum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@attrs.frozen(eq=False)
class Finding:
    """`device`: on which a yes was confirmed. `why`: of an unknown."""

    answer: Answer
    device: SelectorDevice | None = None
    why: str = ""


def reads(selector: Selector) -> tuple[frozenset[Read], bool]:
    """The attributes and capacities that the selector may look at, and whether that is all.

    It is not all if a name is computed, or if a whole domain is used as a value (iterated, compared, counted).
    """
    encoder = Encoder(Inputs({}, []))
    binds = [n for n in walk(selector.tree) if isinstance(n, Fold) and n.bind]
    once = len({n.accu for n in binds}) == len(binds)
    for bind in binds if once else ():
        encoder.bind(bind.accu, bind.start)
    found: set[Read] = set()
    used: set[int] = set()
    for node in walk(selector.tree):
        read = encoder.as_read(_looked_up(node))
        if read is not None:
            found.add(read)
            used.update(id(n) for n in walk(node))
    for bind in binds if once else ():
        if all(_looked_up(use) is not use or isinstance(use, Select) or _is_look_up(use) for use in _uses(selector.tree, bind)):
            used.update(id(n) for n in walk(bind.start))
    complete = all(id(n) in used for n in walk(selector.tree) if isinstance(n, Select) and _is_map(n))
    return frozenset(found), complete


def _is_look_up(node: Node) -> bool:
    return isinstance(node, Call) and node.function in LOOK_UPS and isinstance(node.args[1], Literal)


def _looked_up(node: Node) -> Node:
    """has(a.b) and "b" in a as a.b."""
    if isinstance(node, Select) and node.test:
        return Select(node.pos, node.operand, node.field)
    if isinstance(node, Call) and node.function == "@in" and isinstance(node.args[0], Literal) and isinstance(node.args[0].value, str):
        return Select(node.pos, node.args[1], node.args[0].value)
    return node


def _is_map(node: Select) -> bool:
    return isinstance(node.operand, Ident) and node.operand.name == "device" and node.field in ("attributes", "capacity")


def _uses(tree: Node, bind: Fold) -> Iterator[Node]:
    """What stands directly around the name that cel.bind() gives."""
    for node in walk(tree):
        children = [bind.result] if node is bind else list(node.children())
        if any(isinstance(child, Ident) and child.name == bind.accu for child in children):
            yield node


def satisfiable(selector: Selector, types: Mapping[Read, str] | None = None) -> Finding:
    """Whether some device matches. `types`: int, bool, string or version of attributes; others may be any of these."""
    return _find([selector], types or {}, [])


def disjoint(first: Selector, second: Selector, types: Mapping[Read, str] | None = None) -> Finding:
    """Whether no device matches both: YES without a device, NO with one that matches both."""
    found = _find([first, second], types or {}, [])
    flipped = {Answer.YES: Answer.NO, Answer.NO: Answer.YES, Answer.UNKNOWN: Answer.UNKNOWN}
    return attrs.evolve(found, answer=flipped[found.answer])


def fails_without(selector: Selector, types: Mapping[Read, str] | None = None) -> dict[Read, Finding]:
    """For each attribute and capacity that is read: whether the selector fails on some device that lacks only that one of them, and would
    not if it had it. The finding's device has it."""
    found, _ = reads(selector)
    return {read: _fails(selector, read, found, types or {}) for read in sorted(found)}


def _fails(selector: Selector, missing: Read, all_reads: frozenset[Read], types: Mapping[Read, str]) -> Finding:
    try:
        inputs = Inputs(types, [selector.tree])
        error, _ = Encoder(inputs).truth(selector.tree)
        for read in all_reads:
            inputs.read(read)
    except Undecidable as reason:
        return Finding(Answer.UNKNOWN, why=str(reason))
    presence = inputs.present[missing]
    fails, works = (z3.substitute(error, (presence, z3.BoolVal(there))) for there in (False, True))
    others = [inputs.present[read] for read in all_reads if read != missing]

    def confirm(device: SelectorDevice) -> bool:
        maps = getattr(device, missing.of)
        ids = {k: v for k, v in maps.get(missing.domain, {}).items() if k != missing.name}
        changed: dict[str, Any] = {missing.of: {**maps, missing.domain: ids}}
        without = attrs.evolve(device, **changed)
        return isinstance(selector.matches(without), SelectorError) and not isinstance(selector.matches(device), SelectorError)

    return _solve(inputs, [fails, z3.Not(works), presence, *others], confirm)


def _find(selectors: list[Selector], types: Mapping[Read, str], extra: list[Any]) -> Finding:
    try:
        inputs = Inputs(types, [s.tree for s in selectors])
        goals = list(extra)
        for selector in selectors:
            error, value = Encoder(inputs).truth(selector.tree)
            goals += [z3.Not(error), value]
    except Undecidable as reason:
        return Finding(Answer.UNKNOWN, why=str(reason))
    return _solve(inputs, goals, lambda device: all(s.matches(device) is True for s in selectors))


def _solve(inputs: Inputs, goals: list[Any], confirm: Callable[[SelectorDevice], bool]) -> Finding:
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT_MS)
    solver.add(*inputs.constraints, *goals)
    result = solver.check()
    if result == z3.unsat:
        return Finding(Answer.NO)
    if result != z3.sat:
        return Finding(Answer.UNKNOWN, why="Z3 gave up")
    try:
        device = _device(inputs, solver.model())
    except ValueError as reason:
        return Finding(Answer.UNKNOWN, why=str(reason))
    if confirm(device):
        return Finding(Answer.YES, device)
    return Finding(Answer.UNKNOWN, why="the device that Z3 found is not confirmed")


def _device(inputs: Inputs, model: Any) -> SelectorDevice:
    """The device of a model. Raises ValueError if there is none."""

    def value(term: Any) -> Any:
        return model.eval(term, model_completion=True)

    maps: dict[str, dict[str, dict[str, Any]]] = {"attributes": {}, "capacity": {}}
    for read, present in inputs.present.items():
        if z3.is_true(value(present)):
            maps[read.of].setdefault(read.domain, {})[read.name] = _plain(inputs, read, value)
    driver = _text(value(inputs.driver))
    multiple = z3.is_true(value(inputs.multiple))
    return SelectorDevice("an example", driver, maps["attributes"], maps["capacity"], multiple)


def _plain(inputs: Inputs, read: Read, value: Any) -> CelAttribute | Quantity:
    kinds = inputs.values[read].kinds
    kind, term = next((k, term) for k, (guard, term) in kinds.items() if z3.is_true(value(guard)))
    found = value(term)
    if kind == "quantity":
        nanos = Fraction(found.as_fraction()) * 10**9
        return Quantity.of(Fraction(nanos.numerator // nanos.denominator, 10**9))
    if kind == "bool":
        return bool(z3.is_true(found))
    if kind == "int":
        return int(found.as_long())
    if kind == "list":
        return (f"value {found.as_long()}",)
    return _text(found) if kind == "string" else _version(inputs.versions, Fraction(found.as_fraction()))


def _text(found: Any) -> str:
    """Z3 writes characters beyond ASCII as \\u{...}."""
    raw = found.as_string()
    out, at = [], 0
    while at < len(raw):
        end = raw.find("}", at)
        if raw.startswith("\\u{", at) and end > 0:
            out.append(chr(int(raw[at + 3 : end], 16)))
            at = end + 1
        else:
            out.append(raw[at])
            at += 1
    return "".join(out)


def _version(known: list[SemVer], rank: Fraction) -> SemVer:
    """A version at a place in the order of the known ones. Raises ValueError if there is none between two of them."""
    below = [v for i, v in enumerate(known) if i < rank]
    above = [v for i, v in enumerate(known) if i > rank]
    same = [v for i, v in enumerate(known) if i == rank]
    if same:
        return same[0]
    candidates = [SemVer(0, 0, 0, ("0",)), SemVer(1, 0, 0)]
    if below:
        low = below[-1]
        candidates += [SemVer(low.major + 1, 0, 0), SemVer(low.major, low.minor + 1, 0), SemVer(low.major, low.minor, low.patch + 1)]
        candidates += [SemVer(low.major, low.minor, low.patch + 1, ("0",)), SemVer(low.major, low.minor, low.patch, (*low.pre, "0"))]
    if above:
        candidates.append(SemVer(above[0].major, above[0].minor, above[0].patch, ("0",)))
    for version in candidates:
        if (not below or below[-1] < version) and (not above or version < above[0]):
            return version
    raise ValueError("there is no version between two that are compared with")


__all__ = ["KINDS", "Answer", "Finding", "Read", "disjoint", "fails_without", "reads", "satisfiable"]
