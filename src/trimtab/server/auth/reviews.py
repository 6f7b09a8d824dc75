"""Reviews: questions about access and identity that are asked by creating an object, which comes back with the answer.

Nothing is stored. Each function takes the document that was sent and returns the one to answer with.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from trimtab.model.errors import FieldError, FieldProblem, StatusError, bad_request, invalid
from trimtab.server.auth.identity import Authenticator, User
from trimtab.server.auth.rbac import Attributes, Authorizer
from trimtab.server.auth.rules import Rule
from trimtab.server.auth.tokens import INVALID, InvalidTokenError

AUTHORIZATION, AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"

Document = dict[str, Any]


def self_subject_access_review(authorizer: Authorizer, user: User, document: Mapping[str, Any]) -> Document:
    """Whether the asker may do something."""
    spec = document.get("spec") or {}
    _refuse([*_attribute_problems(spec), *_metadata_problems(document)])
    return _reviewed("SelfSubjectAccessReview", document, spec, _access(authorizer, user, spec))


def subject_access_review(authorizer: Authorizer, document: Mapping[str, Any]) -> Document:
    """Whether someone may do something."""
    spec = document.get("spec") or {}
    _refuse([*_attribute_problems(spec), *_subject_problems(spec), *_metadata_problems(document)])
    return _reviewed("SubjectAccessReview", document, spec, _access(authorizer, _subject(spec), spec))


def local_subject_access_review(authorizer: Authorizer, namespace: str, document: Mapping[str, Any]) -> Document:
    """Whether someone may do something in the namespace of the request."""
    spec = document.get("spec") or {}
    document = {**document, "metadata": {"namespace": namespace, **(document.get("metadata") or {})}}
    _refuse([*_attribute_problems(spec), *_subject_problems(spec), *_local_problems(document, spec)])
    if document["metadata"]["namespace"] != namespace:
        raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    return _reviewed("LocalSubjectAccessReview", document, spec, _access(authorizer, _subject(spec), spec))


def self_subject_rules_review(authorizer: Authorizer, user: User, document: Mapping[str, Any]) -> Document:
    """All that the asker may do in a namespace."""
    namespace = (document.get("spec") or {}).get("namespace") or ""
    if not namespace:
        raise bad_request("no namespace on request")
    rules, unresolved = authorizer.rules_for(user, namespace)
    status: Document = {
        "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
        "nonResourceRules": [
            {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.non_resource_urls)}
            for rule in rules
            if rule.non_resource_urls
        ],
        "incomplete": False,
    }
    if unresolved:
        unique = list(dict.fromkeys(unresolved))
        status["evaluationError"] = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
    return _reviewed("SelfSubjectRulesReview", {}, {}, status)


def self_subject_review(user: User, now: float) -> Document:
    """Who the asker is."""
    created = datetime.datetime.fromtimestamp(int(now), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": f"{AUTHENTICATION}/v1",
        "metadata": {"creationTimestamp": created},
        "status": {"userInfo": user.user_info()},
    }


async def token_review(authenticator: Authenticator, document: Mapping[str, Any]) -> Document:
    """Whom a token stands for."""
    spec = document.get("spec") or {}
    if not spec.get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    status: Document
    try:
        user, audiences = await authenticator.review_token(spec["token"], spec.get("audiences") or ())
    except InvalidTokenError as error:
        why = str(error)
        status = {"user": {}, "error": why if why == INVALID else f"[{INVALID}, {why}]"}
    else:
        status = {"authenticated": True, "user": user.user_info(), "audiences": list(audiences)}
    return {**_reviewed("TokenReview", document, spec, status), "apiVersion": f"{AUTHENTICATION}/v1"}


def _access(authorizer: Authorizer, user: User, spec: Mapping[str, Any]) -> Document:
    decision = authorizer.authorize(_attributes(user, spec))
    status: Document = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status


def _attributes(user: User, spec: Mapping[str, Any]) -> Attributes:
    asked = spec.get("resourceAttributes")
    if asked is None:
        asked = spec["nonResourceAttributes"]
        return Attributes(user, asked.get("verb") or "", path=asked.get("path") or "/")
    verb, group, version, resource, subresource, namespace, name = (
        asked.get(field) or "" for field in ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    )
    return Attributes(user, verb, group, version or "*", resource, subresource, namespace, name)


def _subject(spec: Mapping[str, Any]) -> User:
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), extra)


def _reviewed(kind: str, document: Mapping[str, Any], spec: Mapping[str, Any], status: Document) -> Document:
    metadata = {"creationTimestamp": None, **(document.get("metadata") or {})}
    return {"kind": kind, "apiVersion": f"{AUTHORIZATION}/v1", "metadata": metadata, "spec": spec, "status": status}


def _resource_rule(rule: Rule) -> Document:
    shown: Document = {
        "verbs": list(rule.verbs),
        "apiGroups": list(rule.api_groups),
        "resources": list(rule.resources),
    }
    if rule.resource_names:
        shown["resourceNames"] = list(rule.resource_names)
    return shown


def _refuse(problems: list[FieldError]) -> None:
    if problems:
        raise _invalid(problems)


def _invalid(problems: list[FieldError]) -> StatusError:
    # The reference server has lost the kind by then, so its message starts with the group.
    return invalid("", AUTHORIZATION, "", problems)


def _problem(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.INVALID, value, detail)


def _attribute_problems(spec: Mapping[str, Any]) -> list[FieldError]:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        return [
            _problem("spec.nonResourceAttributes", other, "cannot be specified in combination with resourceAttributes")
        ]
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [_problem("spec.resourceAttributes", "null", detail)]
    return []


def _subject_problems(spec: Mapping[str, Any]) -> list[FieldError]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [_problem("spec.user", "", "at least one of user or group must be specified")]


def _metadata_problems(document: Mapping[str, Any], *allowed: str) -> list[FieldError]:
    metadata = document.get("metadata") or {}
    if any(value for field, value in metadata.items() if field not in ("managedFields", *allowed)):
        detail = "must be empty except for namespace" if allowed else "must be empty"
        return [_problem("metadata", metadata, detail)]
    return []


def _local_problems(document: Mapping[str, Any], spec: Mapping[str, Any]) -> list[FieldError]:
    problems = _metadata_problems(document, "namespace")
    resource = spec.get("resourceAttributes")
    if resource is not None and (resource.get("namespace") or "") != document["metadata"]["namespace"]:
        path = "spec.resourceAttributes.namespace"
        problems.append(_problem(path, resource.get("namespace") or "", "must match metadata.namespace"))
    other = spec.get("nonResourceAttributes")
    if other is not None:
        problems.append(_problem("spec.nonResourceAttributes", other, "disallowed on this kind of request"))
    return problems
