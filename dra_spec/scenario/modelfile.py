"""Model files: which manifests, writers, faults and bounds a bounded model is made of, and what is expected of it.

The file is YAML, `schema: dra-spec/model/v1`; models/README.md lists the fields. Reading is strict: an unknown field or name is an
`InputError` with file and line.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from dra_spec.scenario import names
from dra_spec.scenario.strict import Field, InputError, Place, nearest, parse, read_text

SCHEMA = "dra-spec/model/v1"

_FIELDS = (
    "schema", "name", "description", "manifests", "objects", "release", "writers", "features", "faults", "environment", "bounds",
    "node-choice", "allocation", "created-later", "invariants", "shows", "variants", "repaired", "violates", "expected",
    "expected-repaired", "engine", "tier", "limits",
)  # fmt: skip
_ENGINES = ("explicit", "symbolic", "auto")
_TIERS = ("always", "nightly")
_LIMITS = ("depth", "max-states", "time-limit", "memory")


@attrs.frozen
class Promise:
    """An invariant as a model asks for it: its name, the named assumptions made, and the verdict expected (None: the model's)."""

    name: str
    assumptions: tuple[str, ...] = ()
    expected: str | None = None
    place: Place | None = attrs.field(default=None, eq=False)


@attrs.frozen
class LimitSpec:
    """Limits of a search: depth in steps, number of states, seconds, memory in MB; None = no limit."""

    depth: int | None = None
    max_states: int | None = None
    time_limit: float | None = None
    memory: int | None = None

    def override(self, other: LimitSpec) -> LimitSpec:
        """This one with what `other` sets taken over."""
        return attrs.evolve(self, **{k: v for k, v in attrs.asdict(other).items() if v is not None})


@attrs.frozen
class ModelFile:
    """One model file as read; paths of manifests are resolved, nothing of Kubernetes is read yet."""

    name: str
    description: str = ""
    path: Path | None = None
    manifests: tuple[Path, ...] = ()
    objects: tuple[str, ...] = ()  # inline documents as text, each on the lines that it has in the file
    release: str = "1.37"
    writers: tuple[str, ...] = names.WRITERS
    features: Mapping[str, bool] = attrs.field(factory=dict)
    faults: Mapping[str, int] = attrs.field(factory=dict)
    environment: Mapping[str, int] = attrs.field(factory=dict)
    bounds: Mapping[str, int] = attrs.field(factory=dict)
    created_later: tuple[str, ...] = ()
    invariants: tuple[Promise, ...] = ()  # none named: all that the writers allow
    shows: tuple[str, ...] = ()  # variants that this model is the place to see
    variants: tuple[str, ...] = ()
    repaired: bool = False
    any_node: bool = False
    allocation: str = "upstream"  # or "any": every feasible one
    violates: tuple[str, ...] = ()  # promises that Kubernetes as released breaks here
    expected: str = "holds"
    expected_repaired: str = "holds"
    engine: str = "explicit"
    tier: str = "always"  # nightly: takes longer, so it is checked only when it is named
    limits: LimitSpec = LimitSpec()

    @property
    def budgets(self) -> dict[str, int]:
        return {**self.environment, **self.faults}

    def bound(self, name: str) -> int | None:
        return self.bounds.get(name, names.DEFAULT_BOUNDS.get(name))


def load(path: Path) -> ModelFile:
    """Reads a model file. Raises `InputError`."""
    return read(read_text(path), path)


def read(text: str, path: Path) -> ModelFile:
    """A model file from its text; manifests are looked up beside `path`. Raises `InputError`."""
    root = parse(text, str(path))
    if not root.is_mapping:
        raise root.expected("a model file (a mapping with `schema` and `name`)")
    fields = root.mapping(_FIELDS, required=("schema", "name"))
    if fields["schema"].string() != SCHEMA:
        raise fields["schema"].expected(f"{SCHEMA!r}")
    base = path.parent
    given: dict[str, Any] = {"name": fields["name"].string(), "path": path}
    if "manifests" in fields:
        given["manifests"] = tuple(_manifest(item, base) for item in fields["manifests"].sequence())
    if "objects" in fields:
        given["objects"] = tuple(_object(item, text) for item in fields["objects"].sequence())
    if "writers" in fields:
        given["writers"] = tuple(item.choice(names.WRITERS, "writer") for item in fields["writers"].sequence())
    if "release" in fields:
        given["release"] = fields["release"].choice(names.RELEASES, "release")
    if "features" in fields:
        given["features"] = {_known(key, names.FEATURES, "feature"): value.boolean() for key, value in fields["features"].items()}
    for field, table, what in (("faults", names.FAULTS, "fault"), ("environment", names.ENVIRONMENT, "environment event")):
        if field in fields:
            given[field] = {_known(key, table, what): value.integer(least=-1) for key, value in fields[field].items()}
    if "bounds" in fields:
        given["bounds"] = {_known(key, names.BOUNDS, "bound"): value.integer(least=1) for key, value in fields["bounds"].items()}
    if "created-later" in fields:
        given["created_later"] = tuple(item.string() for item in fields["created-later"].sequence())
    if "invariants" in fields:
        given["invariants"] = tuple(_promise(item) for item in fields["invariants"].sequence())
    for field in ("shows", "variants", "violates"):
        if field in fields:
            given[field] = tuple(item.string() for item in fields[field].sequence())
    if "node-choice" in fields:
        given["any_node"] = fields["node-choice"].choice(("first", "any"), "node choice") == "any"
    if "allocation" in fields:
        given["allocation"] = fields["allocation"].choice(names.ALLOCATIONS, "allocation")
    if "repaired" in fields:
        given["repaired"] = fields["repaired"].boolean()
    for field in ("expected", "expected-repaired"):
        if field in fields:
            given[field.replace("-", "_")] = fields[field].choice(names.VERDICTS, "verdict")
    if "engine" in fields:
        given["engine"] = fields["engine"].choice(_ENGINES, "engine")
    if "tier" in fields:
        given["tier"] = fields["tier"].choice(_TIERS, "tier")
    if "limits" in fields:
        given["limits"] = _limits(fields["limits"])
    if "description" in fields:
        given["description"] = " ".join(fields["description"].string().split())
    if not given.get("manifests") and not given.get("objects"):
        raise root.error("a model needs `manifests` (files) or `objects` (documents)")
    return ModelFile(**given)


def _known(key: Field, table: Mapping[str, str], what: str) -> str:
    return key.choice(table, what)


def _manifest(item: Field, base: Path) -> Path:
    path = base / item.string()
    if not path.exists():
        raise item.error(f"no such file or directory: {path}")
    return path


def _object(item: Field, text: str) -> str:
    """The text of an inline document, blank lines before it, so that a message about it names the line of the model file."""
    if not item.is_mapping:
        raise item.expected("a Kubernetes object")
    start, end = item.node.start_mark, item.node.end_mark
    lines = text.splitlines()
    last = end.line if end.column == 0 else end.line + 1
    cut = [" " * start.column + lines[start.line][start.column :], *lines[start.line + 1 : last]]
    kept = [line for line in cut if len(line) - len(line.lstrip()) >= start.column or not line.strip()]
    return "\n" * int(start.line) + "\n".join(kept) + "\n"


def _promise(item: Field) -> Promise:
    if not item.is_mapping:
        return Promise(item.string(), place=item.place)
    fields = item.mapping(("name", "assumptions", "expected"), required=("name",))
    assumptions = tuple(a.string() for a in fields["assumptions"].sequence()) if "assumptions" in fields else ()
    expected = fields["expected"].choice(names.VERDICTS, "verdict") if "expected" in fields else None
    return Promise(fields["name"].string(), assumptions, expected, item.place)


def _limits(item: Field) -> LimitSpec:
    fields = item.mapping(_LIMITS)
    return LimitSpec(
        depth=fields["depth"].integer(1) if "depth" in fields else None,
        max_states=fields["max-states"].integer(1) if "max-states" in fields else None,
        time_limit=fields["time-limit"].number() if "time-limit" in fields else None,
        memory=fields["memory"].integer(1) if "memory" in fields else None,
    )


@attrs.frozen
class Overrides:
    """What the command line changes in a model file."""

    bounds: Mapping[str, int] = attrs.field(factory=dict)
    budgets: Mapping[str, int] = attrs.field(factory=dict)
    limits: LimitSpec = LimitSpec()
    variants: tuple[str, ...] = ()
    repaired: bool = False
    allocation: str = ""  # "": as the file says
    invariants: tuple[str, ...] = ()
    assertions: tuple[str, ...] = ()  # CEL given with --assert

    def apply(self, file: ModelFile) -> ModelFile:
        """The model file with the overrides taken over."""
        faults = {**file.faults, **{k: v for k, v in self.budgets.items() if k in names.FAULTS}}
        environment = {**file.environment, **{k: v for k, v in self.budgets.items() if k in names.ENVIRONMENT}}
        return attrs.evolve(
            file,
            bounds={**file.bounds, **self.bounds},
            faults=faults,
            environment=environment,
            limits=file.limits.override(self.limits),
            variants=(*file.variants, *self.variants),
            repaired=file.repaired or self.repaired,
            allocation=self.allocation or file.allocation,
        )


def parse_setting(text: str, known: Mapping[str, str], option: str) -> tuple[str, int]:
    """`NAME=NUMBER` of an option such as `--bound lag=4`. Raises `InputError`."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"{option} {text}: expected NAME=NUMBER, for example {next(iter(known))}=1")
    if name not in known:
        raise InputError(f"{option} {text}: unknown name {name!r}{nearest(name, known)}")
    least = 1 if option == "--bound" else names.WITHOUT_LIMIT
    try:
        number = int(value)
    except ValueError:
        number = least - 1
    if number < least:
        raise InputError(f"{option} {text}: expected a whole number of at least {least}, found {value!r}")
    return name, number
