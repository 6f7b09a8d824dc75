"""Asking webhooks: all of a point at once, each within its own time.

Guarantees: an answer 2xx to the POST itself is yes, whatever its body; any other status is a refusal. What gives no status
in time, or is not who its certificate should say, failed. Nothing of a credential or of an address, which may be secret
in itself, is in what is said about either. `timeout` is for a webhook's whole answer, with its repetitions.

Caveat: a webhook may be asked the same question more than once; `Idempotency-Key` tells it so.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec
from msgspec import UnsetType

from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.redacted import Redacted, bearer
from trimtab.runtime.credentials import CredentialError, Credentials, SecretRef
from trimtab.systems.delivery.hooks.answers import Answer
from trimtab.systems.delivery.hooks.connections import Connections, Way
from trimtab.systems.delivery.hooks.messages import excerpt, idempotency_key, payload, webhooks
from trimtab.systems.delivery.kinds import CanaryDeployment, RunStatus, Webhook
from trimtab.systems.delivery.kinds.analysis import Hook

if TYPE_CHECKING:
    from trimtab.runtime.outbound import OutboundError, Response

MOST_READ = 4096
"""Bytes of a refusal that are looked at."""


class Hooks:
    """Keeps connections until it is closed."""

    def __init__(self, credentials: Credentials, *, clock: Clock | None = None) -> None:
        self._credentials = credentials
        self._connections = Connections(clock)

    async def ask(self, point: Hook, canary: CanaryDeployment, run: RunStatus, *, but: Collection[str] = ()) -> Answer:
        """What the webhooks of this point say, but for those of these names."""
        asked = [one for one in webhooks(point, canary, run) if one.name not in but]
        said = await asyncio.gather(*(self._one(one, point, canary, run) for one in asked))
        return Answer(
            agreed=tuple(one.name for one in said if one.kind == "agreed"),
            refused=tuple(f"{one.name}: {one.why}" for one in said if one.kind == "refused"),
            failed=tuple(f"{one.name}: {one.why}" for one in said if one.kind == "failed"),
        )

    async def close(self) -> None:
        await self._connections.close()

    async def _one(self, hook: Webhook, point: Hook, canary: CanaryDeployment, run: RunStatus) -> _Said:
        from trimtab.runtime.outbound import OutboundError
        from trimtab.runtime.outbound.redirect import url_of
        from trimtab.runtime.outbound.tls import TlsError

        try:
            async with asyncio.timeout(hook.timeout.seconds) as time:
                trust = await self._trust(hook, canary.namespace)
            headers: dict[str, str | Redacted] = {"Idempotency-Key": idempotency_key(point, run)}
            if trust.token is not None:
                headers["Authorization"] = bearer(trust.token)
            target = url_of(hook.url)
            way = Way(target.host or "", target.port or 0, trust.ca, hook.retries)
            async with (
                self._connections.to(way) as outbound,
                outbound.request(
                    "POST",
                    hook.url,
                    headers=headers,
                    body=payload(hook, canary, run),
                    timeout=(time.when() or 0.0) - asyncio.get_running_loop().time(),
                    idempotent=True,  # the key makes it so
                ) as response,
            ):
                return await _answered(hook, response, trust.token)
        except OutboundError as error:
            late = getattr(error, "final", False)
            return _Said(hook.name, "failed", f"no answer within {hook.timeout}" if late else _why(error))
        except TimeoutError:
            return _Said(hook.name, "failed", f"no answer within {hook.timeout}")
        except (CredentialError, TlsError) as error:
            return _Said(hook.name, "failed", str(error))
        except (StatusError, OSError):
            return _Said(hook.name, "failed", "its Secret cannot be read")
        except ValueError:
            return _Said(hook.name, "failed", "its URL, or its token, is not valid")

    async def _trust(self, hook: Webhook, namespace: str) -> _Trust:
        if isinstance(hook.secret_ref, UnsetType):
            return _Trust()
        ref = SecretRef(hook.secret_ref.name, namespace)
        values = await self._credentials.resolve_all(ref)
        token, ca = values.get("token"), values.get("ca.crt")
        if token is None and ca is None:
            raise CredentialError(ref, "has neither token nor ca.crt")
        if token is not None:
            token = Redacted(token.reveal_bytes().strip())
            if not token or not all(32 < byte < 127 for byte in token.reveal_bytes()):
                raise CredentialError(ref, "has a token that no header can hold")
        return _Trust(token, ca.reveal_bytes() if ca is not None else b"")


class _Trust(msgspec.Struct, frozen=True):
    """How we show who we are, and whom we believe."""

    token: Redacted | None = None
    ca: bytes = b""


class _Said(msgspec.Struct, frozen=True):
    name: str
    kind: str
    why: str = ""


async def _answered(hook: Webhook, response: Response, token: Redacted | None) -> _Said:
    if response.method != "POST":  # a redirect that dropped the question: the page behind it is no answer
        return _Said(hook.name, "failed", "it redirects the question to a page")
    if response.ok:
        return _Said(hook.name, "agreed")
    words = excerpt(await _beginning(response), token)
    return _Said(hook.name, "refused", f"answered {response.status}" + (f": {words}" if words else ""))


async def _beginning(response: Response) -> bytes:
    """As much of the body as comes, for the status says it all."""
    from trimtab.runtime.outbound import OutboundError

    taken = b""
    with contextlib.suppress(OutboundError):
        async for piece in response.stream(1 << 30):
            taken += piece
            if len(taken) >= MOST_READ:
                break
    return taken[:MOST_READ]


def _why(error: OutboundError) -> str:
    """Without the address."""
    return str(error).removeprefix(f"{error.method} {error.url}: ")
