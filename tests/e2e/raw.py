"""Plain HTTPS requests with a chosen identity: what kubectl and client libraries would never send."""

import http.client
import json
import ssl
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from trimtab.testing.peer import ApiServer, read_access


class Answer(NamedTuple):
    code: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Raw:
    """One request a connection. Without a token it is anonymous; `admin` has the kubeconfig's credentials."""

    def __init__(self, server: ApiServer, *, token: str | None = None, admin: bool = False) -> None:
        access = read_access(server.kubeconfig)
        self._address = urlsplit(server.url).netloc
        self._context = access.tls() if admin else ssl.create_default_context(cafile=access.ca)
        self._token = access.token if admin else token

    def __call__(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        sent = {"Content-Type": "application/json", **(headers or {})}
        if self._token is not None:
            sent.setdefault("Authorization", f"Bearer {self._token}")
        connection = http.client.HTTPSConnection(self._address, timeout=10, context=self._context)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            response = connection.getresponse()
            return Answer(response.status, response.read())
        finally:
            connection.close()
