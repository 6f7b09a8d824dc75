"""A server on loopback that passes requests on to another, and at a test's word loses an answer and is gone."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from trimtab.terraform.kinds.access import Access

PASSED_ON = ("Content-Type", "Accept")


class Relay:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.loses: str = ""
        """The method whose next request is passed on, and not answered; nor is any after it."""
        self.carries = True
        """Whether the request that is lost reaches the other server."""
        self.is_gone = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def lose(self, method: str, *, carried: bool) -> None:
        self.loses, self.carries = method, carried

    def come_back(self) -> None:
        self.loses, self.is_gone = "", False

    @contextlib.contextmanager
    def running(self) -> Iterator[Relay]:
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def passed_on(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        access = self._access
        connection = http.client.HTTPSConnection(access.host, access.port, context=access.tls)
        with contextlib.closing(connection):
            if access.token:
                headers["Authorization"] = f"Bearer {access.token}"
            connection.request(method, access.base + target, body or None, headers)
            response = connection.getresponse()
            return response.status, response.read()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        relay = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
                if relay.is_gone or relay.loses == self.command:
                    if relay.carries and not relay.is_gone:
                        relay.passed_on(self.command, self.path, body, headers)
                    relay.is_gone = self.close_connection = True
                    return
                code, answer = relay.passed_on(self.command, self.path, body, headers)
                self.send_response(code)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_PATCH = do_DELETE = do_GET  # noqa: N815 - its parent calls them so

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its parent calls it so
                pass

        return Handler


@contextlib.contextmanager
def relayed(access: Access) -> Iterator[Relay]:
    with Relay(access).running() as relay:
        yield relay
