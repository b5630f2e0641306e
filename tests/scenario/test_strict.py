"""Strict YAML: every mistake is one located message."""

from __future__ import annotations

import pytest

from dra_spec.scenario.strict import InputError, parse


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.yaml: the file is empty"),
        ("  \n# only a comment\n", "f.yaml: expected one YAML document, found 0"),
        ("a: [1", "f.yaml:1: not YAML"),
        ("a: b: c", "f.yaml:1: not YAML"),
        ("{{- if .Values.x }}\na: 1\n", "f.yaml:1: not YAML"),
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: the key 'a' is there twice"),
        ("a: &x [1]\nb: *x\n", "f.yaml:1: YAML aliases (*name) are not allowed here"),
        ("a: 1\n---\na: 2\n", "f.yaml: expected one YAML document, found 2"),
    ],
)
def test_what_cannot_be_read_is_located(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse(text, "f.yaml").plain()
    assert str(error.value).startswith(message)
    assert len(str(error.value).splitlines()) == 1


def test_a_yaml_bomb_is_refused_before_it_is_built() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    with pytest.raises(InputError, match="aliases"):
        parse("\n".join(lines), "bomb.yaml")


def test_values_keep_the_type_that_they_are_written_with() -> None:
    found = parse("a: 1\nb: '1'\nc: true\nd: yes\ne:\nf: [x, 2]\n", "f.yaml").plain()
    assert found == {"a": 1, "b": "1", "c": True, "d": "yes", "e": None, "f": ["x", 2]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("depht: 3\n", "f.yaml:1: unknown field 'depht'; did you mean 'depth'?"),
        ("depth: three\n", "f.yaml:1: depth: expected a whole number, found 'three'"),
        ("depth: 0\n", "f.yaml:1: depth: expected a number of at least 1, found 0"),
        ("depth: [1]\n", "f.yaml:1: depth: expected a whole number, found a list"),
        ("{}\n", "f.yaml:1: the field 'depth' is missing"),
    ],
)
def test_fields_are_checked(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse(text, "f.yaml").mapping(("depth", "name"), required=("depth",))["depth"].integer(1)
    assert str(error.value) == message
