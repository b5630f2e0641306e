"""Both engines on the shipped models, and what the command line makes of engines and audit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dra_spec.cli.main import main
from dra_spec.explorer import EngineError, audit, explore
from dra_spec.explorer.auto import choose
from dra_spec.scenario import targets
from dra_spec.scenario.modelfile import Overrides
from dra_spec.scenario.targets import scenarios

SMALL = ["kubelet-restart", "node-reboot", "plugin-restart", "two-schedulers"]
OTHERS = ["binding-conditions", "bound-by-hand", "force-deleted", "h1", "shared-on-node", "single-pod", "touched-claim", "two-pods"]
# every copy of an object hangs on every other: an order of variables is worked out from a sample of their states
COUPLED = ["device-order+repaired", "opposite-order+repaired", "recreated-claim", "two-nodes"]
LARGE = ["device-order", "fair-release", "half-allocated+repaired", "template-claim"]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments), prog_name="dra-spec")


def marked(names: list[str], mark: pytest.MarkDecorator) -> list[Any]:
    return [pytest.param(name, marks=mark) for name in names]


@pytest.mark.parametrize("name", [*SMALL, *marked(OTHERS + COUPLED, pytest.mark.full), *marked(LARGE, pytest.mark.nightly)])
def test_symbolic_agrees_with_explicit(name: str) -> None:
    (scenario,) = scenarios([name.removesuffix("+repaired")], Overrides(repaired=name.endswith("+repaired")))
    one, other = explore(scenario.model, audit=name in SMALL + OTHERS), explore(scenario.model, engine="symbolic")
    for attribute in ("states", "transitions", "stuck", "unexpanded", "complete", "stopped", "verdict", "actions", "warnings"):
        assert getattr(other, attribute) == getattr(one, attribute), attribute
    for found, again in zip(one.properties, other.properties, strict=True):
        assert (again.promise, again.verdict, again.vacuous, again.reason) == (found.promise, found.verdict, found.vacuous, found.reason)
        assert (None if again.trace is None else len(again.trace)) == (None if found.trace is None else len(found.trace))


def test_check_with_decision_diagrams() -> None:
    """Counterexamples of the second engine replay on the reference as those of the first do."""
    done = call("check", "kubelet-restart", "--engine", "symbolic", "--audit", "-o", "json")
    assert done.exit_code == 0, done.output
    (model,) = json.loads(done.stdout)["models"]
    assert (model["engine"], model["verdict"], model["states"]) == ("symbolic", "violated", 1155)
    assert "kubelet-restart: audit passed: " in done.stderr


def test_check_says_what_auto_chose() -> None:
    done = call("check", "node-reboot", "--engine", "auto")
    assert done.exit_code == 0, done.output
    assert "node-reboot: engine explicit: " in done.stderr


def test_a_model_says_which_engine_fits_and_when_it_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three nodes are parts that share little, which rooms show; a model of the nightly tier is checked only when it is named."""
    (scenario,) = scenarios(["three-nodes"], Overrides())
    assert (scenario.file.engine, scenario.file.tier) == ("auto", "nightly")
    engine, why = choose(scenario.model)
    assert engine == "symbolic"
    assert why.startswith("3 parts meet only in api, budget, which is ")
    (coupled,) = scenarios(["two-nodes"], Overrides())  # one scheduler knows both
    assert choose(coupled.model)[0] == "explicit"
    known = {name: path for name, path in targets.shipped("models").items() if name in ("three-nodes", "two-nodes")}
    monkeypatch.setattr(targets, "shipped", lambda _: known)
    assert [scenario.name for scenario in scenarios([], Overrides())] == ["two-nodes"]


@pytest.mark.nightly
def test_the_largest_model_is_decided() -> None:
    """More states than could be stored; one node alone has some hundred, and what may happen once couples them."""
    done = call("check", "three-nodes", "-o", "json")
    assert done.exit_code == 0, done.output
    (model,) = json.loads(done.stdout)["models"]
    assert (model["engine"], model["verdict"], model["states"]) == ("symbolic", "holds", 435_562_820)


def test_nodes_that_share_nothing_multiply() -> None:
    """Plugins that may die, and nothing that is counted: 154 states of a node with its pod, 2 of one without (its plugin is up or not)."""
    budgets = {"kubelet-crash": 0, "delete-pod": 0}
    counts = []
    for pods in (1, 2):
        (scenario,) = scenarios(["three-nodes"], Overrides(bounds={"pods": pods}, budgets=budgets, repaired=True))
        result = explore(scenario.model, engine="symbolic")
        assert result.verdict == "holds"
        counts.append(result.states)
    assert counts == [154 * 2 * 2, 154**2 * 2]


def test_a_failed_audit_is_exit_code_4(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object) -> None:
        raise EngineError("audit: kubelet.step() depends on a slot, which it did not read")

    monkeypatch.setattr(audit.Auditor, "run", fail)
    done = call("check", "node-reboot", "--audit")
    assert done.exit_code == 4
    assert "audit: kubelet.step() depends on a slot" in done.stderr
    assert call("check", "node-reboot").exit_code == 0


def test_depth_is_a_dash_where_it_is_not_known() -> None:
    done = call("check", "plugin-restart", "--engine", "symbolic")
    assert done.exit_code == 0, done.output
    assert " -1 " not in done.stdout
    assert "2,243      -" in done.stdout
