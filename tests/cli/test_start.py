"""What a command loads: nothing that it has no use for. (How long that takes is measured by benchmarks/start.py.)"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

from dra_spec.cli import main
from dra_spec.content import directory
from dra_spec.explorer.kernel_place import place

COMPILERS = ("numba", "llvmlite")
SOLVERS = ("z3", "oxidd")
ENGINES = (*COMPILERS, "oxidd", "numpy", "dra_spec.explorer.check")
GRAMMAR_ONLY = ("celpy",)  # its grammar is read, it is not loaded
OURS = tuple(f"dra_spec.{name}" for name in ("explorer", "scenario", "resources", "protocol", "traces", "reference"))
REDUCING = tuple(f"dra_spec.explorer.{name}" for name in ("narrowed", "por", "beside", "stubborn", "symmetry", "audit"))
UNUSED = ("importlib.metadata", "rich", "dra_spec.reference", "dra_spec.traces", "dra_spec.selectors.cost", *REDUCING)
_SHOW = """
import sys
from dra_spec.cli.main import main
try:
    main(prog_name="dra-spec")
except SystemExit as end:
    print(end.code or 0, *sys.modules, file=sys.stderr)
"""


def loaded(*arguments: str) -> set[str]:
    """The modules that are there when a command has ended."""
    done = subprocess.run([sys.executable, "-c", _SHOW, *arguments], capture_output=True, text=True, check=True)
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code in ("0", "1"), done.stderr
    return set(modules)


MANIFESTS = [str(directory("models") / "manifests" / name) for name in ("one-node-one-device.yaml", "two-pods.yaml")]
TRACE = str(directory("counterexamples") / "two-schedulers--no-double-allocation.yaml")


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], [*ENGINES, *SOLVERS, *OURS, "rich", "ruamel", "attrs"]),
        (["--version"], [*ENGINES, *SOLVERS, *OURS, "rich", "ruamel", "attrs"]),
        (["check", "--help"], [*ENGINES, *SOLVERS, "rich", "dra_spec.resources", "dra_spec.protocol", "dra_spec.traces"]),
        (["list"], [*ENGINES, *SOLVERS, "dra_spec.reference"]),
        (["describe", "h1"], [*ENGINES, *SOLVERS, "dra_spec.reference"]),
        (["replay", TRACE], [*ENGINES, *SOLVERS]),
        (["allocate", *MANIFESTS], [*ENGINES, "dra_spec.explorer", "dra_spec.protocol"]),
        (["explain", *MANIFESTS], [*ENGINES, "dra_spec.explorer", "dra_spec.protocol"]),
    ],
)
def test_what_does_not_search_loads_no_engine(arguments: list[str], unwanted: list[str]) -> None:
    assert not loaded(*arguments) & {*unwanted, *GRAMMAR_ONLY}


def test_a_search_loads_what_it_needs() -> None:
    assert place() is not None, "the machine code of the kernels has no place on this machine"
    loaded("check", "node-reboot")  # compiles what was not compiled before
    found = loaded("check", "node-reboot")
    assert {"numpy", "llvmlite"} <= found
    assert not found & {"numba", *SOLVERS, *GRAMMAR_ONLY, *UNUSED}


def test_the_names_are_those_of_modules() -> None:
    for name in {*ENGINES, *SOLVERS, *GRAMMAR_ONLY, *OURS, *UNUSED, "rich", "ruamel", "attrs"}:
        assert find_spec(name) is not None, name


def test_the_symbolic_engine_is_loaded_when_it_is_asked_for() -> None:
    assert {"oxidd", "dra_spec.explorer.symbolic"} <= loaded("check", "node-reboot", "--engine", "symbolic")


def test_each_command_has_a_line_in_the_help() -> None:
    for name, (module, said) in main._COMMANDS.items():
        found = main.main.get_command(None, name)  # type: ignore[arg-type]
        assert (found.name, found.callback.__module__) == (name, f"dra_spec.cli.{module}")
        assert said.endswith(".")
        assert found.help
