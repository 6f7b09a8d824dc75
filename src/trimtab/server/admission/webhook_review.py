"""AdmissionReview (admission.k8s.io/v1 and v1beta1): what is sent to a webhook, and what its answer means. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.model.errors import StatusError, bad_request
from trimtab.model.kind import Kind
from trimtab.server.admission.request import AdmissionRequest, Operation
from trimtab.server.admission.webhook_match import Hook, is_namespace
from trimtab.server.admission.webhook_patch import decoded
from trimtab.server.auth.wording import quoted

KNOWN_VERSIONS = ("v1", "v1beta1")

Document = dict[str, Any]


class CallFailedError(Exception):
    """A webhook could not be asked, or its answer makes no sense. Whether that matters is up to its failurePolicy."""

    def __init__(self, hook: Hook, why: str, doing: str = "") -> None:
        """`doing` is said before why."""
        super().__init__(f"failed calling webhook {quoted(hook.name)}: {doing}{why}")
        self.why = why


class _Response(msgspec.Struct, frozen=True):
    uid: str = ""
    allowed: bool = False
    status: dict[str, Any] | None = None
    patch: str | None = None
    patch_type: str | None = msgspec.field(name="patchType", default=None)
    audit_annotations: dict[str, str] | None = msgspec.field(name="auditAnnotations", default=None)
    warnings: list[str] | None = None


class _Review(msgspec.Struct, frozen=True):
    response: _Response | None = None
    kind: str = ""
    api_version: str = msgspec.field(name="apiVersion", default="")


class Answer(msgspec.Struct, frozen=True):
    """What a webhook said: allowed, perhaps with a patch; or the error to answer the client with."""

    refusal: StatusError | None
    patch: list[Any]
    annotations: Mapping[str, str]
    warnings: tuple[str, ...]


def check_dry_run(hook: Hook, request: AdmissionRequest) -> None:
    """A dry run must not have effects: raises StatusError 400 for a webhook that does not promise that."""
    if request.dry_run and hook.side_effects not in ("None", "NoneOnDryRun"):
        raise bad_request(f"admission webhook {quoted(hook.name)} does not support dry run")


def review_version(hook: Hook) -> str:
    for version in hook.versions:
        if version in KNOWN_VERSIONS:
            return version
    why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    raise CallFailedError(hook, f"could not create admission objects: {why}")


def review_request(
    request: AdmissionRequest,
    seen: Kind,
    *,
    uid: str,
    new: Document | None,
    old: Document | None,
) -> Document:
    """The `request` of a review. `seen`, `new` and `old` are of the version that the webhook wants."""
    kind = request.kind
    namespace = request.name if is_namespace(kind) else request.namespace
    asked: Document = {
        "uid": uid,
        "kind": _kind(request.form or seen),
        "resource": _resource(seen),
        "subResource": request.subresource,
        "requestKind": _kind(request.form or kind),
        "requestResource": _resource(kind),
        "requestSubResource": request.subresource,
        "name": request.name,
        "namespace": namespace,
        "operation": request.operation.value,
        "userInfo": request.user.user_info(),
    }
    asked = {field: value for field, value in asked.items() if value}
    asked["object"], asked["oldObject"] = new, old
    asked["dryRun"] = request.dry_run
    asked["options"] = _options(request)
    return asked


def read_answer(hook: Hook, body: bytes, *, uid: str, version: str, mutating: bool) -> Answer:
    """Raises CallFailedError for an answer that is not one."""
    try:
        review = msgspec.json.decode(body, type=_Review)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CallFailedError(hook, f"failed to call webhook: the answer is not an AdmissionReview: {error}") from None
    response = review.response
    if response is None:
        raise _invalid(hook, "webhook response was absent")
    if version == "v1":
        _check_v1(hook, review, response, uid, mutating)
    refusal = None if response.allowed else _refusal(hook, response.status)
    patch = _patch(hook, response) if mutating and response.allowed and response.patch else []
    annotations = {f"{hook.name}/{key}": value for key, value in (response.audit_annotations or {}).items()}
    return Answer(refusal, patch, annotations, tuple(response.warnings or ()))


def _check_v1(hook: Hook, review: _Review, response: _Response, uid: str, mutating: bool) -> None:
    if response.uid != uid:
        raise _invalid(hook, f"expected response.uid={quoted(uid)}, got {quoted(response.uid)}")
    if (review.api_version, review.kind) != ("admission.k8s.io/v1", "AdmissionReview"):
        group, _, version = review.api_version.rpartition("/")
        raise _invalid(
            hook,
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, "
            f"got {group}/{version}, Kind={review.kind}",
        )
    if not mutating:
        if response.patch:
            raise _invalid(hook, "validating webhook may not return response.patch")
        if response.patch_type is not None:
            raise _invalid(hook, "validating webhook may not return response.patchType")
        return
    if response.patch and response.patch_type is None:
        raise _invalid(hook, "webhook returned response.patch but not response.patchType")
    if not response.patch and response.patch_type is not None:
        raise _invalid(hook, "webhook returned response.patchType but not response.patch")
    if response.patch_type == "":
        raise _invalid(hook, 'webhook returned invalid response.patchType of ""')
    if response.patch_type not in (None, "JSONPatch"):
        raise CallFailedError(hook, f"unsupported patch type {quoted(response.patch_type or '')}")


def _invalid(hook: Hook, why: str) -> CallFailedError:
    return CallFailedError(hook, f"received invalid webhook response: {why}")


def _patch(hook: Hook, response: _Response) -> list[Any]:
    try:
        raw = base64.b64decode(response.patch or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise CallFailedError(hook, f"failed to call webhook: the patch is not base64: {error}") from None
    return decoded(raw)


def _refusal(hook: Hook, status: Mapping[str, Any] | None) -> StatusError:
    given = status or {}
    denied = f"admission webhook {quoted(hook.name)} denied the request"
    code = given.get("code") or 0
    code = code if isinstance(code, int) and 400 <= code < 600 else 400
    reason = str(given.get("reason") or "")
    why = str(given.get("message") or "") or reason
    details = given.get("details")
    return StatusError(
        code,
        reason,
        f"{denied}: {why}" if why else f"{denied} without explanation",
        details if isinstance(details, dict) else None,
    )


def _kind(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def _options(request: AdmissionRequest) -> Document:
    names = {Operation.CREATE: "CreateOptions", Operation.UPDATE: "UpdateOptions", Operation.DELETE: "DeleteOptions"}
    name = names.get(request.operation)
    if name is None:
        return {}
    options: Document = {"kind": name, "apiVersion": "meta.k8s.io/v1", **request.options}
    if request.dry_run:
        options["dryRun"] = ["All"]
    return options
