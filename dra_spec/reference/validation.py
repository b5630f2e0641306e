"""What the API server checks of a ResourceClaim (kubernetes v1.37.2 `validateResourceClaimStatusUpdate`, `PrepareForUpdate`)."""

from __future__ import annotations

from dra_spec.reference.errors import Invalid
from dra_spec.reference.shapes import MAX_CONSUMERS, Object, allocation, consumers, deleting, device_id, name_of, results

MAX_REQUESTS = MAX_RESULTS = 32
MAX_CONDITIONS = 8


def check_new_claim(claim: Object) -> None:
    """Raises Invalid if the spec of a new claim has too many requests or two of one name."""
    names = _requests(claim)
    if len(names) > MAX_REQUESTS:
        raise Invalid(f"claim {name_of(claim)}: spec.devices.requests: {len(names)} entries, at most {MAX_REQUESTS}")
    if len(set(names)) < len(names):
        raise Invalid(f"claim {name_of(claim)}: spec.devices.requests: names must be unique")


def _requests(claim: Object) -> list[str]:
    """The names of the requests in the spec; a claim may have none."""
    return [request["name"] for request in _specified(claim)]


def _alternatives(claim: Object) -> list[str]:
    """The names of the subrequests, as results call them."""
    return [f"{request['name']}/{sub['name']}" for request in _specified(claim) for sub in request.get("firstAvailable") or ()]


def _specified(claim: Object) -> list[Object]:
    return list((claim["spec"].get("devices") or {}).get("requests") or ())


def _key(entry: Object) -> tuple[str, str]:
    """What identifies an entry of `status.devices`: the device and the share."""
    return device_id(entry), str(entry.get("shareID") or "")


def drop_lost_devices(old: Object, new: Object) -> None:
    """Drops entries of `status.devices` whose device was in the old allocation and is not in the new one; silent, as upstream."""
    before = {_key(r) for r in results(allocation(old))}
    after = {_key(r) for r in results(allocation(new))}
    if new["status"].get("devices"):
        kept = [entry for entry in new["status"]["devices"] if _key(entry) not in before - after]
        new["status"]["devices"] = kept
    for field in ("devices", "reservedFor"):
        if not new["status"].get(field):
            new["status"].pop(field, None)
    if new["status"].get("allocation") is None:
        new["status"].pop("allocation", None)


def check_claim_status(old: Object, new: Object) -> None:
    """Raises Invalid unless the status may change from old to new: rules S1 to S6."""
    who = f"claim {name_of(new)}: status"
    entries = consumers(new)
    uids = [entry.get("uid") for entry in entries]
    if len(entries) > MAX_CONSUMERS:
        raise Invalid(f"{who}.reservedFor: {len(entries)} entries, at most {MAX_CONSUMERS}")
    if len(set(uids)) < len(uids):
        raise Invalid(f"{who}.reservedFor: uid must be unique")
    if any(not entry.get(field) for entry in entries for field in ("resource", "name", "uid")):
        raise Invalid(f"{who}.reservedFor: resource, name and uid are required")
    if entries and allocation(new) is None:
        raise Invalid(f"{who}.reservedFor: may not be specified when `allocated` is not set")
    if deleting(old) and any(entry not in consumers(old) for entry in entries):
        raise Invalid(f"{who}.reservedFor: new entries may not be added while the claim is being deleted")
    _check_allocation(who, old, new)
    _check_devices(who, new)


def _check_allocation(who: str, old: Object, new: Object) -> None:
    before, after = allocation(old), allocation(new)
    if before is not None and after is not None and before != after:
        raise Invalid(f"{who}.allocation: field is immutable")
    if before is None and after is not None:
        requests = {*_requests(new), *_alternatives(new)}
        found = results(after)
        if len(found) > MAX_RESULTS:
            raise Invalid(f"{who}.allocation.devices.results: {len(found)} entries, at most {MAX_RESULTS}")
        for result in found:
            if result["request"] not in requests:
                raise Invalid(f"{who}.allocation.devices.results: request {result['request']} is not one of the claim's")
            if bool(result.get("bindingConditions")) != bool(result.get("bindingFailureConditions")):
                raise Invalid(f"{who}.allocation.devices.results: bindingConditions and bindingFailureConditions go together")


def _check_devices(who: str, new: Object) -> None:
    allocated = {_key(result) for result in results(allocation(new))}
    keys = [_key(entry) for entry in new["status"].get("devices") or ()]
    if len(set(keys)) < len(keys):
        raise Invalid(f"{who}.devices: driver, pool and device must be unique")
    for entry in new["status"].get("devices") or ():
        if _key(entry) not in allocated:
            raise Invalid(f"{who}.devices: {device_id(entry)} is not allocated")
        types = [condition["type"] for condition in (entry.get("conditions") or ())]
        if len(types) > MAX_CONDITIONS or len(set(types)) < len(types):
            raise Invalid(f"{who}.devices: {device_id(entry)}: at most {MAX_CONDITIONS} conditions, types unique")
