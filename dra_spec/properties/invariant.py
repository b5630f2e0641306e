"""Invariants: one promise each, from a YAML file or from the command line.

name: finalizer-while-allocated
statement: An allocated claim carries the delete-protection finalizer.
source: KEP-4381, ResourceClaim
kind: state                     # state, step, always-possible, deadlock-free (leads-to is known and not supported yet)
cel: claims.all(c, !c.allocated || c.finalizer)
actions: [scheduler.*]          # step only: names or patterns of actions; default all
per: {p: pods}                  # always-possible only: the goal is asked for each of these
without: [fault, user]          # always-possible only: kinds of actions that must not be needed on the way
needs: [scheduler]              # writers that a model must have
assumptions: {single-scheduler: ...}   # accepted windows, each with a sentence
on-request: ...                 # why a model that names no promises leaves this one out
"""

from __future__ import annotations

import enum
import fnmatch
from collections.abc import Mapping
from pathlib import Path

import attrs

from dra_spec.content import directory
from dra_spec.explorer.model import Kind
from dra_spec.properties import nodes as n
from dra_spec.properties.cel import Program, load
from dra_spec.properties.errors import InvariantError, Origin, expected, pointed
from dra_spec.properties.schema import BOOL, STEP_WORLD, WORLD, ListType, ObjectType, Type
from dra_spec.properties.yamlfile import Document, Field, read

DEFAULT_WITHOUT = frozenset({Kind.FAULT, Kind.USER})


class Promise(enum.Enum):
    """How an invariant is judged."""

    STATE = "state"  # in every state
    STEP = "step"  # on each transition of some actions
    ALWAYS_POSSIBLE = "always-possible"  # from every state the goal can be reached
    DEADLOCK_FREE = "deadlock-free"  # each state without a next step satisfies it
    LEADS_TO = "leads-to"  # under fairness; not supported yet


@attrs.frozen(eq=False)
class Invariant:
    """A promise. `quantifiers`: how many outermost `all` of the program come from `per`."""

    name: str
    statement: str
    source: tuple[str, ...]
    kind: Promise
    program: Program
    actions: tuple[str, ...] = ("*",)
    quantifiers: int = 0
    without: frozenset[Kind] = DEFAULT_WITHOUT
    needs: frozenset[str] = frozenset()
    assumptions: Mapping[str, str] = attrs.field(factory=dict)
    on_request: str = ""

    @staticmethod
    def adhoc(text: str, name: str = "--assert") -> Invariant:
        """A state invariant from the command line. Raises `InvariantError`."""
        program = load(text, WORLD, Origin("--assert"))
        _want_bool(program)
        return Invariant(
            name, f"given on the command line: {' '.join(text.split())}", (), Promise.STATE, program, needs=writers_read(program)
        )

    def applies_to(self, action: str) -> bool:
        """Whether a step invariant judges the steps of an action."""
        return any(fnmatch.fnmatchcase(action, pattern) for pattern in self.actions)


def from_file(path: Path) -> Invariant:
    """Loads an invariant. Raises `InvariantError` with file, line, what was found and what was expected."""
    document = read(path, required=_REQUIRED, optional=_OPTIONAL)
    name, kind_field = document.text("name"), document.field("kind")
    if name != path.stem:
        document.fail("name", f"is {name}, expected the name of the file, {path.stem}")
    kinds = {promise.value: promise for promise in Promise}
    if kind_field.value not in kinds:
        document.fail("kind", f"unknown kind {kind_field.value}, {expected(str(kind_field.value), kinds)}")
    kind = kinds[str(kind_field.value)]
    for field, of in (("actions", Promise.STEP), ("per", Promise.ALWAYS_POSSIBLE), ("without", Promise.ALWAYS_POSSIBLE)):
        if document.has(field) and kind is not of:
            document.fail(field, f"belongs to kind {of.value} only, this is {kind.value}")
    per = document.texts_by_name("per") if document.has("per") else {}
    program = _program(document, kind, per)
    needs = frozenset(document.names("needs", _WRITERS)) if document.has("needs") else frozenset()
    missing = sorted(writers_read(program) - needs)
    if missing:
        field = "needs" if document.has("needs") else "cel"
        document.fail(field, f"the expression reads what the {missing[0]} owns, expected {missing[0]} among needs")
    without = {kind.value: kind for kind in Kind if kind is not Kind.PROTOCOL}
    return Invariant(
        name,
        document.text("statement"),
        tuple(document.texts("source")),
        kind,
        program,
        tuple(document.texts("actions")) if document.has("actions") else ("*",),
        len(per),
        frozenset(without[name] for name in document.names("without", without)) if document.has("without") else DEFAULT_WITHOUT,
        needs,
        document.known_texts("assumptions") if document.has("assumptions") else {},
        document.text("on-request") if document.has("on-request") else "",
    )


_REQUIRED = ("name", "statement", "source", "kind", "cel")
_OPTIONAL = ("actions", "per", "without", "needs", "assumptions", "on-request")
_WRITERS = ("scheduler", "claim-controller", "apiserver", "driver-controller", "kubelet", "plugin", "workload")


def _program(document: Document, kind: Promise, per: Mapping[str, Field]) -> Program:
    """The expression; with `per`, wrapped in one `all` for each variable."""
    world = STEP_WORLD if kind is Promise.STEP else WORLD
    cel = document.field("cel")
    variables: dict[str, tuple[int, Type]] = {}
    head = ""
    for name, field in per.items():
        if not name.isidentifier() or name in world.fields:
            raise InvariantError(f"{field.origin.place(1, 1)}: per: {name} cannot be the name of a variable")
        part = load(str(field.value), world, field.origin, variables)
        listed = part.root.type
        if not isinstance(listed, ListType) or not isinstance(listed.element, ObjectType):
            raise InvariantError(pointed(f"per: expected a list of objects, found {listed}", part.text, field.origin, 1, 1))
        variables[name] = (len(variables) + 1, listed.element)
        head += f"{part.text.strip()}.all({name},\n"
    program = load(str(cel.value), world, cel.origin, variables)
    _want_bool(program)
    return load(f"{head}{program.text}\n{')' * len(per)}", world, cel.origin) if per else program


def _want_bool(program: Program) -> None:
    if program.root.type != BOOL:
        raise InvariantError(pointed(f"an invariant is true or false, found {program.root.type}", program.text, program.origin, 1, 1))


def writers_read(program: Program) -> frozenset[str]:
    """The writers whose own state an expression reads."""
    found = set()
    for node in n.walk(program.root):
        type_ = node.type.element if isinstance(node.type, ListType) else node.type
        if isinstance(type_, ObjectType) and type_.section is not None:
            found.add(type_.section)
    return frozenset(found)


def load_all(folder: Path | None = None) -> dict[str, Invariant]:
    """The shipped invariants (or those of a folder) by name, in order of names. Raises `InvariantError`."""
    paths = sorted((folder or directory("invariants")).glob("*.yaml"))
    return {path.stem: from_file(path) for path in paths}


def find(name: str, folder: Path | None = None) -> Invariant:
    """The invariant of that name, or in that file (if the name ends in .yaml). Raises `InvariantError` with the nearest known name."""
    if name.endswith((".yaml", ".yml")):
        return from_file(Path(name))
    folder = folder or directory("invariants")
    if not (folder / f"{name}.yaml").is_file():
        raise InvariantError(f"unknown invariant {name}, {expected(name, (path.stem for path in folder.glob('*.yaml')))}")
    return from_file(folder / f"{name}.yaml")
