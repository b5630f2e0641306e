"""The reference's API server beside answers of a real one (kube-apiserver v1.37.2), request by request.

Each PUT of a ResourceClaim, main resource or status, is sent to a server that holds what the real one held just before. Compared are the
answer's code and, of a success, the object. Left out: rejections for reasons that the reference does not check (formats, opaque
parameters, namespace labels).
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from dra_spec.reference.apiserver import CLAIM, ApiServer
from dra_spec.reference.errors import ApiError
from dra_spec.reference.shapes import allocation, conditions, consumers, deleting, device_id, results

CLAIMS = re.compile(r"^/apis/resource\.k8s\.io/v1/namespaces/(?P<space>\w+)/resourceclaims/(?P<name>[^/]+)(?P<status>/status)?$")
ANY_CLAIMS = re.compile(r"^/apis/resource\.k8s\.io/\w+/namespaces/\w+/resourceclaims")
REFERENCE = re.compile(r"\$\{(\d+):([^}]*)\}")
KNOWN_CAUSES = re.compile(r"^(spec|status\.allocation|status\.reservedFor(\[\d+\])?|metadata\.finalizers|status\.devices\[\d+\])$")


@attrs.frozen
class Put:
    """A PUT with what the server held before it and what it answered."""

    where: str
    status: bool
    stored: dict[str, Any] | None
    body: dict[str, Any]
    code: int
    answer: dict[str, Any]


def value_at(steps: list[Any], step: str, pointer: str) -> str:
    found: Any = steps[int(step)]["response"].get("object", {})
    for part in pointer.strip("/").split("/"):
        found = found.get(part, "") if isinstance(found, dict) else ""
    return str(found)


def resolved(value: Any, steps: list[Any]) -> Any:
    """The request with its references to earlier answers filled in."""
    if isinstance(value, dict):
        return {key: resolved(item, steps) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved(item, steps) for item in value]
    return REFERENCE.sub(lambda m: value_at(steps, m[1], m[2]), value) if isinstance(value, str) else value


def puts(sequence: dict[str, Any]) -> Iterator[Put]:
    """The PUTs of a sequence whose predecessor state is known for sure."""
    steps, stored, sure = sequence["steps"], dict[tuple[str, str], dict[str, Any]](), True
    for number, step in enumerate(steps):
        answer, code, match = step["response"], step["response"]["code"], CLAIMS.match(step["path"])
        if step["method"] == "PUT" and match and sure and step["user"] == "admin" and "query" not in step and "body" in step:
            body = step["body"]
            if "$repeat" not in json.dumps(body) and body.get("metadata", {}).get("name") == match["name"]:
                before = stored.get((match["space"], match["name"]))
                yield Put(f"{sequence['id']} step {number}", bool(match["status"]), before, resolved(body, steps), code, answer)
        if step["method"] in ("GET", "WATCH") or not ANY_CLAIMS.match(step["path"]) or code >= 400:
            continue
        made = answer.get("object", {})
        if (
            step["method"] == "DELETE"
            or made.get("kind") != "ResourceClaim"
            or made["apiVersion"] != "resource.k8s.io/v1"
            or "query" in step
        ):
            sure = False  # a collection, another version of the API, a dry run: the state is not followed any further
            continue
        key = made["metadata"]["namespace"], made["metadata"]["name"]
        if made["metadata"].get("deletionTimestamp") and not made["metadata"].get("finalizers"):
            stored.pop(key, None)
        else:
            stored[key] = made


def essence(claim: dict[str, Any]) -> Any:
    """What the protocol reads of a claim; fields of features that are off come and go."""
    found = allocation(claim)
    devices = [device_id(entry) for entry in claim["status"].get("devices") or ()]
    held = [(r["request"], device_id(r), bool(r.get("adminAccess"))) for r in results(found)]
    return found is not None, held, consumers(claim), devices, conditions(claim), deleting(claim), claim["metadata"].get("finalizers")


def ask(put: Put) -> tuple[int, dict[str, Any]]:
    """The reference's answer: code and, of a success, the object without its version."""
    server = ApiServer()
    if put.stored is not None:
        stored = json.loads(json.dumps(put.stored))
        stored["metadata"]["resourceVersion"] = str(stored["metadata"]["resourceVersion"])
        server._objects = {CLAIM: {stored["metadata"]["name"]: stored}}
    body = {"status": {}, **put.body}
    body["metadata"] = {key: value for key, value in body["metadata"].items() if value != ""}
    try:
        return 200, (server.update_status if put.status else server.update)(CLAIM, body)
    except ApiError as error:
        return error.code, {}


def test_puts_of_claims_are_answered_as_by_a_real_server() -> None:
    corpus = os.environ.get("DRA_SPEC_CORPUS")
    if not corpus:
        pytest.skip("no corpus")
    seen: Counter[tuple[bool, int]] = Counter()
    with gzip.open(Path(corpus) / "conformance" / "apiserver" / "sequences.jsonl.gz", "rt") as lines:
        for line in lines:
            for put in puts(json.loads(line)):
                causes = [cause["field"] for cause in put.answer.get("status", {}).get("causes", ())]
                if put.code == 400 or (put.code == 422 and not all(map(KNOWN_CAUSES.match, causes))) or "rawparams" in put.where:
                    continue
                code, made = ask(put)
                assert code == put.code, (put.where, causes)
                if code == 200:
                    assert essence(made) == essence(put.answer["object"]), put.where
                seen[put.status, code] += 1
    for status in (True, False):
        assert seen[status, 200] > 20
        assert seen[status, 409] > 10
        assert seen[status, 422] > 3
