"""Files of one node: the kubelet's checkpoint and the plugins' checkpoints, written to a temporary name and renamed.

The kubelet's `dra_manager_state` is a JSON file with `Data` (itself JSON text) and `Checksum` (CRC-32 of Data): kubernetes v1.37.2
`pkg/kubelet/cm/dra/state/checkpoint.go`, `pkg/kubelet/util/store/filestore.go`. A plugin's `checkpoint.json` has the same two fields.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

from dra_spec.reference.errors import CorruptFile

Json = dict[str, Any]

KUBELET_FILE = "dra_manager_state"
KUBELET_KIND, KUBELET_VERSION = "DRACheckpoint", "checkpoint.dra.kubelet.k8s.io/v1"
PLUGIN_FILE = "checkpoint.json"
PLUGIN_VERSION = "v2"


def write_atomically(path: Path, text: str) -> None:
    """Replaces a file in one step: a temporary file beside it, then a rename. A crash leaves the old or the new content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name("." + path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def seal(data: Json) -> str:
    """The text of a checkpoint file: the data as JSON text, with its CRC-32."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return json.dumps({"Data": text, "Checksum": zlib.crc32(text.encode())})


def unseal(path: Path) -> Json:
    """The data of a checkpoint file. Raises CorruptFile if it is not JSON, lacks a field or has a wrong checksum."""
    try:
        outer = json.loads(path.read_text(encoding="utf-8"))
        text, checksum = outer["Data"], outer["Checksum"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFile(f"{path}: not a checkpoint file: {error!r}") from error
    if not isinstance(text, str) or zlib.crc32(text.encode()) != checksum:
        raise CorruptFile(f"{path}: checksum is {checksum}, which is not that of the data")
    try:
        data = json.loads(text)
    except ValueError as error:
        raise CorruptFile(f"{path}: data is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise CorruptFile(f"{path}: data is a {type(data).__name__}, not an object")
    return data


def save_kubelet(directory: Path, entries: list[Json]) -> None:
    """Writes the kubelet's checkpoint: the whole list of claim entries."""
    data = {"kind": KUBELET_KIND, "apiVersion": KUBELET_VERSION, "ClaimInfoStateList": entries}
    write_atomically(directory / KUBELET_FILE, seal(data))


def load_kubelet(directory: Path) -> list[Json]:
    """The entries of the kubelet's checkpoint; a missing file is created with an empty list. Raises CorruptFile."""
    path = directory / KUBELET_FILE
    if not path.exists():
        save_kubelet(directory, [])
    data = unseal(path)
    if (data.get("kind"), data.get("apiVersion")) != (KUBELET_KIND, KUBELET_VERSION):
        raise CorruptFile(
            f"{path}: kind {data.get('kind')!r} of {data.get('apiVersion')!r}, expected {KUBELET_KIND!r} of {KUBELET_VERSION!r}"
        )
    return list(data["ClaimInfoStateList"] or ())


def save_plugin(directory: Path, claims: Json, boot: int = 0) -> None:
    """Writes a plugin's checkpoint: claim UID -> {state, name, devices, admin}, and the boot id of the node."""
    write_atomically(directory / PLUGIN_FILE, seal({"version": PLUGIN_VERSION, "nodeBootID": boot, "claims": claims}))


def load_plugin(directory: Path) -> tuple[Json, int]:
    """Claims and boot id of a plugin's checkpoint; a missing file is an empty one. Raises CorruptFile."""
    path = directory / PLUGIN_FILE
    if not path.exists():
        return {}, 0
    data = unseal(path)
    if data.get("version") != PLUGIN_VERSION or not isinstance(data.get("claims"), dict):
        raise CorruptFile(f"{path}: version {data.get('version')!r}, expected {PLUGIN_VERSION!r} with claims")
    return dict(data["claims"]), int(data.get("nodeBootID", 0))
