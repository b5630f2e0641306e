"""A plugin that answers a kubelet's calls at once, with the faults that a recorded sequence asks for."""

from __future__ import annotations

from dra_spec.reference.apiserver import CLAIM, ApiServer
from dra_spec.reference.machine import PREPARE, Call
from dra_spec.reference.shapes import allocation, device_id, results, uid_of
from dra_spec.reference.steps import Thread

# behaviour -> the class of the error that the kubelet makes of it
FAILURES = {
    "grpc_error": "rpc_error",
    "claim_error_last": "rpc_claim_error",
    "claim_error_all": "rpc_claim_error",
    "claim_error_with_devices": "rpc_claim_error",
    "not_usable": "rpc_claim_error",
    "missing_last": "rpc_missing_result",
    "empty_response": "rpc_missing_result",
    "extra_unknown": "rpc_unknown_claim",
    "replace_last_by_unknown": "rpc_unknown_claim",
}
FINE = ("ok", "no_devices", "no_request_names")


class Unsupported(Exception):
    """Something that the reference does not have."""


class FakePlugin:
    """Answers with each claim's devices as they are in the API now.

    `answers`: takes the behaviour of each call; `holds`: whether the next answer is held back; `held`: the call whose answer is.
    """

    def __init__(self, api: ApiServer, driver: str, answers: list[str]) -> None:
        self.api, self.driver, self.answers = api, driver, answers
        self.holds = False
        self.held: Call | None = None
        self.behaviours: dict[str, list[str]] = {"prepare": [], "unprepare": []}

    def expect(self, method: str, behaviour: str) -> None:
        """The next call of the method is answered so."""
        self.behaviours[method].append(behaviour)

    def accept(self, pod: str, lane: int, call: Call) -> Thread | None:
        """Raises Unsupported for answers that the reference does not have."""
        behaviour = self.behaviours[call.method].pop(0) if self.behaviours[call.method] else "ok"
        preparing = call.method == PREPARE
        if preparing and behaviour not in FAILURES and behaviour not in FINE:
            raise Unsupported("an answer with no or several CDI ids for a device")
        if preparing:
            behaviour = self._prepare(call, behaviour)
        elif behaviour not in FAILURES:
            behaviour = "ok"
        call.failed, call.local = behaviour in FAILURES, behaviour
        self.answers.append(behaviour)
        if self.holds:
            self.holds, self.held = False, call
        else:
            call.answered = True
        return None

    def _prepare(self, call: Call, behaviour: str) -> str:
        """Fills in the devices; what the answer comes to."""
        several = len(set(call.claims)) > 1
        if several and behaviour == "missing_last":
            raise Unsupported("an answer with an error for some of its claims")
        for name, uid in call.claims:
            claim = self.api._objects[CLAIM].get(name)
            mine = [r for r in results(allocation(claim)) if r["driver"] == self.driver] if claim and uid_of(claim) == uid else []
            if not mine and behaviour in FINE:
                if several:
                    raise Unsupported("an answer with an error for some of its claims")
                return "not_usable"
            given = [] if behaviour == "no_devices" else mine
            call.answer[uid] = {device_id(r): f"{self.driver}/dev={uid}-{r['device']}" for r in given}
        return behaviour
