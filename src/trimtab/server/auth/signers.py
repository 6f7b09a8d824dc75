"""Who may approve and sign certificate requests: RBAC verbs on the resource `signers`, which has no objects. Each question is
asked for the signer's name, then for all of its domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.model.errors import StatusError, forbidden
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.auth.rbac import Attributes, Authorizer
from trimtab.server.auth.wording import quoted

GROUP, PLURAL = "certificates.k8s.io", "certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"


def check_signer(
    authorizer: Authorizer,
    user: User,
    subresource: str,
    new: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    name: str,
) -> None:
    """Raises StatusError 403 when a write of a request is not this user's to make."""
    if old is None:
        if not subresource:
            _check_subject(new, name)
        return
    signer = str((old.get("spec") or {}).get("signerName") or "")
    if subresource == "approval":
        verb, what = "approve", "approve"
    elif subresource == "status" and _status(new) != _status(old):
        verb, what = "sign", "sign"
    else:
        return
    domain = signer.split("/", 1)[0]
    for asked in (signer, f"{domain}/*"):
        if authorizer.authorize(Attributes(user, verb, GROUP, "*", "signers", name=asked)).allowed:
            return
    raise _refusal(name, f"user not permitted to {what} requests with signerName {quoted(signer)}")


def _check_subject(new: Mapping[str, Any], name: str) -> None:
    """Nobody becomes a master by a certificate of this API."""
    from trimtab.server.auth.signing import RequestError, organizations, read_request

    spec = new.get("spec") or {}
    if spec.get("signerName") != CLIENT:
        return
    try:
        groups = organizations(read_request(spec.get("request") or ""))
    except RequestError as error:
        raise _refusal(name, f"failed to parse CSR: {error}") from None
    if MASTERS in groups:
        raise _refusal(name, f"use of {CLIENT} signer with {MASTERS} group is not allowed")


def _status(document: Mapping[str, Any]) -> tuple[Any, Any]:
    status = document.get("status") or {}
    return status.get("certificate") or "", status.get("conditions") or []


def _refusal(name: str, why: str) -> StatusError:
    return forbidden(PLURAL, GROUP, name, why)
