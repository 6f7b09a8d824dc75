"""Word of changes to whoever subscribed: Event Grid's own schema with its handshake, or CloudEvents with theirs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import aiohttp

from trimtab.lab.arm.world import Happened
from trimtab.model.clock import Clock

Form = Literal["event-grid", "cloud-events"]
CODE = "5f0a2a6e-lab-validation"


class HandshakeFailed(Exception):  # noqa: N818 - what happened
    """The subscriber did not say that it wants the events."""


class Events:
    """Sends in order, one at a time. `sent` waits until nothing is left to send."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._subscribers: list[tuple[str, Form, Mapping[str, str]]] = []
        self._waiting: asyncio.Queue[tuple[Happened, str, str]] = asyncio.Queue()
        self._numbers = itertools.count(1)
        self._task: asyncio.Task[None] | None = None
        self._session: aiohttp.ClientSession | None = None
        self.refused = 0  # events that a subscriber did not take

    async def subscribe(self, url: str, form: Form = "event-grid", headers: Mapping[str, str] | None = None) -> None:
        """Shake hands. Raises HandshakeFailed when the subscriber does not answer as it must."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10))
            self._task = asyncio.get_running_loop().create_task(self._send_all(self._session))
        given = dict(headers or {})
        if form == "event-grid":
            await self._validate(self._session, url, given)
        else:
            await self._ask_leave(self._session, url, given)
        self._subscribers.append((url, form, given))

    def tell(self, what: Happened, how: str, path: str) -> None:
        if self._subscribers:
            self._waiting.put_nowait((what, how, path))

    async def sent(self) -> None:
        await self._waiting.join()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _validate(self, session: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> None:
        event = {
            **self._grid("Microsoft.EventGrid.SubscriptionValidationEvent", ""),
            "data": {"validationCode": CODE, "validationUrl": ""},
        }
        kind = {"aeg-event-type": "SubscriptionValidation"}
        async with session.post(url, json=[event], headers={**headers, **kind}) as response:
            said = await response.json(content_type=None) if response.status == 200 else None
        if not isinstance(said, dict) or said.get("validationResponse") != CODE:
            raise HandshakeFailed(f"{urlsplit(url).netloc} answered {response.status} without the validation code")

    async def _ask_leave(self, session: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> None:
        origin = {"WebHook-Request-Origin": "lab.test", "WebHook-Request-Rate": "120"}
        async with session.options(url, headers={**headers, **origin}) as response:
            allowed = response.headers.get("WebHook-Allowed-Origin", "")
        if response.status != 200 or allowed not in ("*", "lab.test"):
            raise HandshakeFailed(f"{urlsplit(url).netloc} answered {response.status} and does not allow the origin")

    async def _send_all(self, session: aiohttp.ClientSession) -> None:
        while True:
            what, how, path = await self._waiting.get()
            try:
                for url, form, headers in self._subscribers:
                    await self._send(session, url, form, headers, f"Microsoft.Resources.Resource{what}{how}", path)
            finally:
                self._waiting.task_done()

    async def _send(
        self, session: aiohttp.ClientSession, url: str, form: Form, headers: Mapping[str, str], kind: str, path: str
    ) -> None:
        body: Any = [self._grid(kind, path)]
        extra = {"aeg-event-type": "Notification", "Content-Type": "application/json"}
        if form == "cloud-events":
            body = self._cloud(kind, path)
            extra = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
        try:
            async with session.post(url, json=body, headers={**headers, **extra}) as response:
                self.refused += response.status >= 300
        except (aiohttp.ClientError, TimeoutError):
            self.refused += 1

    def _grid(self, kind: str, path: str) -> dict[str, Any]:
        return {
            "id": f"event-{next(self._numbers)}",
            "topic": "/".join(path.split("/")[:3]),
            "subject": path,
            "eventType": kind,
            "eventTime": self._clock.now().isoformat(),
            "data": {"resourceUri": path, "status": "Succeeded" if kind.endswith("Success") else "Failed"},
            "dataVersion": "2",
            "metadataVersion": "1",
        }

    def _cloud(self, kind: str, path: str) -> dict[str, Any]:
        return {
            "specversion": "1.0",
            "id": f"event-{next(self._numbers)}",
            "source": "/".join(path.split("/")[:3]),
            "subject": path,
            "type": kind,
            "time": self._clock.now().isoformat(),
            "datacontenttype": "application/json",
            "data": {"resourceUri": path},
        }
