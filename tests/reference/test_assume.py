"""The scheduler's memory: assume cache, allocated devices, allocations in flight."""

from __future__ import annotations

from dra_spec.reference.assume import AllocatedDevices, AssumeCache, InFlight
from dra_spec.reference.shapes import Object, claim_object

D1 = "drv/n1/d1"


def claim(rv: int, device: str | None = None, name: str = "c1", uid: str = "c1.1", admin: bool = False) -> Object:
    made = claim_object(name, ["r"])
    made["metadata"] |= {"resourceVersion": str(rv), "uid": uid}
    if device is not None:
        driver, pool, short = device.split("/")
        result = {"request": "r", "driver": driver, "pool": pool, "device": short} | ({"adminAccess": True} if admin else {})
        made["status"] = {"allocation": {"devices": {"results": [result]}}}
    return made


def fed() -> tuple[AssumeCache, AllocatedDevices]:
    cache, devices = AssumeCache(), AllocatedDevices()
    cache.handlers.append(devices.handle)
    return cache, devices


def test_an_event_counts_only_if_newer_than_the_latest() -> None:
    cache, _ = fed()
    assert cache.deliver(claim(3))
    assert not cache.deliver(claim(3, D1))
    assert not cache.deliver(claim(2, D1))
    assert cache.get("c1") == claim(3)


def test_versions_are_numbers() -> None:
    cache, _ = fed()
    cache.deliver(claim(9))
    assert cache.deliver(claim(10))


def test_restore_after_the_event_of_the_assumed_write_goes_back_to_before_it() -> None:
    """The heart of H1: the event of the write has the version that was assumed, is dropped, and leaves the api pointer where it was."""
    cache, devices = fed()
    cache.deliver(claim(1))
    assert cache.assume(claim(2, D1)) == "ok"
    assert devices.ids == {D1}
    assert not cache.deliver(claim(2, D1))
    assert cache.restore("c1")
    assert cache.get("c1") == claim(1)
    assert devices.ids == set()


def test_restore_is_harmless_if_the_event_came_before_assume() -> None:
    cache, devices = fed()
    cache.deliver(claim(1))
    cache.deliver(claim(2, D1))
    assert cache.assume(claim(2, D1)) == "ok"
    assert not cache.restore("c1")
    assert devices.ids == {D1}


def test_assume_is_refused_if_absent_or_out_of_sync() -> None:
    cache, _ = fed()
    assert cache.assume(claim(1)) == "not-found"
    cache.deliver(claim(5))
    assert cache.assume(claim(4, D1)) == "out-of-sync"
    assert cache.get("c1") == claim(5)


def test_restore_of_what_is_absent_or_the_same_changes_nothing() -> None:
    cache, _ = fed()
    assert not cache.restore("c1")
    cache.deliver(claim(1))
    assert not cache.restore("c1")


def test_devices_are_a_set_and_set_to_set_is_ignored() -> None:
    cache, devices = fed()
    cache.deliver(claim(1, D1))
    cache.deliver(claim(2, D1, "c2", "c2.1"))
    revision = devices.revision
    cache.deliver(claim(3, "drv/n1/d2"))  # another allocation at once: nobody notices
    assert (devices.ids, devices.revision) == ({D1}, revision)
    cache.deliver(claim(4, None, "c2", "c2.1"))
    assert devices.ids == set()  # c1 still has it in the API server


def test_admin_access_is_not_counted() -> None:
    cache, devices = fed()
    cache.deliver(claim(1, D1, admin=True))
    assert (devices.ids, devices.revision) == (set(), 0)


def test_a_removed_claim_frees_its_devices() -> None:
    cache, devices = fed()
    cache.deliver(claim(1, D1))
    cache.remove("c1")
    assert devices.ids == set()
    cache.remove("c1")
    assert cache.get("c1") is None


def test_in_flight_shares_and_releases() -> None:
    cache, _ = fed()
    cache.deliver(claim(1))
    flights = InFlight(cache)
    assert flights.signal(claim(1, D1)) == "stored"
    assert flights.signal(claim(1, "drv/n1/d2")) == "shared"  # the object passed is ignored
    assert flights.devices() == {D1}
    assert not flights.release("c1.1")
    assert flights.release("c1.1")
    assert not flights.release("c1.1")


def test_in_flight_force_removes_whoever_shares() -> None:
    cache, _ = fed()
    cache.deliver(claim(1))
    flights = InFlight(cache)
    flights.signal(claim(1, D1))
    flights.signal(claim(1, D1))
    assert flights.release("c1.1", force=True)
    assert flights.get("c1.1") is None


def test_a_published_claim_is_not_put_in_flight() -> None:
    """K6's fix, and with it H16: the pod goes on with an allocation that is in nobody's set."""
    cache, _ = fed()
    flights = InFlight(cache)
    assert flights.signal(claim(1, D1)) == "missing"
    cache.deliver(claim(2, D1))
    assert flights.signal(claim(1, "drv/n1/d2")) == "published"
    assert flights.devices() == set()
    assert flights.signal(claim(1, "drv/n1/d2", uid="c1.2")) == "stored"  # another claim of that name
