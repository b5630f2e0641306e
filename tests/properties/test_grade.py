"""True or only trivially true; and how a "false" is explained for each construct."""

from __future__ import annotations

from typing import Any

import pytest

from dra_spec.content import directory
from dra_spec.explorer.model import Truth
from dra_spec.properties.cel import load
from dra_spec.properties.errors import EvaluationError, InvariantError
from dra_spec.properties.grade import grader
from dra_spec.properties.invariant import Invariant
from dra_spec.properties.judge import judge
from dra_spec.properties.world import PlainWorld, problems

POD: dict[str, Any] = {"name": "p1", "deleting": False, "node": "n1", "phase": "Running", "claims": ["c1"], "running": True}
WORLD: dict[str, Any] = {"claims": [], "pods": [POD, {**POD, "name": "p2", "node": ""}], "nodes": [], "schedulers": []}


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("1 == 1", Truth.TRUE),
        ("1 == 2", Truth.FALSE),
        ("true", Truth.TRIVIAL),
        ("1 == 1 || 2 == 2", Truth.TRIVIAL),
        ("1 == 2 || 2 == 2", Truth.TRUE),
        ("1 == 2 || 2 == 1 || 3 == 3", Truth.TRUE),
        ("1 / 0 == 1 || 2 == 2", Truth.TRUE),
        ("2 == 2 || 1 / 0 == 1", Truth.TRIVIAL),
        ("(1 == 1 || 2 == 2) && 3 == 3", Truth.TRUE),
        ("(1 == 1 || 2 == 2) && (3 == 3 || 4 == 4)", Truth.TRIVIAL),
        ("claims.all(c, c.allocated)", Truth.TRIVIAL),
        ("pods.all(p, p.running)", Truth.TRUE),
        ("pods.all(p, p.node != '' || p.running)", Truth.TRUE),  # trivially for p1, not for p2
        ("pods.all(p, p.running || p.node != '')", Truth.TRIVIAL),
        ("pods.all(p, p.node != '')", Truth.FALSE),
        ("pods.exists(p, p.node != '')", Truth.TRUE),
        ("1 == 1 ? claims.all(c, c.allocated) : 1 == 2", Truth.TRIVIAL),
    ],
)
def test_grades(text: str, truth: Truth) -> None:
    program = load(text)
    assert grader(program.root)(program.environment(PlainWorld(WORLD))) is truth


def test_an_error_stays_an_error() -> None:
    program = load("1 / 0 == 1 || 2 == 3")
    with pytest.raises(EvaluationError, match="division by zero"):
        grader(program.root)(program.environment(PlainWorld(WORLD)))
    with pytest.raises(InvariantError, match=r"(?s)--assert has no value on this world: --assert:1:1: division by zero.*\^"):
        judge(Invariant.adhoc("1 / 0 == 1"), WORLD)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("!pods.exists(p, p.node == '')", ["for p = pod p2:", "  p.node == '' is true (p.node = \"\")"]),
        (
            "pods.exists(p, p.deleting)",
            ["pods.exists(p, p.deleting) is false (pods = pod p1, pod p2)"],
        ),
        ("!pods.all(p, p.running)", ["pods.all(p, p.running) is true (pods = pod p1, pod p2)"]),
        ("size(pods) < 2", ["size(pods) < 2 is false (size(pods) = 2)"]),
        (
            "pods[0].running ? pods[1].node != '' : true",
            ["pods[0].running is true (pods[0].running = true)", "pods[1].node != '' is false (pods[1].node = \"\")"],
        ),
        (
            "!(pods.all(p, p.running) && size(claims) == 0)",
            ["pods.all(p, p.running) is true", "size(claims) == 0 is true (size(claims) = 0)"],
        ),
        (
            "pods.all(p, p.claims.all(c, c != 'c1'))",
            ["for p = pod p1:", '  for c = "c1":', "    c != 'c1' is false (c = \"c1\")", "for p = pod p2:"],
        ),
    ],
)
def test_why_something_is_false(text: str, lines: list[str]) -> None:
    found = judge(Invariant.adhoc(text), WORLD).explanation.splitlines()[1:]
    for line in lines:
        assert any(each.removeprefix("  ").startswith(line) for each in found), found


def test_what_does_not_fit_the_schema_is_named() -> None:
    assert problems(WORLD) == []
    wrong = {"pods": [{**POD, "nod": "n1", "deleting": 0}], "claims": {}, "podz": []}
    assert problems(wrong) == [
        "world: unknown field podz, expected claims, nodes, pods or schedulers; did you mean pods?",
        "world.pods[0]: unknown field nod, expected claims, deleting, name, node, phase or running; did you mean node?",
        "world.pods[0].deleting: expected bool, found int 0",
        "world.claims: expected a list, found dict",
    ]


def test_the_content_is_found() -> None:
    assert (directory("invariants") / "no-double-allocation.yaml").is_file()
    with pytest.raises(FileNotFoundError, match=r"no directory of nothing: looked for .*content/nothing and .*nothing"):
        directory("nothing")  # type: ignore[arg-type]
