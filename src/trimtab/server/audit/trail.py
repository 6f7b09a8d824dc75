"""The audit events of one request (audit.k8s.io/v1 Event), from its coming to the end of its answer.

Flow: `Auditor.begin` asks the policy; None means that nothing is told. Then `received`, what is learned on the way
(`impersonated`, `decided`, `annotate`, `seen`), and one end: `complete`, `ended` (after `started`, for what goes on), `left`,
`refused` (nobody knows who asks) or `panicked`. Who is first ends it; later calls tell nothing.

Guarantees: an event never fails its request, and is bounded: over `MAX_EVENT` bytes it goes without bodies, and says so.
"""

from __future__ import annotations

import enum
import ipaddress
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from trimtab.model.clock import Clock, format_micro_time
from trimtab.model.errors import StatusError
from trimtab.server.audit.bodies import readable, without_managed_fields
from trimtab.server.audit.log import AuditLog
from trimtab.server.audit.policy import API_VERSION, Level, Policy, Verdict
from trimtab.server.auth.identity import User
from trimtab.server.auth.rbac import Attributes, Decision
from trimtab.server.options import is_watching
from trimtab.server.target import VERBS, Target, parse

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from trimtab.server.http import Response

MAX_EVENT = 10 * 1024 * 1024
MAX_AGENT = 1024
MAX_ANNOTATIONS = 64
MAX_ANNOTATION = 10 * 1024
MAX_SOURCES = 20
DECISION, REASON = "authorization.k8s.io/decision", "authorization.k8s.io/reason"
TRUNCATED = "audit.k8s.io/truncated"
_NOBODY = User("")


class Stage(enum.Enum):
    REQUEST_RECEIVED = "RequestReceived"
    RESPONSE_STARTED = "ResponseStarted"
    RESPONSE_COMPLETE = "ResponseComplete"
    PANIC = "Panic"


class Auditor:
    """Decides what is told, and hands it to the log."""

    def __init__(self, policy: Policy, log: AuditLog, clock: Clock) -> None:
        self._policy = policy
        self.log = log
        self.clock = clock
        self._levels: dict[str, int] = {}

    def begin(
        self,
        identifier: str,
        *,
        method: str,
        path: str,
        query: Mapping[str, str],
        raw_query: str = "",
        headers: Mapping[bytes, bytes],
        address: str = "",
        user: User | None,
    ) -> Trail | None:
        """The trail of a request; None when the policy tells nothing of it. `user` is None when nobody knows who asks."""
        asked = attributes(user or _NOBODY, method, path, query)
        verdict = self._policy.judge(asked)
        word = verdict.level.word
        self._levels[word] = self._levels.get(word, 0) + 1
        if verdict.level is Level.NONE:
            return None
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": API_VERSION,
            "level": word,
            "auditID": identifier,
            "stage": "",
            "requestURI": quote(path, safe="/:@!$&'()*+,;=~%") + (f"?{raw_query}" if raw_query else ""),
            "verb": asked.verb,
            "user": (user or _NOBODY).user_info() if user is not None else {},
        }
        if sources := _sources(headers, address):
            event["sourceIPs"] = sources
        if agent := headers.get(b"user-agent", b"").decode("utf-8", "replace"):
            event["userAgent"] = agent if len(agent) <= MAX_AGENT else agent[:MAX_AGENT] + "...TRUNCATED"
        if asked.resource:
            event["objectRef"] = _reference(asked)
        return Trail(self, verdict, event, format_micro_time(self.clock.now()), goes_on=asked.verb == "watch")

    def write(self, event: dict[str, Any]) -> None:
        self.log.append(_encoded(event))

    def collect(self) -> list[Metric]:
        """For `/metrics`, under the names of the reference server."""
        from prometheus_client.core import CounterMetricFamily

        levels = CounterMetricFamily("apiserver_audit_level", "Requests by their audit level.", labels=["level"])
        for word, count in sorted(self._levels.items()):
            levels.add_metric([word], count)
        events = CounterMetricFamily("apiserver_audit_event", "Audit events made.", value=self.log.written)
        errors = CounterMetricFamily("apiserver_audit_error", "Audit events that were lost.", labels=["plugin"])
        errors.add_metric(["log"], self.log.lost)
        return [levels, events, errors]


class Trail:
    """What is told of one request."""

    __slots__ = (
        "_annotations",
        "_auditor",
        "_begun",
        "_done",
        "_event",
        "_goes_on",
        "_pieces",
        "_seen",
        "_size",
        "_verdict",
    )

    def __init__(self, auditor: Auditor, verdict: Verdict, event: dict[str, Any], begun: str, *, goes_on: bool) -> None:
        self._auditor = auditor
        self._verdict = verdict
        self._event = event
        self._begun = begun
        self._goes_on = goes_on
        self._annotations: dict[str, str] = {}
        self._seen: bytes | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._done = False

    @property
    def identifier(self) -> str:
        return str(self._event["auditID"])

    @property
    def _about_resource(self) -> bool:
        return "objectRef" in self._event

    def received(self) -> None:
        self._tell(Stage.REQUEST_RECEIVED, self._begun)

    def impersonated(self, user: User) -> None:
        self._event["impersonatedUser"] = user.user_info()

    def decided(self, decision: Decision) -> None:
        self._annotations[DECISION] = "allow" if decision.allowed else "forbid"
        self._annotations[REASON] = decision.reason

    def annotate(self, key: str, value: str) -> None:
        """For admission: a short word on why. The first word for a key counts."""
        if len(self._annotations) < MAX_ANNOTATIONS:
            self._annotations.setdefault(key, value[:MAX_ANNOTATION])

    def seen(self, document: Any) -> None:
        """The object that was sent, before anything of it is changed."""
        if not isinstance(document, dict) or not self._about_resource:
            return
        if self._event["objectRef"].get("subresource") == "scale":
            return  # what is written then is the object behind it, which nobody sent
        metadata = document.get("metadata")
        if isinstance(metadata, dict):
            for field in ("namespace", "name", "uid", "resourceVersion"):
                value = metadata.get(field)
                if isinstance(value, str) and value:
                    self._event["objectRef"].setdefault(field, value)
        if self._verdict.bodies >= Level.REQUEST:
            self._seen = orjson.dumps(self._trimmed(document))

    def started(self, code: int) -> None:
        """An answer that goes on has begun. Lists that are sent in pieces end by themselves: they have no such stage."""
        self._event["responseStatus"] = {"metadata": {}, "code": code}
        if self._goes_on:
            self._tell(Stage.RESPONSE_STARTED)

    @property
    def wants_pieces(self) -> bool:
        return not self._goes_on and self._about_resource and self._verdict.bodies is Level.REQUEST_RESPONSE

    def piece(self, piece: bytes) -> None:
        """Of an answer that is sent in pieces."""
        self._size += len(piece)
        if self._size <= MAX_EVENT:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def ended(self, body: bytes = b"", content_type: str = "") -> None:
        """What went on has ended. `body` is what was asked with."""
        if self._size > MAX_EVENT:
            self._annotations[TRUNCATED] = "true"
        elif self._pieces:
            self._event["responseObject"] = self._readable(b"".join(self._pieces), "application/json")
        self._requested(body, content_type)
        self._end(Stage.RESPONSE_COMPLETE)

    def complete(self, response: Response, body: bytes = b"", content_type: str = "") -> None:
        """The answer is there."""
        if self._done:
            return
        self._event["responseStatus"] = _status(response)
        self._requested(body, content_type)
        if self._about_resource and self._verdict.bodies is Level.REQUEST_RESPONSE and response.body:
            self._event["responseObject"] = self._readable(response.body, response.media.decode("latin-1"))
        self._end(Stage.RESPONSE_COMPLETE)

    def left(self) -> None:
        """Who asked did not wait for the answer."""
        early = {"metadata": {}, "status": "Success", "message": "Connection closed early", "code": 200}
        self._event.setdefault("responseStatus", early)
        self._end(Stage.RESPONSE_COMPLETE)

    def refused(self, code: int, authorization: bytes | None, certificate: bool) -> None:
        """Nobody knows who asks. Only the ways that were tried are told, nothing of the credentials."""
        tried = [authorization.split(b" ", 1)[0].decode("latin-1").lower()] if authorization else []
        tried = [way for way in tried if way in ("basic", "bearer")] + (["x509"] if certificate else [])
        why = f"attempted: {', '.join(tried)}" if tried else "no credentials provided"
        self._event["responseStatus"] = {"metadata": {}, "message": f"Authentication failed, {why}", "code": code}
        self._end(Stage.RESPONSE_STARTED)

    def panicked(self, what: str) -> None:
        message = f"APIServer panic'd: {what}"
        failure = {"status": "Failure", "message": message, "reason": "InternalError", "code": 500}
        self._event["responseStatus"] = {"metadata": {}, **failure}
        self._end(Stage.PANIC)

    def _requested(self, body: bytes, content_type: str) -> None:
        if not self._about_resource or self._verdict.bodies < Level.REQUEST:
            return
        if self._seen is not None:
            self._event["requestObject"] = orjson.Fragment(self._seen)
        elif body:
            self._event["requestObject"] = self._readable(body, content_type)

    def _readable(self, raw: bytes, media: str) -> Any:
        """A body as JSON; None, with a word that it is missing, when it is too large or of no form that we read."""
        document = readable(raw, media)
        if document is None:
            self._annotations[TRUNCATED] = "true"
            return None
        return self._trimmed(document)

    def _trimmed(self, document: Any) -> Any:
        return without_managed_fields(document) if self._verdict.omit_managed_fields else document

    def _end(self, stage: Stage) -> None:
        if not self._done:
            self._done = True
            self._tell(stage)

    def _tell(self, stage: Stage, moment: str = "") -> None:
        if stage.value in self._verdict.omit_stages:
            return
        event = {field: value for field, value in self._event.items() if value is not None}
        event["stage"] = stage.value
        event["requestReceivedTimestamp"] = self._begun
        event["stageTimestamp"] = moment or format_micro_time(self._auditor.clock.now())
        if self._annotations:
            event["annotations"] = dict(self._annotations)
        self._auditor.write(event)


def attributes(user: User, method: str, path: str, query: Mapping[str, str]) -> Attributes:
    """What a request asks for, as policies speak of it. Unlike authorization it refuses nothing."""
    target = parse(path)
    if target is None:
        return Attributes(user, method.lower(), path=path)
    name = target.name
    watching = target.watch or ("watch" in query and _watches(query))
    verb = _verb(target, method, watching)
    if verb in ("list", "watch") and not name:
        name = _selected(query.get("fieldSelector", ""))
    group, version, namespace = target.group, target.version, target.namespace
    return Attributes(user, verb, group, version, target.resource, target.subresource, namespace, name, path)


def _verb(target: Target, method: str, watching: bool) -> str:
    if method in ("GET", "HEAD", "DELETE") or method in VERBS:
        return target.verb("GET" if method == "HEAD" else method, watching)
    return ""


def _watches(query: Mapping[str, str]) -> bool:
    try:
        return is_watching(query)
    except StatusError:
        return False


def _selected(selector: str) -> str:
    from trimtab.model.selectors import FieldSelector

    if "metadata.name" not in selector:
        return ""
    try:
        return FieldSelector.parse(selector).exact("metadata.name") or ""
    except StatusError:
        return ""


def _reference(asked: Attributes) -> dict[str, str]:
    fields = {
        "resource": asked.resource,
        "namespace": asked.namespace,
        "name": asked.name,
        "apiGroup": asked.group,
        "apiVersion": asked.version,
        "subresource": asked.subresource,
    }
    return {field: value for field, value in fields.items() if value}


def _sources(headers: Mapping[bytes, bytes], address: str) -> list[str]:
    """Where a request came from. All but the last are what its sender says."""
    given = headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")[:MAX_SOURCES]
    found = [ip for text in given if (ip := _address(text))]
    real = _address(headers.get(b"x-real-ip", b"").decode("latin-1"))
    if real and real not in found:
        found.append(real)
    own = _address(address)
    if own and found[-1:] != [own]:
        found.append(own)
    return found


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip())) if text else ""
    except ValueError:
        return ""


def _status(response: Response) -> dict[str, Any]:
    """As the event has it: bounded fields of a Status, or the code alone."""
    status: dict[str, Any] = {"metadata": {}}
    if response.code >= 400 or b'"kind":"Status"' in response.body[:64].replace(b" ", b""):
        document = readable(response.body, response.media.decode("latin-1"))
        if isinstance(document, dict) and document.get("kind") == "Status":
            status |= {f: document[f] for f in ("status", "message", "reason", "details") if document.get(f)}
    status["code"] = response.code
    return status


def _encoded(event: dict[str, Any]) -> bytes:
    """Without its objects when they are too large, or nested too deeply: what was done is told in any case."""
    try:
        line = orjson.dumps(event, default=str)
    except TypeError:
        line = b""
    if not line or len(line) > MAX_EVENT:
        bare = {field: value for field, value in event.items() if field not in ("requestObject", "responseObject")}
        bare["annotations"] = {**event.get("annotations", {}), TRUNCATED: "true"}
        line = orjson.dumps(bare, default=str)
    return line + b"\n"
