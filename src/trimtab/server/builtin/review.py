"""Kinds that are asked and not stored: who am I, may I, is this token good. Their answers are given elsewhere."""

from __future__ import annotations

from trimtab.server.builtin.native import Native, kind


class Review(Native):
    """Created, answered, forgotten. The name is optional and means nothing."""

    verbs = ("create",)


_AUTHENTICATION = "io.k8s.api.authentication.v1."
_AUTHORIZATION = "io.k8s.api.authorization.v1."
_GROUPS = {_AUTHENTICATION: "authentication.k8s.io", _AUTHORIZATION: "authorization.k8s.io"}

STRATEGIES = tuple(
    Review(kind(package + name, f"{name.lower()}s", group=_GROUPS[package], namespaced=name.startswith("Local")))
    for package, name in (
        (_AUTHENTICATION, "SelfSubjectReview"),
        (_AUTHENTICATION, "TokenReview"),
        (_AUTHORIZATION, "LocalSubjectAccessReview"),
        (_AUTHORIZATION, "SelfSubjectAccessReview"),
        (_AUTHORIZATION, "SelfSubjectRulesReview"),
        (_AUTHORIZATION, "SubjectAccessReview"),
    )
)
TOKEN_REQUEST = Review(kind(_AUTHENTICATION + "TokenRequest", "tokenrequests", group="authentication.k8s.io"))
