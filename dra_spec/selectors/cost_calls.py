"""The estimate of one call: what it costs beside its arguments, and how large its result can be.

Numbers and rules: cel-go v0.29 checker cost and ext (lists, sets); k8s.io/apiserver pkg/cel/library cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from dra_spec.selectors import types as t
from dra_spec.selectors.charges import LIST_BASE, REGEX_FACTOR, STRING_FACTOR
from dra_spec.selectors.cost_ranges import LARGEST, UNKNOWN, Operand, Path, Range, fixed
from dra_spec.selectors.tree import Call, Literal
from dra_spec.selectors.types import Type

if TYPE_CHECKING:
    from dra_spec.selectors.cost import Estimator

ONE = fixed(1)
MAX_FORMAT, MAX_FORMAT_REGEX = 64, 128
_SCALARS = ("bool", "double", "duration", "int", "timestamp", "uint")
_UNIT = frozenset(
    [
        "serviceAccount",
        "path",
        "group",
        "resource",
        "subresource",
        "namespace",
        "name",
        "allowed",
        "reason",
        "error",
        "errored",
        "masked",
        "prefixLength",
        "family",
        "isUnspecified",
        "isLoopback",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isGlobalUnicast",
        "format.named",
        "sign",
        "asInteger",
        "isInteger",
        "asApproximateFloat",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "add",
        "sub",
        "major",
        "minor",
        "patch",
        "getScheme",
        "getHostname",
        "getHost",
        "getPort",
        "getEscapedPath",
        "getQuery",
    ]
)
_TRAVERSING = frozenset(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"])
_AUTHZ_CHECK = 350_000


@attrs.frozen
class Estimate:
    """`size` of the result: None if the call says nothing of it."""

    cost: Range
    size: Range | None = None


def scalar_size(kind: Type) -> bool:
    """Whether values of a type have size 1."""
    return kind.kind in _SCALARS or (t.is_optional(kind) and scalar_size(kind.params[0]))


def call_estimate(
    estimator: Estimator, node: Call, overload: str, target: Operand | None, args: Sequence[Operand], costs: Sequence[Range]
) -> Estimate:
    """Cost of the call with its arguments (not its target)."""
    total = fixed(0)
    for cost in costs:
        total = total + cost
    rules = _Rules(estimator, node, overload, target, args)
    found = rules.lists() or rules.kubernetes()
    if found is None:
        found = rules.control(costs)
        if found is not None:
            return found
        found = rules.standard() or Estimate(ONE)
    return Estimate(found.cost + total, found.size)


class _Rules:
    def __init__(self, estimator: Estimator, node: Call, overload: str, target: Operand | None, args: Sequence[Operand]) -> None:
        self.estimator, self.node, self.overload, self.target, self.args = estimator, node, overload, target, args

    def size(self, operand: Operand) -> Range:
        if operand.size is not None:
            return operand.size
        return self.estimator.input_size(operand.path) or UNKNOWN

    def lists(self) -> Estimate | None:
        """cel-go's lists and sets extensions, by overload."""
        overload, target, args = self.overload, self.target, self.args
        if overload.startswith("list_sets_") and len(args) == 2:
            factor = 2 if "equivalent" in overload else 1
            return Estimate((self.size(args[0]) * self.size(args[1])).times(factor) + ONE)
        if overload == "lists_range" and len(args) == 1:
            return _allocating(1, fixed(_literal(args[0], LARGEST)))
        if target is None:
            return None
        if overload == "list_slice":
            start, end = _literal(args[0], 0), _literal(args[1], self.size(target).high)
            return _allocating(1, fixed((end - start) % 2**64))
        if overload == "list_reverse":
            return _allocating(1, self.size(target))
        if overload in ("list_flatten", "list_flatten_int"):
            return _allocating(float(_literal(args[0], LARGEST) if args else 1), self.size(target))
        if overload == "list_distinct":
            return _allocating(2, self.size(target) * self.size(target))
        if overload.endswith(("_sort", "_sortByAssociatedKeys")):
            size = self.size(target if overload.endswith("_sort") else args[0])
            return _allocating(2 + (STRING_FACTOR if overload.startswith(("list_string_", "list_bytes_")) else 0), size * size)
        return None

    def kubernetes(self) -> Estimate | None:
        """Rules that Kubernetes adds, by function."""
        function, target, args = self.node.function, self.target, self.args
        if function == "check":
            return Estimate(fixed(_AUTHZ_CHECK))
        if function in _UNIT or (function == "ip" and self.overload == "cidr_ip"):
            return Estimate(ONE)
        if function in ("fieldSelector", "labelSelector") and len(args) == 1:
            size = self.size(args[0])
            return Estimate(fixed(LIST_BASE) + size.times(STRING_FACTOR) + size.times(0.5).times(50))
        if function in _TRAVERSING and target is not None:
            return Estimate(self._traversal(target))
        if function == "url" and len(args) == 1:
            return Estimate(self.size(args[0]).times(STRING_FACTOR), self.size(args[0]))
        if function in ("lowerAscii", "upperAscii", "substring", "trim") and target is not None:
            return Estimate(self.size(target).times(STRING_FACTOR), self.size(target))
        if function in ("replace", "split", "join", "find", "findAll") and target is not None:
            return self._text(target)
        if function in ("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver") and args:
            return Estimate(self.size(args[0]).times(STRING_FACTOR))
        if function == "ip.isCanonical" and args:
            return Estimate(self.size(args[0]).times(2 * STRING_FACTOR))
        if function in ("containsIP", "containsCIDR") and args:
            return self._contains()
        if function == "validate" and args:
            return Estimate(self.size(args[0]).times(STRING_FACTOR).times(MAX_FORMAT_REGEX * REGEX_FACTOR))
        if function == "_==_" and len(args) == 2 and args[0].type == args[1].type:
            return self._same_type_equality()
        return None

    def _traversal(self, target: Operand) -> Range:
        limit = self.estimator.environment.includes_limit
        if self.node.function == "includes" and limit is not None:
            return Range(0, limit)
        element = target.type.params[0] if target.type.params else None
        if element is None:
            return self.size(target).times(1 if self.node.function == "includes" else STRING_FACTOR)
        each = ONE
        if element.kind in ("string", "bytes"):
            each = each + self._element_size(target).times(STRING_FACTOR)
        return self.size(target) * each

    def _element_size(self, target: Operand) -> Range:
        if target.path is None or not target.path.steps:
            return UNKNOWN
        steps = [*target.path.steps, "@items"]
        return self.estimator.input_size(Path(steps, len(steps))) or UNKNOWN

    def _text(self, target: Operand) -> Estimate | None:
        function, args = self.node.function, self.args
        size = self.size(target)
        if function == "replace" and len(args) >= 2:
            return Estimate(size.times(2 * STRING_FACTOR), _replaced(size, self.size(args[0]), self.size(args[1])))
        if function == "split":
            parts = size.high
            if len(args) > 1 and isinstance(args[1].node, Literal) and type(args[1].node.value) is int:
                parts = args[1].node.value % 2**64
            return Estimate(size.times(2 * STRING_FACTOR), Range(0, parts))
        if function == "join":
            joined = size * self._element_size(target) if target.type.params else fixed(0)
            if args:
                joined = joined + self.size(args[0]) * Range(max(size.low - 1, 0), max(size.high - 1, 0))
            return Estimate(joined.times(STRING_FACTOR), joined)
        if function in ("find", "findAll") and args:
            cost = (size + ONE).times(STRING_FACTOR) * self.size(args[0]).times(REGEX_FACTOR)
            return Estimate(cost, Range(0, size.high))
        return None

    def _contains(self) -> Estimate:
        address = Range(4, 16)
        cost = (address + address).times(STRING_FACTOR)
        if self.node.function == "containsCIDR":
            cost = cost + address.times(STRING_FACTOR) + ONE
        if self.overload.endswith("_string"):
            cost = cost + self.size(self.args[0]).times(STRING_FACTOR)
        return Estimate(cost)

    def _same_type_equality(self) -> Estimate | None:
        left, right = self.args
        if left.type in (t.IP, t.CIDR, t.QUANTITY, t.SEMVER, *t.AUTHZ):
            return Estimate(ONE)
        if left.type == t.FORMAT:
            return Estimate(Range(1, MAX_FORMAT).times(STRING_FACTOR))
        if left.type == t.URL:
            return Estimate(Range(1, right.size.high if right.size is not None else 1).times(STRING_FACTOR))
        return None

    def control(self, costs: Sequence[Range]) -> Estimate | None:
        """What does not evaluate all its arguments; the arguments' costs are in the answer."""
        estimator, args = self.estimator, self.args
        if self.overload in ("logical_and", "logical_or"):
            return Estimate(Range(costs[0].low, (costs[0] + costs[1]).high))
        if self.overload == "conditional":
            yes, no = self.node.args[1], self.node.args[2]
            entries, others = estimator.entries(yes), estimator.entries(no)
            if entries is not None and others is not None:
                estimator.set_entries(self.node, entries.union(others))
            size = (args[1].size or UNKNOWN).union(args[2].size or UNKNOWN)
            return Estimate(costs[0] + costs[1].union(costs[2]), size)
        return None

    def standard(self) -> Estimate | None:
        """Standard functions, by overload. Sizes here are only those that the expression itself tells."""
        overload, args = self.overload, self.args
        sizes = [a.size or UNKNOWN for a in args]
        target = (self.target.size or UNKNOWN) if self.target is not None else None
        if overload == "string_format" and target is not None:
            return Estimate(target.times(STRING_FACTOR))
        if overload in ("string_to_bytes", "bytes_to_string", "strings_quote") and len(args) == 1:
            (size,) = sizes
            result = {
                "string_to_bytes": Range(size.low, size.high * 4 % 2**64),
                "bytes_to_string": Range(size.low // 4, size.high),
                "strings_quote": Range(size.low + 2, (size.high * 2 + 2) % 2**64),
            }[overload]
            return Estimate(size.times(STRING_FACTOR), result)
        if overload in ("starts_with_string", "ends_with_string") and len(args) == 1:
            return Estimate(sizes[0].times(STRING_FACTOR))
        if overload == "in_list" and len(args) == 2:
            return Estimate(sizes[1].times(1))
        if overload in ("matches", "matches_string"):
            text, pattern = (target, sizes[0]) if target is not None else (sizes[0], sizes[1])
            return Estimate((text + ONE).times(STRING_FACTOR) * pattern.times(REGEX_FACTOR))
        if overload == "contains_string" and target is not None:
            return Estimate(target.times(STRING_FACTOR) * sizes[0].times(STRING_FACTOR))
        if overload in ("add_string", "add_bytes", "add_list") and len(args) == 2:
            return self._concatenation(sizes)
        if overload in ("equals", "not_equals") or (
            overload.endswith(("_string", "_bytes")) and overload.startswith(("less_", "greater_"))
        ):
            high = min(sizes[0].high, sizes[1].high)
            return Estimate(Range(1 if high else 0, high).times(STRING_FACTOR))
        return None

    def _concatenation(self, sizes: Sequence[Range]) -> Estimate:
        left, right = (self.estimator.entries(a) for a in self.node.args)
        if left is not None and right is not None:
            self.estimator.set_entries(self.node, left.union(right))
        size = sizes[0] + sizes[1]
        return Estimate(ONE if self.overload == "add_list" else size.times(STRING_FACTOR), size)


def _allocating(factor: float, size: Range) -> Estimate:
    return Estimate(size.times(factor) + fixed(1 + LIST_BASE), size)


def _literal(operand: Operand, default: int) -> int:
    """A constant int, at least 0; `default` for anything else."""
    node = operand.node
    return max(node.value, 0) if isinstance(node, Literal) and type(node.value) is int else default


def _replaced(size: Range, old: Range, new: Range) -> Range:
    """How long a text can be after replacing: the shortest matches by the longest replacement, and the other way round."""
    if old.low == 0:
        high = min(size.high + 1, LARGEST) * new.high + size.high
    elif new.high <= old.low:
        high = size.high
    else:
        high = math.ceil(float(size.high) / float(old.low)) * new.high
    if old.high == 0:
        low = min(size.low + 1, LARGEST) * new.low + size.low
    elif old.high <= new.low:
        low = size.low
    else:
        low = math.ceil(float(size.low) / float(old.high)) * new.low
    return Range(min(low, LARGEST), min(high, LARGEST))
