"""A client in the server's own process, for tests and small operators. It enters just after authentication:
authorization, admission and audit apply as they do to anyone.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, Sequence
from urllib.parse import unquote, urlencode

from trimtab.client.api import ApiClient
from trimtab.client.bodies import Body
from trimtab.client.transport import Call, Reply, Silent, refusal
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Scheme
from trimtab.server.auth.identity import User
from trimtab.server.core import Server
from trimtab.server.http import Answer, Request, Response, Stream
from trimtab.server.streaming import GivenBody

USER_AGENT = b"trimtab/local"


class LocalTransport:
    """Calls into `server` as `user`. Closing it leaves the server running."""

    def __init__(self, server: Server, user: User) -> None:
        self._server = server
        self._user = user

    async def call(self, call: Call) -> Reply:
        answer = await self._answer(self._request(call))
        if isinstance(answer, Stream):
            return Reply(code=200, body=b"".join([frame async for frame in answer.flow()]))
        return _good(answer)

    @property
    def batches(self) -> bool:
        return True

    async def batch(self, calls: Sequence[Call]) -> list[Reply | StatusError]:
        """Nothing is saved here; who sends many at once finds the same as on a socket."""

        async def one(call: Call) -> Reply | StatusError:
            try:
                return await self.call(call)
            except StatusError as error:
                return error

        return await asyncio.gather(*map(one, calls))

    async def upload(self, call: Call, body: Body) -> Reply:
        """A call with a body that is taken as it is read."""
        async with contextlib.aclosing(body.pieces()) as pieces:
            request = self._request(call)
            request.stream = GivenBody(pieces, body.size)
            answer = await self._answer(request)
        if isinstance(answer, Stream):
            return Reply(code=200, body=b"".join([frame async for frame in answer.flow()]))
        return _good(answer)

    async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        answer = await self._answer(self._request(call))
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

    async def chunks(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        """The bytes of an answer as they come, whatever they are."""
        answer = await self._answer(self._request(call))
        if isinstance(answer, Response):
            yield _good(answer).body
            return
        async with contextlib.aclosing(answer.flow()) as frames:
            async for frame in frames:
                yield frame

    async def close(self) -> None:
        pass

    async def _answer(self, request: Request) -> Answer:
        audit = self._server.audit
        if audit is None:
            return await self._server.handle(request)
        request.trail = trail = audit.begin(
            str(uuid.uuid4()),
            method=request.method,
            path=request.path,
            query=request.query,
            raw_query=urlencode(request.query),
            headers=request.headers,
            user=request.user,
        )
        if trail is None:
            return await self._server.handle(request)
        trail.received()
        answer = await self._server.handle(request)
        if isinstance(answer, Response):
            trail.complete(answer, request.body, request.header(b"content-type"))
        else:
            trail.started(200)
            answer.ended = trail.ended
        return answer

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
