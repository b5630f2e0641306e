"""What can go wrong in the concrete world: API errors, RPC errors, files that do not check out, and divergence from a trace."""

from __future__ import annotations

from collections.abc import Mapping


class ApiError(Exception):
    """An answer of the API server that is not a success. `label` is the outcome's name in a trace."""

    code = 500
    label = "error"


class NotFound(ApiError):
    """No such object."""

    code = 404
    label = "not-found"


class AlreadyExists(ApiError):
    """The name is taken."""

    code = 409
    label = "conflict"


class Conflict(ApiError):
    """resourceVersion or UID differ from what is stored, or the object's state forbids the request (binding a bound pod)."""

    code = 409
    label = "conflict"


class Invalid(ApiError):
    """The request breaks a validation rule."""

    code = 422
    label = "invalid"


class Unavailable(ApiError):
    """Injected: the caller sees an error. `applied` says whether the request took effect."""

    code = 503

    def __init__(self, applied: bool) -> None:
        super().__init__("the server could not answer" + (" (the request took effect)" if applied else ""))
        self.applied = applied
        self.label = "applied-error" if applied else "refused"


class CorruptFile(Exception):
    """A checkpoint or CDI file that is not JSON, has a wrong checksum or lacks a field. Names the file."""


class UnresolvedDevice(Exception):
    """The runtime cannot resolve a CDI device id, or finds it in two files."""


class Divergence(Exception):
    """The concrete world does not do what a trace says.

    `step`: the move; `expected`: the outcome asked for, or "enabled"; `observed`: what happened instead; `why`: one sentence.
    """

    def __init__(self, step: str, expected: str, observed: str, why: str) -> None:
        super().__init__(f"{step}: expected {expected}, observed {observed}: {why}")
        self.step, self.expected, self.observed, self.why = step, expected, observed, why


def describe(action: str, params: Mapping[str, object]) -> str:
    """`action(a=1, b=2)`: how a move is named in messages."""
    return f"{action}({', '.join(f'{k}={v}' for k, v in params.items())})"
