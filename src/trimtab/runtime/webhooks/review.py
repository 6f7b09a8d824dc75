"""AdmissionReview (admission.k8s.io/v1): what an API server asks a webhook, and how it is answered. Pure."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from trimtab.model.admission import AdmissionRequest, Operation, UserInfo, Verdict
from trimtab.model.kind import Kind
from trimtab.model.schema import Schema
from trimtab.model.scheme import Untyped
from trimtab.runtime.webhooks.patch import json_patch

API_VERSION = "admission.k8s.io/v1"

Document = dict[str, Any]


class BadReview(ValueError):  # noqa: N818 - it reads as what it is
    """The body is no review that can be answered."""


class Resource(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class _KindName(msgspec.Struct, frozen=True):
    kind: str = ""


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The `request` of a review. `resource` is in the version that our rules name, and so are the objects."""

    uid: str
    operation: Operation
    resource: Resource
    kind: _KindName = _KindName()
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    object: Document | None = None
    old_object: Document | None = None
    user_info: _User = _User()
    dry_run: bool | None = None


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: Asked


def read_review(body: bytes) -> Asked:
    """Raises BadReview."""
    try:
        review = msgspec.json.decode(body, type=_Review)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"the body is no AdmissionReview: {error}") from None
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        raise BadReview(f"the body must be an AdmissionReview of {API_VERSION}")
    asked = review.request
    if not asked.uid:
        raise BadReview("the request has no uid")
    if (asked.operation is Operation.DELETE) is not (asked.object is None):
        raise BadReview("a deletion has no object, and every other write has one")
    return asked


def kind_of(asked: Asked) -> Kind:
    """The kind, from what the review says of it. The kind of a subresource's document is another: there the resource
    stands for it."""
    resource = asked.resource
    name = asked.kind.kind if asked.kind.kind and not asked.sub_resource else resource.resource
    return Kind(
        group=resource.group,
        version=resource.version,
        kind=name,
        plural=resource.resource,
        namespaced=bool(asked.namespace),
        schema=Schema({}),
    )


def request_of(asked: Asked, kind: Kind) -> AdmissionRequest[Untyped]:
    user = asked.user_info
    return AdmissionRequest(
        operation=asked.operation,
        kind=kind,
        namespace=asked.namespace if kind.namespaced else "",
        name=asked.name,
        object=None if asked.object is None else Untyped(asked.object),
        old=None if asked.old_object is None else Untyped(asked.old_object),
        user=UserInfo(
            user.username,
            user.uid,
            tuple(user.groups or ()),
            {name: tuple(values) for name, values in (user.extra or {}).items()},
        ),
        dry_run=bool(asked.dry_run),
        subresource=asked.sub_resource,
    )


def answer(asked: Asked, verdict: Verdict) -> bytes:
    """The review that says what was decided. The API server puts the name of the webhook in front of the message; code,
    reason and details reach the client as they are."""
    response: Document = {"uid": asked.uid, "allowed": verdict.refusal is None}
    if verdict.refusal is not None:
        error = verdict.refusal
        response["status"] = {
            "status": "Failure",
            "message": error.message,
            "reason": error.reason,
            "code": error.code,
            "details": error.details or {},
        }
    elif verdict.document is not None and asked.object is not None:
        patch = json_patch(asked.object, verdict.document)
        if patch:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(msgspec.json.encode(patch)).decode()
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})
