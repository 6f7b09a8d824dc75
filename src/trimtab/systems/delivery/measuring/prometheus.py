"""A Prometheus, asked over its HTTP API.

Guarantees: an answer is whole or a SourceError: time, size and redirects are bounded, and partial data (a warning of a
remote store) are none. No message shows a credential, nor anything of a server that is no Prometheus.

Caveat: a counter that could not be scraped for an hour before a window, and then goes on, is taken for a new one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from trimtab.model.clock import Clock
from trimtab.model.redacted import Redacted
from trimtab.runtime.outbound import Budget, HostPin, Limits, Outbound, OutboundError, Response
from trimtab.runtime.outbound.tls import TlsError
from trimtab.systems.delivery.measuring.contract import Point, Series, SourceError, Window
from trimtab.systems.delivery.measuring.login import Login
from trimtab.systems.delivery.measuring.rendering import quoted

TIMEOUT = 5.0
MOST_BYTES = 8 * 1024 * 1024
LONGEST_URL = 4096


class PrometheusSource:
    """Keeps its connections until it is closed. SourceError when the address cannot be used."""

    def __init__(
        self,
        address: str,
        login: Login = Login(),  # noqa: B008 - frozen
        *,
        timeout: float = TIMEOUT,
        max_bytes: int = MOST_BYTES,
        clock: Clock | None = None,
    ) -> None:
        self._host, self._url = _parsed(address)
        self._login = login
        self._secrets = (*login.secrets, *_secrets(address))
        self._outbound = Outbound(
            Budget(concurrent=16, rate=1000, burst=1000, attempts=2, again=(502, 504), longest_wish=timeout),
            login.tls,
            HostPin(hosts=(urlsplit(self._url).hostname or "",)),
            limits=Limits(total=timeout, connect=timeout, read=timeout, body=max_bytes),
            clock=clock,
        )

    async def counters(self, name: str, labels: Mapping[str, str], window: Window) -> Sequence[Series]:
        selector = f"{name}{{{','.join(f'{label}={quoted(value)}' for label, value in labels.items())}}}"
        first, last = -(-_microseconds(window.start) // 1000), _microseconds(window.end) // 1000
        if first > last:
            return ()
        length = last - first + 1  # Prometheus 3 leaves out what is exactly so old
        inside = self._ranges(await self._asked(f"{selector}[{length}ms]", last))
        if not inside:
            return ()
        before = await self._asked(_BEFORE.format(selector=selector), first - 1)
        earlier = {_key(one.labels): one.value for one in self._points(before)}
        found = []
        for one in inside:
            samples = [(moment, value) for moment, value in one.samples if first <= round(moment * 1000) <= last]
            labels_of = {label: value for label, value in one.labels.items() if label != "__name__"}
            known = earlier.get(_key(labels_of))
            if known is not None:
                samples.insert(0, ((first - 1) / 1000, known))
            found.append(Series(labels_of, tuple(samples)))
        return found

    async def query(self, promql: str, at: datetime) -> Sequence[Point]:
        return self._points(await self._asked(promql, _microseconds(at) // 1000))

    async def close(self) -> None:
        await self._outbound.close()

    def __repr__(self) -> str:
        return f"PrometheusSource({self._host})"

    def _points(self, result: _Result) -> tuple[Point, ...]:
        if isinstance(result, Point):
            return (result,)
        if any(isinstance(one, _Range) for one in result):
            raise SourceError(f"Prometheus at {self._host}: the query gives ranges of samples, not numbers")
        return tuple(one for one in result if isinstance(one, Point))

    def _ranges(self, result: _Result) -> tuple[_Range, ...]:
        if isinstance(result, Point) or any(isinstance(one, Point) for one in result):
            raise self._strange("what a range selector gives")
        return tuple(one for one in result if isinstance(one, _Range))

    async def _asked(self, promql: str, at: int) -> _Result:
        """At so many milliseconds since 1970, which is as finely as Prometheus knows the time."""
        response = await self._answered(urlencode({"query": promql, "time": f"{at // 1000}.{at % 1000:03}"}))
        body = await response.read()
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if response.ok:
                raise self._strange("Prometheus' JSON") from None
            raise SourceError(f"Prometheus at {self._host} answered {response.status}") from None
        if answer.status != "success":
            kind = f"{answer.error_type}: " if answer.error_type else ""
            said = self._safe(f"{kind}{answer.error}") if answer.error else f"it answered {response.status}"
            raise SourceError(f"Prometheus at {self._host}: {said}")
        if not response.ok:
            raise SourceError(f"Prometheus at {self._host} answered {response.status}")
        partial = [warning for warning in answer.warnings or () if not warning.startswith("PromQL ")]
        if partial:
            raise SourceError(f"Prometheus at {self._host}: its answer may not be whole: {self._safe(partial[0])}")
        try:
            return _result(answer.data)
        except (msgspec.ValidationError, ValueError, OverflowError):
            raise self._strange("numbers") from None

    async def _answered(self, form: str) -> Response:
        headers: dict[str, str | Redacted] = {"Accept": "application/json"}
        if self._login.authorization is not None:
            headers["Authorization"] = self._login.authorization
        try:
            if len(form) <= LONGEST_URL:
                return await self._outbound.fetch("GET", f"{self._url}?{form}", headers=headers)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            return await self._outbound.fetch("POST", self._url, headers=headers, body=form.encode(), idempotent=True)
        except OutboundError as error:
            why = str(error).removeprefix(f"{error.method} {error.url}: ")
            raise SourceError(f"Prometheus at {self._host}: {self._safe(why)}") from None
        except TlsError as error:
            raise SourceError(f"Prometheus at {self._host}: {error}") from None
        except ValueError:  # a line end in a header, a token that is no text
            raise SourceError(f"Prometheus at {self._host}: its credential cannot be sent in a header") from None

    def _strange(self, what: str) -> SourceError:
        return SourceError(f"Prometheus at {self._host}: the answer is not {what}")

    def _safe(self, text: str) -> str:
        """A server may repeat what it was told."""
        for secret in self._secrets:
            shown = secret.reveal_bytes().decode("utf-8", "replace")
            if shown:
                text = text.replace(shown, "[redacted]")
        line = " ".join(text.split())
        return line if len(line) <= 300 else f"{line[:299]}…"


_BEFORE = "{selector} or (last_over_time({selector}[1h]) unless on(job, instance) (up == 1))"
"""What was there at a moment. A series that its target no longer shows is gone, and one that comes back begins anew; but
while the target could not be scraped nothing is known, and what was there before counts as there."""


class _Range(msgspec.Struct, frozen=True):
    labels: Mapping[str, str]
    samples: tuple[tuple[float, float], ...]


_Result = list[Point | _Range] | Point


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"null")


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""
    warnings: list[str] | None = None


class _Vector(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    value: tuple[float, str]  # one with a native histogram has none, and is refused


class _Matrix(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    values: list[tuple[float, str]]


def _result(data: _Data | None) -> _Result:
    if data is None:
        raise ValueError
    if data.result_type == "vector":
        vector = msgspec.json.decode(data.result, type=list[_Vector])
        return [Point(one.metric, _number(one.value[1])) for one in vector]
    if data.result_type == "matrix":
        matrix = msgspec.json.decode(data.result, type=list[_Matrix])
        return [_Range(one.metric, tuple((moment, _number(value)) for moment, value in one.values)) for one in matrix]
    if data.result_type == "scalar":
        return Point({}, _number(msgspec.json.decode(data.result, type=tuple[float, str])[1]))
    raise ValueError


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _number(text: str) -> float:
    value = float(text)  # "NaN", "+Inf" and "-Inf" too
    return math.nan if math.isnan(value) else value


def _key(labels: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((label, value) for label, value in labels.items() if label != "__name__")


def _parsed(address: str) -> tuple[str, str]:
    """Host and port, to be shown, and the URL to ask."""
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        raise SourceError("the address of Prometheus is no URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SourceError("the address of Prometheus is no http or https URL")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}{port}", f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/api/v1/query"


def _secrets(address: str) -> tuple[Redacted, ...]:
    password: Any = urlsplit(address).password
    return (Redacted(password),) if password else ()
