"""YAML and JSON to trees: scalars as Kubernetes reads them, positions, limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_spec.resources import ManifestError, Problem, tree
from dra_spec.resources.tree import read_documents


def value(text: str) -> Any:
    (document,) = read_documents(text, "t.yaml")
    return document.plain()


def problem(text: str) -> str:
    with pytest.raises(ManifestError) as error:
        read_documents(text, "t.yaml")
    return str(error.value)


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        ("yes", True),  # YAML 1.1, as in all Kubernetes tools
        ("off", False),
        ("True", True),
        ("'yes'", "yes"),
        ("!!str yes", "yes"),
        ("tRUE", "tRUE"),
        ("~", None),
        ("", None),
        ("null", None),
        ("12", 12),
        ("0x1f", 31),
        ("010", 8),
        ("0o10", 8),
        ("-7", -7),
        ("1_000", 1000),
        ("1.50", "1.50"),  # a float stays text, so that nothing is rounded
        ("1e3", "1e3"),
        ("10Gi", "10Gi"),
        ("1:30", "1:30"),  # no sexagesimal numbers
        ("2024-01-01", "2024-01-01"),
        ("|\n  a\n  b\n", "a\nb\n"),
        (">-\n  a\n  b\n", "a b"),
        ('"\\ud83d\\ude00"', "😀"),
    ],
)
def test_scalars(scalar: str, expected: object) -> None:
    found = value(f"a: {scalar}")["a"]
    assert found == expected
    assert type(found) is type(expected)


def test_positions_point_at_values_and_keys() -> None:
    (document,) = read_documents("# comment\na:\n  b:\n  - 1\n  - c: x\n", "t.yaml")
    assert (document.at("a.b[1].c").line, document.at("a.b[1].c").column) == (5, 8)
    assert document.keys["a"] == (2, 1)
    assert document.at("a.b[7].nothing").line == 4  # the list: the nearest thing around it


def test_documents_are_split_and_empty_ones_left_out() -> None:
    text = "---\n# nothing\n---\na: 1\n---\n...\n---\nb: 2\n"
    assert [d.plain() for d in read_documents(text, "t")] == [{"a": 1}, {"b": 2}]
    assert read_documents("# only a comment\n", "t") == ()


def test_aliases_and_merge_keys() -> None:
    assert value("base: &b {x: 1, y: 2}\nd:\n  <<: *b\n  y: 3\n") == {"base": {"x": 1, "y": 2}, "d": {"x": 1, "y": 3}}


def test_json_with_tabs_and_escapes() -> None:
    text = '{\n\t"a":\t[1, true, null, "x\\/y\\u00e9"],\n\t"b":{"c":"d"}}\n'
    assert value(text) == json.loads(text)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcxyz-_./", min_size=1, max_size=6), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), json_values, min_size=1, max_size=3), st.sampled_from([None, 1, "\t"]))
def test_json_is_read_as_json(content: dict[str, Any], indent: int | str | None) -> None:
    assert value(json.dumps(content, indent=indent)) == content


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (bomb(9), f"t.yaml:6: more than {tree.MAX_NODES} values once aliases are followed: refused"),
        ("a: &a [*a]", "t.yaml:1: alias *a stands inside its own anchor: refused"),
        ("a: *b", "t.yaml:1: alias *b has no anchor before it"),
        (
            "x: &x 1\ny:\n" + "- *x\n" * (tree.MAX_ALIASES + 1),
            f"t.yaml:{tree.MAX_ALIASES + 3}: more than {tree.MAX_ALIASES} aliases: refused",
        ),
        ("[" * 100 + "]" * 100, f"t.yaml:1: nested deeper than {tree.MAX_DEPTH} levels: refused"),
        ("a: 1\nb: 2\na: 3\n", "t.yaml:3: the key 'a' occurs twice in this mapping (first on line 1)"),
        ('{"a": 1, "a": 2}', "t.yaml:1: the key 'a' occurs twice in this mapping (first on line 1)"),
        (
            "a: !!python/object/apply:os.system [ls]",
            "t.yaml:1: the tag 'python/object/apply:os.system' is not accepted: manifests are plain data",
        ),
        ("a: !custom x", "t.yaml:1: the tag '!custom' is not accepted: manifests are plain data"),
        ("a: !!int x", "t.yaml:1: 'x' is tagged 'int' and is not one"),
        ("? [a]\n: b\n", "t.yaml:1: a key must be a plain word"),
        ("a: b: c", "t.yaml:1: not YAML: mapping values are not allowed here"),
        ("a:\n\t- b\n", "t.yaml:2: not YAML: found character '\\t' that cannot start any token"),
        ("a: 'x", "t.yaml:1: not YAML: found unexpected end of stream"),
        ("\x00", "t.yaml: not YAML: unacceptable character #x0000: special characters are not allowed"),
        (
            "{{- if .Values.x }}\na: 1\n{{- end }}",
            "t.yaml:1: this is a Helm or Go template, not a manifest: render it first (helm template ...)",
        ),
        ("a: {{ .Values.x }}\n", "t.yaml:1: this is a Helm or Go template, not a manifest: render it first (helm template ...)"),
    ],
)
def test_refused_texts(text: str, message: str) -> None:
    assert problem(text) == message


def test_a_text_beyond_the_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_BYTES", 1024 * 1024)
    assert problem("# " + "x" * 1024 * 1024) == "t.yaml: the file is larger than 1 MiB"


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("ab:-{}[]&*!|>'\"\n \t,#?%@`0.\\"), max_size=40))
def test_any_text_gives_trees_or_located_problems(text: str) -> None:
    problems: tuple[Problem, ...] = ()
    documents: tuple[tree.Node, ...] = ()
    try:
        documents = read_documents(text, "t.yaml")
    except ManifestError as error:
        problems = error.problems
    assert all(p.where.file == "t.yaml" and p.code.startswith("DRA10") for p in problems)
    assert all(d.line >= 1 for d in documents)
