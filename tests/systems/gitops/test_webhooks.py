"""Pushes that Git servers tell of: who may tell, what they tell, and that a change is live soon after."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import io
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from tests.systems.gitops.desk import Desk, config
from trimtab.model.redacted import Redacted
from trimtab.runtime.credentials import Credentials
from trimtab.systems.gitops import listening as listening_module
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.kinds.fields import SYNC_NOW
from trimtab.systems.gitops.listening import MAX_BYTES, Listener
from trimtab.systems.gitops.webhooks.deliveries import Deliveries
from trimtab.systems.gitops.webhooks.pushes import NoPush, Push, concerns, matches, push_of
from trimtab.systems.gitops.webhooks.signatures import is_authentic
from trimtab.testing.clock import FakeClock

SECRET = Redacted(b"open sesame")


def signed(body: bytes, secret: bytes = b"open sesame") -> str:
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


@pytest.mark.row(51)
@pytest.mark.parametrize(
    ("provider", "headers", "good"),
    [
        ("github", {"X-Hub-Signature-256": signed(b"{}")}, True),
        ("github", {"X-Hub-Signature-256": signed(b"{}", b"another")}, False),
        ("github", {"X-Hub-Signature-256": signed(b"{ }")}, False),
        ("github", {"X-Hub-Signature": signed(b"{}")}, False),
        ("github", {}, False),
        ("bitbucket", {"X-Hub-Signature": signed(b"{}")}, True),
        ("bitbucket", {"X-Hub-Signature": "sha1=abc"}, False),
        ("gitlab", {"X-Gitlab-Token": "open sesame"}, True),
        ("gitlab", {"X-Gitlab-Token": "open"}, False),
        ("gitlab", {"X-Gitlab-Token": ""}, False),
        ("azure", {"Authorization": "Basic " + base64.b64encode(b"any:open sesame").decode()}, True),
        ("azure", {"Authorization": "Basic " + base64.b64encode(b"open sesame").decode()}, False),
        ("azure", {"Authorization": "Basic $$"}, False),
        ("azure", {"Authorization": "Bearer open sesame"}, False),
        ("gitea", {"X-Hub-Signature-256": signed(b"{}")}, False),
    ],
)
def test_only_who_has_the_secret_is_believed(provider: str, headers: dict[str, str], good: bool) -> None:
    assert is_authentic(provider, headers, b"{}", SECRET) is good
    assert not is_authentic(provider, headers, b"{}", Redacted(b""))


COMMITS = [{"added": ["a/b.yaml"], "modified": ["c.yaml"], "removed": []}]


@pytest.mark.row(51)
@pytest.mark.parametrize(
    ("provider", "headers", "message", "push"),
    [
        (
            "github",
            {"X-GitHub-Event": "push", "X-GitHub-Delivery": "d1"},
            {"ref": "refs/heads/main", "commits": COMMITS},
            Push(frozenset({"main"}), frozenset({"a/b.yaml", "c.yaml"}), "d1"),
        ),
        ("github", {}, {"ref": "refs/heads/main", "forced": True, "commits": COMMITS}, Push(frozenset({"main"}), None)),
        ("github", {}, {"ref": "refs/tags/v1", "commits": []}, Push(frozenset(), frozenset(), tags=frozenset({"v1"}))),
        ("gitlab", {}, {"object_kind": "tag_push", "ref": "refs/tags/v1"}, Push(frozenset(), tags=frozenset({"v1"}))),
        (
            "gitlab",
            {"X-Gitlab-Event-UUID": "u"},
            {"object_kind": "push", "ref": "refs/heads/a/b", "commits": COMMITS, "total_commits_count": 1},
            Push(frozenset({"a/b"}), frozenset({"a/b.yaml", "c.yaml"}), "u"),
        ),
        (
            "gitlab",
            {},
            {"object_kind": "push", "ref": "refs/heads/main", "commits": COMMITS, "total_commits_count": 30},
            Push(frozenset({"main"}), None),
        ),
        (
            "bitbucket",
            {"X-Event-Key": "repo:push", "X-Request-UUID": "r"},
            {"push": {"changes": [{"new": {"type": n, "name": n}} for n in ("branch", "tag")] + [{"new": None}]}},
            Push(frozenset({"branch"}), None, "r", frozenset({"tag"})),
        ),
        (
            "bitbucket",
            {"X-Event-Key": "repo:refs_changed"},
            {"changes": [{"ref": {"type": "BRANCH", "displayId": "main"}}]},
            Push(frozenset({"main"}), None),
        ),
        (
            "azure",
            {},
            {
                "eventType": "git.push",
                "id": "n",
                "resource": {"refUpdates": [{"name": "refs/heads/main"}, {"name": "refs/tags/v1"}]},
            },
            Push(frozenset({"main"}), None, "n", frozenset({"v1"})),
        ),
    ],
)
def test_each_provider_tells_what_was_pushed(
    provider: str, headers: dict[str, str], message: dict[str, Any], push: Push
) -> None:
    assert push_of(provider, headers, json.dumps(message).encode()) == push


def test_messages_of_other_sorts_and_shapes_are_no_pushes() -> None:
    with pytest.raises(NoPush):
        push_of("github", {"X-GitHub-Event": "ping"}, b"{}")
    with pytest.raises(NoPush):
        push_of("azure", {}, b"{}")
    for body in (b"", b"[]", b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError, match="body"):
            push_of("github", {}, body)
    for message in ({"ref": 1}, {"ref": "refs/heads/x", "commits": [1, {"added": 3}]}, {"commits": {}}):
        push_of("github", {}, json.dumps(message).encode())


@pytest.mark.row(51)
def test_a_push_concerns_a_sync_by_branch_and_paths() -> None:
    push = Push(frozenset({"main"}), frozenset({"clusters/a/x.yaml", "README.md"}))
    assert concerns(push, "main", ())
    assert not concerns(push, "next", ())
    assert concerns(push, "main", ["clusters/**"])
    assert not concerns(push, "main", ["apps/**", "clusters/*"])
    assert concerns(Push(frozenset({"main"}), None), "main", ["apps/**"])
    assert concerns(push, "refs/heads/main", ())
    assert not concerns(push, "refs/tags/main", ())
    assert concerns(push, "HEAD", ["clusters/**"])
    moved = Push(frozenset(), frozenset(), tags=frozenset({"v1"}))
    assert concerns(moved, "v1", ["apps/**"])
    assert concerns(moved, "refs/tags/v1", ())
    assert not concerns(moved, "refs/heads/v1", ())
    assert not concerns(moved, "HEAD", ())
    assert matches("*.yaml", "a/b/c.yaml")
    assert matches("**/x.yaml", "x.yaml")
    assert not matches("a/**/x.yaml", "b/x.yaml")


def test_deliveries_are_known_by_name_and_by_body_until_they_are_forgotten() -> None:
    clock = FakeClock()
    deliveries = Deliveries(clock, most=4, seconds=100)
    deliveries.remember("hook", "one", b"body")
    assert deliveries.is_known("hook", "two", b"body")
    assert deliveries.is_known("hook", "one", b"other")
    assert not deliveries.is_known("another", "one", b"body")
    for number in range(3):
        deliveries.remember("hook", f"n{number}", str(number).encode())
    assert not deliveries.is_known("hook", "one", b"body")


@contextlib.asynccontextmanager
async def listening(desk: Desk) -> AsyncIterator[str]:
    async with Credentials(desk.client) as credentials:
        listener = Listener(desk.client, credentials)
        port = await listener.start()
        try:
            yield f"http://127.0.0.1:{port}/{desk.namespace}"
        finally:
            await listener.stop()


HOOK = {"name": "hub", "provider": "github", "secretRef": {"name": "hook", "key": "token"}, "paths": ["fleet/**"]}


async def asked(desk: Desk) -> str:
    held = await desk.client.get(GitSync, "fleet", desk.namespace)
    return (held.metadata.annotations or {}).get(SYNC_NOW, "")


@pytest.mark.row(51)
async def test_a_signed_push_is_synced_at_once_and_all_others_do_nothing(desk: Desk) -> None:
    desk.git.create("team", {"fleet/a.yaml": config("a", x="1")})
    await desk.repository()
    await desk.secret("hook", token="open sesame")
    body = json.dumps({"ref": "refs/heads/main", "commits": [{"modified": ["fleet/a.yaml"]}]}).encode()
    good = {"X-Hub-Signature-256": signed(body), "X-GitHub-Event": "push", "X-GitHub-Delivery": "1"}
    async with desk.working(), listening(desk) as url, aiohttp.ClientSession() as http:
        await desk.sync(path="fleet", triggers={"webhooks": [HOOK]})
        sync = await desk.ready()
        (shown,) = sync.status.webhooks
        assert shown.path == f"/{desk.namespace}/fleet/hub"
        assert "sesame" not in str(sync.raw)

        async def post(path: str, data: bytes, headers: dict[str, str]) -> int:
            async with http.post(url + path, data=io.BytesIO(data), headers=headers) as answer:
                return answer.status

        assert await post("/fleet/hub", body, {**good, "X-Hub-Signature-256": signed(body, b"guess")}) == 401
        assert await post("/fleet/other", body, good) == 401
        assert await post("/nothing/hub", body, good) == 401
        assert await post("/fleet/hub", b"x" * (MAX_BYTES + 1), good) == 413
        elsewhere = body.replace(b"main", b"next")
        assert await post("/fleet/hub", elsewhere, {**good, "X-Hub-Signature-256": signed(elsewhere)}) == 202
        outside = body.replace(b"fleet/a.yaml", b"README.md")
        headers = {**good, "X-Hub-Signature-256": signed(outside), "X-GitHub-Delivery": "2"}
        assert await post("/fleet/hub", outside, headers) == 202
        assert await asked(desk) == ""

        desk.git.commit("team", {"fleet/a.yaml": config("a", x="2")})
        assert await post("/fleet/hub", body, {**good, "X-GitHub-Delivery": "3"}) == 202
        await desk.ready()
        live = await desk.live("a")
        assert live is not None
        assert live["data"] == {"x": "2"}
        first = await asked(desk)
        assert first.startswith("webhook hub ")
        assert await post("/fleet/hub", body, {**good, "X-GitHub-Delivery": "4"}) == 202  # a replay under another name
        assert await asked(desk) == first


PUSH = {"ref": "refs/heads/main", "commits": [{"modified": ["fleet/a.yaml"]}]}
CUT = {"object_kind": "push", **PUSH, "commits": [{"modified": ["README.md"]}], "total_commits_count": 30}
CHANGED = {"push": {"changes": [{"new": {"type": "branch", "name": "main"}}]}}
UPDATED = {"eventType": "git.push", "id": "1", "resource": {"refUpdates": [{"name": "refs/heads/main"}]}}


def sent(body: bytes, secret: bytes) -> str:
    return secret.decode()


def basic(body: bytes, secret: bytes) -> str:
    return "Basic " + base64.b64encode(b"any:" + secret).decode()


@pytest.mark.row(51)
@pytest.mark.parametrize(
    ("provider", "message", "event", "header", "proof"),
    [
        ("github", PUSH, {"X-GitHub-Event": "push"}, "X-Hub-Signature-256", signed),
        ("gitlab", CUT, {"X-Gitlab-Event": "Push Hook"}, "X-Gitlab-Token", sent),
        ("bitbucket", CHANGED, {"X-Event-Key": "repo:push"}, "X-Hub-Signature", signed),
        ("azure", UPDATED, {}, "Authorization", basic),
    ],
)
async def test_each_provider_is_believed_in_its_own_way_and_asks_for_a_run(
    desk: Desk,
    provider: str,
    message: dict[str, Any],
    event: dict[str, str],
    header: str,
    proof: Callable[[bytes, bytes], str],
) -> None:
    await desk.secret("hook", token="open sesame")
    await desk.sync(triggers={"webhooks": [{**HOOK, "provider": provider}]})
    body = json.dumps(message).encode()
    async with listening(desk) as url, aiohttp.ClientSession() as http:

        async def post(secret: bytes) -> int:
            headers = {**event, header: proof(body, secret)}
            async with http.post(f"{url}/fleet/hub", data=io.BytesIO(body), headers=headers) as answer:
                return answer.status

        assert await post(b"guess") == 401
        assert await asked(desk) == ""
        assert await post(b"open sesame") == 202
        assert (await asked(desk)).startswith("webhook hub ")


@pytest.mark.row(51)
@pytest.mark.parametrize(
    ("provider", "header"),
    [
        ("github", b"X-Hub-Signature-256: sha256=\xff"),
        ("bitbucket", b"X-Hub-Signature: sha256=\xff"),
        ("gitlab", b"X-Gitlab-Token: \xff"),
        ("azure", b"Authorization: Basic \xff"),
    ],
)
async def test_a_signature_that_is_no_text_tells_nobody_whether_there_is_such_a_sync(
    desk: Desk, provider: str, header: bytes
) -> None:
    await desk.repository()
    await desk.secret("hook", token="open sesame")
    await desk.sync(triggers={"webhooks": [{**HOOK, "provider": provider}]})
    async with listening(desk) as url:
        assert await answer_of(url, "fleet/hub", header) == await answer_of(url, "nothing/hub", header) == 401


@pytest.mark.row(51)
async def test_what_goes_wrong_before_the_secret_is_shown_is_answered_as_if_it_were_wrong(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> bool:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(listening_module, "is_authentic", broken)
    await desk.repository()
    await desk.secret("hook", token="open sesame")
    await desk.sync(triggers={"webhooks": [HOOK]})
    async with listening(desk) as url:
        assert await answer_of(url, "fleet/hub", b"X-Hub-Signature-256: sha256=00") == 401


async def answer_of(url: str, place: str, header: bytes) -> int:
    """The status of an answer to a message with a header as it is: clients send text only."""
    _, _, rest = url.partition("//")
    address, _, namespace = rest.partition("/")
    reader, writer = await asyncio.open_connection(*address.split(":"))
    head = f"POST /{namespace}/{place} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n".encode()
    writer.write(head + header + b"\r\n\r\n{}")
    said = await reader.read()
    writer.close()
    return int(said.split()[1])


def test_a_message_whose_body_nobody_signs_goes_by_its_name_alone() -> None:
    """A branch may be moved there and back and there again."""
    deliveries = Deliveries(FakeClock())
    deliveries.remember("hook", "one", b"body", signed=False)
    assert not deliveries.is_known("hook", "two", b"body", signed=False)
    assert deliveries.is_known("hook", "one", b"body", signed=False)
    deliveries.remember("hook", "", b"nameless", signed=False)
    assert deliveries.is_known("hook", "", b"nameless", signed=False)


def test_gitlabs_key_for_one_message_comes_before_the_one_that_webhooks_of_webhooks_share() -> None:
    headers = {"X-Gitlab-Event-UUID": "chain", "Idempotency-Key": "message"}
    assert push_of("gitlab", headers, b'{"object_kind": "push", "ref": "refs/heads/main"}').delivery == "message"


@pytest.mark.row(51)
async def test_a_second_push_of_the_same_words_starts_a_sync_again(desk: Desk) -> None:
    await desk.repository()
    await desk.secret("hook", token="open sesame")
    await desk.sync(triggers={"webhooks": [{**HOOK, "provider": "gitlab", "paths": []}]})
    body = b'{"object_kind": "push", "ref": "refs/heads/main"}'
    async with listening(desk) as url, aiohttp.ClientSession() as http:
        seen = []
        for name in ("one", "two"):
            headers = {"X-Gitlab-Token": "open sesame", "Idempotency-Key": name}
            async with http.post(f"{url}/fleet/hub", data=body, headers=headers) as answer:
                assert answer.status == 202
            seen.append(await asked(desk))
    assert seen[0] != seen[1]
