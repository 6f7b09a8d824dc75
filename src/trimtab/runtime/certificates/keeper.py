"""The certificates of our webhooks: made, shared by all replicas, rotated, and told to the API server.

Flow: `refresh` is one pass. It reads the configurations, then the Secret that all replicas share, takes the serving
certificate into use, does what `rotation.step` says, writes the Secret by compare-and-swap, and puts the
trust bundle into the configurations. `run` does so every `interval`, and at once when a configuration comes that is
found by its labels. No replica leads: any may do any step.

Guarantees: at every moment a client that trusts a configuration's caBundle can connect to every replica whose last pass
was less than a third of a serving certificate's life ago. A new certificate drops no connection.

Assumptions: `client` reads the API server itself, no cache: an old Secret beside a new configuration would undo a
rotation. It may get, create and patch the Secret, and get and patch the targets; with labels also list and watch.

Caveats: who can read the Secret can pretend to be the webhook. To force a rotation, delete the Secret: then there is no
overlap, and writes are refused until the next pass. A replica whose clock is months ahead rotates too early, for all.
A configuration that the labels select and that we may not patch is told of in each pass, and holds up a rotation until
the authority ends: then there is no overlap.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from typing import Any

import msgspec

from trimtab.client.protocol import Client
from trimtab.client.tls import load_pair
from trimtab.client.transport import FAILURES
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Secret
from trimtab.model.logs import log
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.runtime.certificates.publish import Targets, carried, changed, publish, read, revision
from trimtab.runtime.certificates.rotation import Action, Bundle, Lives, step

INTERVAL = 60.0
PAUSE = 1.0  # two that write in turns must not do so without end
MAX_STEPS = 16  # of one pass: more is a fight, and the next pass goes on
BUNDLE = "bundle.json"


class Certificates:
    """One replica's view. `context` is for `WebhookServer`; it is usable after the first `refresh`."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        hosts: tuple[str, ...],
        targets: Targets = Targets(),  # noqa: B008 - frozen
        clock: Clock | None = None,
        lives: Lives = Lives(),  # noqa: B008 - frozen
        interval: float = INTERVAL,
        client_ca: str = "",
    ) -> None:
        """The Secret is `<name>-webhook-certs`. `hosts` are the names by which API servers reach us."""
        self._client = client
        self._namespace = namespace
        self._secret = f"{name}-webhook-certs"
        self._hosts = hosts
        self._targets = targets
        self._clock = clock or SystemClock()
        self._lives = lives
        self._interval = interval
        self._serving = ""
        self._current: ssl.SSLContext | None = None
        self._client_ca = client_ca
        self.context = serving_context(client_ca)
        self.context.sni_callback = self._choose

    @property
    def ready(self) -> bool:
        """Whether there is a certificate to serve with."""
        return self._current is not None

    def check_ready(self) -> None:
        """For a readiness probe: raises while there is none."""
        if not self.ready:
            raise RuntimeError("there is no certificate yet")

    async def run(self) -> None:
        """Until cancelled. A pass that fails is logged, and tried again after the interval."""
        while True:
            since = ""
            try:
                since = await revision(self._client, self._targets)
                await self.refresh()
            except FAILURES as error:
                log.warning("webhook certificates were not refreshed", secret=self._secret, error=str(error))
            await self._pause(since)

    async def _pause(self, since: str) -> None:
        """The interval, or less when something changes that the labels select."""
        async with asyncio.TaskGroup() as tasks:
            looking = tasks.create_task(self._look(since)) if since else None
            sleeping = tasks.create_task(self._clock.sleep(self._interval))
            await asyncio.wait({sleeping, *((looking,) if looking else ())}, return_when=asyncio.FIRST_COMPLETED)
            sleeping.cancel()
            if looking is not None:
                looking.cancel()

    async def _look(self, since: str) -> None:
        """Returns when something changed. A watch that ends is not renewed: the interval is short."""
        try:
            found = await changed(self._client, self._targets, since)
        except FAILURES as error:
            log.info("webhook configurations are not watched", error=str(error))
            found = False
        await self._clock.sleep(PAUSE if found else self._interval)

    async def refresh(self) -> Bundle:
        """One pass. Raises what the client raises; then nothing is half done."""
        for _ in range(MAX_STEPS):
            documents = await read(self._client, self._targets)
            secret = await self._load()
            bundle = None if secret is None else _read(secret)
            if bundle is not None and not self._use(bundle):
                bundle = None
            now = self._clock.now()
            seen = bundle is not None and carried(documents, bundle.trusted)
            action = step(bundle, now, carried=seen, hosts=self._hosts, lives=self._lives)
            try:
                if action is not None:
                    await self._store(secret, self._performed(action, bundle))
                    continue
                assert bundle is not None  # noqa: S101 - else everything is made anew
                if not seen:
                    await publish(self._client, documents, bundle.trusted)
            except StatusError as error:
                if error.code != 409:
                    raise
                continue  # another replica was faster; look again
            return bundle
        raise TimeoutError(f"the certificates in {self._namespace}/{self._secret} keep changing")

    def _performed(self, action: Action, bundle: Bundle | None) -> Bundle:
        from trimtab.runtime.certificates.issue import perform

        log.info("webhook certificates change", secret=self._secret, action=action.value)
        now = self._clock.now()
        try:
            return perform(action, bundle, now, hosts=self._hosts, lives=self._lives)
        except ValueError:
            log.error("the authority of the webhook certificates is damaged: all are made anew", secret=self._secret)
            return perform(Action.MAKE, None, now, hosts=self._hosts, lives=self._lives)

    async def _load(self) -> Untyped | None:
        """As its document, whether the client knows the class or not."""
        try:
            found: Secret | Untyped = await self._client.get(Secret, self._secret, self._namespace)
            return Untyped(dict(found.raw or {}))
        except StatusError as error:
            if error.code == 404:
                return None
            raise

    async def _store(self, secret: Untyped | None, bundle: Bundle) -> None:
        data = {
            "tls.crt": bundle.serving.certificate.encode(),
            "tls.key": bundle.serving.key.encode(),
            "ca.crt": bundle.trusted,
            BUNDLE: msgspec.json.encode(bundle),
        }
        encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
        if secret is None:
            metadata = ObjectMeta(name=self._secret, namespace=self._namespace)
            await self._client.create(Secret(metadata=metadata, type="Opaque", data=encoded))
        else:
            await self._client.patch(secret, Untyped({**secret.raw, "data": encoded}))

    def _use(self, bundle: Bundle) -> bool:
        """Serve with this from now on; False when certificate and key cannot be used."""
        if bundle.serving.certificate == self._serving:
            return True
        fresh = serving_context(self._client_ca)  # OpenSSL asks it, not the first one, whom to trust
        try:
            load_pair(fresh, bundle.serving.certificate.encode(), bundle.serving.key.encode())
        except ssl.SSLError:
            log.error("the webhook certificate is damaged: all are made anew", secret=self._secret)
            return False
        self._current, self._serving = fresh, bundle.serving.certificate
        return True

    def _choose(self, connection: Any, _name: str | None, _context: ssl.SSLContext) -> int | None:
        """Called in each handshake, with or without a server name: whoever connects now gets the newest certificate."""
        if self._current is None:
            return int(ssl.AlertDescription.ALERT_DESCRIPTION_INTERNAL_ERROR)
        connection.context = self._current
        return None


def serving_context(client_ca: str = "") -> ssl.SSLContext:
    """The server's side of TLS. With `client_ca` (PEM) only clients with a certificate of that authority get in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["http/1.1"])
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_ca)
    return context


def _read(secret: Untyped) -> Bundle | None:
    """None when it is not ours or is damaged: then everything is made anew."""
    encoded = (secret.raw.get("data") or {}).get(BUNDLE, "")
    try:
        return msgspec.json.decode(base64.b64decode(encoded, validate=True), type=Bundle)
    except (msgspec.DecodeError, binascii.Error):
        return None
