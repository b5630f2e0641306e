"""The CEL syntax tree, as far as it must be looked at: the published protobuf form (cel.expr.ParsedExpr), with the parts that are
not named here carried along unread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf import (  # type: ignore[import-untyped, unused-ignore]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)
from google.protobuf.message import DecodeError  # type: ignore[import-untyped, unused-ignore]

TOO_DEEP: type[Exception] = DecodeError  # what reading a tree deeper than 100 messages raises

_INT64, _INT32, _BOOL, _STRING, _MESSAGE, _BYTES = 3, 5, 8, 9, 11, 12

# message: {field: (number, type, repeated)}; a type that is a text is another message
_MESSAGES: dict[str, dict[str, tuple[int, int | str, bool]]] = {
    "Constant": {"bool_value": (2, _BOOL, False), "string_value": (6, _STRING, False)},
    "Ident": {"name": (1, _STRING, False)},
    "Select": {"operand": (1, "Expr", False), "field": (2, _STRING, False), "test_only": (3, _BOOL, False)},
    "Call": {"target": (1, "Expr", False), "function": (2, _STRING, False), "args": (3, "Expr", True)},
    "ListExpr": {"elements": (1, "Expr", True), "optional_indices": (2, _INT32, True)},
    "Entry": {"map_key": (3, "Expr", False), "value": (4, "Expr", False)},
    "StructExpr": {"entries": (2, "Entry", True)},
    "Comprehension": {
        "iter_var": (1, _STRING, False),
        "iter_var2": (8, _STRING, False),
        "iter_range": (2, "Expr", False),
        "accu_init": (4, "Expr", False),
        "loop_condition": (5, "Expr", False),
        "loop_step": (6, "Expr", False),
        "result": (7, "Expr", False),
    },
    "Parsed": {"expr": (2, "Expr", False)},
    "Packed": {"type_url": (1, _STRING, False), "value": (2, _BYTES, False)},
}
_KINDS = {
    "const_expr": (3, "Constant"),
    "ident_expr": (4, "Ident"),
    "select_expr": (5, "Select"),
    "call_expr": (6, "Call"),
    "list_expr": (7, "ListExpr"),
    "struct_expr": (8, "StructExpr"),
    "comprehension_expr": (9, "Comprehension"),
}


def _build() -> tuple[Any, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="dra_spec_cel_syntax.proto", package="dra_spec.syntax", syntax="proto3")

    def field(message: Any, name: str, number: int, kind: int | str, repeated: bool, oneof: bool = False) -> None:
        entry = message.field.add(name=name, number=number, label=3 if repeated else 1)
        if isinstance(kind, str):
            entry.type, entry.type_name = _MESSAGE, f".dra_spec.syntax.{kind}"
        else:
            entry.type = kind
        if oneof:
            entry.oneof_index = 0

    expr = file.message_type.add(name="Expr")
    expr.oneof_decl.add(name="kind")
    field(expr, "id", 2, _INT64, False)
    for name, (number, kind) in _KINDS.items():
        field(expr, name, number, kind, False, oneof=True)
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        if message_name == "Constant":
            message.oneof_decl.add(name="kind")  # else an empty string would be dropped as a default
        for name, (number, kind_, repeated) in fields.items():
            field(message, name, number, kind_, repeated, oneof=message_name == "Constant")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    packed, parsed = (message_factory.GetMessageClass(pool.FindMessageTypeByName(f"dra_spec.syntax.{n}")) for n in ("Packed", "Parsed"))
    return packed, parsed


_PACKED, _PARSED = _build()


def unpack(serialized: bytes) -> tuple[Any, Any]:
    """A serialised unchecked expression to (envelope, tree with an `expr`)."""
    packed = _PACKED.FromString(serialized)
    return packed, _PARSED.FromString(packed.value)


def pack(packed: Any, parsed: Any) -> bytes:
    packed.value = parsed.SerializeToString()
    serialized: bytes = packed.SerializeToString()
    return serialized


def children(expr: Any) -> Iterator[Any]:
    """The expressions directly below one."""
    kind = expr.WhichOneof("kind")
    if kind == "select_expr":
        yield expr.select_expr.operand
    elif kind == "call_expr":
        if expr.call_expr.HasField("target"):
            yield expr.call_expr.target
        yield from expr.call_expr.args
    elif kind == "list_expr":
        yield from expr.list_expr.elements
    elif kind == "struct_expr":
        for entry in expr.struct_expr.entries:
            if entry.HasField("map_key"):
                yield entry.map_key
            yield entry.value
    elif kind == "comprehension_expr":
        loop = expr.comprehension_expr
        yield from (loop.iter_range, loop.accu_init, loop.loop_condition, loop.loop_step, loop.result)


def walk(expr: Any) -> Iterator[Any]:
    """All expressions of a tree, the outer before the inner, without recursion."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(children(node))
