"""Acting as someone else: the `Impersonate-*` headers (`kubectl --as`), each of which its sender must be allowed.

A request with these headers must never be served as its sender: it is served as the other, or refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

from trimtab.model.errors import bad_request
from trimtab.server.auth.identity import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User
from trimtab.server.auth.rbac import Attributes, Authorizer, denial

_PREFIX = b"impersonate-"
_EXTRA = "impersonate-extra-"
_GROUP = "authentication.k8s.io"
_ACCOUNT = re.compile(r"system:serviceaccount:([a-z0-9]([-a-z0-9]*[a-z0-9])?):([a-z0-9]([-a-z0-9.]*[a-z0-9])?)")


def impersonated(authorizer: Authorizer, user: User, headers: Iterable[tuple[bytes, bytes]]) -> User:
    """Who the request acts as: `user`, when no header says otherwise. Names of headers are in lower case.

    Raises StatusError 403 when `user` may not act as asked. Hot: most requests have no such header."""
    asked = [(name, value) for name, value in headers if name.startswith(_PREFIX)]
    return _impersonated(authorizer, user, asked) if asked else user


def _impersonated(authorizer: Authorizer, user: User, asked: list[tuple[bytes, bytes]]) -> User:
    name = uid = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}
    for header, raw in asked:
        key, value = header.decode("latin-1"), raw.decode("utf-8", "replace")
        if key == "impersonate-user":
            name = name or value
        elif key == "impersonate-group":
            groups.append(value)
        elif key == "impersonate-uid":
            uid = uid or value
        elif key.startswith(_EXTRA):
            extra.setdefault(unquote(key[len(_EXTRA) :]), []).append(value)
    if not name:
        raise bad_request("requested to impersonate without impersonating a user")
    account = _ACCOUNT.fullmatch(name)
    for attributes in _needed(user, name, account, groups, uid, extra):
        decision = authorizer.authorize(attributes)
        if not decision.allowed:
            raise denial(attributes, decision.reason)
    if account and not groups:
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{account[1]}"]
    if name == ANONYMOUS.name:
        if UNAUTHENTICATED not in groups:
            groups.append(UNAUTHENTICATED)
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups.append(AUTHENTICATED)
    return User(name, uid, tuple(groups), {key: tuple(values) for key, values in extra.items()})


def _needed(
    user: User,
    name: str,
    account: re.Match[str] | None,
    groups: list[str],
    uid: str,
    extra: dict[str, list[str]],
) -> Iterable[Attributes]:
    """What the sender must be allowed to `impersonate`."""
    if account:
        yield Attributes(user, "impersonate", "", "v1", "serviceaccounts", namespace=account[1], name=account[3])
    else:
        yield Attributes(user, "impersonate", "", "v1", "users", name=name)
    for group in groups:
        yield Attributes(user, "impersonate", "", "v1", "groups", name=group)
    for key, values in extra.items():
        for value in values:
            yield Attributes(user, "impersonate", _GROUP, "v1", "userextras", subresource=key, name=value)
    if uid:
        yield Attributes(user, "impersonate", _GROUP, "v1", "uids", name=uid)
