"""Arguments that are literals and cannot work: found when the expression is compiled. Source: cel-go AST validators."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dra_spec.selectors.checker import Mistake
from dra_spec.selectors.functions_standard import parse_duration, parse_timestamp
from dra_spec.selectors.functions_text import BadRegex, compile_regex
from dra_spec.selectors.runtime import Fault
from dra_spec.selectors.tree import Call, ListNode, Literal, Node, walk
from dra_spec.selectors.types import Type, is_dyn

KIND = "bad-literal-argument"
_CLAUSE = re.compile(r"%(?:%|(?:\.\d+)?(.?))", re.DOTALL)
_PRINTABLE = {
    "d": ("int", "uint"),
    "f": ("double",),
    "e": ("double",),
    "b": ("int", "uint", "bool"),
    "o": ("int", "uint"),
    "x": ("int", "uint", "string", "bytes"),
    "X": ("int", "uint", "string", "bytes"),
    "s": ("int", "uint", "double", "bool", "string", "bytes", "null", "type", "duration", "timestamp", "list", "map"),
}


def check_literals(root: Node) -> Iterator[Mistake]:
    """The checked tree's literal durations, timestamps, patterns and formats that are wrong."""
    for node in walk(root):
        if not isinstance(node, Call):
            continue
        if node.function in ("duration", "timestamp") and isinstance(node.args[0], Literal) and isinstance(node.args[0].value, str):
            parse = parse_duration if node.function == "duration" else parse_timestamp
            try:
                parse(node.args[0].value)
            except Fault as fault:
                yield Mistake(KIND, fault.message, node.args[0].pos)
        elif node.function == "matches" and isinstance(node.args[-1], Literal) and isinstance(node.args[-1].value, str):
            try:
                compile_regex(node.args[-1].value)
            except BadRegex as error:
                yield Mistake(KIND, f"{node.args[-1].value!r} is no regular expression: {error}", node.args[-1].pos)
        elif node.function == "format" and isinstance(node.target, Literal) and isinstance(node.target.value, str):
            yield from _format(node.target.value, node)


def constant_patterns(root: Node) -> Iterator[Mistake]:
    """Patterns of find() and findAll() are compiled when the program is made."""
    for node in walk(root):
        if isinstance(node, Call) and node.function in ("find", "findAll") and isinstance(node.args[0], Literal):
            pattern = node.args[0].value
            try:
                if isinstance(pattern, str):
                    compile_regex(pattern)
            except BadRegex as error:
                yield Mistake("program-instantiation", f"{pattern!r} is no regular expression: {error}", node.args[0].pos)


def _format(template: str, node: Call) -> Iterator[Mistake]:
    arguments = node.args[0]
    if not isinstance(arguments, ListNode):
        return
    used = 0
    for clause in _CLAUSE.finditer(template):
        if clause.group() == "%%":
            continue
        verb = clause.group(1)
        if verb not in _PRINTABLE or not verb:
            yield Mistake(KIND, f"unknown clause {clause.group()!r} in a format", node.pos)
            return
        if used >= len(arguments.items):
            yield Mistake(KIND, f"the format needs more than {len(arguments.items)} values", node.pos)
            return
        item = arguments.items[used]
        if not _printable(item.type, verb):
            yield Mistake(KIND, f"%{verb} cannot print a {item.type}", item.pos)
        used += 1
    if used < len(arguments.items):
        yield Mistake(KIND, f"the format uses {used} of {len(arguments.items)} values", node.pos)


def _printable(kind: Type, verb: str) -> bool:
    return is_dyn(kind) or kind.kind in _PRINTABLE[verb] or kind.kind == "param"
