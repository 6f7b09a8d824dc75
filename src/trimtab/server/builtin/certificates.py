"""CertificateSigningRequest. Three doors write it: its own (metadata alone, after creation), `approval` (conditions), and
`status` (the certificate, and conditions that are no approval)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trimtab.model.clock import format_time
from trimtab.model.errors import FieldError, bad_request
from trimtab.model.kind import Column
from trimtab.model.metadata import dns_label_problems, path_segment_name
from trimtab.model.names import dns_subdomain_problems
from trimtab.server.builtin.defaults import completed_status
from trimtab.server.builtin.native import AGE, NAME, Native, human_duration, kind
from trimtab.server.builtin.problems import (
    at,
    duplicate,
    forbidden,
    invalid,
    invalid_go,
    items,
    required,
    too_long,
    unsupported,
)
from trimtab.server.strategy import Document

if TYPE_CHECKING:
    from trimtab.server.auth.identity import User

GROUP = "certificates.k8s.io"
LEGACY = "kubernetes.io/legacy-unknown"
APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
MIN_SECONDS = 600
_SHOWN_BYTES = 4096  # of a request that is wrong


def _any_name(name: str, prefix: bool) -> list[str]:
    return []


class CertificateSigningRequest(Native):
    subresources = ("approval",)
    name_check = staticmethod(_any_name)
    selectable: Mapping[str, str] = {"spec.signerName": "spec.signerName"}
    shown = (
        NAME,
        AGE,
        Column("SignerName", ".spec.signerName"),
        Column("Requestor", ".spec.username"),
        Column("RequestedDuration", ".spec.expirationSeconds"),
        Column("Condition", ".status.conditions"),
    )

    def reset(self, subresource: str) -> dict[str, Any] | None:
        inner: dict[str, Document] = {"status": {"f:conditions": {}}, "approval": {"f:certificate": {}}}
        return {"f:spec": {}, "f:status": inner.get(subresource, {})}

    def authored(self, new: Document, user: User) -> None:
        """Who asks is written down, whatever the request says."""
        spec = new.get("spec")
        if not isinstance(spec, dict):
            return
        for field in ("username", "uid", "groups", "extra"):
            spec.pop(field, None)
        spec.update(user.user_info())

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        if old is None:
            new["status"] = {}
        else:
            new["spec"] = old.get("spec") or {}
            if subresource == "status":
                _keep_approval(new, old)
                self._set_times(new, old)
            elif subresource == "approval":
                self._set_times(new, old)
                conditions = at(new, "status", "conditions")
                new["status"] = {**(old.get("status") or {}), "conditions": conditions}
                if not conditions:
                    del new["status"]["conditions"]
            else:
                new["status"] = old.get("status") or {}
        completed_status(self.definition)(new)

    def _set_times(self, new: Document, old: Document) -> None:
        now = format_time(self.clock.now())
        for condition in items(new, "status", "conditions"):
            condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
            if not condition.get("lastTransitionTime"):
                same = (c for c in items(old, "status", "conditions") if _same_state(c, condition))
                kept = next((c["lastTransitionTime"] for c in same if c.get("lastTransitionTime")), None)
                condition["lastTransitionTime"] = kept or now

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if old is None:
            _check_name(new["metadata"].get("name") or "")
        errors = [*_spec_errors(new.get("spec") or {}, old), *_condition_errors(new, old)]
        before, after = at(old, "status", "certificate") or "", at(new, "status", "certificate") or ""
        if after != before and (why := _certificate_problem(after)):
            errors.append(invalid("status.certificate", "<certificate data>", why))
        if old is None:
            return errors
        errors += _transition_errors(new, old, approving=subresource == "approval")
        if after != before and subresource != "status":
            errors.append(forbidden("status.certificate", "updates may not set certificate content"))
        elif after != before and before:
            errors.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
        return errors

    def fields(self, obj: Document) -> dict[str, str]:
        return {"spec.signerName": at(obj, "spec", "signerName") or ""}

    def cells(self, obj: Document) -> list[Any] | None:
        metadata, spec = obj["metadata"], obj.get("spec") or {}
        seconds = spec.get("expirationSeconds")
        return [
            metadata.get("name", ""),
            self.age(metadata.get("creationTimestamp")),
            spec.get("signerName") or "<none>",
            spec.get("username") or "",
            "<none>" if seconds is None else human_duration(seconds),
            state(obj),
        ]


def _check_name(name: str) -> None:
    """Any name will do that can be asked for again: it is a segment of a path."""
    if problems := path_segment_name(name, False):
        raise bad_request(f'Name parameter invalid: "{name}": {"; ".join(problems)}')


def state(obj: Document) -> str:
    """What `kubectl get csr` says of a request."""
    types = {condition.get("type") for condition in items(obj, "status", "conditions")}
    word = DENIED if DENIED in types else APPROVED if APPROVED in types else "Pending"
    word += ",Failed" if FAILED in types else ""
    return word + (",Issued" if at(obj, "status", "certificate") else "")


def _same_state(one: Document, other: Document) -> bool:
    return one.get("type") == other.get("type") and one.get("status") == other.get("status")


def _of_type(document: Document | None, word: str) -> list[Document]:
    return [condition for condition in items(document, "status", "conditions") if condition.get("type") == word]


def _keep_approval(new: Document, old: Document) -> None:
    """An approval that is written as it is, with other times, is the same. One more or less is refused later."""
    for word in (APPROVED, DENIED):
        before, after = _of_type(old, word), _of_type(new, word)
        if len(before) == len(after):
            for kept, given in zip(before, after, strict=True):
                given.clear()
                given.update(kept)


def _spec_errors(spec: Document, old: Document | None) -> list[FieldError]:
    errors: list[FieldError] = []
    if old is None and (why := request_problem(spec.get("request"))):
        errors.append(invalid_go("spec.request", _go_bytes(spec.get("request")), why))
    usages = spec.get("usages") or []
    if not usages:
        errors.append(required("spec.usages"))
    if old is None:
        errors += [unsupported(f"spec.usages[{i}]", u, USAGES) for i, u in enumerate(usages) if u not in USAGES]
        errors += [duplicate(f"spec.usages[{i}]", u) for i, u in enumerate(usages) if u in usages[:i]]
    signer = spec.get("signerName") or ""
    if signer == LEGACY and at(old, "spec", "signerName") != LEGACY:
        errors.append(invalid("spec.signerName", signer, "the legacy signerName is not allowed via this API version"))
    else:
        errors += signer_errors("spec.signerName", signer)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < MIN_SECONDS:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", seconds, why))
    return errors


def signer_errors(path: str, name: str) -> list[FieldError]:
    """What is wrong with the name of a signer."""
    if not name:
        return [required(path)]
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, why)]
    errors = [too_long(path, 253)] if len(domain) > 253 else []
    labels = domain.split(".")
    for label in labels:
        if problems := dns_label_problems(label):
            errors += [invalid(path, domain, f'validating label "{label}": {problem}') for problem in problems]
            break
    if len(labels) < 2:
        errors.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    for label in rest.split("."):
        if problems := dns_subdomain_problems(label):
            errors += [invalid(path, rest, f'validating label "{label}": {problem}') for problem in problems]
            break
    if len(name) > 253 + 63 + 253:
        errors.append(too_long(path, 253 + 63 + 253))
    return errors


def _condition_errors(new: Document, old: Document | None) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: list[str] = []
    both = bool(_of_type(old, APPROVED) and _of_type(old, DENIED))
    for index, condition in enumerate(items(new, "status", "conditions")):
        path, word = f"status.conditions[{index}]", condition.get("type") or ""
        if not word:
            errors.append(required(f"{path}.type"))
        allowed = ("True",) if word in (APPROVED, DENIED, FAILED) else ("False", "True", "Unknown")
        given = condition.get("status") or ""
        if not given:
            errors.append(required(f"{path}.status"))
        elif given not in allowed:
            errors.append(unsupported(f"{path}.status", given, allowed))
        other = {APPROVED: DENIED, DENIED: APPROVED}.get(word)
        if other in seen and not both:
            why = "Approved and Denied conditions are mutually exclusive"
            errors.append(invalid(f"{path}.type", word, why))
        if word in seen:
            errors.append(duplicate(f"{path}.type", word))
        seen.append(word)
    return errors


def _transition_errors(new: Document, old: Document, *, approving: bool) -> list[FieldError]:
    removed = [w for w in (APPROVED, DENIED, FAILED) if len(_of_type(new, w)) < len(_of_type(old, w))]
    errors = [forbidden("status.conditions", f'updates may not remove a condition of type "{w}"') for w in removed]
    for word in () if approving else (APPROVED, DENIED):
        before, after = _of_type(old, word), _of_type(new, word)
        if len(after) > len(before):
            errors.append(forbidden("status.conditions", f'updates may not add a condition of type "{word}"'))
        elif len(after) == len(before) and after != before:
            errors.append(forbidden("status.conditions", f'updates may not modify a condition of type "{word}"'))
    return errors


def request_problem(encoded: Any) -> str:
    from trimtab.server.auth.signing import RequestError, read_request

    try:
        read_request(encoded or "")
    except RequestError as error:
        return str(error)
    return ""


def _certificate_problem(encoded: str) -> str:
    from trimtab.server.auth.signing import RequestError, check_certificates

    try:
        check_certificates(encoded)
    except RequestError as error:
        return str(error)
    return ""


def _go_bytes(encoded: Any) -> str:
    from trimtab.server.auth.signing import decoded

    raw = decoded(encoded or "") if isinstance(encoded, str) else b""
    if not raw:
        return "[]byte(nil)"
    more = ", …" if len(raw) > _SHOWN_BYTES else ""
    return "[]byte{" + ", ".join(f"{byte:#x}" for byte in raw[:_SHOWN_BYTES]) + more + "}"


STRATEGIES = (
    CertificateSigningRequest(
        kind(
            "io.k8s.api.certificates.v1.CertificateSigningRequest",
            "certificatesigningrequests",
            group=GROUP,
            namespaced=False,
            short=("csr",),
            status=True,
        )
    ),
)
