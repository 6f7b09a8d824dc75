"""From a Secret to a login. Pure, but for Azure's tokens, which are fetched when the first request needs one.

Every error names the Secret and the key that is missing, and never a value.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from trimtab.model.clock import Clock
from trimtab.model.redacted import Redacted, bearer
from trimtab.runtime.credentials import SecretRef, types
from trimtab.runtime.outbound import Tls
from trimtab.runtime.outbound.tls import TlsError, context
from trimtab.systems.rest.calling.contract import CallError, ErrorClass
from trimtab.systems.rest.calling.errors import scrubbed
from trimtab.systems.rest.kinds.service import Credentials

EARLY = 300.0  # seconds before its end that a token is renewed

Values = Mapping[str, Redacted]


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """How to log in. `token` gives a bearer token, a new one when the last expires."""

    headers: Mapping[str, Redacted] = {}
    query: Mapping[str, Redacted] = {}
    tls: Tls = Tls()
    token: Callable[[], Awaitable[Redacted]] | None = None
    close: Callable[[], Awaitable[None]] | None = None
    secrets: tuple[Redacted, ...] = ()
    """What no text may show, should the service repeat it."""

    def __repr__(self) -> str:
        return f"Login({', '.join((*self.headers, *self.query))})"


def login_of(
    spec: Credentials, values: Values, ref: SecretRef, *, clock: Clock, skip_tls_verify: bool = False
) -> Login:
    """By the type of the credentials. CredentialError when a key is missing or cannot be read."""
    login = _login(spec, values, ref, clock, skip_tls_verify)
    hidden = tuple(value for key, value in values.items() if key not in _PUBLIC)
    return msgspec.structs.replace(login, secrets=(*login.headers.values(), *login.query.values(), *hidden))


_PUBLIC = frozenset({"ca.crt", "tls.crt", "username", "tenantID", "clientID", "authorityHost"})


def _login(spec: Credentials, values: Values, ref: SecretRef, clock: Clock, skip_tls_verify: bool) -> Login:
    ca = values.get("ca.crt")
    tls = Tls(ca=ca.reveal_bytes() if ca is not None else b"", insecure=skip_tls_verify)
    if spec.type == "bearer":
        return Login(headers={"Authorization": bearer(_stripped(values, ref, "token"))}, tls=tls)
    if spec.type == "basic":
        return Login(headers={"Authorization": types.basic_auth(values, ref).authorization}, tls=tls)
    if spec.type == "apiKey":
        key = _stripped(values, ref, "key")
        if spec.query:
            return Login(query={spec.query: key}, tls=tls)
        return Login(headers={spec.header: Redacted(spec.prefix.encode() + key.reveal_bytes())}, tls=tls)
    if spec.type == "mtls":
        certificate = types.value(values, ref, "tls.crt").reveal_bytes()
        key = types.value(values, ref, "tls.key")
        return Login(tls=msgspec.structs.replace(tls, certificate=certificate, key=key))
    if spec.type == "azure":
        tokens = AzureTokens(spec.scope, values, ref, tls, clock)
        return Login(tls=tls, token=tokens.token, close=tokens.close)
    return Login(tls=tls)


class AzureTokens:
    """Tokens of Microsoft Entra ID by azure-identity, which is imported with the first one."""

    def __init__(self, scope: str, values: Values, ref: SecretRef, tls: Tls, clock: Clock) -> None:
        self._scope, self._values, self._ref, self._tls, self._clock = scope, values, ref, tls, clock
        self._credential: Any = None
        self._session: Any = None
        self._token = Redacted("")
        self._expires = 0.0
        self._asking = asyncio.Lock()

    async def token(self) -> Redacted:
        async with self._asking:
            if self._clock.now().timestamp() < self._expires - EARLY:
                return self._token
            if self._credential is None:
                self._credential = await self._made()
            try:
                answer = await self._credential.get_token(self._scope)
            except _azure_errors() as error:
                said = scrubbed(" ".join(str(error).split())[:240], self._values.values())
                raise CallError(ErrorClass.AUTH, f"no token from Azure: {said}", code="TokenFailed") from None
            self._token, self._expires = Redacted(answer.token), float(answer.expires_on)
            return self._token

    async def close(self) -> None:
        if self._credential is not None:
            await self._credential.close()
            self._credential = None
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _made(self) -> Any:
        try:
            from azure.identity import aio
        except ImportError:
            raise CallError(
                ErrorClass.AUTH,
                "credentials of type azure need the extra azure: pip install 'trimtab[azure]'",
                code="ExtraMissing",
            ) from None
        options = await self._options()
        values, ref = self._values, self._ref
        if "clientSecret" in values:
            tenant, client = types.text(values, ref, "tenantID").strip(), types.text(values, ref, "clientID").strip()
            return aio.ClientSecretCredential(tenant, client, values["clientSecret"].reveal().strip(), **options)
        if "clientCertificate" in values:
            tenant, client = types.text(values, ref, "tenantID").strip(), types.text(values, ref, "clientID").strip()
            pem = values["clientCertificate"].reveal_bytes()
            return aio.CertificateCredential(tenant, client, certificate_data=pem, **options)
        if "clientID" in values:
            return aio.ManagedIdentityCredential(client_id=types.text(values, ref, "clientID").strip(), **options)
        return aio.DefaultAzureCredential(**options)

    async def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if "authorityHost" in self._values:  # another cloud, or one of one's own
            options["authority"] = types.text(self._values, self._ref, "authorityHost").strip()
            options["disable_instance_discovery"] = True
        if self._tls.ca:
            import aiohttp
            from azure.core.pipeline.transport import AioHttpTransport

            trusted = await asyncio.to_thread(context, self._tls, with_identity=False)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=trusted), cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            )
            options["transport"] = AioHttpTransport(session=self._session, session_owner=False)
        return options


def _azure_errors() -> tuple[type[Exception], ...]:
    from azure.core.exceptions import AzureError

    return (AzureError, ValueError, TlsError)


def _stripped(values: Values, ref: SecretRef, key: str) -> Redacted:
    """Line ends around a token come from files and editors."""
    return Redacted(types.value(values, ref, key).reveal_bytes().strip())
