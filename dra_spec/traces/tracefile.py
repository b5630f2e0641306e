"""The trace file: YAML, `schema: dra-spec/trace/v1`, written so that a person can review it in a pull request, read strictly."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from dra_spec.scenario import names
from dra_spec.scenario.strict import Field, InputError, Place, parse, read_text
from dra_spec.traces.plain import Plain
from dra_spec.traces.trace import SCHEMA, Belief, Change, ModelRef, Step, Trace

_PLAIN = re.compile(r"[A-Za-z0-9_./@+][A-Za-z0-9_./@+ -]*(?<! )")
_TOP = ("schema", "command", "kubernetes", "model", "promise", "statement", "binding", "broken", "due", "loop", "steps", "believed")
_MODEL = ("name", "bounds", "budgets", "variants", "repaired", "allocation", "assertions", "files")
_STEP = ("number", "who", "action", "step", "what", "params", "outcome", "because", "changes", "believed")


def dumps(trace: Trace) -> str:
    """The trace as YAML text."""
    stream = io.StringIO()
    yaml = YAML()
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(_document(trace), stream)
    return stream.getvalue()


def save(trace: Trace, path: Path) -> None:
    """Writes a trace file; its folder is made if it is missing. Raises `InputError` if it cannot be written.

    The files of its model are written relative to its folder, so that it can be replayed from anywhere.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dumps(_with_files(trace, lambda name: os.path.relpath(name, path.parent))), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", Place(str(path))) from None


def as_data(trace: Trace) -> dict[str, Plain]:
    """The trace as plain data, the same fields as in the file (for JSON)."""
    reference = trace.model
    model: dict[str, Plain] = {"name": reference.name}
    if reference.bounds:
        model["bounds"] = dict(reference.bounds)
    if reference.budgets:
        model["budgets"] = dict(reference.budgets)
    if reference.variants:
        model["variants"] = list(reference.variants)
    if reference.repaired:
        model["repaired"] = True
    if reference.allocation:
        model["allocation"] = reference.allocation
    if reference.assertions:
        model["assertions"] = list(reference.assertions)
    if reference.files:
        model["files"] = list(reference.files)
    data: dict[str, Plain] = {"schema": SCHEMA, "command": trace.command, "kubernetes": trace.kubernetes, "model": model}
    data |= {"promise": trace.promise, "statement": trace.statement}
    if trace.binding:
        data["binding"] = dict(trace.binding)
    data["broken"] = list(trace.broken)
    if trace.due is not None and trace.loop is not None:
        data |= {"due": trace.due, "loop": trace.loop}
    data["steps"] = [_step_data(step) for step in trace.steps]
    if trace.believed:
        data["believed"] = [_belief_data(b) for b in trace.believed]
    return data


def _belief_data(b: Belief) -> Plain:
    return {"slot": b.slot, "of": b.object, "believed": b.believed, "actual": b.actual}


def _step_data(step: Step) -> Plain:
    data: dict[str, Plain] = {"number": step.number, "who": step.who, "action": step.action, "step": step.step, "what": step.what}
    data["params"] = dict(step.params)
    data["outcome"] = step.outcome
    data["because"] = [{"read": read, "found": found} for read, found in step.because]
    data["changes"] = [{"slot": c.slot, "before": c.before, "after": c.after} for c in step.changes]
    if step.believed:
        data["believed"] = [_belief_data(b) for b in step.believed]
    return data


def _document(trace: Trace) -> CommentedMap:
    data = as_data(trace)
    document = CommentedMap()
    for name, value in data.items():
        if name == "steps":
            assert isinstance(value, list)
            document[name] = CommentedSeq([_step_node(item) for item in value])
        elif name == "broken":
            document[name] = value
        elif name == "believed":
            assert isinstance(value, list)
            document[name] = CommentedSeq([_flow(item) for item in value])
        else:
            document[name] = _flow(value)
    return document


def _step_node(step: Any) -> CommentedMap:
    node = CommentedMap()
    for name, value in step.items():
        if name in ("because", "changes", "believed") and value:
            node[name] = CommentedSeq([_flow(item) for item in value])
        else:
            node[name] = _flow(value)
    return node


def _flow(value: Any) -> Any:
    if isinstance(value, str):
        return _text_node(value)
    if isinstance(value, dict):
        mapping = CommentedMap({_text_node(name): _flow(item) for name, item in value.items()})
        mapping.fa.set_flow_style()
        return mapping
    if isinstance(value, list):
        sequence = CommentedSeq([_flow(item) for item in value])
        sequence.fa.set_flow_style()
        return sequence
    return value


def _text_node(text: str) -> str:
    """Text as it is where it is plain, else in double quotes: YAML's own rules for unquoted text inside of brackets are a trap."""
    return text if _PLAIN.fullmatch(text) else DoubleQuotedScalarString(text)


def load(path: Path) -> Trace:
    """Reads a trace file; the files of its model are looked up beside it, else where they are named. Raises `InputError`, located."""
    trace = loads(read_text(path), str(path))
    beside = {name: path.parent / name for name in trace.model.files}
    return _with_files(trace, lambda name: str(beside[name]) if beside[name].exists() else name)


def _with_files(trace: Trace, change: Callable[[str], str]) -> Trace:
    return attrs.evolve(trace, model=attrs.evolve(trace.model, files=tuple(map(change, trace.model.files))))


def head(path: Path) -> tuple[Trace, int]:
    """What a trace file says before its steps, and how many there are: much quicker than `load`. Raises `InputError`."""
    text = read_text(path)
    above, mark, below = text.partition("\nsteps:")
    if not mark:
        return load(path), 0
    return loads(f"{above}\nsteps: []\n", str(path)), len(re.findall(r"^  - number: ", below, re.MULTILINE))


def loads(text: str, file: str) -> Trace:
    """Reads a trace from YAML text; `file` is named in errors."""
    root = parse(text, file)
    if not root.is_mapping:
        raise root.expected("a trace (a mapping with `schema`, `model`, `promise` and `steps`)")
    fields = root.mapping(_TOP, required=("schema", "model", "promise", "steps"))
    if fields["schema"].string() != SCHEMA:
        raise fields["schema"].expected(repr(SCHEMA))
    steps = [_step(item) for item in fields["steps"].sequence()]
    due, loop = (fields[name].integer(0) if name in fields else None for name in ("due", "loop"))
    for name, other in (("due", "loop"), ("loop", "due")):
        if name in fields and other not in fields:
            raise fields[name].error(f"expected {other} beside it: the run of a leads-to promise has both")
    if due is not None and loop is not None and due > loop:
        raise fields["loop"].error(f"expected the number of a step from {due} on, since the goal is owed from there, found {loop}")
    for number, (step, item) in enumerate(zip(steps, fields["steps"].sequence(), strict=True), 1):
        if step.number != number:
            raise item.error(f"expected step number {number}, found {step.number}")
    return Trace(
        model=_model(fields["model"]),
        promise=fields["promise"].string(),
        steps=tuple(steps),
        statement=_text(fields, "statement"),
        command=_text(fields, "command"),
        kubernetes=_text(fields, "kubernetes"),
        binding=_names(fields["binding"]) if "binding" in fields else {},
        broken=tuple(item.string() for item in fields["broken"].sequence()) if "broken" in fields else (),
        believed=tuple(_belief(item) for item in fields["believed"].sequence()) if "believed" in fields else (),
        due=due,
        loop=loop,
    )


def _text(fields: dict[str, Field], name: str) -> str:
    return fields[name].string() if name in fields else ""


def _names(field: Field) -> dict[str, str]:
    return {str(key.node.value): value.string() for key, value in field.items()}


def _model(field: Field) -> ModelRef:
    fields = field.mapping(_MODEL, required=("name",))
    return ModelRef(
        name=fields["name"].string(),
        bounds={str(k.node.value): v.integer() for k, v in fields["bounds"].items()} if "bounds" in fields else {},
        budgets={str(k.node.value): v.integer() for k, v in fields["budgets"].items()} if "budgets" in fields else {},
        variants=tuple(v.string() for v in fields["variants"].sequence()) if "variants" in fields else (),
        repaired=fields["repaired"].boolean() if "repaired" in fields else False,
        allocation=fields["allocation"].choice(names.ALLOCATIONS, "allocation") if "allocation" in fields else "",
        assertions=tuple(v.string() for v in fields["assertions"].sequence()) if "assertions" in fields else (),
        files=tuple(v.string() for v in fields["files"].sequence()) if "files" in fields else (),
    )


def _step(field: Field) -> Step:
    fields = field.mapping(_STEP, required=("number", "who", "action", "params", "outcome", "changes"))
    return Step(
        number=fields["number"].integer(1),
        who=fields["who"].string(),
        action=fields["action"].string(),
        step=_text(fields, "step"),
        what=_text(fields, "what"),
        params=_names(fields["params"]),
        outcome=fields["outcome"].string(),
        because=tuple(_read(item) for item in fields["because"].sequence()) if "because" in fields else (),
        changes=tuple(_change(item) for item in fields["changes"].sequence()),
        believed=tuple(_belief(item) for item in fields["believed"].sequence()) if "believed" in fields else (),
    )


def _read(field: Field) -> tuple[str, Plain]:
    fields = field.mapping(("read", "found"), required=("read",))
    return fields["read"].string(), _plain(fields.get("found"))


def _change(field: Field) -> Change:
    fields = field.mapping(("slot", "before", "after"), required=("slot",))
    return Change(fields["slot"].string(), _plain(fields.get("before")), _plain(fields.get("after")))


def _belief(field: Field) -> Belief:
    fields = field.mapping(("slot", "of", "believed", "actual"), required=("slot", "of"))
    believed, actual = _plain(fields.get("believed")), _plain(fields.get("actual"))
    return Belief(fields["slot"].string(), fields["of"].string(), believed, actual)


def _plain(field: Field | None) -> Plain:
    return field.plain() if field is not None else None  # type: ignore[return-value]
