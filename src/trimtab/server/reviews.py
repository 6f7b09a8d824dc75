"""Questions asked as objects: who am I, what may I do. They are answered and not kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.model.errors import StatusError, bad_request
from trimtab.server import documents, negotiate
from trimtab.server.auth import reviews
from trimtab.server.http import Request, Response, json_response
from trimtab.server.options import write_options
from trimtab.server.present import present
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.server.target import Target

if TYPE_CHECKING:
    from trimtab.server.core import Server

NOT_ALLOWED = StatusError(
    405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}
)
REVIEWED = frozenset(
    {
        "subjectaccessreviews.authorization.k8s.io",
        "selfsubjectaccessreviews.authorization.k8s.io",
        "localsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectrulesreviews.authorization.k8s.io",
        "selfsubjectreviews.authentication.k8s.io",
        "tokenreviews.authentication.k8s.io",
    }
)


class Reviews:
    def __init__(self, server: Server) -> None:
        self._server = server

    async def handle(self, request: Request, served: Served, target: Target, verb: str) -> Response:
        if target.name:
            raise StatusError(404, "NotFound", "the server could not find the requested resource", {})
        if verb != "create":
            raise NOT_ALLOWED
        form = negotiate.form(request.header(b"accept"), request.header(b"user-agent"), request.query.get("pretty"))
        options = write_options(request.query, "CreateOptions")
        document = documents.read(request, served, target, options.field_validation).document
        document["metadata"] = {k: v for k, v in document["metadata"].items() if v}
        return present(json_response(await self._answer(request, served.kind.kind, target, document), 201), form)

    async def _answer(self, request: Request, kind: str, target: Target, document: Document) -> Document:
        server, user = self._server, request.user
        match kind:
            case "SelfSubjectAccessReview":
                return reviews.self_subject_access_review(server.authorizer, user, document)
            case "SubjectAccessReview":
                return reviews.subject_access_review(server.authorizer, document)
            case "LocalSubjectAccessReview":
                return reviews.local_subject_access_review(server.authorizer, target.namespace, document)
            case "SelfSubjectRulesReview":
                return reviews.self_subject_rules_review(server.authorizer, user, document)
            case "SelfSubjectReview":
                return reviews.self_subject_review(user, server.clock.now().timestamp())
            case "TokenReview" if server.authenticator is not None:
                return await reviews.token_review(server.authenticator, document)
        raise bad_request(f"{kind} cannot be answered here")
