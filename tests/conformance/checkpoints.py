"""The kubelet's state files, read by the reference, against their recorded content (format of kubelet/checkpoint-files)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from corpus import entries
from kubelet_harness import real_row, row
from report import Disagreement, Report, sorted_out

from dra_spec.reference.claiminfo import ClaimInfoCache
from dra_spec.reference.disk import KUBELET_FILE
from dra_spec.reference.errors import CorruptFile

LISTED: dict[str, tuple[str, str]] = {}
UNREAD = "namespaces, request names and share ids are not compared: the reference does not keep them"


def run(paths: list[Path]) -> Report:
    """Compares claims, pods, drivers, devices and CDI ids. Raises UnreadableFile."""
    agreed = total = omitted = 0
    found: list[Disagreement] = []
    for path in paths:
        for number, case in enumerate(entries(path)):
            if any(len(device.get("cdiDeviceIDs") or ()) != 1 for device in _devices(case["decoded"])):
                omitted += 1
                continue
            total += 1
            ours, expected = read(case["file"]), sorted(map(_recorded, case["decoded"]))
            agreed += ours == expected
            if ours != expected:
                found.append(Disagreement(path.name, str(case.get("id", f"case {number + 1}")), str(expected), str(ours)))
    return sorted_out(agreed, total, found, LISTED, [UNREAD], {"no or several CDI ids for a device": omitted} if omitted else None)


def read(text: str) -> Any:
    """The entries that the reference finds in a file, or what is wrong with it."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / KUBELET_FILE).write_text(text)
        try:
            cache = ClaimInfoCache(Path(directory))
        except CorruptFile as error:
            return str(error)
    return sorted((row(info), tuple(sorted(info.devices.values()))) for info in cache.entries.values())


def _devices(decoded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [device for entry in decoded for state in entry["drivers"].values() for device in state["devices"]]


def _recorded(entry: dict[str, Any]) -> Any:
    return real_row(entry), tuple(sorted(i for device in _devices([entry]) for i in device["cdiDeviceIDs"]))
