"""CDI spec files, and the container runtime that resolves device ids from them (tags.cncf.io/container-device-interface v1.1.2).

A plugin writes one spec per claim; the device name carries the claim's UID, so that a stale id never means another claim's device.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dra_spec.reference.disk import write_atomically
from dra_spec.reference.errors import CorruptFile, UnresolvedDevice

VERSION = "0.8.0"
CLASS = "claim"


def kind(driver: str) -> str:
    """`vendor/class` of a driver's claims."""
    return f"{driver}/{CLASS}"


def device_name(uid: str, device: str) -> str:
    """The name of a device in a claim's spec; slashes of `driver/pool/device` become dashes."""
    return f"{uid}-{device.rpartition('/')[2]}"


def device_id(driver: str, uid: str, device: str) -> str:
    """The fully qualified CDI id that the kubelet hands to the runtime."""
    return f"{kind(driver)}={device_name(uid, device)}"


def spec_path(directory: Path, driver: str, uid: str) -> Path:
    return directory / f"{kind(driver).replace('/', '-')}_{uid}.json"


def write_spec(directory: Path, driver: str, uid: str, name: str, devices: Iterable[str]) -> None:
    """Writes the spec file of a claim; `name` and UID of the claim are kept as annotations."""
    spec = {
        "cdiVersion": VERSION,
        "kind": kind(driver),
        "annotations": {"claim": name, "uid": uid},
        "devices": [{"name": device_name(uid, device), "containerEdits": {"env": [f"DRA_DEVICE={device}"]}} for device in sorted(devices)],
    }
    write_atomically(spec_path(directory, driver, uid), json.dumps(spec, indent=1))


def remove_spec(directory: Path, driver: str, uid: str) -> None:
    """Removes a claim's spec file; a missing file is success."""
    spec_path(directory, driver, uid).unlink(missing_ok=True)


def read_specs(directory: Path) -> list[dict[str, Any]]:
    """All spec files of a directory. Raises CorruptFile for one that is not a CDI spec."""
    found = []
    for path in sorted(directory.glob("*.json")) if directory.exists() else ():
        try:
            spec = json.loads(path.read_text(encoding="utf-8"))
            _ = spec["kind"], [device["name"] for device in spec["devices"]]
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFile(f"{path}: not a CDI spec: {error!r}") from error
        found.append(spec)
    return found


def resolve(directory: Path, ids: Iterable[str]) -> list[str]:
    """The runtime's part at container creation: the devices that the ids inject, from the files that exist now.

    Raises UnresolvedDevice for an id that no file or more than one file defines: one such id fails the creation.
    """
    known: dict[str, list[str]] = {}
    for spec in read_specs(directory):
        for device in spec["devices"]:
            (setting,) = device["containerEdits"]["env"]
            known.setdefault(f"{spec['kind']}={device['name']}", []).append(setting.partition("=")[2])
    injected = []
    for wanted in ids:
        match known.get(wanted, []):
            case [device]:
                injected.append(device)
            case []:
                raise UnresolvedDevice(f"unresolvable CDI device {wanted}")
            case several:
                raise UnresolvedDevice(f"CDI device {wanted} is defined {len(several)} times")
    return injected
