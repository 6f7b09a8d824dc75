"""Logins and tokens of one registry (distribution, "Token Authentication"; OAuth2 for identity tokens).

Flow: nothing is sent until the registry asks for it → Basic, or a token from its token server, by scope → the token is
used until shortly before it expires, or until a 401, and then had anew, once.

Guarantees: a login goes to the registry and to the token server that it names (checked in `challenges`), and nowhere
else. Many requests that need the same token wait for one. A login that was refused and never worked is not tried again,
so that a long listing does not lock an account out. No error holds a login or a token.

Assumption: a login does not change during the life of an `Authorizer`; whoever renews one makes a new client.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterable
from urllib.parse import urlencode

import msgspec
import yarl

from trimtab.model.clock import Clock
from trimtab.model.redacted import Redacted, basic, bearer
from trimtab.runtime.credentials.types import DockerConfig, RegistryLogin
from trimtab.runtime.outbound import Outbound, Response
from trimtab.systems.images.registry.challenges import Bearer, RealmRefused, bearer_of, challenges
from trimtab.systems.images.registry.errors import BadAnswer, Forbidden, Unauthorized, refusal, told
from trimtab.systems.images.registry.references import Endpoint

CLIENT_ID = "trimtab"
SHORTEST_LIFE = 60.0
"""Seconds that a token lives when its server does not say."""
LONGEST_LIFE = 3600.0
MARGIN = 10.0
"""Seconds before its end when a token is no longer used; of a short life a fifth."""
MOST_TOKENS = 4096
LARGEST_ANSWER = 1024 * 1024
LONGEST_TOKEN = 64 * 1024
MOST_HOSTS = 8
"""Of a Docker configuration, in one error."""


class Access(msgspec.Struct, frozen=True):
    """What is asked for: a scope, and the repository whose login is used for it."""

    scope: str
    repository: str = ""


CATALOG = Access("registry:catalog:*")
PING = Access("")


def pull(repository: str) -> Access:
    return Access(f"repository:{repository}:pull", repository)


class Logins:
    """The login for a repository; for the empty name that of the registry as a whole."""

    def __init__(self, login: DockerConfig | RegistryLogin | None, registry: Endpoint) -> None:
        self._login, self._registry = login, registry

    def __call__(self, repository: str) -> RegistryLogin | None:
        if isinstance(self._login, DockerConfig):
            return self._login.login_for(self._registry.name, repository)
        return self._login

    def remedy(self, repository: str) -> str:
        """What to do where a login is wanted and there is none."""
        if not isinstance(self._login, DockerConfig):
            return "name a Secret in authSecret"
        hosts = sorted(set(filter(None, map(_host, self._login.logins))))
        name = self._registry.name
        needed = f"{name}/{repository}" if repository and name in hosts else name
        if not hosts:
            return f"the Secret in authSecret has no logins, and one for {needed} is needed"
        named = ", ".join(hosts[:MOST_HOSTS]) + (" and others" if len(hosts) > MOST_HOSTS else "")
        return f"the Secret in authSecret has logins for {named}, and none for {needed}: add it there"


def logins_of(login: DockerConfig | RegistryLogin | None, registry: Endpoint) -> Logins:
    """The login of a Docker configuration that fits best, or always the same one."""
    return Logins(login, registry)


class Authorizer:
    """What to send in Authorization to one registry, and what to do about a 401."""

    def __init__(self, registry: Endpoint, logins: Logins, outbound: Outbound, clock: Clock) -> None:
        self._registry, self._logins, self._outbound, self._clock = registry, logins, outbound, clock
        self._way: Bearer | None = None
        self._basic = False
        self._scopes: dict[str, tuple[str, ...]] = {}  # more than the usual ones, where a registry asked for more
        self._tokens: OrderedDict[str, _Token] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}
        self._refused: list[RegistryLogin] = []
        self._accepted: list[RegistryLogin] = []

    async def authorization(self, access: Access, what: str) -> Redacted | None:
        """The header for a request; None: without one."""
        login = self._logins(access.repository)
        self._check(login, what)
        if login is not None and login.registry_token:
            return bearer(login.registry_token)
        if self._basic:
            return login.authorization if login is not None else None
        if self._way is None:
            return None
        token = self._tokens.get(access.scope)
        if token is not None and self._clock.monotonic() < token.until:
            return token.header
        return await self._renew(self._way, access, what, None)

    async def challenged(self, headers: Iterable[str], access: Access, what: str, used: Redacted | None) -> None:
        """A 401 came: prepare for another try, or raise when there is nothing better to send than what was `used`."""
        login = self._logins(access.repository)
        if login is not None and login.registry_token:
            raise self._refuse(login, what)
        for challenge in challenges(headers):
            if challenge.scheme == "bearer":
                try:
                    self._way = bearer_of(challenge, self._registry)
                except RealmRefused as refused:
                    raise BadAnswer(what, str(refused)) from None
                if access == PING and (login is None or used is not None):
                    raise Forbidden(what, f"{self._registry.name} gives tokens for repositories only")
                await self._more(self._way, access, what, used)
                return
            if challenge.scheme == "basic":
                if login is None:
                    remedy = self._logins.remedy(access.repository)
                    raise Unauthorized(what, f"{self._registry.name} wants a login: {remedy}")
                if login.password is None:
                    why = "wants a user and a password: the login in authSecret has no password"
                    raise Unauthorized(what, f"{self._registry.name} {why}")
                if used is not None:
                    raise self._refuse(login, what)
                self._basic = True
                return
        raise Unauthorized(what, f"{self._registry.name} refuses it and does not say how to log in")

    def accepted(self, access: Access, used: Redacted) -> None:
        """What was sent was good: from now on a refusal is about what is asked for, or about the token's age."""
        login, held = self._logins(access.repository), self._tokens.get(access.scope)
        if held is not None and not held.proven and held.header == used:
            self._tokens[access.scope] = msgspec.structs.replace(held, proven=True)
        if login is not None and not _holds(self._accepted, login):
            self._accepted.append(login)

    async def _more(self, way: Bearer, access: Access, what: str, used: Redacted | None) -> None:
        """Another token, or one for more. After one that never worked and lacks no scope there is no better one."""
        known = self._scopes.get(access.scope, (access.scope,) if access.scope else ())
        asked = () if access == PING else way.scopes  # for there some name a repository as an example
        wider = (*known, *(scope for scope in asked if scope not in known))
        held = self._tokens.get(access.scope)
        if held is not None and used == held.header and not held.proven and wider == known:
            login = self._logins(access.repository)
            remedy = "ask for the permission" if login is not None else self._logins.remedy(access.repository)
            raise Forbidden(what, f"{self._registry.name} gave a token that does not allow it: {remedy}")
        if wider != known:
            self._scopes[access.scope] = wider[-8:]
        await self._renew(way, access, what, used)

    async def _renew(self, way: Bearer, access: Access, what: str, used: Redacted | None) -> Redacted:
        """A token that is not the `used` one. Who comes second takes what the first one got."""
        lock = self._locks.setdefault(access.scope, asyncio.Lock())
        try:
            async with lock:
                held = self._tokens.get(access.scope)
                if held is None or held.header == used or self._clock.monotonic() >= held.until:
                    held = await self._fetched(way, access, what)
                    self._tokens[access.scope] = held
                    self._tokens.move_to_end(access.scope)
                    if len(self._tokens) > MOST_TOKENS:
                        self._tokens.popitem(last=False)
                return held.header
        finally:
            if not lock.locked():
                self._locks.pop(access.scope, None)

    async def _fetched(self, way: Bearer, access: Access, what: str) -> _Token:
        login = self._logins(access.repository)
        self._check(login, what)
        scopes = self._scopes.get(access.scope, (access.scope,) if access.scope else ())
        asked = f"a token of {yarl.URL(way.realm).host} for {what}"
        began = self._clock.monotonic()
        with told(asked):
            if login is not None and login.identity_token:
                response = await self._exchange(way, scopes, login.identity_token)
            else:
                response = await self._outbound.fetch(
                    "GET",
                    str(_with_query(way, scopes)),
                    headers={"Authorization": basic(login.username, login.password)}
                    if login is not None and login.password is not None
                    else {},
                    max_bytes=LARGEST_ANSWER,
                )
            body = await response.read()
        exchanged = login is not None and bool(login.identity_token)
        if login is not None and response.status in ((400, 401) if exchanged else (401,)):  # RFC 6749 §5.2
            raise self._refuse(login, asked)
        if login is None and response.status == 401:
            remedy = self._logins.remedy(access.repository)
            raise Unauthorized(asked, f"the token server wants a login: {remedy}")
        if not response.ok:
            raise refusal(asked, response, body, "the token server")
        return _read(body, asked, began)

    async def _exchange(self, way: Bearer, scopes: tuple[str, ...], identity: Redacted) -> Response:
        form = {"grant_type": "refresh_token", "service": way.service, "client_id": CLIENT_ID}
        form |= {"scope": " ".join(scopes), "refresh_token": identity.reveal()}
        return await self._outbound.fetch(
            "POST",
            way.realm,
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            body=urlencode(form).encode(),
            idempotent=True,
            max_bytes=LARGEST_ANSWER,
        )

    def _check(self, login: RegistryLogin | None, what: str) -> None:
        if login is not None and _holds(self._refused, login):
            raise self._refuse(login, what)

    def _refuse(self, login: RegistryLogin, what: str) -> Unauthorized:
        if not _holds(self._accepted, login) and not _holds(self._refused, login):
            self._refused.append(login)
        return Unauthorized(what, f"{self._registry.name} refuses the login: correct the Secret in authSecret")


class _Token(msgspec.Struct, frozen=True):
    header: Redacted
    until: float
    proven: bool = False


def _read(body: bytes, what: str, began: float) -> _Token:
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except (msgspec.DecodeError, RecursionError):
        raise BadAnswer(what, "the token server's answer is not what the protocol says") from None
    token = answer.token or answer.access_token
    if not token or len(token) > LONGEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise BadAnswer(what, "the token server's answer holds no usable token")
    life = min(float(answer.expires_in or SHORTEST_LIFE), LONGEST_LIFE)
    return _Token(bearer(Redacted(token)), began + life - min(MARGIN, life / 5))


class _Answer(msgspec.Struct):
    token: str | None = None
    access_token: str | None = None
    expires_in: int | float | None = None

    def __repr__(self) -> str:
        return "_Answer()"  # tokens are secret


def _host(written: str) -> str:
    """That of a key of a Docker configuration, without all else that somebody may have written there."""
    host = written.rpartition("://")[2].partition("/")[0].rpartition("@")[2].lower()
    return host if _HOST.fullmatch(host) else ""


def _with_query(way: Bearer, scopes: tuple[str, ...]) -> yarl.URL:
    more = [("service", way.service)] if way.service else []
    return yarl.URL(way.realm).extend_query([*more, *(("scope", scope) for scope in scopes)])


def _holds(logins: list[RegistryLogin], login: RegistryLogin) -> bool:
    return any(each is login or each == login for each in logins)


_HOST = re.compile(r"[a-z0-9*.\[\]:-]{1,253}")
