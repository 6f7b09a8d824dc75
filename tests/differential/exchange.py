"""One request and its answer, over a kept connection.

A request may use what earlier answers of the same scenario held, as each server gave it: `$rv:2` is the
resourceVersion in answer 2, likewise `$uid:2`, `$name:2`, `$continue:2` and `$token:2`; `$ns` is the scenario's own namespace and
`$id` a word of its own.
"""

import http.client
import json
import re
import ssl
import time
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from trimtab.model import yaml
from trimtab.testing.peer import ApiServer, read_access

PROTOBUF = "application/vnd.kubernetes.protobuf"
_WITHIN = 15.0


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent. `events` reads so many lines of a watch; `until` repeats until the text is in the answer."""

    method: str
    path: str
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()
    events: int | None = None
    until: str | None = None

    def __str__(self) -> str:
        lines = [f"{self.method} {self.path}"]
        lines += [f"    {name}: {value}" for name, value in self.headers]
        if self.body is not None:
            lines.append(f"    {shown(self.body)}")
        return "\n".join(lines)


class Answer(msgspec.Struct, frozen=True):
    """What came back: a JSON document, a list of them for a watch, or text when it is neither."""

    status: int
    headers: dict[str, list[str]]
    body: Any

    def field(self, *path: str) -> str:
        value = self.body
        for name in path:
            value = value.get(name, {}) if isinstance(value, dict) else {}
        return value if isinstance(value, str) else "0"


class Exchange:
    """A connection of an administrator to one server."""

    def __init__(self, server: ApiServer) -> None:
        access = read_access(server.kubeconfig)
        self._host = urlsplit(access.url).netloc
        self._tls = access.tls()
        self._headers = {"User-Agent": "differential/1.0", "Accept": "application/json"}
        if access.token:
            self._headers["Authorization"] = f"Bearer {access.token}"
        self._connection: http.client.HTTPSConnection | None = None

    def send(self, request: Request, earlier: list[Answer], words: dict[str, str]) -> Answer:
        deadline = time.monotonic() + _WITHIN
        while True:
            answer = self._send_once(request, earlier, words)
            if request.until is None or request.until in json.dumps(answer.body) or time.monotonic() > deadline:
                return answer
            time.sleep(0.02)

    def _send_once(self, request: Request, earlier: list[Answer], words: dict[str, str]) -> Answer:
        headers = self._headers | dict(request.headers)
        body = filled_body(request.body, earlier, words)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        target = filled(request.path, earlier, words, quoted=True)
        for attempt in (1, 2):
            connection = self._connection or http.client.HTTPSConnection(self._host, timeout=30, context=self._tls)
            self._connection = None
            try:
                connection.putrequest(request.method, target, skip_accept_encoding=True)
                for name, value in headers.items():
                    connection.putheader(name, value)
                if body is not None:
                    connection.putheader("Content-Length", str(len(body)))
                connection.endheaders(body)
                response = connection.getresponse()
                break
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                connection.close()
                if attempt == 2:
                    return Answer(0, {}, "the connection was closed")
        received = {
            name: response.headers.get_all(name, []) for name in ("content-type", "warning", "content-encoding")
        }
        if request.events is not None and response.status == http.HTTPStatus.OK:
            lines = [json.loads(line) for line in (response.readline() for _ in range(request.events)) if line]
            connection.close()
            return Answer(response.status, received, lines)
        raw = response.read()
        if response.will_close:
            connection.close()
        else:
            self._connection = connection
        return Answer(response.status, received, parsed(raw, response.getheader("Content-Type", "")))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def filled(text: str, earlier: list[Answer], words: dict[str, str], *, quoted: bool = False) -> str:
    """The text with what it refers to put in."""

    def value(match: re.Match[str]) -> str:
        name, index = match[1], match[2]
        if index is None:
            return words.get(name, match[0])
        answer = earlier[int(index)] if int(index) < len(earlier) else Answer(0, {}, None)
        found = {
            "rv": answer.field("metadata", "resourceVersion"),
            "uid": answer.field("metadata", "uid"),
            "name": answer.field("metadata", "name"),
            "continue": answer.field("metadata", "continue"),
            "token": answer.field("status", "token"),
        }[name]
        return quote(found, safe="") if quoted else found

    return re.sub(r"\$(ns|id|rv|uid|name|continue|token)(?::(\d+))?", value, text)


def filled_body(body: Any, earlier: list[Answer], words: dict[str, str]) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    return filled(body if isinstance(body, str) else json.dumps(body), earlier, words).encode()


def parsed(raw: bytes, content: str) -> Any:
    try:
        if content.startswith("application/yaml"):
            return yaml.load(raw.decode())
        return json.loads(raw)
    except ValueError:
        return raw.decode("utf-8", errors="replace")


def shown(value: Any, limit: int = 600) -> str:
    text = value if isinstance(value, str) else repr(value) if isinstance(value, bytes) else json.dumps(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
