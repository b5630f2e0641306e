"""Model files and what the command line changes in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_spec.scenario import names
from dra_spec.scenario.content import shipped
from dra_spec.scenario.modelfile import LimitSpec, Overrides, load, parse_setting, read
from dra_spec.scenario.strict import InputError

GOOD = """\
schema: dra-spec/model/v1
name: small
description: Two words
  on two lines.
objects:
  - apiVersion: v1
    kind: Node
    metadata:
      name: n1
  - {apiVersion: v1, kind: Node, metadata: {name: n2}}
writers: [scheduler, workload]
faults: {api-refused: 1}
environment: {finish-pod: -1}
bounds: {lag: 3}
invariants:
  - no-double-allocation
  - {name: in-flight-cleared, expected: violated, assumptions: [one scheduler]}
expected: violated
limits: {depth: 9, time-limit: 1.5}
"""


def test_a_model_file_is_read_completely() -> None:
    file = read(GOOD, Path("m.yaml"))
    assert file.description == "Two words on two lines."
    assert file.writers == ("scheduler", "workload")
    assert file.budgets == {"api-refused": 1, "finish-pod": -1}
    assert (file.bound("lag"), file.bound("replicas"), file.bound("pods")) == (3, names.DEFAULT_BOUNDS["replicas"], None)
    assert [(p.name, p.expected, p.assumptions) for p in file.invariants] == [
        ("no-double-allocation", None, ()),
        ("in-flight-cleared", "violated", ("one scheduler",)),
    ]
    assert (file.expected, file.expected_repaired) == ("violated", "holds")
    assert file.limits == LimitSpec(depth=9, time_limit=1.5)


def test_inline_objects_keep_their_lines() -> None:
    first, second = read(GOOD, Path("m.yaml")).objects
    assert first.splitlines()[5:] == ["    apiVersion: v1", "    kind: Node", "    metadata:", "      name: n1"]
    assert second.splitlines()[9].strip() == "{apiVersion: v1, kind: Node, metadata: {name: n2}}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "schema: dra-spec/model/v1",
            "schema: dra-spec/model/v9",
            "m.yaml:1: schema: expected 'dra-spec/model/v1', found 'dra-spec/model/v9'",
        ),
        ("name: small", "nam: small", "m.yaml:2: unknown field 'nam'; did you mean 'name'?"),
        ("scheduler, workload", "schedular", "m.yaml:11: writers[0]: unknown writer 'schedular'; did you mean 'scheduler'?"),
        ("api-refused: 1", "api-refuse: 1", "m.yaml:12: faults: unknown fault 'api-refuse'; did you mean 'api-refused'?"),
        ("api-refused: 1", "api-refused: -2", "m.yaml:12: faults.api-refused: expected a number of at least -1, found -2"),
        ("lag: 3", "lag: 0", "m.yaml:14: bounds.lag: expected a number of at least 1, found 0"),
        ("expected: violated\nlimits", "expected: broken\nlimits", "m.yaml:18: expected: unknown verdict 'broken'"),
        ("expected: violated\nlimits", "expected: violated\ntier: daily\nlimits", "m.yaml:19: tier: unknown tier 'daily'"),
        (
            "expected: violated\nlimits",
            "engine: symbolics\nlimits",
            "m.yaml:18: engine: unknown engine 'symbolics'; did you mean 'symbolic'?",
        ),
        ("time-limit: 1.5", "time-limit: 0", "m.yaml:19: limits.time-limit: expected a number above 0, found 0"),
    ],
)
def test_mistakes_are_located(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(InputError) as error:
        read(GOOD.replace(old, new), Path("m.yaml"))
    assert str(error.value).startswith(message)


def test_a_missing_manifest_is_an_error_of_the_line_that_names_it() -> None:
    text = "schema: dra-spec/model/v1\nname: x\nmanifests:\n  - nowhere.yaml\n"
    with pytest.raises(InputError, match=r"m\.yaml:4: manifests\[0\]: no such file"):
        read(text, Path("m.yaml"))


def test_the_command_line_wins_over_the_file() -> None:
    overrides = Overrides(
        bounds={"lag": 4}, budgets={"api-refused": 2, "delete-pod": 1}, limits=LimitSpec(depth=5), variants=("x",), repaired=True
    )
    file = overrides.apply(read(GOOD, Path("m.yaml")))
    assert file.bound("lag") == 4
    assert file.budgets == {"api-refused": 2, "finish-pod": -1, "delete-pod": 1}
    assert file.limits == LimitSpec(depth=5, time_limit=1.5)
    assert (file.variants, file.repaired) == (("x",), True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lag", "expected NAME=NUMBER"),
        ("lagg=2", "did you mean 'lag'?"),
        ("lag=two", "expected a whole number of at least 1, found 'two'"),
        ("lag=0", "expected a whole number of at least 1, found '0'"),
    ],
)
def test_settings_of_the_command_line_are_checked(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_setting(text, names.BOUNDS, "--bound")
    assert message in str(error.value)


def test_every_shipped_model_can_be_read_and_is_called_like_its_file() -> None:
    models = shipped("models")
    assert len(models) >= 9
    for name, path in models.items():
        file = load(path)
        assert file.name == name
        assert file.description, name
