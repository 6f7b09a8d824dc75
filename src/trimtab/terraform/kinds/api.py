"""The server's API, as far as a provider needs it: read, apply, delete, watch. Blocking, and safe to use from many threads.

Every request of ours may be sent twice: reads, applies by one field manager, deletes of one uid. So what fails by the
connection, by overload (429) or by a server in trouble (5xx) is sent again, with growing pauses, and not for ever. A
pause ends at once when Terraform was interrupted, and so does a read; a write is given a few seconds for its answer.
A failure of a write that may have been carried out all the same is `doubtful`.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from trimtab.terraform.kinds.access import Access
from trimtab.terraform.kinds.patience import Interrupted, answered
from trimtab.terraform.kinds.reading import MANAGER
from trimtab.terraform.kinds.watching import Event, watch

Document = dict[str, Any]

ATTEMPTS = 6
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0
LARGEST = 64 << 20
PAGE = 500
IDLE = 10
"""Connections that are kept: Terraform does ten things at once."""
APPLY = "application/apply-patch+yaml"  # JSON is YAML
_NEVER_SENT = (ConnectionRefusedError, socket.gaierror)


class ApiError(Exception):
    """The server refused; `causes` are the fields that it names, each with its reason."""

    def __init__(self, code: int, status: Mapping[str, Any]) -> None:
        self.code = code
        self.reason = str(status.get("reason") or "")
        self.message = str(status.get("message") or f"the server answered {code}")
        self.doubtful = False
        details = status.get("details")
        self.missing = code == 404 and self.reason == "NotFound" and isinstance(details, Mapping) and "name" in details
        """There is no such object; not its kind, nor the page of some server in between."""
        causes = details.get("causes") if isinstance(details, Mapping) else None
        self.causes = [
            (str(one.get("field") or ""), str(one.get("message") or ""), str(one.get("reason") or ""))
            for one in (causes if isinstance(causes, list) else ())
            if isinstance(one, Mapping)
        ]
        super().__init__(self.message)


class Unreachable(Exception):  # noqa: N818 - it is what the server is
    """No answer, however often it was asked."""

    doubtful = False


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    document: Document
    repeated: bool = False
    """Whether an earlier attempt may have been carried out, though its answer was lost."""


@dataclass(slots=True)
class _Pool:
    access: Access
    lock: threading.Lock = field(default_factory=threading.Lock)
    idle: list[http.client.HTTPConnection] = field(default_factory=list)

    def take(self) -> http.client.HTTPConnection:
        with self.lock:
            if self.idle:
                return self.idle.pop()
        return self.fresh()

    def fresh(self) -> http.client.HTTPConnection:
        host, port, tls = self.access.host, self.access.port, self.access.tls
        if tls is None:
            return http.client.HTTPConnection(host, port)
        return http.client.HTTPSConnection(host, port, context=tls)

    def give(self, connection: http.client.HTTPConnection) -> None:
        with self.lock:
            if len(self.idle) < IDLE:
                self.idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self.lock:
            idle, self.idle = self.idle, []
        for connection in idle:
            connection.close()


class Api:
    def __init__(
        self, access: Access, *, cancelled: threading.Event | None = None, dice: random.Random | None = None
    ) -> None:
        self.access = access
        self._cancelled = cancelled or threading.Event()
        self._pool = _Pool(access)
        weakref.finalize(self, self._pool.close)  # whoever configures anew drops the one before
        self._dice = dice or random.Random()  # noqa: S311 - spreads retries

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Document:
        return self._call("GET", path, query=query).document

    def find(self, path: str, query: Mapping[str, str] | None = None) -> Document | None:
        """None when there is no such object."""
        try:
            return _object(self.get(path, query))
        except ApiError as error:
            if error.missing:
                return None
            raise

    def list(self, path: str, query: Mapping[str, str] | None = None) -> Iterator[Document]:
        """All objects, page by page."""
        further = ""
        while True:
            asked = {**(query or {}), "limit": str(PAGE), **({"continue": further} if further else {})}
            page = self.get(path, asked)
            items, meta = page.get("items") or [], page.get("metadata") or {}
            if not _is_page(items, meta):
                raise ApiError(502, {"message": "the server answered with what is no list of objects"})
            yield from map(_object, items)
            further = str(meta.get("continue") or "")
            if not further:
                return

    def apply(self, path: str, body: Document, *, force: bool = False, dry_run: bool = False) -> Answer:
        query = {"fieldManager": MANAGER, "force": str(force).lower(), "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        return self._call("PATCH", path, query=query, body=body, media=APPLY)

    def delete(self, path: str, *, uid: str = "") -> None:
        options: Document = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        self._call("DELETE", path, body=options, media="application/json")

    def watch(
        self, path: str, query: Mapping[str, str], *, within: float, cancelled: threading.Event
    ) -> Iterator[Event]:
        """Events until the server ends it, `within` seconds have gone, or Terraform was interrupted."""
        yield from watch(self.access, self._target(path, query), within=within, cancelled=cancelled)

    def close(self) -> None:
        self._pool.close()

    def _target(self, path: str, query: Mapping[str, str] | None) -> str:
        return self.access.base + path + (f"?{urlencode(query)}" if query else "")

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Document | None = None,
        media: str = "",
    ) -> Answer:
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        headers = {"Accept": "application/json", "User-Agent": "trimtab-terraform"}
        if media:
            headers["Content-Type"] = media
        if self.access.token:
            headers["Authorization"] = f"Bearer {self.access.token}"
        doubt = _Doubt(method != "GET")
        with doubt:
            return self._persistent(method, self._target(path, query), data, headers, doubt)

    def _persistent(
        self, method: str, target: str, data: bytes | None, headers: Mapping[str, str], doubt: _Doubt
    ) -> Answer:
        repeated, trouble = False, ""
        for attempt in range(ATTEMPTS):
            pause = min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE) * self._dice.uniform(0.75, 1.25)
            try:
                code, raw, told = self._once(method, target, data, headers)
            except (http.client.HTTPException, OSError) as error:
                if _is_final(error):
                    raise Unreachable(f"{self.access.url}: {error}") from error
                trouble, repeated = str(error) or type(error).__name__, True
                doubt.raised = doubt.raised or not isinstance(error, _NEVER_SENT)
            else:
                if not _again(code, raw):
                    return _answer(code, raw, repeated)
                trouble, pause = f"the server answered {code}", max(pause, told)
                repeated = repeated or code not in (429, 503)
                doubt.raised = doubt.raised or code not in (429, 503)
                if attempt == ATTEMPTS - 1:
                    return _answer(code, raw, repeated)
            if attempt < ATTEMPTS - 1 and self._cancelled.wait(pause):
                raise Interrupted(f"interrupted while waiting for {self.access.url}: {trouble}")
        raise Unreachable(f"{self.access.url} did not answer {ATTEMPTS} times: {trouble}")

    def _once(
        self, method: str, target: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes, float]:
        connection = self._pool.take()
        try:
            response = answered(connection, method, target, data, dict(headers), self._cancelled)
            raw = response.read(LARGEST + 1)
        except BaseException:
            connection.close()
            raise
        if len(raw) > LARGEST:
            connection.close()
            raise http.client.HTTPException(f"an answer of more than {LARGEST} bytes")
        if response.length:  # what `read` of a number of bytes does not tell
            connection.close()
            raise http.client.IncompleteRead(raw)
        if response.will_close:
            connection.close()
        else:
            self._pool.give(connection)
        return response.status, raw, _seconds(response.headers.get("Retry-After"))


@dataclass(slots=True)
class _Doubt:
    """Marks what fails while it is entered, once a write may have been carried out."""

    is_write: bool
    raised: bool = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self.is_write and isinstance(error, ApiError | Unreachable | Interrupted):
            refused = isinstance(error, ApiError) and error.code < 500  # it knows of the first attempt, if that was one
            error.doubtful = (self.raised or error.doubtful) and not refused


def collection_path(group: str, version: str, plural: str, namespace: str = "") -> str:
    base = f"/apis/{quote(group)}/{quote(version)}" if group else f"/api/{quote(version)}"
    return f"{base}/namespaces/{quote(namespace, safe='')}/{plural}" if namespace else f"{base}/{plural}"


def object_path(group: str, version: str, plural: str, name: str, namespace: str = "") -> str:
    return f"{collection_path(group, version, plural, namespace)}/{quote(name, safe='')}"


def _answer(code: int, raw: bytes, repeated: bool) -> Answer:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        document = {"message": f"the server answered {code} with what is no JSON object"}
        if code < 400:
            unreadable = ApiError(502, document)
            unreadable.doubtful = True
            raise unreadable
    if code >= 400:
        raise ApiError(code, document)
    return Answer(code, document, repeated)


def _is_page(items: Any, meta: Any) -> bool:
    return isinstance(items, list) and isinstance(meta, dict)


def _object(document: Any) -> Document:
    """The document, if it is an object as every server has them: whoever asks for one may rely on its name."""
    meta = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
        raise ApiError(502, {"message": "the server answered with what is no object: it has no metadata with a name"})
    return dict(document)


def _again(code: int, raw: bytes) -> bool:
    """Whether it may pass. Kubernetes answers some requests that it cannot read with 500, and then gives no reason."""
    return code in (429, 502, 503, 504) or (code == 500 and not (b'"Status"' in raw and b'"reason"' not in raw))


def _is_final(error: BaseException) -> bool:
    """Asking again does not make a certificate right."""
    import ssl

    return isinstance(error, ssl.SSLCertVerificationError)


def _seconds(text: str | None) -> float:
    """Of Retry-After; a date is answered by our own pause."""
    return min(float(text), LONGEST_PAUSE) if text and text.isdigit() else 0.0
