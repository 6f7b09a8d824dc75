"""What the audit log has of requests, from the door on."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.api import config_map
from trimtab.model.clock import SystemClock
from trimtab.model.scheme import Untyped
from trimtab.server.audit.log import AuditLog
from trimtab.server.audit.policy import policy_of
from trimtab.server.audit.trail import Auditor
from trimtab.server.auth.identity import MASTERS, Authenticator, User
from trimtab.server.auth.pki import ensure_pki
from trimtab.server.auth.tokens import TokenKey
from trimtab.server.core import Server
from trimtab.server.door import Door
from trimtab.server.http import Response, Stream
from trimtab.server.local import local_client
from trimtab.server.metrics import exposition
from trimtab.server.reader import StoreReader
from trimtab.server.wire import Incoming
from trimtab.store.memory import MemoryStore

ADMIN = User("admin", groups=(MASTERS,))
MAPS = "/api/v1/namespaces/default/configmaps"
Events = list[dict[str, Any]]


class House:
    """A server with an audit log, and its door."""

    def __init__(self, server: Server, door: Door, path: Path) -> None:
        self.server, self.door, self._path = server, door, path

    async def send(self, method: str, url: str, body: Any = None, **headers: Any) -> Response | Stream:
        path, _, query = url.partition("?")
        media = headers.pop("media", "application/json")
        named = {n.replace("_", "-").encode(): v.encode() for n, v in headers.items()}
        named |= {b"content-type": media.encode(), b"user-agent": b"test/1"}
        named.setdefault(b"authorization", b"Bearer hush-admin")
        raw = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        others = tuple((n, v) for n, v in named.items() if n.startswith(b"impersonate-"))
        address = "192.0.2.7"
        return await self.door(Incoming(method, path, query.encode(), named, raw, True, None, others, address=address))

    def events(self) -> Events:
        assert self.server.audit is not None
        self.server.audit.log.close()
        return [json.loads(line) for line in self._path.read_bytes().splitlines()]


@contextlib.asynccontextmanager
async def house(folder: Path, *rules: dict[str, Any], **fields: Any) -> AsyncIterator[House]:
    store = MemoryStore()
    key = TokenKey(ensure_pki(folder / "pki").service_account_key.read_bytes())
    tokens = {"hush-admin": ADMIN, "hush-bob": User("bob")}
    authenticator = Authenticator(key, StoreReader(store), issuer="i", audiences=("i",), static_tokens=tokens)
    server = Server(store, authenticator=authenticator, token_key=key, issuer="i")
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **fields}
    log = AuditLog(str(folder / "audit.log"), now=SystemClock().now)
    server.audit = Auditor(policy_of(policy), log, SystemClock())
    server.metrics.collectors.append(server.audit)
    await server.start()
    try:
        yield House(server, Door(server, authenticator), folder / "audit.log")
    finally:
        await server.stop()
        await store.close()


async def test_a_request_is_told_when_it_comes_and_when_it_was_answered(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "Metadata"}) as home:
        answer = await home.send("POST", f"{MAPS}?dryRun=All", config_map("a"), x_forwarded_for="10.0.0.1, nonsense")
        first, last = home.events()
    assert isinstance(answer, Response)
    assert (first["stage"], last["stage"]) == ("RequestReceived", "ResponseComplete")
    assert first["auditID"] == last["auditID"] == dict(answer.headers)[b"audit-id"].decode()
    assert first["requestReceivedTimestamp"] == first["stageTimestamp"] == last["requestReceivedTimestamp"]
    assert last["stageTimestamp"] > first["stageTimestamp"]
    assert first["objectRef"] == {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"}
    assert "responseStatus" not in first
    del last["auditID"], last["requestReceivedTimestamp"], last["stageTimestamp"]
    assert last == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": f"{MAPS}?dryRun=All",
        "verb": "create",
        "user": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "sourceIPs": ["10.0.0.1", "192.0.2.7"],
        "userAgent": "test/1",
        "objectRef": {"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "annotations": {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""},
    }


async def test_a_client_names_its_request(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "Metadata"}) as home:
        answer = await home.send("GET", "/version", audit_id="mine")
        assert dict(answer.headers)[b"audit-id"] == b"mine"
        assert {event["auditID"] for event in home.events()} == {"mine"}


@pytest.mark.parametrize(("level", "bodies"), [("Metadata", 0), ("Request", 1), ("RequestResponse", 2)])
async def test_bodies_are_told_as_the_level_says(tmp_path: Path, level: str, bodies: int) -> None:
    async with house(tmp_path, {"level": level, "verbs": ["create"], "omitStages": ["RequestReceived"]}) as home:
        await home.send("POST", MAPS, {**config_map("a"), "data": {"x": "1"}})
        (event,) = home.events()
    fields = [field for field in ("requestObject", "responseObject") if field in event]
    assert fields == ["requestObject", "responseObject"][:bodies]
    if bodies:
        assert event["requestObject"] == {**config_map("a"), "data": {"x": "1"}}
    if bodies == 2:
        assert event["responseObject"]["metadata"]["uid"]


async def test_a_body_of_any_form_is_told_as_json(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "Request", "omitStages": ["RequestReceived"]}) as home:
        await home.send("POST", MAPS, b"metadata: {name: a}\nkind: ConfigMap\napiVersion: v1", media="application/yaml")
        merge = "application/merge-patch+json"
        await home.send("PATCH", f"{MAPS}/a", {"data": {"k": "v"}}, media=merge)
        apply = "application/apply-patch+yaml"
        text = b"{metadata: {name: a}, kind: ConfigMap, apiVersion: v1}"
        await home.send("PATCH", f"{MAPS}/a?fieldManager=m&force=true", text, media=apply)
        await home.send("DELETE", f"{MAPS}/a", {"propagationPolicy": "Background"})
        told = [event["requestObject"] for event in home.events()]
    assert told == [config_map("a"), {"data": {"k": "v"}}, config_map("a"), {"propagationPolicy": "Background"}]


async def test_managed_fields_are_left_out_of_objects_and_lists(tmp_path: Path) -> None:
    rule = {"level": "RequestResponse", "omitStages": ["RequestReceived"]}
    async with house(tmp_path, rule, omitManagedFields=True) as home:
        await home.send("POST", MAPS, config_map("a"))
        await home.send("GET", MAPS)
        made, listed = home.events()
    assert "managedFields" not in made["responseObject"]["metadata"]
    items = listed["responseObject"]["items"]
    assert items
    assert not any("managedFields" in item["metadata"] for item in items)


async def test_tokens_are_nowhere_in_a_log_that_tells_all(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "RequestResponse"}) as home:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
        await home.send("POST", "/api/v1/namespaces/default/serviceaccounts", account)
        answer = await home.send("POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": {}})
        assert isinstance(answer, Response)
        token = json.loads(answer.body)["status"]["token"]
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        await home.send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        await home.send("GET", "/version", authorization=f"Bearer {token}")
        await home.send("GET", "/version", authorization="Bearer hush-wrong")
        told = json.dumps(home.events())
    assert token.rpartition(".")[2] not in told
    assert "hush" not in told
    assert "tokenreviews" in told


async def test_a_secret_is_told_as_the_policy_says_and_no_more(tmp_path: Path) -> None:
    secrets = {"resources": [{"group": "", "resources": ["secrets"]}]}
    async with house(tmp_path, {"level": "Metadata", **secrets}, {"level": "RequestResponse"}) as home:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "hush"}}
        await home.send("POST", "/api/v1/namespaces/default/secrets", secret)
        await home.send("GET", "/api/v1/namespaces/default/secrets")
        told = json.dumps(home.events())
    assert "secrets" in told
    assert "hush" not in told
    assert "aHVzaA" not in told


async def test_a_refusal_is_told_with_its_decision_and_status(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "Metadata", "omitStages": ["RequestReceived"]}) as home:
        await home.send("GET", MAPS, impersonate_user="carol")
        (event,) = home.events()
    assert event["user"]["username"] == "admin"
    assert event["impersonatedUser"] == {"username": "carol", "groups": ["system:authenticated"]}
    assert event["annotations"] == {"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""}
    status = event["responseStatus"]
    assert (status["code"], status["reason"], status["status"]) == (403, "Forbidden", "Failure")
    assert 'User "carol" cannot list' in status["message"]


async def test_who_may_not_impersonate_is_told_as_himself(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "Metadata", "omitStages": ["RequestReceived"]}) as home:
        await home.send("GET", MAPS, impersonate_user="carol", authorization="Bearer hush-bob")
        (event,) = home.events()
    assert event["user"]["username"] == "bob"
    assert "impersonatedUser" not in event
    assert event["responseStatus"]["code"] == 403


async def test_a_wrong_credential_is_told_without_it(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "Metadata"}) as home:
        answer = await home.send("GET", "/version", authorization="Bearer hush")
        assert isinstance(answer, Response)
        assert answer.code == 401
        (event,) = home.events()
    assert (event["stage"], event["user"]) == ("ResponseStarted", {})
    assert event["responseStatus"]["message"] == "Authentication failed, attempted: bearer"


async def test_a_watch_is_told_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "RequestResponse", "verbs": ["watch"]}) as home:
        await home.send("POST", MAPS, config_map("a"))
        answer = await home.send("GET", f"{MAPS}?watch=true")
        assert isinstance(answer, Stream)
        assert b"audit-id" in dict(answer.headers)
        flow = answer.flow()
        async with asyncio.timeout(10):
            await anext(flow)
        await flow.aclose()
        events = home.events()
    assert [event["stage"] for event in events] == ["RequestReceived", "ResponseStarted", "ResponseComplete"]
    assert "responseObject" not in events[-1]


async def test_a_stream_that_nobody_reads_is_ended_too_and_gives_its_place_back(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "Metadata"}) as home:
        answer = await home.send("GET", f"{MAPS}?watch=true")
        assert isinstance(answer, Stream)
        assert home.door._in_flight.watches.total == 1
        await answer.close()
        assert home.door._in_flight.watches.total == 0
        assert home.events()[-1]["stage"] == "ResponseComplete"


async def test_a_list_in_pieces_is_told_whole(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "RequestResponse", "verbs": ["list"]}) as home:
        for number in range(502):
            await home.send("POST", MAPS, config_map(f"m{number}"))
        answer = await home.send("GET", MAPS)
        assert isinstance(answer, Stream)
        sent = json.loads(b"".join([frame async for frame in answer.flow()]))
        events = home.events()
    assert [event["stage"] for event in events] == ["RequestReceived", "ResponseComplete"]
    assert events[-1]["responseObject"] == sent


async def test_an_event_over_the_limit_goes_without_bodies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimtab.server.audit.trail.MAX_EVENT", 2000)
    async with house(tmp_path, {"level": "Request", "omitStages": ["RequestReceived"]}) as home:
        await home.send("POST", MAPS, {**config_map("a"), "data": {"x": "y" * 3000}})
        (event,) = home.events()
    assert "requestObject" not in event
    assert event["annotations"]["audit.k8s.io/truncated"] == "true"


async def test_a_failure_of_ours_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: Any) -> Any:
        raise ZeroDivisionError("hush")

    async with house(tmp_path, {"level": "Metadata", "omitStages": ["RequestReceived"]}) as home:
        monkeypatch.setattr("trimtab.server.core.reads.get", fails)
        await home.send("GET", f"{MAPS}/a")
        (event,) = home.events()
    assert event["stage"] == "Panic"
    assert event["responseStatus"]["message"] == "APIServer panic'd: ZeroDivisionError"
    assert event["responseStatus"]["code"] == 500


async def test_who_leaves_early_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()

    async def waits(*_: Any) -> Any:
        begun.set()
        await asyncio.Event().wait()

    async with house(tmp_path, {"level": "Metadata", "omitStages": ["RequestReceived"]}) as home:
        monkeypatch.setattr("trimtab.server.core.reads.get", waits)
        task = asyncio.create_task(home.send("GET", f"{MAPS}/a"))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        (event,) = home.events()
    assert event["responseStatus"]["message"] == "Connection closed early"


async def test_admission_may_add_annotations_and_the_first_word_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def validate(self: Any, request: Any) -> None:
        request.annotate("example.com/why", "because")
        request.annotate("example.com/why", "otherwise")

    monkeypatch.setattr("trimtab.server.admission.chain.Admission.validate", validate)
    async with house(tmp_path, {"level": "Metadata", "verbs": ["create", "delete"]}) as home:
        await home.send("POST", MAPS, config_map("a"))
        await home.send("DELETE", f"{MAPS}/a")
        ends = [event for event in home.events() if event["stage"] == "ResponseComplete"]
    assert [event["annotations"]["example.com/why"] for event in ends] == ["because", "because"]


async def test_what_no_rule_fits_is_not_told(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "None"}) as home:
        await home.send("GET", "/version")
        await home.send("GET", "/version", authorization="Bearer wrong")
        assert home.events() == []


async def test_a_client_in_the_process_is_told_of_too(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "Metadata", "verbs": ["create"]}) as home:
        client = local_client(home.server, ADMIN)
        await client.create(Untyped(config_map("mine", namespace="default")))
        assert [event["verb"] for event in home.events()] == ["create", "create"]


async def test_metrics_count_events_and_those_that_were_lost(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "Metadata"}) as home:
        await home.send("GET", "/version")
        home.events()
        lines = exposition(home.server).decode().splitlines()
    assert "apiserver_audit_event_total 2.0" in lines
    assert 'apiserver_audit_level_total{level="Metadata"} 1.0' in lines
    assert 'apiserver_audit_error_total{plugin="log"} 0.0' in lines


async def test_a_body_that_is_nested_too_deeply_for_the_log_is_told_without_it(tmp_path: Path) -> None:
    deep = b'{"metadata":{"name":"a"},"data":' + b'{"a":' * 400 + b"1" + b"}" * 401
    async with house(tmp_path, {"level": "RequestResponse"}) as home:
        answer = await home.send("POST", MAPS, deep)
        assert isinstance(answer, Response)
        assert answer.code == 400
        told = [event for event in home.events() if event["stage"] == "ResponseComplete"]
        assert (told[-1]["verb"], told[-1]["responseStatus"]["code"]) == ("create", 400)
        assert "requestObject" not in told[-1]
