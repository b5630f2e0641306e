"""What is said of an invariant that cannot be loaded: file, line, column, what was found and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_spec.content import directory
from dra_spec.explorer.model import Kind
from dra_spec.properties import PropertyError
from dra_spec.properties.errors import InvariantError
from dra_spec.properties.invariant import Invariant, Promise, find, from_file, load_all

GOOD = """\
name: sample
statement: Each claim is allocated.
source: KEP-4381
kind: state
cel: |
  claims.all(c,
    c.allocated)
needs: []
"""


def load(folder: Path, text: str, name: str = "sample") -> Invariant:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return from_file(path)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(InvariantError) as caught:
        load(folder, text)
    return str(caught.value).replace(str(folder) + "/", "")


def test_a_good_one(tmp_path: Path) -> None:
    invariant = load(tmp_path, GOOD)
    assert (invariant.name, invariant.kind, invariant.statement) == ("sample", Promise.STATE, "Each claim is allocated.")
    assert invariant.source == ("KEP-4381",)
    assert invariant.without == {Kind.FAULT, Kind.USER}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    c.allocated)", "    c.alocated)", "sample.yaml:7:7: claim has no field alocated, expected allocated, conditions, "),
        ("    c.allocated)", "    c.alocated)", "did you mean allocated?\n  |   c.alocated)\n  |     ^"),
        (
            "claims.all",
            "claim.all",
            "sample.yaml:6:3: unknown name claim, expected claims, nodes, pods or schedulers; did you mean claims?",
        ),
        ("claims.all", "claims.al", "sample.yaml:6:10: unknown function al, expected all, contains, "),
        ("    c.allocated)", "    c.allocated", "sample.yaml:7:16: syntax error at the end of the expression, expected ')' or ','"),
        ("    c.allocated)", "    c.allocated &&)", "sample.yaml:7:19: syntax error at ')', expected a value"),
        ("    c.allocated)", "    c.allocated c)", "sample.yaml:7:17: syntax error at 'c', expected an operator or ')' or ','"),
        ("    c.allocated)", "    [c.allocated)", "sample.yaml:7:17: syntax error at ')', expected ']'"),
        ("    c.allocated)", "    c.true)", "sample.yaml:7:7: syntax error at 'true', expected a name"),
        ("    c.allocated)", "    c.allocated = true)", "sample.yaml:7:17: syntax error at '=', expected an operator or ')'"),
        ("    c.allocated)", "    c.name == 'c)", "sample.yaml:7:15: syntax error at "),
        ("    c.allocated)", "    c.name == '\\d')", "sample.yaml:7:16: unknown escape \\d"),
        ("    c.allocated)", "    {'a': 1, 'b'}.a == 1)", "sample.yaml:7:17: syntax error at '}', expected ':'"),
        ("    c.allocated)", "    -true)", "sample.yaml:7:6: after -: expected int, found bool"),
        ("    c.allocated)", "    1.5 < 2)", "sample.yaml:7:5: 1.5: expected an int, a string, a bool or null"),
        ("    c.allocated)", "    1u < 2)", "sample.yaml:7:5: 1u: expected an int, a string, a bool or null"),
        ("    c.allocated)", "    b'a' == 'a')", "sample.yaml:7:5: b'a': expected an int, a string, a bool or null"),
        ("    c.allocated)", "    9223372036854775808 > 1)", "sample.yaml:7:5: 9223372036854775808: expected an int of 64 bits"),
        ("    c.allocated)", "    [c].all(1, true))", "sample.yaml:7:13: the first argument of all is the name of a variable"),
        ("    c.allocated)", "    c.name)", "sample.yaml:7:5: the second argument of all: expected bool, found string"),
        ("    c.allocated)", "    c.name == 1)", "sample.yaml:7:15: == between string and int, expected two values of one type"),
        ("    c.allocated)", "    c.devices < 1)", "sample.yaml:7:5: left of <: expected int or string, found list(string)"),
        ("    c.allocated)", "    c == c)", "== between claim and claim, expected two values of one type; compare their names"),
        ("    c.allocated)", "    c.uid == 'u')", "== between uid and string"),
        ("    c.allocated)", "    c.old.allocated)", "sample.yaml:7:7: claim has no field old"),
        ("    c.allocated)", "    step.writer == 'x')", "sample.yaml:7:5: unknown name step"),
        ("    c.allocated)", "    c.allocated) && size(claims)", "an operand of &&: expected bool, found int"),
        ("    c.allocated)", "    c.allocated) ? 1 : 2", "sample.yaml:6:3: an invariant is true or false, found int"),
        ("    c.allocated)", "    schedulers.all(s, s.running))", "sample.yaml:8: needs: the expression reads what the scheduler owns"),
        ("kind: state", "kind: stat", "sample.yaml:4: kind: unknown kind stat, expected always-possible, "),
        ("kind: state", "kind: stat", "did you mean state?"),
        ("needs: []", "need: []", "sample.yaml:8: need: unknown field, expected actions, "),
        ("needs: []", "needs: [scheduling]", "sample.yaml:8: needs: unknown name scheduling, expected "),
        ("needs: []", "needs: scheduler", "sample.yaml:8: needs: expected a list of names, found 'scheduler'"),
        ("needs: []", "unless: c1", "sample.yaml:8: unless: unknown field"),
        ("needs: []", "actions: [a]", "sample.yaml:8: actions: belongs to kind step only, this is state"),
        ("needs: []", "per: {p: pods}", "sample.yaml:8: per: belongs to kind always-possible or leads-to only, this is state"),
        (
            "needs: []",
            "assumptions:\n  no-forced-delete: x",
            "sample.yaml:9:21: assumptions: unknown assumption no-forced-delete, expected ",
        ),
        ("needs: []", "assumptions: [no-force-delete]", "sample.yaml:8: assumptions: expected a map of names to texts"),
        ("name: sample", "name: other", "sample.yaml:1: name: is other, expected the name of the file, sample"),
        ("statement: Each claim is allocated.\n", "", "sample.yaml:1: the field statement is missing"),
        ("statement: Each claim is allocated.", "statement:", "sample.yaml:2: statement: expected text, found None"),
        ("source: KEP-4381", "source: [1]", "sample.yaml:3: source: expected text or a list of texts, found [1]"),
        ("kind: state", "kind: [state", "not YAML"),
        ("kind: state", "kind: state\nkind: step", "sample.yaml:5:1: not YAML"),
    ],
)
def test_what_is_wrong_is_located(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    assert said in refused(tmp_path, GOOD.replace(old, new))


def test_an_expression_on_one_line_is_located_too(tmp_path: Path) -> None:
    text = GOOD.replace("cel: |\n  claims.all(c,\n    c.allocated)", "cel: claims.all(c, c.alocated)")
    assert refused(tmp_path, text).startswith("sample.yaml:5:22: claim has no field alocated")
    text = GOOD.replace("cel: |\n  claims.all(c,\n    c.allocated)", "cel: 'claims.all(c, c.alocated)'")
    assert refused(tmp_path, text).startswith("sample.yaml:5:23: claim has no field alocated")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected an invariant with the fields name, statement, source, kind, cel, found an empty file"),
        ("- a\n", "found CommentedSeq"),
        ("a: &a [x]\nb: *c\n", "not YAML"),
        ("cel: " + "x" * 70000, "bytes, expected an invariant of at most 65536"),
    ],
)
def test_other_files(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(tmp_path, text)


def test_per_is_located_and_binds_its_variables(tmp_path: Path) -> None:
    text = GOOD.replace("kind: state", "kind: always-possible\nper: {n: nodes, l: n.plugins}")
    text = text.replace("claims.all(c,\n    c.allocated)", "l.running && n.name != ''").replace("needs: []", "needs: [plugin]")
    invariant = load(tmp_path, text)
    assert invariant.quantifiers == 2
    assert refused(tmp_path, text.replace("n.plugins", "n.plugin")).startswith("sample.yaml:5:22: node has no field plugin, expected")
    assert "per: expected a list of objects, found string" in refused(tmp_path, text.replace("n.plugins", "n.name"))
    assert "sample.yaml:7:3: unknown name m" in refused(tmp_path, text.replace("l.running", "m.running"))


LEADS = """\
name: sample
statement: What is being deleted goes.
source: KEP-4381
kind: leads-to
per: {c: claims}
when: c.deleting
goal: |
  !c.allocated &&
  c.reservedFor.size() == 0
fair: [protocol, "scheduler.*"]
"""


def test_leads_to(tmp_path: Path) -> None:
    invariant = load(tmp_path, LEADS)
    assert (invariant.kind, invariant.quantifiers) == (Promise.LEADS_TO, 1)
    assert invariant.when is not None
    assert invariant.when.text.split() == ["claims.all(c,", "c.deleting", ")"]
    assert invariant.is_fair_to("kubelet.crash", Kind.PROTOCOL)
    assert invariant.is_fair_to("scheduler.crash", Kind.FAULT)
    assert not invariant.is_fair_to("kubelet.crash", Kind.FAULT)
    assert load(tmp_path, LEADS.replace('fair: [protocol, "scheduler.*"]\n', "")).is_fair_to("clock", Kind.TIMEOUT)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("when: c.deleting\n", "", "sample.yaml:1: the field when is missing"),
        ("goal: |", "cel: |", "sample.yaml:1: the field goal is missing"),
        ("fair: [", "cel: true\nfair: [", "sample.yaml:10: cel: expected an expression, found True"),
        ("fair: [", "cel: claims.all(c, true)\nfair: [", "sample.yaml:10: cel: belongs to the other kinds, expected when and goal"),
        ("when: c.deleting", "when: 3", "sample.yaml:6: when: expected an expression, found 3"),
        ("when: c.deleting", "when: c.name", "sample.yaml:6:7: an invariant is true or false, found string"),
        ("  c.reservedFor", "  c.reserved", "sample.yaml:9:5: claim has no field reserved, expected allocated, "),
        ("[protocol", "[protocoll", "sample.yaml:10: fair: unknown kind protocoll, expected fault, protocol, "),
        ("when: c.deleting", "when: schedulers.all(s, s.running)", "sample.yaml:7: goal: the expression reads what the scheduler owns"),
        ("kind: leads-to", "kind: state", "sample.yaml:1: the field cel is missing"),
        ("goal: |", "without: [user]\ngoal: |", "sample.yaml:7: without: belongs to kind always-possible only, this is leads-to"),
    ],
)
def test_what_is_wrong_with_leads_to(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in LEADS
    assert said in refused(tmp_path, LEADS.replace(old, new))


def test_when_belongs_to_leads_to(tmp_path: Path) -> None:
    for field in ("when: a", "goal: a", "fair: [user]"):
        found = refused(tmp_path, GOOD.replace("needs: []", field))
        assert f"sample.yaml:8: {field.partition(':')[0]}: belongs to kind leads-to only, this is state" in found


def test_adhoc() -> None:
    invariant = Invariant.adhoc("schedulers.all(s, s.running)")
    assert (invariant.kind, invariant.needs) == (Promise.STATE, {"scheduler"})
    with pytest.raises(PropertyError, match=r"--assert:1:17: claim has no field foo"):
        Invariant.adhoc("claims.all(c, c.foo)")
    with pytest.raises(PropertyError, match="--assert:1:1: the expression is empty"):
        Invariant.adhoc("  ")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 3000 + "true" + ")" * 3000,
        "!" * 4000 + "true",
        "claims.all(c, " * 900 + "true" + ")" * 900,
        "1" + " + 1" * 4000 + " > 0",
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(PropertyError, match="nested too deeply"):
        Invariant.adhoc(text)


def test_a_long_expression_is_refused() -> None:
    with pytest.raises(PropertyError, match="expected at most 20000"):
        Invariant.adhoc("true && " * 3000 + "true")


def test_a_yaml_bomb_is_not_printed(tmp_path: Path) -> None:
    levels = "".join(f"  - &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 9))
    text = GOOD.replace("needs: []", f"needs:\n  - &l0 [lol]\n{levels}")
    assert len(refused(tmp_path, text)) < 2000


def test_finding_by_name_and_path() -> None:
    assert find("no-double-allocation").name == "no-double-allocation"
    assert find(str(directory("invariants") / "no-double-allocation.yaml")).name == "no-double-allocation"
    with pytest.raises(InvariantError, match=r"unknown invariant no-double-alocation, expected .*; did you mean no-double-allocation"):
        find("no-double-alocation")
    with pytest.raises(InvariantError, match="cannot be read: No such file"):
        find("missing.yaml")


def test_all_shipped_invariants_load() -> None:
    found = load_all()
    assert list(found) == sorted(found)
    assert {invariant.kind for invariant in found.values()} == set(Promise)
    for invariant in found.values():
        assert invariant.source
        assert invariant.statement.endswith(".")


def test_expressions_of_unwanted_invariants_are_not_read(tmp_path: Path) -> None:
    """But the rest of their files is: what is no invariant at all is told."""
    broken = GOOD.replace("name: sample", "name: other").replace("c.allocated", "c.alocated")
    (tmp_path / "sample.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "other.yaml").write_text(broken, encoding="utf-8")
    assert list(load_all(tmp_path, wanted=lambda head: head.name == "sample")) == ["sample"]
    with pytest.raises(InvariantError, match=r"other\.yaml:\d+:\d+: .*alocated"):
        load_all(tmp_path)
    (tmp_path / "other.yaml").write_text(broken.replace("kind: state", "kind: stat"), encoding="utf-8")
    with pytest.raises(InvariantError, match="unknown kind stat"):
        load_all(tmp_path, wanted=lambda head: head.name == "sample")
