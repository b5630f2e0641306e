"""From text to a typed tree: cel-python's grammar gives the syntax, this checks names, fields and types, so that nothing unknown is left
for evaluation.

The subset: bool, int, string, null, lists and maps with string keys; comparison, arithmetic, logic, ternary, `in`, indexing, field
selection, has(), size, the macros all, exists, exists_one, filter and map, and startsWith, endsWith, contains and matches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import attrs
import lark

from dra_spec.properties import grammar
from dra_spec.properties import nodes as n
from dra_spec.properties.errors import InvariantError, Origin, Span, expected, pointed
from dra_spec.properties.schema import ANY, BOOL, INT, NULL, STRING, ListType, MapType, Nullable, ObjectType, Type
from dra_spec.selectors.lexer import CelSyntaxError, tokens

Tree = Any  # lark.Tree, whose children are trees and tokens

MACROS = ("all", "exists", "exists_one", "filter", "map")
STRING_FUNCTIONS = ("startsWith", "endsWith", "contains", "matches")
FUNCTIONS = ("has", "size")

_TERMINALS = {
    "IDENT": "a name",
    "INT_LIT": "a number",
    "STRING_LIT": "a string",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "DOT": "'.'",
    "COLON": "':'",
    "QMARK": "'?'",
    "BANG": "'!'",
    "MINUS": "'-'",
    "$END": "the end of the expression",
}
_OPERATORS = {"LESSTHAN", "MORETHAN", "PLUS", "STAR", "SLASH", "PERCENT", "IN", *(f"__ANON_{i}" for i in range(6))}
_VALUES = {"IDENT", "INT_LIT", "STRING_LIT", "LPAR", "LSQB", "LBRACE", "BANG", "MINUS"}


def parse(text: str, world: ObjectType, origin: Origin, variables: Mapping[str, tuple[int, Type]] | None = None) -> n.Node:
    """The typed tree of an expression over a world. `variables`: those bound outside of it, with their places in the environment.

    Raises `InvariantError` with file, line, column and what was expected.
    """
    if not text.strip():
        raise InvariantError(pointed("the expression is empty, expected CEL", text, origin, 1, 1))
    try:
        tree = grammar.tree(text)
    except grammar.UnexpectedInput as error:
        raise InvariantError(_syntax_error(error, text, origin)) from None
    return Checker(text, world, origin).check(tree, Scope(dict(variables or {})))


def _syntax_error(cause: grammar.UnexpectedInput, text: str, origin: Origin) -> str:
    line, column = cause.line, cause.column
    if line < 1 or (isinstance(cause, lark.exceptions.UnexpectedToken) and cause.token.type == "$END"):  # the text ended too early
        lines = text.rstrip().splitlines() or [""]
        line, column = len(lines), len(lines[-1]) + 1
    if isinstance(cause, lark.exceptions.UnexpectedToken):
        found = "the end of the expression" if cause.token.type == "$END" else repr(str(cause.token))
        names = cause.accepts or cause.expected
    elif isinstance(cause, lark.exceptions.UnexpectedCharacters):
        found, names = repr(cause.char), cause.allowed or set()
    else:
        return pointed(str(cause), text, origin, line, column)
    wanted = ["a value"] if names >= _VALUES else []
    if names & _OPERATORS:
        wanted.append("an operator")
        names = names - {"DOT", "LSQB", "LBRACE", "LPAR", "QMARK", "MINUS", "COLON"}
    wanted += sorted({_TERMINALS[name] for name in names - (_VALUES if "a value" in wanted else set()) if name in _TERMINALS} - {"'.'"})
    return pointed(f"syntax error at {found}, expected {' or '.join(wanted) or 'something else'}", text, origin, line, column)


@attrs.frozen
class Scope:
    """The variables in sight: place in the environment (0 is the world) and type."""

    variables: Mapping[str, tuple[int, Type]]

    @property
    def depth(self) -> int:
        return 1 + max((index for index, _ in self.variables.values()), default=0)

    def bind(self, name: str, type_: Type) -> tuple[int, Scope]:
        index = self.depth
        return index, Scope({**self.variables, name: (index, type_)})


class Checker:
    """Turns cel-python's tree into typed nodes. One method per construct of the grammar."""

    def __init__(self, text: str, world: ObjectType, origin: Origin) -> None:
        self._text, self._world, self._origin = text, world, origin

    def check(self, tree: Tree, scope: Scope) -> n.Node:
        method: Callable[[Tree, Scope], n.Node] | None = getattr(self, f"_{tree.data}", None)
        if method is None:
            self._fail(_span(tree), f"this construct ({tree.data}) is not supported")
        return method(tree, scope)

    def _fail(self, span: Span, message: str) -> NoReturn:
        raise InvariantError(pointed(message, self._text, self._origin, span.line, span.column))

    def _source(self, node: n.Node) -> str:
        return self._text[node.span.start : node.span.end]

    def _want(self, node: n.Node, *types: Type, role: str) -> n.Node:
        if node.type not in types and node.type != ANY:  # an element of an empty list never has a value
            self._fail(node.span, f"{role}: expected {' or '.join(map(str, types))}, found {node.type}")
        return node

    def _list(self, node: n.Node, role: str) -> ListType:
        found = node.type.of if isinstance(node.type, Nullable) else node.type
        if found == ANY:
            return ListType(ANY)
        if not isinstance(found, ListType):
            self._fail(node.span, f"{role}: expected a list, found {node.type}")
        return found

    # logic

    def _expr(self, tree: Tree, scope: Scope) -> n.Node:
        if len(tree.children) == 1:
            return self.check(tree.children[0], scope)
        test, yes, no = (self.check(child, scope) for child in tree.children)
        self._want(test, BOOL, role="the condition of ?:")
        joined = _join(yes.type, no.type)
        if joined is None:
            self._fail(no.span, f"the branches of ?: have types {yes.type} and {no.type}, expected one type")
        return n.Cond(_span(tree), joined, test, yes, no)

    def _conditionalor(self, tree: Tree, scope: Scope) -> n.Node:
        return self._chain(tree, scope, n.Or, "||")

    def _conditionaland(self, tree: Tree, scope: Scope) -> n.Node:
        return self._chain(tree, scope, n.And, "&&")

    def _chain(self, tree: Tree, scope: Scope, kind: type[n.Or] | type[n.And], sign: str) -> n.Node:
        if len(tree.children) == 1:
            return self.check(tree.children[0], scope)
        items: list[n.Node] = []
        for child in tree.children:
            item = self._want(self.check(child, scope), BOOL, role=f"an operand of {sign}")
            items.extend(item.items if isinstance(item, kind) else [item])
        return kind(_span(tree), BOOL, tuple(items))

    # relations and arithmetic

    def _relation(self, tree: Tree, scope: Scope) -> n.Node:
        if len(tree.children) == 1:
            return self.check(tree.children[0], scope)
        operator, right_tree = tree.children
        op = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "in": "in"}[operator.data.removeprefix("relation_")]
        left, right = self.check(operator.children[0], scope), self.check(right_tree, scope)
        if op == "in":
            if isinstance(right.type, MapType):
                self._want(left, STRING, role="the key before in")
            else:
                self._comparable(left, self._list(right, "after in").element, right.span, "in")
        elif op in ("==", "!="):
            self._comparable(left, right.type, right.span, op)
        else:
            self._want(left, INT, STRING, role=f"left of {op}")
            self._want(right, *((INT, STRING) if left.type == ANY else (left.type,)), role=f"right of {op}")
        return n.Binary(_span(tree), BOOL, op, left, right)

    def _comparable(self, left: n.Node, right: Type, span: Span, op: str) -> None:
        if not _comparable(left.type, right):
            hint = "; compare their names" if isinstance(left.type, ObjectType) and isinstance(right, ObjectType) else ""
            self._fail(span, f"{op} between {left.type} and {right}, expected two values of one type{hint}")

    def _addition(self, tree: Tree, scope: Scope) -> n.Node:
        return self._arithmetic(tree, scope, {"addition_add": "+", "addition_sub": "-"})

    def _multiplication(self, tree: Tree, scope: Scope) -> n.Node:
        return self._arithmetic(tree, scope, {"multiplication_mul": "*", "multiplication_div": "/", "multiplication_mod": "%"})

    def _arithmetic(self, tree: Tree, scope: Scope, operators: Mapping[str, str]) -> n.Node:
        if len(tree.children) == 1:
            return self.check(tree.children[0], scope)
        operator, right_tree = tree.children
        op = operators[operator.data]
        left, right = self.check(operator.children[0], scope), self.check(right_tree, scope)
        if op == "+" and isinstance(left.type, ListType) and isinstance(right.type, ListType):
            joined = _join(left.type, right.type)
            if joined is None:
                self._fail(right.span, f"+ between {left.type} and {right.type}, expected lists of one type")
            return n.Binary(_span(tree), joined, op, left, right)
        self._want(left, INT, *((STRING,) if op == "+" else ()), role=f"left of {op}")
        result = right.type if left.type == ANY else left.type
        self._want(right, INT if result == INT else STRING, role=f"right of {op}")
        return n.Binary(_span(tree), result, op, left, right)

    def _unary(self, tree: Tree, scope: Scope) -> n.Node:
        if len(tree.children) == 1:
            return self.check(tree.children[0], scope)
        sign, operand = tree.children
        of = self.check(operand, scope)
        if sign.data == "unary_not":
            return n.Not(_span(tree), BOOL, self._want(of, BOOL, role="after !"))
        return n.Neg(_span(tree), INT, self._want(of, INT, role="after -"))

    # members

    def _member(self, tree: Tree, scope: Scope) -> n.Node:
        return self.check(tree.children[0], scope)

    _primary = _paren_expr = _member

    def _member_dot(self, tree: Tree, scope: Scope) -> n.Node:
        target, token = self.check(tree.children[0], scope), tree.children[1]
        if isinstance(target.type, MapType):
            return n.Key(_span(tree), target.type.value, target, n.Literal(_token_span(token), STRING, str(token)))
        if not isinstance(target.type, ObjectType):
            self._fail(_token_span(token), f"{self._source(target)} is {target.type}, which has no fields")
        if token not in target.type.fields:
            self._fail(_token_span(token), f"{target.type} has no field {token}, {expected(str(token), target.type.fields)}")
        return n.Field(_span(tree), target.type.fields[str(token)], target, str(token))

    def _member_index(self, tree: Tree, scope: Scope) -> n.Node:
        target, index = (self.check(child, scope) for child in tree.children)
        if isinstance(target.type, MapType):
            return n.Key(_span(tree), target.type.value, target, self._want(index, STRING, role="a key"))
        element = self._list(target, "before [").element
        return n.Index(_span(tree), element, target, self._want(index, INT, role="an index"))

    def _member_dot_arg(self, tree: Tree, scope: Scope) -> n.Node:
        target, token = self.check(tree.children[0], scope), tree.children[1]
        args = list(tree.children[2].children) if len(tree.children) == 3 else []
        name, span = str(token), _span(tree)
        if name in MACROS:
            return self._macro(name, target, args, span, token, scope)
        if name == "size":
            return self._size([target], span, extra=len(args))
        if name not in STRING_FUNCTIONS:
            self._fail(_token_span(token), f"unknown function {name}, {expected(name, (*MACROS, *STRING_FUNCTIONS, 'size'))}")
        self._want(target, STRING, role=f"before .{name}")
        if len(args) != 1:
            self._fail(_token_span(token), f"{name} takes one argument, found {len(args)}")
        argument = self._want(self.check(args[0], scope), STRING, role=f"the argument of {name}")
        return n.Call(span, BOOL, name, (target, argument))

    def _macro(self, kind: str, target: n.Node, args: list[Any], span: Span, token: Any, scope: Scope) -> n.Node:
        if len(args) != 2:
            self._fail(_token_span(token), f"{kind} takes a variable and an expression, found {len(args)} arguments")
        tokens = list(args[0].scan_values(lambda _: True))
        if len(tokens) != 1 or tokens[0].type != "IDENT":
            self._fail(_span(args[0]), f"the first argument of {kind} is the name of a variable")
        name = str(tokens[0])
        element = STRING if isinstance(target.type, MapType) else self._list(target, f"before .{kind}").element
        index, inner = scope.bind(name, element)
        body = self.check(args[1], inner)
        if kind != "map":
            self._want(body, BOOL, role=f"the second argument of {kind}")
        result: Type = BOOL
        if kind == "filter":
            result = self._list(target, "filter") if not isinstance(target.type, MapType) else ListType(STRING)
        elif kind == "map":
            result = ListType(body.type)
        return n.Macro(span, result, kind, target, name, index, body)

    # primaries

    def _ident(self, tree: Tree, scope: Scope) -> n.Node:
        name, span = str(tree.children[0]), _span(tree)
        if name in scope.variables:
            index, type_ = scope.variables[name]
            return n.Var(span, type_, name, index)
        if name not in self._world.fields:
            self._fail(span, f"unknown name {name}, {expected(name, (*scope.variables, *self._world.fields))}")
        return n.Field(span, self._world.fields[name], n.World(span, self._world), name)

    def _ident_arg(self, tree: Tree, scope: Scope) -> n.Node:
        token, span = tree.children[0], _span(tree)
        args = list(tree.children[1].children) if len(tree.children) == 2 else []
        if token == "size":
            return self._size([self.check(arg, scope) for arg in args[:1]], span, extra=len(args) - 1)
        if token != "has":
            self._fail(_token_span(token), f"unknown function {token}, {expected(str(token), FUNCTIONS)}")
        of = self.check(args[0], scope) if len(args) == 1 else None
        if not isinstance(of, (n.Field, n.Key)) or (isinstance(of, n.Field) and isinstance(of.target, n.World)):
            self._fail(span, "has takes one field selection, like has(step.params.pod)")
        return n.Has(span, BOOL, of)

    def _size(self, args: list[n.Node], span: Span, extra: int) -> n.Node:
        if len(args) != 1 or extra:
            self._fail(span, "size takes one argument")
        if args[0].type != STRING and not isinstance(args[0].type, MapType):
            self._list(args[0], "the argument of size")
        return n.Call(span, INT, "size", tuple(args))

    def _list_lit(self, tree: Tree, scope: Scope) -> n.Node:
        items = [self.check(child, scope) for child in (tree.children[0].children if tree.children else ())]
        element: Type = ANY
        for item in items:
            joined = _join(element, item.type)
            if joined is None:
                self._fail(item.span, f"a list of {element} with {item.type} in it, expected one type")
            element = joined
        return n.ListOf(_span(tree), ListType(element), tuple(items))

    def _map_lit(self, tree: Tree, scope: Scope) -> n.Node:
        parts = [self.check(child, scope) for child in (tree.children[0].children if tree.children else ())]
        value: Type = ANY
        seen: set[object] = set()
        for key, item in zip(parts[0::2], parts[1::2], strict=True):
            self._want(key, STRING, role="a key")
            if isinstance(key, n.Literal):
                if key.value in seen:
                    self._fail(key.span, f"the key {self._source(key)} occurs twice")
                seen.add(key.value)
            joined = _join(value, item.type)
            if joined is None:
                self._fail(item.span, f"a map of {value} with {item.type} in it, expected one type")
            value = joined
        return n.MapOf(_span(tree), MapType(value), tuple(zip(parts[0::2], parts[1::2], strict=True)))

    def _literal(self, tree: Tree, scope: Scope) -> n.Node:
        token, span = tree.children[0], _span(tree)
        if token.type == "BOOL_LIT":
            return n.Literal(span, BOOL, token == "true")
        if token.type == "NULL_LIT":
            return n.Literal(span, NULL, None)
        if token.type in ("STRING_LIT", "MLSTRING_LIT"):
            return n.Literal(span, STRING, self._string(str(token), span))
        if token.type != "INT_LIT":
            self._fail(span, f"{token}: expected an int, a string, a bool or null; the world has no other values")
        value = int(token, 16) if "0x" in token else int(token)
        if not -(2**63) <= value < 2**63:
            self._fail(span, f"{token}: expected an int of 64 bits")
        return n.Literal(span, INT, value)

    def _string(self, text: str, span: Span) -> str:
        """The value of a literal, read as in selectors."""
        try:
            return str(tokens(text)[0].value)
        except CelSyntaxError as error:
            self._fail(attrs.evolve(span, column=span.column + error.pos), error.message)


def _span(tree: Tree) -> Span:
    meta = tree.meta
    return Span(meta.line, meta.column, meta.start_pos, meta.end_pos) if not meta.empty else Span(1, 1, 0, 0)


def _token_span(token: Any) -> Span:
    return Span(token.line or 1, token.column or 1, token.start_pos or 0, token.end_pos or 0)


def _join(left: Type, right: Type) -> Type | None:
    """The type of a value that is either; None if there is none."""
    if left == right or right == ANY:
        return left
    if left == ANY:
        return right
    if isinstance(left, ListType) and isinstance(right, ListType):
        element = _join(left.element, right.element)
        return None if element is None else ListType(element, left.key if left.key == right.key else None)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, ListType) and other == NULL:
            return Nullable(one)
        if isinstance(one, Nullable) and other == NULL:
            return one
        if isinstance(one, Nullable) and isinstance(other, ListType):
            inner = _join(one.of, other)
            return None if inner is None else Nullable(inner)
    return None


def _comparable(left: Type, right: Type) -> bool:
    if ANY in (left, right):
        return True
    if NULL in (left, right):
        return all(type_ == NULL or isinstance(type_, (Nullable, ListType)) for type_ in (left, right))
    left = left.of if isinstance(left, Nullable) else left
    right = right.of if isinstance(right, Nullable) else right
    if isinstance(left, ListType) and isinstance(right, ListType):
        return _comparable(left.element, right.element)
    if isinstance(left, MapType) and isinstance(right, MapType):
        return _comparable(left.value, right.value)
    return left == right and not isinstance(left, ObjectType)
