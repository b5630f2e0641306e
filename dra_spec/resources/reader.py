"""Reading manifests: files, directories and texts to API objects. See `load`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import attrs

from dra_spec.resources import convert
from dra_spec.resources.claims import ResourceClaim, ResourceClaimTemplate
from dra_spec.resources.core import Namespace, Node, Pod, PodGroup
from dra_spec.resources.decode import Context, Failed, nearest, read_object
from dra_spec.resources.meta import Source
from dra_spec.resources.pools import pools_that_disagree
from dra_spec.resources.problems import ManifestError, Problem, Where
from dra_spec.resources.slices import ApiObject, DeviceClass, DeviceTaintRule, ResourceSlice
from dra_spec.resources.tree import MAX_BYTES, read_documents
from dra_spec.resources.tree import Node as Tree
from dra_spec.resources.workloads import WORKLOADS, Workload, expand, read_workload

SUFFIXES = (".yaml", ".yml", ".json")
MAX_REPLICAS = 4
MAX_FILES = 10_000

_RESOURCE_KINDS: dict[str, type[ApiObject]] = {
    c.KIND: c for c in (DeviceClass, ResourceSlice, ResourceClaim, ResourceClaimTemplate, DeviceTaintRule)
}
_CORE_KINDS: dict[tuple[str, str], type[ApiObject]] = {
    ("", "Pod"): Pod,
    ("", "Node"): Node,
    ("", "Namespace"): Namespace,
    ("scheduling.k8s.io", "PodGroup"): PodGroup,
}
_CLASSIC_KINDS = ("ResourceClass", "PodSchedulingContext", "PodScheduling", "ResourceClaimParameters", "ResourceClassParameters")
_T = TypeVar("_T", bound=ApiObject)


@attrs.frozen
class Loaded:
    """What was read: objects in the order of the files, and what is odd about them."""

    objects: tuple[ApiObject, ...]
    warnings: tuple[Problem, ...] = ()

    def of(self, kind: type[_T]) -> tuple[_T, ...]:
        """The objects of one kind, in order."""
        return tuple(o for o in self.objects if isinstance(o, kind))

    @property
    def classes(self) -> tuple[DeviceClass, ...]:
        return self.of(DeviceClass)

    @property
    def slices(self) -> tuple[ResourceSlice, ...]:
        return self.of(ResourceSlice)

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        return self.of(ResourceClaim)

    @property
    def templates(self) -> tuple[ResourceClaimTemplate, ...]:
        return self.of(ResourceClaimTemplate)

    @property
    def taint_rules(self) -> tuple[DeviceTaintRule, ...]:
        return self.of(DeviceTaintRule)

    @property
    def pods(self) -> tuple[Pod, ...]:
        return self.of(Pod)

    @property
    def pod_groups(self) -> tuple[PodGroup, ...]:
        return self.of(PodGroup)

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.of(Node)

    @property
    def namespaces(self) -> tuple[Namespace, ...]:
        return self.of(Namespace)


def load(paths: Iterable[str | os.PathLike[str]], *, max_replicas: int = MAX_REPLICAS) -> Loaded:
    """Read files and directories (recursively: *.yaml, *.yml, *.json) as one set of objects.

    Pods of workloads are unfolded, at most `max_replicas` each. Raises ManifestError with all problems found.
    """
    texts: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for path in paths:
        for file in _files(Path(path), problems):
            text = _text(file, problems)
            if text is not None:
                texts.append((str(file), text))
    return _load(texts, max_replicas, problems)


def load_text(text: str, *, file: str = "<text>", max_replicas: int = MAX_REPLICAS) -> Loaded:
    """Read one text, as `load` reads a file. Raises ManifestError."""
    return _load([(file, text)], max_replicas, [])


def _files(path: Path, problems: list[Problem]) -> Sequence[Path]:
    if path.is_dir():
        visible = (p for p in path.rglob("*") if not any(part.startswith(".") for part in p.relative_to(path).parts))
        found = sorted(p for p in visible if p.suffix in SUFFIXES and p.is_file())
        if not found:
            problems.append(
                Problem("DRA121", f"the directory holds no manifests ({', '.join('*' + s for s in SUFFIXES)})", Where(str(path)))
            )
        if len(found) > MAX_FILES:
            problems.append(Problem("DRA104", f"more than {MAX_FILES} manifests in the directory", Where(str(path))))
            return ()
        return found
    if not path.exists():
        problems.append(Problem("DRA122", "no such file or directory", Where(str(path))))
        return ()
    if not path.is_file():
        problems.append(Problem("DRA122", "not a regular file", Where(str(path))))
        return ()
    return (path,)


def _text(file: Path, problems: list[Problem]) -> str | None:
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        problems.append(Problem("DRA122", f"cannot be read: {error.strerror}", Where(str(file))))
        return None
    if len(data) > MAX_BYTES:
        problems.append(Problem("DRA104", f"the file is larger than {MAX_BYTES // 1024 // 1024} MiB", Where(str(file))))
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        problems.append(Problem("DRA101", "not YAML: the text is not UTF-8", Where(str(file), line)))
        return None


def _load(texts: Sequence[tuple[str, str]], max_replicas: int, problems: list[Problem]) -> Loaded:
    reading = _Reading(problems)
    for file, text in texts:
        try:
            documents = read_documents(text, file)
        except ManifestError as error:
            problems.extend(error.problems)
            reading.dropped = True
            continue
        if not documents:
            problems.append(Problem("DRA103", "the file is empty: it holds no Kubernetes object", Where(file)))
        for document in documents:
            reading.document(document, Context(file))
    objects = reading.finish(max_replicas)
    warnings = (*reading.warnings, *pools_that_disagree([o for o in objects if isinstance(o, ResourceSlice)]))
    if problems:
        raise ManifestError(problems, warnings, None if reading.dropped else Loaded(objects, warnings))
    return Loaded(objects, warnings)


class _Reading:
    """Documents to objects; workloads wait until the number of nodes is known."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.warnings: list[Problem] = []
        self.read: list[ApiObject | Workload] = []
        self.generated: dict[str, int] = {}
        self.dropped = False  # some object could not be built, so "missing" would not mean missing

    def document(self, node: Tree, ctx: Context) -> None:
        try:
            self.object(node, ctx)
        except Failed:
            self.dropped = True
        self.problems.extend(ctx.problems)

    def object(self, node: Tree, ctx: Context) -> None:
        if node.kind != "map":
            raise ctx.mismatch("a Kubernetes object (a mapping with apiVersion and kind)", node, "")
        version = self.header(node, "apiVersion", ctx)
        kind = self.header(node, "kind", ctx)
        if version is None or kind is None:
            raise Failed
        group, _, version = version.rpartition("/")
        if kind.endswith("List") and (node.get("items") is not None or kind == "List"):
            self.list(node, f"{group}/{version}" if group else version, kind.removesuffix("List"), ctx)
        elif group == convert.GROUP:
            self.resource_object(node, kind, version, ctx)
        elif (group, kind) in _CORE_KINDS:
            self.add(self.build(_CORE_KINDS[group, kind], node, ctx))
        elif (group, kind) in WORKLOADS:
            workload = read_workload(node, group, kind, ctx)
            pod = attrs.evolve(workload.pod, source=Source(ctx.file, node))
            self.read.append(attrs.evolve(workload, pod=pod))
        else:
            where = ctx.where(node, "")
            self.warnings.append(
                Problem(
                    "DRA303", f"{kind} {_name(node)} ({group + '/' if group else ''}{version}) is ignored: not a kind that DRA reads", where
                )
            )

    def header(self, node: Tree, key: str, ctx: Context) -> str | None:
        value = node.get(key)
        if value is None:
            wrong = next((k for k in node.value if k.lower() == key.lower()), None) or next(
                (k for k in node.value if nearest(k, [key])), None
            )
            if wrong:
                line, column = node.keys[wrong]
                self.problems.append(
                    Problem("DRA110", f"unknown field {wrong!r}, did you mean {key!r}?", Where(ctx.file, line, column, wrong), wrong, key)
                )
                self.misspelt(node, ctx)
            else:
                ctx.report("DRA111", f"{key!r} is missing{_of(node)}", node, key, "nothing", key)
            return None
        if value.kind != "str":
            raise ctx.mismatch("a string", value, key)
        return str(value.value)

    def misspelt(self, node: Tree, ctx: Context) -> None:
        """An object whose apiVersion is misspelt often has more of that kind (all keys in lower case): name them in the same run."""
        kind = node.get("kind")
        classes = {c.KIND: c for c in (*_CORE_KINDS.values(), *_RESOURCE_KINDS.values())}
        if kind is None or kind.value not in classes:
            return
        rest = node.with_value({k: v for k, v in node.value.items() if k.lower() != "apiversion"})
        with contextlib.suppress(Failed):
            read_object(classes[kind.value], rest, "", ctx)

    def list(self, node: Tree, version: str, kind: str, ctx: Context) -> None:
        """A list's items; those of a typed list (ResourceSliceList) need not repeat what they are."""
        entries = node.get("items")
        if entries is None or entries.kind == "null":
            return
        if entries.kind != "list":
            raise ctx.mismatch("a list", entries, "items")
        for item in entries.value:
            if kind and item.kind == "map" and "kind" not in item.value and "apiVersion" not in item.value:
                header = {"apiVersion": version, "kind": kind}
                item = item.with_value({k: Tree("str", v, item.line, item.column) for k, v in header.items()} | item.value)
            self.document(item, Context(ctx.file))

    def resource_object(self, node: Tree, kind: str, version: str, ctx: Context) -> None:
        header = node.value["apiVersion"]
        if version in convert.CLASSIC or kind in _CLASSIC_KINDS:
            advice = f"write the claim for {convert.GROUP}/v1 (device classes and CEL selectors)"
            text = f"{convert.GROUP}/{version} {kind} is classic DRA, an API that no longer exists in Kubernetes: {advice}"
            ctx.report("DRA120", text, header, "apiVersion", version, "v1")
        elif version not in convert.VERSIONS:
            text = f"unknown version {version!r} of {convert.GROUP}, expected one of {', '.join(convert.VERSIONS)}"
            ctx.report("DRA120", text, header, "apiVersion", version, ", ".join(convert.VERSIONS))
        elif kind in _RESOURCE_KINDS:
            self.add(self.build(_RESOURCE_KINDS[kind], convert.to_v1(node, kind, version, ctx), ctx))
        elif kind in ("ResourcePoolStatusRequest", "ResourceSlicePatch", "DeviceTaint"):
            self.warnings.append(Problem("DRA303", f"{kind} {_name(node)} is ignored: it takes no part in allocation", ctx.where(node, "")))
        else:
            meant = nearest(kind, _RESOURCE_KINDS)
            text = f"unknown kind {kind!r} in {convert.GROUP}" + (f", did you mean {meant!r}?" if meant else "")
            ctx.report("DRA120", text, node.value["kind"], "kind", kind, ", ".join(_RESOURCE_KINDS))

    def build(self, cls: type[_T], node: Tree, ctx: Context) -> _T:
        built: _T = read_object(cls, node, "", ctx)
        if not built.metadata.name and not built.metadata.generate_name:
            meta = node.get("metadata")
            if meta is None or (meta.kind == "map" and not any(nearest(k, ["name"]) for k in meta.value)):
                ctx.report("DRA111", "the required field 'name' is missing", meta or node, "metadata.name", "nothing", "a name")
            raise Failed
        if built.NAMESPACED is False and built.metadata.namespace:
            ctx.report(
                "DRA118",
                f"a {built.KIND} has no namespace",
                node.at("metadata.namespace"),
                "metadata.namespace",
                built.metadata.namespace,
                "nothing",
            )
        return attrs.evolve(built, source=Source(ctx.file, node))

    def add(self, built: ApiObject) -> None:
        self.read.append(built)

    def finish(self, max_replicas: int) -> tuple[ApiObject, ...]:
        nodes = sum(isinstance(o, Node) for o in self.read)
        objects: list[ApiObject] = []
        for entry in self.read:
            objects += expand(entry, nodes, max_replicas, self.warnings) if isinstance(entry, Workload) else [self.named(entry)]
        first: dict[tuple[str, str, str], ApiObject] = {}
        for built in objects:
            if isinstance(built, Namespace):
                continue  # many example files bring the same one along
            key = (built.KIND, built.namespace, built.name)
            if key in first:
                text = f"{built.label} occurs twice, first at {first[key].where().place}"
                self.problems.append(Problem("DRA123", text, built.where("metadata.name"), built.name, "each object once"))
            first.setdefault(key, built)
        return tuple(objects)

    def named(self, built: ApiObject) -> ApiObject:
        """An object with generateName only gets that name and a number."""
        if built.metadata.name:
            return built
        base = built.metadata.generate_name
        number = self.generated[base] = self.generated.get(base, -1) + 1
        return attrs.evolve(built, metadata=attrs.evolve(built.metadata, name=f"{base}{number}"))


def _name(node: Tree) -> str:
    name = node.at("metadata.name")
    return str(name.value) if name.kind == "str" else "without a name"


def _of(node: Tree) -> str:
    kind = node.get("kind")
    return f" in {kind.value} {_name(node)}" if kind is not None and kind.kind == "str" else ""
