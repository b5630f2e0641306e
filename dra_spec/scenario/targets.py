"""What `check` was asked to look at: shipped models, model files, manifests that nobody prepared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from dra_spec.scenario.build import build
from dra_spec.scenario.content import shipped
from dra_spec.scenario.modelfile import Overrides, load
from dra_spec.scenario.scenario import Scenario
from dra_spec.scenario.strict import InputError, Place, nearest
from dra_spec.scenario.variants import default_model

_SCHEMA = re.compile(r"^schema:\s*['\"]?dra-spec/(\w+)/", re.MULTILINE)


def scenarios(targets: Sequence[str], overrides: Overrides) -> list[Scenario]:
    """The scenarios of the targets, in order; all manifests among them are one cluster.

    No target: all shipped models but those of the nightly tier, or with a variant the model that shows it. Raises `InputError`,
    `ManifestError`, `InvariantError`.
    """
    known = shipped("models")
    everything = not targets and not overrides.variants
    if not targets:
        targets = [default_model(overrides.variants)] if overrides.variants else list(known)
    models: list[Path] = []
    manifests: list[Path] = []
    for target in targets:
        if target in known:
            models.append(known[target])
            continue
        path = Path(target)
        if not path.exists():
            raise InputError(f"{target}: no such file, directory or model{nearest(target, known)}")
        kind = _kind(path)
        if kind == "model":
            models.append(path)
        elif kind is None:
            manifests.append(path)
        else:
            hint = "; use `dra-spec replay`" if kind == "trace" else ""
            raise InputError(f"this is a {kind} file, expected a model file or Kubernetes manifests{hint}", Place(target))
    files = [load(path) for path in models]
    found = [build(file, overrides) for file in files if not (everything and file.tier == "nightly")]
    if not manifests:
        return found
    from dra_spec.scenario.plain import from_manifests

    return [*found, *from_manifests(manifests, overrides)]


def _kind(path: Path) -> str | None:
    """The kind of a file of this project ("model", "trace", ...), None for anything else."""
    if not path.is_file():
        return None
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            head = stream.read(4096)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", Place(str(path))) from None
    found = _SCHEMA.search(head)
    return found[1] if found else None
