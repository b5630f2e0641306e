"""Selectors against the answers of the Go implementation (k8s.io/dynamic-resource-allocation cel, v0.37.2), from a corpus outside the
repository. What is not encoded must say so; an answer must be the right one."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dra_spec.resources.decode import Context, read_object
from dra_spec.resources.slices import Device
from dra_spec.resources.tree import read_documents
from dra_spec.selectors import SelectorDevice, SelectorError, SelectorSyntaxError, UnsupportedFeature, compile_selector

CORPUS = os.environ.get("DRA_SPEC_CORPUS", "")
pytestmark = pytest.mark.skipif(not CORPUS, reason="no corpus")
ENVIRONMENT = "stored,consumable=true,listType=true"  # the environment that the allocator compiles in

# Upstream refuses these when it compiles (a literal argument that cannot work), the runtime here when it evaluates; and three corners.
KNOWN = {
    'bool("maybe")',
    "uint(-1) == 1u",
    'duration("nope") > duration("1s")',
    'timestamp("x") == timestamp("y")',
    '[1, "a"] == [1]',
    'device.attributes["gpu.example.com"].model.matches("[")',
    'semver("18446744073709551615.0.0").major() > 0',
}


def answer(entry: dict[str, Any]) -> str:
    content = {k: v for k, v in entry["device"].items() if k != "driver"} | {"name": "dev"}
    device = read_object(Device, read_documents(json.dumps(content), "device")[0], "", Context("device"))
    try:
        result = compile_selector(entry["expression"]).matches(SelectorDevice.of(entry["device"].get("driver", ""), "pool", device))
    except SelectorSyntaxError:
        return "compile-error"
    except UnsupportedFeature:
        return "unsupported"
    return "runtime-error" if isinstance(result, SelectorError) else str(result).lower()


@pytest.mark.parametrize(("name", "most_unsupported"), [("upstream.json", 0.25), ("extra.json", 0.25)])
def test_answers(name: str, most_unsupported: float) -> None:
    entries = [
        e
        for e in json.loads((Path(CORPUS) / "conformance" / "cel" / name).read_text())
        if e["kind"] == "selector" and e.get("source", "v0.37.2") == "v0.37.2"
    ]
    wrong, found = [], Counter[str]()
    for entry in entries:
        (observed,) = (o for o in entry["observed"] if ENVIRONMENT in o["environments"])
        if observed.get("errorClass") == "cost-limit":
            continue  # cost is not encoded
        got = answer(entry)
        found[got] += 1
        if got not in ("unsupported", observed["outcome"]) and entry["expression"] not in KNOWN:
            wrong.append((entry["id"], entry["expression"], observed["outcome"], got))
    assert wrong == []
    assert found["unsupported"] <= most_unsupported * len(entries), found
    assert found["true"] > 20
