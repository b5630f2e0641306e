"""The tables of the grammar: on disk, and good whatever lies there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lark
import pytest

from dra_spec.properties import grammar

TEXT = "claims.all(c, c.name != 'x' && -1 < size(c.devices) || true)"


@pytest.fixture(autouse=True)
def afresh() -> Iterator[None]:
    grammar._parser.cache_clear()
    yield
    grammar._parser.cache_clear()


def made_anew(monkeypatch: pytest.MonkeyPatch, folder: Path | None) -> bool:
    """Whether a parser works out its tables; it parses in any case."""
    monkeypatch.setattr(grammar, "place", lambda: folder)
    grammar._parser.cache_clear()
    calls = []
    compile_ = lark.load_grammar.Grammar.compile

    def counted(*args: object) -> object:
        calls.append(args)
        return compile_(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(lark.load_grammar.Grammar, "compile", counted)
        assert [str(token) for token in grammar.tree(TEXT).scan_values(lambda token: token.type == "BOOL_LIT")] == ["true"]
    return bool(calls)


def test_the_second_start_reads_what_the_first_one_wrote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert made_anew(monkeypatch, tmp_path)
    assert not made_anew(monkeypatch, tmp_path)


def test_what_is_broken_on_disk_is_made_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made_anew(monkeypatch, tmp_path)
    for spoilt in (b"", b"no tables", (tmp_path / "cel-grammar").read_bytes()[:200]):
        (tmp_path / "cel-grammar").write_bytes(spoilt)
        assert made_anew(monkeypatch, tmp_path)
    assert not made_anew(monkeypatch, tmp_path)


def test_without_a_place_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made_anew(monkeypatch, None)
    assert made_anew(monkeypatch, None)


def test_a_literal_keeps_its_place() -> None:
    (token,) = grammar.tree("1 <\n true").scan_values(lambda token: token.type == "BOOL_LIT")
    assert (token.line, token.column, token.end_pos) == (2, 2, 9)
