"""The static estimate of what an expression costs at most, as the API server computes it.

Source: cel-go v0.29 checker cost, k8s.io/apiserver pkg/cel/library cost, k8s.io/dynamic-resource-allocation cel (sizes of the inputs).
An expression whose estimate exceeds LIMIT is refused when an object is written.
"""

from __future__ import annotations

from dra_spec.selectors.charges import LIST_BASE, MAP_BASE, STRUCT_BASE
from dra_spec.selectors.cost_calls import Estimate, call_estimate, scalar_size
from dra_spec.selectors.cost_ranges import LARGEST, NO_PATH, UNKNOWN, Entries, Operand, Path, Range, fixed
from dra_spec.selectors.environments import Environment
from dra_spec.selectors.tree import ACCU, Call, Fold, Ident, ListNode, Literal, MapNode, Node, Select, Struct

ZERO, ONE = fixed(0), fixed(1)


def estimate(root: Node, environment: Environment) -> int:
    """The largest cost that evaluating the checked expression may have; 2^64 - 1 if there is no bound."""
    return Estimator(environment).cost(root).high


class _Local:
    """A variable of a macro."""

    def __init__(self, path: Path, size: Range | None, entries: Entries | None) -> None:
        self.path, self.size, self.entries = path, size, entries


class Estimator:
    """Cost of a tree, with what is known of sizes on the way. Nodes are told apart by identity."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    # sizes

    def input_size(self, path: Path | None) -> Range | None:
        """What the API's limits say of the size of an input."""
        size = self.environment.size(path.steps) if path is not None else None
        return None if size is None else Range(0, size)

    def _path(self, node: Node) -> Path:
        if isinstance(node, Ident) and (local := self._local(node.name)):
            return local.path
        return self._paths.get(id(node), NO_PATH)

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def size(self, node: Node) -> Range | None:
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        if isinstance(node, Literal):
            return fixed(len(node.value) if isinstance(node.value, str | bytes) else 1)
        if isinstance(node, ListNode):
            return fixed(len(node.items))
        if isinstance(node, MapNode):
            return fixed(len(node.entries))
        found = self.input_size(self._path(node))
        if found is not None:
            self._sizes[id(node)] = found
            return found
        if scalar_size(node.type):
            return ONE
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.size if local else None

    def _set_size(self, node: Node, size: Range | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size

    def entries(self, node: Node) -> Entries | None:
        if id(node) in self._entries:
            return self._entries[id(node)]
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.entries if local else None

    def set_entries(self, node: Node, entries: Entries | None) -> None:
        if entries is not None:
            self._entries[id(node)] = entries

    def _copy_sizes(self, to: Node, source: Node) -> None:
        self._set_size(to, self.size(source))
        self.set_entries(to, self.entries(source))

    def operand(self, node: Node) -> Operand:
        path: Path | None = self._path(node)
        if path is not None and path.steps and path.steps[0] == ACCU:
            path = None
        return Operand(path, node.type, node, self.size(node))

    # costs

    def cost(self, node: Node) -> Range:
        if isinstance(node, Literal):
            return ZERO
        if isinstance(node, Ident):
            local = self._local(node.name)
            self._paths[id(node)] = local.path if local else Path([node.name], 1)
            return ONE
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return self._map(node)
        if isinstance(node, Struct):
            total = fixed(STRUCT_BASE)
            for _, value in node.fields:
                total = total + self.cost(value)
            return total
        assert isinstance(node, Fold)
        return self._bind(node) if node.bind else self._fold(node)

    def _select(self, node: Select) -> Range:
        if node.constant is not None:
            return ONE
        total = self.cost(node.operand)
        if node.test:  # has() is free
            return total
        if node.operand.type.kind in ("map", "struct", "param"):
            total = total + ONE
        self._paths[id(node)] = self._path(node.operand).append(node.field)
        return total

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            (argument,) = node.args
            cost = self.cost(argument)
            self._copy_sizes(node, argument)
            return cost + ONE
        costs: list[Range] = []
        operands: list[Operand] = []
        for argument in node.args:
            costs.append(self.cost(argument))
            operands.append(self.operand(argument))
        outer, target = ZERO, None
        if node.target is not None:
            outer = self.cost(node.target)
            target = self.operand(node.target)
        total = Range(LARGEST, 0)
        size: Range | None = None
        for overload in node.overloads:
            found: Estimate = call_estimate(self, node, overload, target, operands, costs)
            total = total.union(found.cost)
            if found.size is not None:
                size = found.size if size is None else size.union(found.size)
            if overload in ("index_list", "index_map") and node.args:
                entries = self.entries(node.args[0])
                size = entries.value if entries else None
                step = "@items" if overload == "index_list" else "@values"
                self._paths[id(node)] = self._path(node.args[0]).append(step)
            if size is None:
                size = self.size(node)
        self._set_size(node, size)
        return outer + total

    def _list(self, node: ListNode) -> Range:
        total, item_size = ZERO, Range(LARGEST if node.items else 0, 0)
        for item in node.items:
            total = total + self.cost(item)
            item_size = item_size.union(self.size(item) or UNKNOWN)
        self.set_entries(node, Entries(True, ONE, item_size))
        return total + fixed(LIST_BASE)

    def _map(self, node: MapNode) -> Range:
        total, empty = ZERO, Range(LARGEST if node.entries else 0, 0)
        key_size = value_size = empty
        for key, value in node.entries:
            total = total + self.cost(key)
            total = total + self.cost(value)
            key_size = key_size.union(self.size(key) or UNKNOWN)
            value_size = value_size.union(self.size(value) or UNKNOWN)
        self.set_entries(node, Entries(False, key_size, value_size))
        return total + fixed(MAP_BASE)

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _push_accumulator(self, node: Fold) -> None:
        path, entries = self._path(node.start), self.entries(node.start)
        self._push(node.accu, _Local(path, self.size(node.start), entries))

    def _push_element(self, name: str, node: Fold, *, value: bool) -> None:
        entries = self.entries(node.range)
        is_list = entries.list if entries else node.range.type.kind == "list"
        size = (entries.value if value else entries.key) if entries else None
        step = ("@items" if value else "@indices") if is_list else ("@values" if value else "@keys")
        self._push(name, _Local(self._path(node.range).append(step), size, None))

    def _fold(self, node: Fold) -> Range:
        total = self.cost(node.range)
        total = total + self.cost(node.start)
        self._push_accumulator(node)
        if node.var2:
            self._push_element(node.var, node, value=False)
            self._push_element(node.var2, node, value=True)
        else:
            entries = self.entries(node.range)
            self._push_element(node.var, node, value=entries.list if entries else node.range.type.kind == "list")
        loop = self.cost(node.condition)
        loop = self.cost(node.step) + loop
        self._locals[node.var].pop()
        if node.var2:
            self._locals[node.var2].pop()
        total = total + self.cost(node.result)
        self._locals[node.accu].pop()
        count = self.size(node.range) or UNKNOWN
        total = total + count * loop
        if isinstance(node.start, Literal):
            self._set_size(node, self.size(node.start))
        elif isinstance(node.start, ListNode | MapNode):
            self._set_size(node, count)
            self.set_entries(node, self.entries(node.step))
        return total

    def _bind(self, node: Fold) -> Range:
        total = self.cost(node.range)
        total = total + self.cost(node.start)
        self._push_accumulator(node)
        total = total + self.cost(node.result)
        self._locals[node.accu].pop()
        self._copy_sizes(node, node.result)
        return total
