"""From text to a tree; macros are expanded on the way. Source: the CEL language definition, section Syntax."""

from __future__ import annotations

from dra_spec.selectors.lexer import RESERVED, CelSyntaxError, Token, tokens
from dra_spec.selectors.macros import expand
from dra_spec.selectors.tree import Call, Ident, ListNode, Literal, MapNode, Node, Select, Struct

MAX_DEPTH = 250  # of nested expressions, and of operators in one chain; cel-go's limit
_RELATIONS = ("<", "<=", ">=", ">", "==", "!=")
_KEYWORDS = ("true", "false", "null", "in")


def parse(text: str) -> Node:
    """Raises CelSyntaxError."""
    parser = _Parser(text)
    node = parser.expression()
    if parser.current.kind != "end":
        raise parser.unexpected("the end")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._at = 0
        self._depth = 0

    @property
    def current(self) -> Token:
        return self._tokens[self._at]

    def unexpected(self, expected: str) -> CelSyntaxError:
        found = "the end of the expression" if self.current.kind == "end" else repr(self.current.text)
        return CelSyntaxError(f"Syntax error: found {found}, expected {expected}", self.current.pos)

    def _is(self, *symbols: str) -> bool:
        return self.current.kind == "symbol" and self.current.text in symbols

    def _next(self) -> Token:
        token = self.current
        self._at += 1
        return token

    def _take(self, symbol: str) -> Token | None:
        return self._next() if self._is(symbol) else None

    def _expect(self, symbol: str) -> Token:
        if not self._is(symbol):
            raise self.unexpected(f"'{symbol}'")
        return self._next()

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CelSyntaxError(f"the expression is nested more than {MAX_DEPTH} deep", self.current.pos)
        node = self._or()
        if question := self._take("?"):
            yes = self._or()
            self._expect(":")
            node = Call(question.pos, "_?_:_", [node, yes, self.expression()])
        self._depth -= 1
        return node

    def _or(self) -> Node:
        return self._balanced("||", self._and())

    def _and(self) -> Node:
        return self._balanced("&&", self._relation())

    def _balanced(self, operator: str, first: Node) -> Node:
        """`a && b && c && d` as (a && b) && (c && d): the meaning is the same and the tree stays flat."""
        terms, places = [first], []
        while self._is(operator):
            places.append(self._next().pos)
            terms.append(self._relation() if operator == "&&" else self._and())

        def build(low: int, high: int) -> Node:
            if low == high:
                return terms[low]
            middle = (low + high) // 2
            return Call(places[middle], f"_{operator}_", [build(low, middle), build(middle + 1, high)])

        return build(0, len(terms) - 1)

    def _chain(self, length: int) -> None:
        if length >= MAX_DEPTH:
            raise CelSyntaxError(f"more than {MAX_DEPTH} operators in one chain", self.current.pos)

    def _relation(self) -> Node:
        node, length = self._sum(), 0
        while self._is(*_RELATIONS) or (self.current.kind == "name" and self.current.text == "in"):
            self._chain(length := length + 1)
            operator = self._next()
            function = "@in" if operator.text == "in" else f"_{operator.text}_"
            node = Call(operator.pos, function, [node, self._sum()])
        return node

    def _sum(self) -> Node:
        node, length = self._product(), 0
        while self._is("+", "-"):
            self._chain(length := length + 1)
            operator = self._next()
            node = Call(operator.pos, f"_{operator.text}_", [node, self._product()])
        return node

    def _product(self) -> Node:
        node, length = self._unary(), 0
        while self._is("*", "/", "%"):
            self._chain(length := length + 1)
            operator = self._next()
            node = Call(operator.pos, f"_{operator.text}_", [node, self._unary()])
        return node

    def _unary(self) -> Node:
        for sign, function in (("!", "!_"), ("-", "-_")):
            if self._is(sign):
                first, count = self.current, 0
                while self._take(sign):
                    count += 1
                # a minus directly before a number belongs to the number
                literal = sign == "-" and count % 2 == 1 and self.current.kind in ("int", "float")
                operand = self._member(negative=literal)
                if literal and count > 1:
                    return operand
                return operand if literal or count % 2 == 0 else Call(first.pos, function, [operand])
        return self._member()

    def _member(self, *, negative: bool = False) -> Node:
        node, length = self._primary(negative), 0
        while True:
            self._chain(length := length + 1)
            if dot := self._take("."):
                optional = self._take("?") is not None
                name = self._field_name()
                if self._is("(") and not optional:
                    opening = self._next()
                    node = expand(Call(opening.pos, name, self._list(")")[0], node))
                elif optional:
                    node = Call(dot.pos, "_?._", [node, Literal(dot.pos, name)])
                else:
                    node = Select(dot.pos, node, name)
            elif bracket := self._take("["):
                function = "_[?_]" if self._take("?") else "_[_]"
                node = Call(bracket.pos, function, [node, self.expression()])
                self._expect("]")
            elif self._is("{") and (message := _qualified(node)):
                node = self._struct(message)
            else:
                return node

    def _field_name(self) -> str:
        if self.current.kind == "escaped":
            return str(self._next().value)
        if self.current.kind != "name" or self.current.text in _KEYWORDS:
            raise self.unexpected("a field name")
        return self._next().text

    def _primary(self, negative: bool) -> Node:
        token = self.current
        if token.kind in ("int", "uint", "float"):
            return self._number(negative)
        if token.kind in ("string", "bytes"):
            self._next()
            return Literal(token.pos, token.value)
        if self._take("("):
            node = self.expression()
            self._expect(")")
            return node
        if opening := self._take("["):
            items, optional = self._list("]")
            return ListNode(opening.pos, items, optional)
        if opening := self._take("{"):
            return self._map(opening)
        rooted = self._take(".") is not None
        token = self.current
        if token.kind == "name" and token.text in ("true", "false", "null") and not rooted:
            self._next()
            return Literal(token.pos, {"true": True, "false": False, "null": None}[token.text])
        if token.kind != "name" or token.text in _KEYWORDS:
            raise self.unexpected("a value")
        if token.text in RESERVED:
            raise CelSyntaxError(f"{token.text!r} is a reserved name", token.pos)
        self._next()
        if self._is("("):
            opening = self._next()
            return expand(Call(opening.pos, token.text, self._list(")")[0]))
        return Ident(token.pos, token.text)

    def _number(self, negative: bool) -> Node:
        token = self._next()
        value = token.value
        assert isinstance(value, int | float)
        if negative:
            value = -value
        if token.kind == "int" and value >= 2**63:
            raise CelSyntaxError(f"the number {token.text} does not fit in 64 bits", token.pos)
        return Literal(token.pos, Unsigned(int(value)) if token.kind == "uint" else value)

    def _list(self, end: str) -> tuple[list[Node], frozenset[int]]:
        items: list[Node] = []
        optional = set()
        while not self._is(end):
            if end == "]" and self._take("?"):
                optional.add(len(items))
            items.append(self.expression())
            if not self._take(",") or (end == ")" and self._is(end)):
                break
        if end == ")" and self._tokens[self._at - 1].text == ",":
            raise self.unexpected("an argument")
        self._expect(end)
        return items, frozenset(optional)

    def _map(self, opening: Token) -> Node:
        entries: list[tuple[Node, Node]] = []
        optional = set()
        while not self._is("}"):
            if self._take("?"):
                optional.add(len(entries))
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression()))
            if not self._take(","):
                break
        self._expect("}")
        return MapNode(opening.pos, entries, frozenset(optional))

    def _struct(self, message: str) -> Node:
        opening = self._expect("{")
        fields: list[tuple[str, Node]] = []
        while not self._is("}"):
            name = self._field_name()
            self._expect(":")
            fields.append((name, self.expression()))
            if not self._take(","):
                break
        self._expect("}")
        return Struct(opening.pos, message, fields)


def _qualified(node: Node) -> str | None:
    """`a.b.c` as a text, or None for anything else."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test:
        names.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(names)]) if isinstance(node, Ident) else None


class Unsigned(int):
    """A value of type uint."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"
