"""Where Git servers tell of pushes: `POST /{namespace}/{gitsync}/{webhook}`, with the message of the webhook's provider.

Flow: the signature (or the token) is checked against the Secret that the webhook names; a push to the branch that is synced,
which touches the paths that are asked for, sets the annotation `sync-now` of the GitSync; its controller sees that and runs.

Guarantees: 202 says no more than that the message was taken: not whether it concerned anything. Whoever has no secret
learns nothing, not even whether there is such a GitSync: 401. A message that came before is taken and does nothing. What
is too large is 413, too slow 408; it is 503 when the API cannot be asked. Secrets are in no answer and in no log.

Caveats: without `tls` it speaks HTTP: then it belongs on loopback, or behind a proxy. Which messages came before is known to
this process only; a replay elsewhere costs one fetch that finds nothing. Needs get and patch on GitSyncs; get on Secrets.
"""

from __future__ import annotations

import asyncio
import re
import ssl

import msgspec
from aiohttp import web

from trimtab.client.protocol import Client
from trimtab.model.clock import Clock, SystemClock, format_micro_time
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.runtime.credentials import CredentialError, Credentials, SecretRef
from trimtab.runtime.webhooks.connection import Connection
from trimtab.runtime.webhooks.receiver import Receiver
from trimtab.systems.gitops.kinds import GitSync, Webhook
from trimtab.systems.gitops.kinds.fields import SYNC_NOW
from trimtab.systems.gitops.webhooks.deliveries import Deliveries
from trimtab.systems.gitops.webhooks.pushes import NoPush, concerns, push_of
from trimtab.systems.gitops.webhooks.signatures import SIGNING, is_authentic

MAX_BYTES = 5 << 20
MAX_AT_ONCE = 32
PATIENCE = 10.0
TRIES = 10


class Listener:
    """Listens from `start` to `stop`."""

    def __init__(
        self,
        client: Client,
        credentials: Credentials,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        clock: Clock | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._client, self._credentials = client, credentials
        self._host, self._port, self._tls = host, port, tls
        self._clock, self._patience = clock or SystemClock(), patience
        self._deliveries = Deliveries(self._clock)
        self._under_way = 0
        self._receiver: Receiver | None = None

    async def start(self) -> int:
        """Listen; returns the port, which the system chooses when it was 0."""
        application = web.Application(client_max_size=MAX_BYTES)
        application.router.add_post("/{namespace}/{gitsync}/{webhook}", self._handle)
        self._receiver = Receiver(application, self._host, self._port, self._tls, self._patience)
        return await self._receiver.start()

    async def stop(self) -> None:
        """Take no more connections, finish what is under way."""
        if self._receiver is not None:
            await self._receiver.stop()
            self._receiver = None

    async def _handle(self, request: web.Request) -> web.Response:
        assert isinstance(request.protocol, Connection)  # noqa: S101 - we make no others
        with request.protocol.asking():
            if self._under_way >= MAX_AT_ONCE:
                return _answer(503)
            self._under_way += 1
            try:
                return await self._answered(request)
            finally:
                self._under_way -= 1

    async def _answered(self, request: web.Request) -> web.Response:
        names = [request.match_info[part] for part in ("namespace", "gitsync", "webhook")]
        if not all(map(_NAME.fullmatch, names)):
            return _answer(401)
        namespace, name, hook = names
        try:
            body = await self._body(request)
            found = await self._known(namespace, name, hook, request, body)
            if found is None:
                return _answer(401)
            sync, webhook = found
            try:
                push = push_of(webhook.provider, request.headers, body)
            except NoPush:
                return _answer(202)
            except ValueError:
                return _answer(400)
            place = f"{sync.metadata.uid}/{hook}"
            signed = webhook.provider in SIGNING
            if not self._deliveries.is_known(place, push.delivery, body, signed=signed):
                if concerns(push, sync.spec.revision, webhook.paths):
                    await self._ask(sync, hook)
                    log.info("a Git server told of a push", namespace=namespace, gitsync=name, webhook=hook)
                self._deliveries.remember(place, push.delivery, body, signed=signed)
        except _Refused as error:
            return _answer(error.status)
        except (StatusError, OSError) as error:
            why = f"{error.code} {error.reason}" if isinstance(error, StatusError) else type(error).__name__
            log.warning("a Git server's word of a push could not be kept", namespace=namespace, gitsync=name, why=why)
            return _answer(503)
        return _answer(202)

    async def _body(self, request: web.Request) -> bytes:
        try:
            async with asyncio.timeout(self._patience):
                return await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise _Refused(413) from None
        except TimeoutError:
            raise _Refused(408) from None

    async def _known(
        self, namespace: str, name: str, hook: str, request: web.Request, body: bytes
    ) -> tuple[GitSync, Webhook] | None:
        """The sync and its webhook, when the message comes from who has its secret."""
        sync = await self._found(namespace, name)
        webhook = next((w for w in sync.spec.triggers.webhooks if w.name == hook), None) if sync is not None else None
        if sync is None or webhook is None:
            return None
        ref = SecretRef(webhook.secret_ref.name, namespace, webhook.secret_ref.key)
        try:
            secret = await self._credentials.resolve(ref)
            authentic = is_authentic(webhook.provider, request.headers, body, secret)
        except CredentialError as error:
            log.warning("the secret of a webhook is missing", gitsync=name, webhook=hook, why=str(error))
            return None
        except OSError:
            raise  # nobody answers: that is the same for all
        except Exception as error:  # whoever has no secret must not see that there is something to go wrong
            if isinstance(error, StatusError) and error.code >= 500:
                raise
            log.exception("a webhook's message could not be judged", gitsync=name, webhook=hook)
            return None
        return (sync, webhook) if authentic else None

    async def _found(self, namespace: str, name: str) -> GitSync | None:
        try:
            return await self._client.get(GitSync, name, namespace)
        except StatusError as error:
            if error.code == 404:
                return None
            raise

    async def _ask(self, sync: GitSync, hook: str) -> None:
        """Ask for a run, whoever else writes the GitSync meanwhile. The last conflict is raised."""
        held: GitSync | None = sync
        asked = f"webhook {hook} {format_micro_time(self._clock.now())}"
        for left in reversed(range(TRIES)):
            if held is None or held.metadata.uid != sync.metadata.uid:
                return  # deleted since: nobody is left to tell
            annotations = {**(held.metadata.annotations or {}), SYNC_NOW: asked}
            metadata = msgspec.structs.replace(held.metadata, annotations=annotations)
            try:
                await self._client.patch(held, held.replace(metadata=metadata))
                return
            except StatusError as error:
                if error.code == 404:
                    return
                if error.code != 409 or not left:
                    raise
            await self._clock.sleep(0.01 * (TRIES - left))
            held = await self._found(sync.namespace, sync.name)


class _Refused(Exception):  # noqa: N818 - it reads as what happened
    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status = status


def path_of(sync: GitSync, webhook: str) -> str:
    """Where a provider sends its messages to, below the listener's address."""
    return f"/{sync.namespace}/{sync.name}/{webhook}"


def _answer(status: int) -> web.Response:
    response = web.Response(status=status, text=_WORDS[status] + "\n")
    if status == 503:
        response.headers["Retry-After"] = "1"
    if status >= 400:  # a body that nobody reads must not be waited for
        response.force_close()
    return response


_WORDS = {
    202: "taken",
    400: "this is no message of the webhook's provider",
    401: "no webhook of this name takes this signature",
    408: "the message took too long",
    413: f"a message has at most {MAX_BYTES} bytes",
    503: "it could not be kept: send it again later",
}
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
