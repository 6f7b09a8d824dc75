"""Failures that a user of the API sees: one exception that becomes one Kubernetes `Status`.

The server raises these and the client raises the same ones from the answers it gets, so that code on both sides reads alike.
Reasons, codes and messages are those of `k8s.io/apimachinery/pkg/api/errors`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

MAX_ERRORS = 500
"""Nobody reads more; a body made of mistakes must not cost more than it is worth."""


class FieldProblem(enum.Enum):
    """What is wrong with a field: the word in the message and the reason of the cause."""

    REQUIRED = ("Required value", "FieldValueRequired")
    INVALID = ("Invalid value", "FieldValueInvalid")
    TYPE_INVALID = ("Invalid value", "FieldValueTypeInvalid")
    UNSUPPORTED = ("Unsupported value", "FieldValueNotSupported")
    DUPLICATE = ("Duplicate value", "FieldValueDuplicate")
    FORBIDDEN = ("Forbidden", "FieldValueForbidden")
    NOT_FOUND = ("Not found", "FieldValueNotFound")
    TOO_LONG = ("Too long", "FieldValueTooLong")
    TOO_MANY = ("Too many", "FieldValueTooMany")
    INTERNAL = ("Internal error", "InternalError")


class FieldError(msgspec.Struct, frozen=True):
    """One thing wrong with one field of an object. `path` is as users write it: `spec.ports[0].name`."""

    path: str
    problem: FieldProblem
    value: Any = None
    detail: str = ""

    @property
    def body(self) -> str:
        word = self.problem.value[0]
        silent = (FieldProblem.REQUIRED, FieldProblem.FORBIDDEN, FieldProblem.TOO_LONG, FieldProblem.INTERNAL)
        if self.problem in silent:
            text = word
        else:
            text = f"{word}: {shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


class Bare(str):
    """A value that messages print without quotes."""


def shown(value: Any) -> str:
    """A bad value as the API prints it in messages."""
    if isinstance(value, Bare):
        return str(value)
    from trimtab.model.schema import gotext  # the schema room builds on this one

    return gotext.shown(value)


class StatusError(Exception):
    """A failed request. `status()` is the answer's body."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata: dict[str, Any] = {}  # of the Status itself: where an expired list may go on

    @property
    def retry_after(self) -> int | None:
        return self.details.get("retryAfterSeconds") if self.details else None

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status

    @classmethod
    def from_status(cls, status: dict[str, Any], code: int) -> StatusError:
        return cls(
            status.get("code") or code,
            status.get("reason") or "",
            status.get("message") or f"the server answered {code}",
            status.get("details"),
        )


def qualified(resource: str, group: str) -> str:
    """`deployments.apps`, or `configmaps` in the core group."""
    return f"{resource}.{group}" if group else resource


def _details(name: str, group: str, kind: str, **more: Any) -> dict[str, Any]:
    details = {"name": name, "group": group, "kind": kind, **more}
    return {key: value for key, value in details.items() if value}


def not_found(resource: str, group: str, name: str) -> StatusError:
    """404: there is no such object."""
    message = f'{qualified(resource, group)} "{name}" not found'
    return StatusError(404, "NotFound", message, _details(name, group, resource))


def already_exists(resource: str, group: str, name: str) -> StatusError:
    """409: the name is taken."""
    message = f'{qualified(resource, group)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _details(name, group, resource))


def conflict(resource: str, group: str, name: str, why: str) -> StatusError:
    """409: the object changed since it was read, or another state forbids the act."""
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return StatusError(409, "Conflict", message, _details(name, group, resource))


def forbidden(resource: str, group: str, name: str, why: str) -> StatusError:
    """403: who asks may not, or nobody may."""
    if name:
        message = f'{qualified(resource, group)} "{name}" is forbidden: {why}'
    else:
        message = f"{qualified(resource, group)} is forbidden: {why}"
    return StatusError(403, "Forbidden", message, _details(name, group, resource))


def invalid(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """422 with every problem: the message lists them, the causes carry them one by one."""
    errors = errors[:MAX_ERRORS]
    texts = list(dict.fromkeys(str(error) for error in errors))
    if not texts:
        listed = "<nil>"
    elif len(texts) == 1:
        listed = texts[0]
    else:
        listed = f"[{', '.join(texts)}]"
    causes = [{"reason": e.problem.value[1], "message": e.body, "field": e.path} for e in errors]
    message = f'{qualified(kind, group)} "{name}" is invalid: {listed}'
    return StatusError(422, "Invalid", message, _details(name, group, kind, causes=causes))


def bad_request(message: str) -> StatusError:
    """400: the request itself makes no sense."""
    return StatusError(400, "BadRequest", message)


def unauthorized(message: str = "Unauthorized") -> StatusError:
    """401: nobody knows who asks."""
    return StatusError(401, "Unauthorized", message)


def expired(message: str) -> StatusError:
    """410: the revision is older than the log."""
    return StatusError(410, "Expired", message)


def method_not_supported(resource: str, group: str, action: str) -> StatusError:
    """405: the resource has no such verb."""
    message = f'{action} is not supported on resources of kind "{qualified(resource, group)}"'
    return StatusError(405, "MethodNotAllowed", message, _details("", group, resource))


def not_acceptable(accepted: Iterable[str]) -> StatusError:
    """406: none of the forms that the client takes is served."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return StatusError(406, "NotAcceptable", message)


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    """415: the body is in a form that is not read here."""
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(message: str) -> StatusError:
    """413: the body or the object is over a limit."""
    return StatusError(413, "RequestEntityTooLarge", message)


def too_many_requests(message: str, retry_after: int = 1) -> StatusError:
    """429: come again after some seconds."""
    return StatusError(429, "TooManyRequests", message, {"retryAfterSeconds": retry_after})


def timeout(message: str, retry_after: int = 0) -> StatusError:
    """504: it took too long, and nobody knows whether it happened."""
    return StatusError(504, "Timeout", message, {"retryAfterSeconds": retry_after} if retry_after else {})


def internal(message: str) -> StatusError:
    """500: a mistake of the server."""
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})
