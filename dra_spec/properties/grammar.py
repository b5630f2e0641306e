"""cel-python's grammar of CEL, run by Lark.

Lark keeps the tables of a grammar on disk (its option `cache`), since working them out takes longer than the search of a small model.
cel-python is not imported for its grammar: its package loads an evaluator and a library of dates as well, which invariants have no use for.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import lark

from dra_spec.explorer.kernel_place import place

UnexpectedInput = lark.exceptions.UnexpectedInput


def tree(text: str) -> lark.Tree[lark.Token]:
    """The syntax tree of an expression; the names of its nodes are those of cel-python's grammar. Raises `UnexpectedInput`."""
    return _parser().parse(text)


@cache
def _parser() -> lark.Lark:
    found = find_spec("celpy")
    if found is None or found.origin is None:
        raise ImportError("cel-python is not installed")
    grammar = (Path(found.origin).parent / "cel.lark").read_text(encoding="utf-8")
    folder = place()
    return lark.Lark(
        grammar,
        parser="lalr",
        start="expr",
        g_regex_flags=re.M,
        lexer_callbacks={"IDENT": _literal},
        propagate_positions=True,
        maybe_placeholders=False,
        priority="invert",
        cache=False if folder is None else str(folder / "cel-grammar"),
    )


def _literal(token: lark.Token) -> lark.Token:
    """true and false match the pattern of names, which comes first."""
    return token.update(type="BOOL_LIT") if token in ("true", "false") else token
