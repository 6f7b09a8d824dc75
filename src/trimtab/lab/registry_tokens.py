"""A token server for the lab's registry: who asks with a good login gets a token for what it asked for.

Both ways of distribution's "Token Authentication" are served: GET with a login, and POST with an identity token. Whoever
asks without a login may pull and not list the catalogue. Each request is kept in `asked`.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from trimtab.lab.registry import Tokens
from trimtab.testing.pki import Authority

SERVICE, ISSUER = "lab-registry", "lab-tokens"


class TokenServer:
    """Serves between `async with` and its end, over plain HTTP on loopback."""

    def __init__(
        self,
        directory: Path,
        port: int,
        *,
        logins: dict[str, str],
        identity_tokens: tuple[str, ...] = (),
        lifetime: int = 60,
        said_lifetime: int | None = None,
    ) -> None:
        """`said_lifetime`, when it is another, is what the answer claims."""
        directory.mkdir(parents=True, exist_ok=True)
        self._authority = Authority(directory, name="lab-tokens")
        pair = self._authority.server("tokens")
        key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the authority makes keys of elliptic curves")
        self._key = key
        certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
        chain = base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()
        self._header = {"typ": "JWT", "alg": "ES256", "x5c": [chain]}
        self._port, self._logins, self._identity_tokens = port, logins, identity_tokens
        self._lifetime, self._said = lifetime, lifetime if said_lifetime is None else said_lifetime
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.denied: set[str] = set()  # repositories for which no token allows anything
        self._runner: web.AppRunner | None = None

    @property
    def settings(self) -> Tokens:
        """What the registry must know."""
        realm = f"http://127.0.0.1:{self._port}/token"
        return Tokens(realm=realm, service=SERVICE, issuer=ISSUER, roots=self._authority.certificate)

    def token(self, user: str, scopes: tuple[str, ...]) -> str:
        """A token for a user, also without a request: a pusher uses it."""
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "sub": user,
            "aud": SERVICE,
            "exp": now + self._lifetime,
            "nbf": now - 5,
            "iat": now,
            "jti": uuid.uuid4().hex,
            "access": [self._access(user, scope) for scope in scopes],
        }
        signed = _packed(json.dumps(self._header).encode()) + b"." + _packed(json.dumps(claims).encode())
        r, s = decode_dss_signature(self._key.sign(signed, ec.ECDSA(hashes.SHA256())))
        return (signed + b"." + _packed(r.to_bytes(32, "big") + s.to_bytes(32, "big"))).decode()

    def _access(self, user: str, scope: str) -> dict[str, Any]:
        kind, _, rest = scope.partition(":")
        name, _, actions = rest.rpartition(":")
        allowed = [] if name in self.denied else [each for each in actions.split(",") if user or each == "pull"]
        return {"type": kind, "name": name, "actions": allowed}

    async def _get(self, request: web.Request) -> web.Response:
        scopes = tuple(one for each in request.query.getall("scope", []) for one in each.split())
        user = ""
        written = request.headers.get("Authorization", "")
        if written.startswith("Basic "):
            user, _, password = base64.b64decode(written[6:]).decode().partition(":")
            if self._logins.get(user) != password:
                self.asked.append((f"refused {user}", scopes))
                return web.json_response({"errors": [{"code": "UNAUTHORIZED"}]}, status=401)
        return self._answer(user, scopes)

    async def _post(self, request: web.Request) -> web.Response:
        form = await request.post()
        scopes = tuple(str(form.get("scope", "")).split())
        if form.get("grant_type") != "refresh_token" or form.get("refresh_token") not in self._identity_tokens:
            self.asked.append(("refused identity", scopes))
            return web.json_response({"error": "invalid_grant"}, status=400)
        return self._answer("identity", scopes)

    def _answer(self, user: str, scopes: tuple[str, ...]) -> web.Response:
        self.asked.append((user, scopes))
        token = self.token(user, scopes)
        return web.json_response({"token": token, "access_token": token, "expires_in": self._said})

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.add_routes([web.get("/token", self._get), web.post("/token", self._post)])
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()


def _packed(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")
