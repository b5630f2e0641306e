"""Invariants: one promise each, from a YAML file or from the command line.

name: finalizer-while-allocated
statement: An allocated claim carries the delete-protection finalizer.
source: KEP-4381, ResourceClaim
kind: state                     # state, step, always-possible, deadlock-free, leads-to
cel: claims.all(c, !c.allocated || c.finalizer)
when: p.deleting                # leads-to only, instead of cel: where this holds, ...
goal: p.phase == "Succeeded"    # leads-to only: ... this holds then or later, in every run that is weakly fair to ...
fair: [protocol, timeout]       # leads-to only: ... actions of these kinds, or of these names or patterns; default as here
actions: [scheduler.*]          # step only: names or patterns of actions; default all
per: {p: pods}                  # always-possible and leads-to only: asked for each of these
without: [fault, user]          # always-possible only: kinds of actions that must not be needed on the way
needs: [scheduler]              # writers that a model must have
assumptions: {single-scheduler: ...}   # accepted windows, each with a sentence
on-request: ...                 # why a model that names no promises leaves this one out
"""

from __future__ import annotations

import enum
import fnmatch
from collections.abc import Callable, Mapping
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
DEFAULT_FAIR = (Kind.PROTOCOL.value, Kind.TIMEOUT.value)


class Promise(enum.Enum):
    """How an invariant is judged."""

    STATE = "state"  # in every state
    STEP = "step"  # on each transition of some actions
    ALWAYS_POSSIBLE = "always-possible"  # from every state the goal can be reached
    DEADLOCK_FREE = "deadlock-free"  # each state without a next step satisfies it
    LEADS_TO = "leads-to"  # whenever one thing holds, another will, in all weakly fair runs


@attrs.frozen(eq=False)
class Head:
    """What can be said of a promise before its expressions are read: what it is, and which models it is for."""

    name: str
    statement: str
    source: tuple[str, ...]
    kind: Promise
    needs: frozenset[str] = frozenset()
    assumptions: Mapping[str, str] = attrs.field(factory=dict)
    on_request: str = ""


@attrs.frozen(eq=False, kw_only=True)
class Invariant(Head):
    """A promise. `quantifiers`: how many outermost `all` of the program, and of `when`, come from `per`.

    Of kind leads-to: `program` is the goal, `when` says where it is owed, `fair` lists kinds and patterns of names of actions.
    """

    program: Program
    actions: tuple[str, ...] = ("*",)
    quantifiers: int = 0
    without: frozenset[Kind] = DEFAULT_WITHOUT
    when: Program | None = None
    fair: tuple[str, ...] = DEFAULT_FAIR

    @staticmethod
    def adhoc(text: str, name: str = "--assert") -> Invariant:
        """A state invariant from the command line. Raises `InvariantError`."""
        program = load(text, WORLD, Origin("--assert"))
        _want_bool(program)
        statement = f"given on the command line: {' '.join(text.split())}"
        return Invariant(name, statement, (), Promise.STATE, needs=writers_read(program), program=program)

    def applies_to(self, action: str) -> bool:
        """Whether a step invariant judges the steps of an action."""
        return any(fnmatch.fnmatchcase(action, pattern) for pattern in self.actions)

    def is_fair_to(self, action: str, kind: Kind) -> bool:
        """Whether a leads-to promise counts on an action: enabled all the time, it is taken some time."""
        return kind.value in self.fair or any("." in item and fnmatch.fnmatchcase(action, item) for item in self.fair)


def from_file(path: Path) -> Invariant:
    """Loads an invariant. Raises `InvariantError` with file, line, what was found and what was expected."""
    document = _read(path)
    return _whole(document, _head(document, path))


def _read(path: Path) -> Document:
    return read(path, required=_REQUIRED, optional=_OPTIONAL, instead={Promise.LEADS_TO.value: _LEADS_TO})


def _head(document: Document, path: Path) -> Head:
    name, kind_field = document.text("name"), document.field("kind")
    if name != path.stem:
        document.fail("name", f"is {name}, expected the name of the file, {path.stem}")
    kinds = {promise.value: promise for promise in Promise}
    if kind_field.value not in kinds:
        document.fail("kind", f"unknown kind {kind_field.value}, {expected(str(kind_field.value), kinds)}")
    kind = kinds[str(kind_field.value)]
    for field, of in _OF_KIND.items():
        if document.has(field) and kind not in of:
            document.fail(field, f"belongs to kind {' or '.join(each.value for each in of)} only, this is {kind.value}")
    if kind is Promise.LEADS_TO and document.has("cel"):
        document.fail("cel", "belongs to the other kinds, expected when and goal in a leads-to")
    return Head(
        name,
        document.text("statement"),
        tuple(document.texts("source")),
        kind,
        frozenset(document.names("needs", _WRITERS)) if document.has("needs") else frozenset(),
        document.known_texts("assumptions") if document.has("assumptions") else {},
        document.text("on-request") if document.has("on-request") else "",
    )


def _whole(document: Document, head: Head) -> Invariant:
    leads = head.kind is Promise.LEADS_TO
    per = document.texts_by_name("per") if document.has("per") else {}
    program = _program(document, "goal" if leads else "cel", head.kind, per)
    when = _program(document, "when", head.kind, per) if leads else None
    missing = sorted((writers_read(program) | (writers_read(when) if when is not None else frozenset())) - head.needs)
    if missing:
        field = "needs" if document.has("needs") else "goal" if leads else "cel"
        document.fail(field, f"the expression reads what the {missing[0]} owns, expected {missing[0]} among needs")
    without = {kind.value: kind for kind in Kind if kind is not Kind.PROTOCOL}
    return Invariant(
        **attrs.asdict(head, recurse=False),
        program=program,
        actions=tuple(document.texts("actions")) if document.has("actions") else ("*",),
        quantifiers=len(per),
        without=frozenset(without[name] for name in document.names("without", without)) if document.has("without") else DEFAULT_WITHOUT,
        when=when,
        fair=_fair(document) if document.has("fair") else DEFAULT_FAIR,
    )


_REQUIRED = ("name", "statement", "source", "kind", "cel")
_LEADS_TO = ("when", "goal")
_OPTIONAL = ("actions", "per", "without", "fair", "needs", "assumptions", "on-request")
_OF_KIND = {
    "actions": (Promise.STEP,),
    "per": (Promise.ALWAYS_POSSIBLE, Promise.LEADS_TO),
    "without": (Promise.ALWAYS_POSSIBLE,),
    "when": (Promise.LEADS_TO,),
    "goal": (Promise.LEADS_TO,),
    "fair": (Promise.LEADS_TO,),
}
_WRITERS = ("scheduler", "claim-controller", "apiserver", "driver-controller", "kubelet", "plugin", "workload")


def _fair(document: Document) -> tuple[str, ...]:
    """Kinds of actions, and names or patterns of actions, which have a dot."""
    kinds = [kind.value for kind in Kind]
    items = document.texts("fair")
    for item in items:
        if item not in kinds and "." not in item:
            document.fail("fair", f"unknown kind {item}, {expected(item, kinds)}, or names of actions such as kubelet.*")
    return tuple(items)


def _program(document: Document, of: str, kind: Promise, per: Mapping[str, Field]) -> Program:
    """The expression of a field; with `per`, wrapped in one `all` for each variable."""
    world = STEP_WORLD if kind is Promise.STEP else WORLD
    cel = document.field(of)
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


def load_all(folder: Path | None = None, wanted: Callable[[Head], bool] = lambda head: True) -> dict[str, Invariant]:
    """The shipped invariants (or those of a folder) by name, in order of names. Raises `InvariantError`.

    `wanted`: of the others the expressions are not read, which would take most of the time.
    """
    found = {}
    for path in sorted((folder or directory("invariants")).glob("*.yaml")):
        document = _read(path)
        if wanted(head := _head(document, path)):
            found[head.name] = _whole(document, head)
    return found


def find(name: str, folder: Path | None = None) -> Invariant:
    """The invariant of that name, or in that file (if the name ends in .yaml). Raises `InvariantError` with the nearest known name."""
    if name.endswith((".yaml", ".yml")):
        return from_file(Path(name))
    folder = folder or directory("invariants")
    if not (folder / f"{name}.yaml").is_file():
        raise InvariantError(f"unknown invariant {name}, {expected(name, (path.stem for path in folder.glob('*.yaml')))}")
    return from_file(folder / f"{name}.yaml")
