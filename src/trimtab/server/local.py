"""A client in the server's own process, for tests and small operators. It enters just after authentication:
authorization, admission and audit apply as they do to anyone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from urllib.parse import unquote

from trimtab.client.api import ApiClient
from trimtab.client.transport import Call, Reply, Silent, refusal
from trimtab.model.scheme import Scheme
from trimtab.server.auth.identity import User
from trimtab.server.core import Server
from trimtab.server.http import Request, Response, Stream

USER_AGENT = b"trimtab/local"


class LocalTransport:
    """Calls into `server` as `user`. Closing it leaves the server running."""

    def __init__(self, server: Server, user: User) -> None:
        self._server = server
        self._user = user

    async def call(self, call: Call) -> Reply:
        answer = await self._server.handle(self._request(call))
        if isinstance(answer, Stream):
            return Reply(code=200, body=b"".join([frame async for frame in answer.flow()]))
        return _good(answer)

    async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        answer = await self._server.handle(self._request(call))
        if isinstance(answer, Response):
            for line in _good(answer).body.splitlines():
                yield line
            return
        frames = answer.flow()
        try:
            while True:
                async with asyncio.timeout(inactivity):
                    frame = await anext(frames, None)
                if frame is None:
                    return
                for line in frame.splitlines():
                    yield line
        except TimeoutError:
            raise Silent(f"the server was silent for {inactivity:g} s") from None
        finally:
            await frames.aclose()

    async def close(self) -> None:
        pass

    def _request(self, call: Call) -> Request:
        return Request(
            method=call.method,
            path=unquote(call.path),
            query=call.query,
            headers={
                b"content-type": call.content_type.encode(),
                b"accept": call.accept.encode(),
                b"user-agent": USER_AGENT,
            },
            body=call.body,
            user=self._user,
            warnings=[],
        )


def local_client(server: Server, user: User, scheme: Scheme | None = None) -> ApiClient:
    return ApiClient(LocalTransport(server, user), scheme)


def _good(response: Response) -> Reply:
    if response.code >= 400:
        raise refusal(response.code, response.body)
    return Reply(code=response.code, body=response.body)
