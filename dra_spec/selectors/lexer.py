"""Tokens of CEL. Source: the language definition, section Syntax."""

from __future__ import annotations

import re

import attrs

RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_SYMBOLS = ("&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")", "[", "]", "{", "}")
_FLOAT = re.compile(r"(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)", re.ASCII)
_INT = re.compile(r"(0x[0-9a-fA-F]+|\d+)([uU]?)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_STRING = re.compile(r"(?:[bB][rR]?|[rR][bB]?)?(\"\"\"|'''|\"|')")
_ESCAPED = re.compile(r"`([A-Za-z0-9_. /-]+)`", re.ASCII)
_SPACE = re.compile(r"(?:[ \t\r\n\f]|//[^\n]*)+")
_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "?": 63, "'": 39, '"': 34, "`": 96}
_HEX = {"x": 2, "X": 2, "u": 4, "U": 8}
_MAX_INT, _MAX_UINT = 2**63, 2**64 - 1


class CelSyntaxError(Exception):
    """Text that is no expression, with the offset."""

    def __init__(self, message: str, pos: int, kind: str = "syntax") -> None:
        super().__init__(message)
        self.message, self.pos, self.kind = message, pos, kind


@attrs.frozen
class Token:
    """`kind`: name, escaped (a field name in backquotes), int, uint, float, string, bytes, symbol, end."""

    kind: str
    text: str
    pos: int
    value: object = None


def tokens(text: str) -> list[Token]:
    """Raises CelSyntaxError."""
    found: list[Token] = []
    pos = 0
    while pos < len(text):
        if space := _SPACE.match(text, pos):
            pos = space.end()
            continue
        token, pos = _token(text, pos)
        found.append(token)
    found.append(Token("end", "", len(text)))
    return found


def _token(text: str, pos: int) -> tuple[Token, int]:
    if string := _STRING.match(text, pos):
        return _string(text, pos, string)
    if number := _FLOAT.match(text, pos):
        value = float(number.group())
        if value == float("inf"):
            raise CelSyntaxError(f"the number {number.group()} is too large", pos)
        return Token("float", number.group(), pos, value), number.end()
    if number := _INT.match(text, pos):
        digits, unsigned = number.groups()
        integer = int(digits, 16 if digits.startswith("0x") else 10)
        if integer > (_MAX_UINT if unsigned else _MAX_INT):
            raise CelSyntaxError(f"the number {digits} does not fit in 64 bits", pos)
        return Token("uint" if unsigned else "int", number.group(), pos, integer), number.end()
    if name := _NAME.match(text, pos):
        return Token("name", name.group(), pos), name.end()
    if escaped := _ESCAPED.match(text, pos):
        return Token("escaped", escaped.group(), pos, escaped.group(1)), escaped.end()
    for symbol in _SYMBOLS:
        if text.startswith(symbol, pos):
            return Token("symbol", symbol, pos), pos + len(symbol)
    raise CelSyntaxError(f"unexpected character {text[pos]!r}", pos)


def _string(text: str, pos: int, opening: re.Match[str]) -> tuple[Token, int]:
    quote, prefix = opening.group(1), opening.group()[: -len(opening.group(1))].lower()
    raw, is_bytes = "r" in prefix, "b" in prefix
    at = opening.end()
    out: list[int] = []  # code points, or bytes
    while not text.startswith(quote, at):
        if at >= len(text) or (len(quote) == 1 and text[at] in "\r\n"):
            raise CelSyntaxError(f"the string that starts with {text[pos : pos + 10]!r} does not end", pos)
        char = text[at]
        if char == "\\" and not raw:
            code, as_byte, at = _escape(text, at + 1, is_bytes)
            out.extend([code] if as_byte or not is_bytes else chr(code).encode())
            continue
        if raw and char == "\\" and at + 1 < len(text) and text[at + 1] == quote[0] and len(quote) == 1:
            raise CelSyntaxError("a raw string cannot hold its own quote", at)
        out.extend([ord(char)] if not is_bytes else char.encode("utf-8", "surrogatepass"))
        at += 1
    end = at + len(quote)
    value: object = bytes(out) if is_bytes else "".join(map(chr, out))
    return Token("bytes" if is_bytes else "string", text[pos:end], pos, value), end


def _escape(text: str, at: int, is_bytes: bool) -> tuple[int, bool, int]:
    """(code, it is one byte, where the text goes on). `at` is behind the backslash."""
    char = text[at : at + 1]
    if char in _SIMPLE and char:
        return _SIMPLE[char], False, at + 1
    if char in _HEX and char:
        digits = text[at + 1 : at + 1 + _HEX[char]]
        if len(digits) < _HEX[char] or not re.fullmatch(r"[0-9a-fA-F]+", digits):
            raise CelSyntaxError(f"\\{char} needs {_HEX[char]} hexadecimal digits", at - 1)
        code = int(digits, 16)
        byte = char in "xX"
        if not byte and (is_bytes or code > 0x10FFFF or 0xD800 <= code < 0xE000):
            raise CelSyntaxError(f"\\{char}{digits} is no character", at - 1)
        return code, byte, at + 1 + _HEX[char]
    octal = text[at : at + 3]
    if re.fullmatch(r"[0-3][0-7]{2}", octal):
        return int(octal, 8), True, at + 3
    raise CelSyntaxError(f"unknown escape \\{char}", at - 1)
