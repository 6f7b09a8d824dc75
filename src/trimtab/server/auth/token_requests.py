"""The `token` subresource of a service account: a TokenRequest goes in, the same with a signed token comes out."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from trimtab.model.errors import FieldError, FieldProblem, StatusError, bad_request, conflict, invalid, not_found
from trimtab.server.auth.identity import Reader
from trimtab.server.auth.tokens import Ref, TokenKey, encode_claims
from trimtab.server.auth.wording import quoted

GROUP = "authentication.k8s.io"
DEFAULT_SECONDS, MIN_SECONDS, MAX_SECONDS = 3600, 600, 1 << 32

Document = dict[str, Any]
Admit = Callable[[Document], Awaitable[None]]


async def create_token(
    document: Mapping[str, Any],
    *,
    namespace: str,
    name: str,
    reader: Reader,
    key: TokenKey,
    issuer: str,
    audiences: tuple[str, ...],
    now: float,
    admit: Admit | None = None,
) -> Document:
    """Answer a TokenRequest for the service account `namespace`/`name`. `audiences` are the server's own; `admit` is asked
    about the request, with all that it did not say, before a token is made."""
    _check_shape(document)
    metadata = document.get("metadata") or {}
    _check_same(metadata, "name", name, name)
    _check_same(metadata, "namespace", namespace, name)
    account = await reader.get("serviceaccounts", namespace, name)
    if account is None:
        raise not_found("serviceaccounts", "", name)
    spec = document.get("spec") or {}
    seconds = DEFAULT_SECONDS if spec.get("expirationSeconds") is None else spec["expirationSeconds"]
    _check_seconds(seconds)
    wanted = tuple(spec.get("audiences") or audiences)
    reference = spec.get("boundObjectRef")
    answer: Document = {
        "kind": "TokenRequest",
        "apiVersion": f"{GROUP}/v1",
        "metadata": {**metadata, "name": name, "namespace": namespace, "creationTimestamp": _timestamp(now)},
        "spec": {"audiences": list(wanted), "expirationSeconds": seconds, "boundObjectRef": reference or None},
        "status": {"token": "", "expirationTimestamp": None},
    }
    if admit is not None:
        await admit(answer)
    bound = await _resolve(reader, reference, namespace, name) if reference else {}
    claims = encode_claims(
        issuer=issuer,
        audiences=wanted,
        namespace=namespace,
        service_account=_ref(account),
        bound=bound,
        now=now,
        seconds=seconds,
    )
    status = {"token": key.sign(claims), "expirationTimestamp": _timestamp(now + seconds)}
    return answer | {"status": status}


def with_lifetime(document: Mapping[str, Any]) -> Document:
    """A well-formed TokenRequest with the lifetime that it means."""
    _check_shape(document)
    spec = document.get("spec") or {}
    seconds = DEFAULT_SECONDS if spec.get("expirationSeconds") is None else spec["expirationSeconds"]
    return {**document, "spec": {**spec, "expirationSeconds": seconds}}


class _Bound(msgspec.Struct, rename="camel"):
    kind: str | None = None
    api_version: str | None = None
    name: str | None = None
    uid: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    audiences: list[str] | None = None
    expiration_seconds: int | None = None
    bound_object_ref: _Bound | None = None


class _TokenRequest(msgspec.Struct):
    metadata: dict[str, Any] | None = None
    spec: _Spec | None = None


def _check_shape(document: Mapping[str, Any]) -> None:
    """What a typed decoder would refuse: this body has no schema of its own here."""
    try:
        msgspec.convert(document, _TokenRequest)
    except msgspec.ValidationError as error:
        raise bad_request(f"the body is no TokenRequest: {error}") from None


def _check_same(metadata: Mapping[str, Any], field: str, expected: str, name: str) -> None:
    given = metadata.get(field)
    if given and given != expected:
        what = "name" if field == "name" else "namespace"
        problem = FieldError(
            f"metadata.{field}", FieldProblem.INVALID, given, f"must match the service account {what} if specified"
        )
        raise invalid("TokenRequest", GROUP, name, [problem])


def _check_seconds(seconds: int) -> None:
    if seconds < MIN_SECONDS:
        detail = "may not specify a duration less than 10 minutes"
    elif seconds > MAX_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
    else:
        return
    problem = FieldError("spec.expirationSeconds", FieldProblem.INVALID, seconds, detail)
    raise invalid("TokenRequest", GROUP, "", [problem])


async def _resolve(reader: Reader, reference: Mapping[str, Any], namespace: str, account: str) -> dict[str, Ref]:
    """The claims of the object that a token is to be bound to."""
    kind, api_version, name = (reference.get(field) or "" for field in ("kind", "apiVersion", "name"))
    group, _, version = api_version.rpartition("/")
    resource = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}.get(kind)
    if group or resource is None:
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    found = await reader.get(resource, "" if kind == "Node" else namespace, name)
    if found is None:
        raise not_found(resource, "", name)
    bound = {kind.lower(): _ref(found)}
    if kind == "Pod":
        bound |= await _pod_node(reader, found, account)
    _check_uid(reference.get("uid") or "", kind, name, bound[kind.lower()].uid)
    return bound


async def _pod_node(reader: Reader, pod: Mapping[str, Any], account: str) -> dict[str, Ref]:
    spec = pod.get("spec") or {}
    if spec.get("serviceAccountName") != account:
        raise bad_request(
            f"cannot bind token for serviceaccount {quoted(account)} to pod running with different serviceaccount name."
        )
    node_name = spec.get("nodeName")
    if not node_name:
        return {}
    node = await reader.get("nodes", "", node_name)
    return {"node": Ref(node_name) if node is None else _ref(node)}


def _check_uid(wanted: str, kind: str, name: str, uid: str) -> None:
    if wanted and wanted != uid:
        raise _another_uid(wanted, kind, name)


def _another_uid(wanted: str, kind: str, name: str) -> StatusError:
    return conflict(
        kind,
        "",
        name,
        f"the UID in the bound object reference ({wanted}) does not match the UID in record. "
        "The object might have been deleted and then recreated",
    )


def _ref(document: Mapping[str, Any]) -> Ref:
    return Ref(document["metadata"]["name"], document["metadata"].get("uid", ""))


def _timestamp(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
