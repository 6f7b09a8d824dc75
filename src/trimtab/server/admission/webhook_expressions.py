"""What the matchConditions of a webhook may speak of, and their compilation. Pure; CEL is loaded with the first one.

The types are those of kube-apiserver: `request` has neither uid nor objects, which are variables of their own, and
`namespaceObject` is known, but null.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.model.cel import CelError, Program, Type

REQUEST_RESOURCE = "authorizer_requestResource"
"""The variable that stands for `authorizer.requestResource`, which to CEL is one name with a dot in it."""


@functools.lru_cache(maxsize=512)
def compiled(expression: str) -> Program:
    """Raises CelError, or WrongResult when it is no question."""
    from trimtab.model.cel import BOOL

    return compiled_with(expression, variables(), BOOL)


def compiled_with(expression: str, known: Mapping[str, Type], result: Type | None) -> Program:
    """An expression over these variables; its result may be anything when none is given."""
    from trimtab.model.cel import CelError, compile  # noqa: A004

    try:
        return compile(_renamed(expression) if REQUEST_RESOURCE in known else expression, known, result=result)
    except CelError as error:
        raise _placed(expression, error) from None


@functools.cache
def variables() -> Mapping[str, Type]:
    from trimtab.model.cel import AUTHORIZER, BOOL, DYN, RESOURCE_CHECK, STRING, ObjectType, list_of, map_of

    kind = ObjectType("kubernetes.GroupVersionKind", dict.fromkeys(("group", "version", "kind"), STRING))
    resource = ObjectType("kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), STRING))
    texts = list_of(STRING)
    user = ObjectType(
        "kubernetes.UserInfo",
        {"username": STRING, "uid": STRING, "groups": texts, "extra": map_of(STRING, texts)},
    )
    request = ObjectType(
        "kubernetes.AdmissionRequest",
        {
            **dict.fromkeys(("kind", "requestKind"), kind),
            **dict.fromkeys(("resource", "requestResource"), resource),
            **dict.fromkeys(("subResource", "requestSubResource", "name", "namespace", "operation"), STRING),
            "userInfo": user,
            "dryRun": BOOL,
            "options": DYN,
        },
    )
    return {
        "object": DYN,
        "oldObject": DYN,
        "namespaceObject": _namespace(),
        "request": request,
        "authorizer": AUTHORIZER,
        REQUEST_RESOURCE: RESOURCE_CHECK,
    }


def _namespace() -> Type:
    from trimtab.model.cel import INT, STRING, TIMESTAMP, ObjectType, list_of, map_of

    texts = list_of(STRING)
    metadata = ObjectType(
        "kubernetes.NamespaceMetadata",
        {
            **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
            **dict.fromkeys(("labels", "annotations"), map_of(STRING, STRING)),
            **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), TIMESTAMP),
            **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
            "finalizers": texts,
        },
    )
    condition = ObjectType(
        "kubernetes.NamespaceCondition",
        {**dict.fromkeys(("status", "type", "message", "reason"), STRING), "lastTransitionTime": TIMESTAMP},
    )
    return ObjectType(
        "kubernetes.Namespace",
        {
            "metadata": metadata,
            "spec": ObjectType("kubernetes.NamespaceSpec", {"finalizers": texts}),
            "status": ObjectType("kubernetes.NamespaceStatus", {"conditions": list_of(condition), "phase": STRING}),
        },
    )


def _renamed(expression: str) -> str:
    """The expression with `authorizer.requestResource` as one word of the same length: places stay as they are."""
    from trimtab.model.cel.lexer import MAX_SOURCE, Source, tokens

    if "requestResource" not in expression or len(expression) > MAX_SOURCE:
        return expression
    found = [None, *tokens(Source(expression))[0]]
    parts: list[str] = []
    done = 0
    for before, first, dot, last in zip(found, found[1:], found[2:], found[3:], strict=False):
        words = tuple(token and token.text for token in (first, dot, last))
        if words != ("authorizer", ".", "requestResource") or (before and before.text == "."):
            continue
        assert first is not None and last is not None  # noqa: S101, PT018 - they have these words
        end = last.place + len(last.text)
        parts += (expression[done : first.place], REQUEST_RESOURCE.ljust(end - first.place))
        done = end
    return "".join([*parts, expression[done:]])


def _placed(expression: str, error: CelError) -> CelError:
    """The error, showing the expression as it was written."""
    return type(error)(expression, error.issues) if error.issues else error
