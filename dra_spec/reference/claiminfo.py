"""The kubelet's claim info cache and its checkpoint (kubernetes v1.37.2 `pkg/kubelet/cm/dra/claiminfo.go`, `state/state.go`).

Keyed by claim name; the UID is a value. An entry keeps no copy of the allocation: its drivers are fixed when it is made, its devices are
those of the last prepare answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from dra_spec.reference.disk import load_kubelet, save_kubelet
from dra_spec.reference.shapes import NAMESPACE, split_device


@attrs.define(eq=False)
class ClaimInfo:
    """One entry. `drivers`: driver -> devices (`driver/pool/device`) with their CDI ids, empty until the driver answered.

    `prepared` and `unpreparing` are memory only.
    """

    uid: str
    name: str
    drivers: dict[str, dict[str, str]]
    pods: set[str] = attrs.field(factory=set)
    prepared: bool = False
    unpreparing: bool = False

    @property
    def devices(self) -> dict[str, str]:
        """All devices with their CDI ids."""
        return {device: cdi for devices in self.drivers.values() for device, cdi in devices.items()}

    def to_json(self) -> dict[str, Any]:
        """The entry as it stands in the checkpoint."""
        state = {}
        for driver, devices in sorted(self.drivers.items()):
            listed = []
            for device, cdi in sorted(devices.items()):
                _, pool, name = split_device(device)
                listed.append({"PoolName": pool, "DeviceName": name, "RequestNames": [], "CDIDeviceIDs": [cdi]})
            state[driver] = {"Devices": listed}
        return {
            "ClaimUID": self.uid,
            "ClaimName": self.name,
            "Namespace": NAMESPACE,
            "PodUIDs": {pod: {} for pod in sorted(self.pods)},
            "DriverState": state,
        }

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> ClaimInfo:
        """An entry of the checkpoint after a restart: not prepared, not unpreparing."""
        drivers = {
            driver: {f"{driver}/{d['PoolName']}/{d['DeviceName']}": d["CDIDeviceIDs"][0] for d in state["Devices"] or ()}
            for driver, state in entry["DriverState"].items()
        }
        return cls(entry["ClaimUID"], entry["ClaimName"], drivers, set(entry["PodUIDs"]))


class ClaimInfoCache:
    """The map, under one lock, and the file that it is written to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.entries: dict[str, ClaimInfo] = {info.name: info for info in map(ClaimInfo.from_json, load_kubelet(directory))}

    def get(self, name: str) -> ClaimInfo | None:
        return self.entries.get(name)

    def add(self, name: str, uid: str, drivers: Iterable[str]) -> ClaimInfo:
        """A new entry without devices."""
        self.entries[name] = ClaimInfo(uid, name, {driver: {} for driver in drivers})
        return self.entries[name]

    def of_pod(self, pod_uid: str) -> list[str]:
        """The names of the claims that the pod holds."""
        return sorted(name for name, info in self.entries.items() if pod_uid in info.pods)

    def save(self) -> None:
        """Writes the whole list."""
        save_kubelet(self.directory, [info.to_json() for _, info in sorted(self.entries.items())])

    def stored(self) -> dict[str, ClaimInfo]:
        """What the file says, by claim name. Raises CorruptFile."""
        return {info.name: info for info in map(ClaimInfo.from_json, load_kubelet(self.directory))}
