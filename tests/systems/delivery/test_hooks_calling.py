"""Webhooks of a run, asked over real HTTP and HTTPS on loopback by those who answer badly, too."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.systems.delivery.problem_specs import canary as canary_of
from trimtab.client.api import ApiClient
from trimtab.model.document import plain
from trimtab.model.kubernetes import Secret, register
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Scheme
from trimtab.runtime.credentials import Credentials
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore
from trimtab.systems.delivery.hooks import connections
from trimtab.systems.delivery.hooks.answers import Answer
from trimtab.systems.delivery.hooks.calling import Hooks
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentStatus, RunStatus
from trimtab.testing.pki import Authority

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
RUN = RunStatus(
    id="run-1",
    revision="v1:abc",
    before="v1:def",
    started="2026-01-01T00:00:00Z",
    since="2026-01-01T00:00:00Z",
    step=2,
    weight=20,
)


class Peer:
    """A server that answers as its paths say, and keeps what it was sent."""

    def __init__(self) -> None:
        self.address = ""
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.handlers: dict[str, Handler] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.seen.append((f"{request.method} {request.path}", dict(request.headers), body))
        handler = self.handlers.get(request.path)
        return await handler(request) if handler else web.Response(status=int(request.path.rpartition("/")[2] or 200))


async def _serve(context: ssl.SSLContext | None = None) -> tuple[Peer, web.AppRunner]:
    peer, app = Peer(), web.Application()
    app.router.add_route("*", "/{path:.*}", peer.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    peer.address = f"{'https' if context else 'http'}://localhost:{runner.addresses[0][1]}"
    return peer, runner


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    peer, runner = await _serve()
    yield peer
    await runner.cleanup()


@pytest.fixture
async def elsewhere() -> AsyncIterator[Peer]:
    peer, runner = await _serve()
    yield peer
    await runner.cleanup()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def secure(authority: Authority) -> AsyncIterator[Peer]:
    pair = authority.server("localhost")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    peer, runner = await _serve(context)
    yield peer
    await runner.cleanup()


@pytest.fixture
async def client() -> AsyncIterator[ApiClient]:
    store = MemoryStore()
    server = Server(store)
    await server.start()
    yield local_client(server, User("admin", groups=(MASTERS, "system:authenticated")), register(Scheme()))
    await server.stop()
    await store.close()


@pytest.fixture
async def hooks(client: ApiClient) -> AsyncIterator[Hooks]:
    async with Credentials(client, cached=True) as credentials:
        made = Hooks(credentials)
        yield made
        await made.close()


def canary(*webhooks: dict[str, Any]) -> CanaryDeployment:
    usual = {"type": "Rollout", "timeout": "5s"}
    made = [{**usual, "name": f"hook-{i}", **webhook} for i, webhook in enumerate(webhooks)]
    return canary_of({"analysis.webhooks": made}, status=CanaryDeploymentStatus(phase="Progressing"))


async def secret(client: ApiClient, **values: str) -> None:
    data = {key.replace("_", "."): value for key, value in values.items()}
    await client.create(Secret(metadata=ObjectMeta(name="gate", namespace="default"), string_data=data))


def replying(status: int, text: str = "", **headers: str) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text, headers={key.replace("_", "-"): v for key, v in headers.items()})

    return answer


async def _hang(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(status=403)
    await response.prepare(request)
    while True:
        await response.write(b"no " * 20000)


async def _endless_yes(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(status=200)
    await response.prepare(request)
    while True:
        await response.write(b"yes" * 20000)


async def _dripping(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(status=409)
    await response.prepare(request)
    await response.write(b"wait")
    await asyncio.Event().wait()
    raise AssertionError


async def test_a_webhook_is_told_all_about_the_run(hooks: Hooks, peer: Peer) -> None:
    answer = await hooks.ask("Rollout", canary({"url": peer.address + "/200", "metadata": {"team": "shop"}}), RUN)
    assert answer == Answer(agreed=("hook-0",))
    assert answer.allowed
    ((path, headers, body),) = peer.seen
    assert path == "POST /200"
    assert headers["Idempotency-Key"] == "run-1/Rollout/2"
    assert headers["Content-Type"] == "application/json"
    assert "Authorization" not in headers
    assert body == {
        "name": "web",
        "namespace": "default",
        "phase": "Progressing",
        "revision": "v1:abc",
        "run": "run-1",
        "step": 2,
        "weight": 20,
        "type": "Rollout",
        "metadata": {"team": "shop"},
        "checksum": "abc",
    }


async def test_each_check_asks_a_new_question(hooks: Hooks, peer: Peer) -> None:
    asked = canary({"url": peer.address})
    for due in ("2026-01-01T00:01:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"):
        await hooks.ask("Rollout", asked, RUN.replace(next_check_time=due))
    keys = [headers["Idempotency-Key"] for _, headers, _ in peer.seen]
    assert keys[0] == keys[1] != keys[2]


async def test_only_those_of_the_point_are_asked_and_of_the_run_s_own_analysis(hooks: Hooks, peer: Peer) -> None:
    began = canary({"url": peer.address + "/201", "type": "PreRollout"}, {"url": peer.address + "/500"})
    run = RUN.replace(analysis=plain(began.spec.analysis))
    edited = canary({"url": peer.address + "/403", "type": "PreRollout"})
    assert await hooks.ask("PreRollout", edited, run) == Answer(agreed=("hook-0",))
    assert await hooks.ask("PostRollout", edited, run) == Answer()
    assert (await hooks.ask("Rollout", edited, run, but=("hook-1",))).allowed
    assert [path for path, _, _ in peer.seen] == ["POST /201"]


async def test_all_are_asked_at_once(hooks: Hooks, peer: Peer) -> None:
    together = asyncio.Barrier(4)

    async def meet(request: web.Request) -> web.StreamResponse:
        await together.wait()
        return web.Response()

    peer.handlers["/meet"] = meet
    assert (await hooks.ask("Rollout", canary(*[{"url": peer.address + "/meet"}] * 4), RUN)).allowed


async def test_many_runs_ask_one_slow_webhook_at_once(hooks: Hooks, peer: Peer) -> None:
    together = asyncio.Barrier(200)

    async def meet(request: web.Request) -> web.StreamResponse:
        await together.wait()
        return web.Response()

    peer.handlers["/meet"] = meet
    asked = canary({"url": peer.address + "/meet", "timeout": "30s"})
    answers = await asyncio.gather(*(hooks.ask("Rollout", asked, RUN) for _ in range(200)))
    assert all(answer.allowed for answer in answers)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_any_2xx_is_yes(hooks: Hooks, peer: Peer, status: int) -> None:
    assert (await hooks.ask("Rollout", canary({"url": f"{peer.address}/{status}"}), RUN)).agreed == ("hook-0",)


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (replying(500), "hook-0: answered 500"),
        (replying(403, "not\non\tFridays\x00 "), "hook-0: answered 403: not on Fridays"),
        (replying(404, "x" * 5000), "hook-0: answered 404: " + "x" * 255 + "…"),
        (replying(304), "hook-0: answered 304"),
        (_endless, "hook-0: answered 403: no no"),
    ],
)
async def test_any_other_answer_is_a_refusal_with_the_beginning_of_its_words(
    hooks: Hooks, peer: Peer, handler: Handler, says: str
) -> None:
    peer.handlers["/"] = handler
    answer = await hooks.ask("Rollout", canary({"url": peer.address}), RUN)
    assert not answer.allowed
    assert not answer.failed
    (why,) = answer.refused
    assert why.startswith(says)
    assert len(why) <= len("hook-0: answered 403: ") + 256
    assert answer.message == why


async def test_a_yes_counts_whatever_comes_after_it(hooks: Hooks, peer: Peer) -> None:
    peer.handlers["/"] = _endless_yes
    assert (await hooks.ask("Rollout", canary({"url": peer.address}), RUN)).allowed


async def test_one_that_does_not_answer_in_time_has_failed_and_holds_up_nobody(hooks: Hooks, peer: Peer) -> None:
    peer.handlers["/slow"] = _hang
    slow = {"url": peer.address + "/slow", "timeout": "200ms"}
    answer = await hooks.ask("Rollout", canary(slow, {"url": peer.address}), RUN)
    assert answer == Answer(agreed=("hook-1",), failed=("hook-0: no answer within 200ms",))


async def test_a_refusal_counts_though_its_words_never_end(hooks: Hooks, peer: Peer) -> None:
    peer.handlers["/slow"] = _dripping
    answer = await hooks.ask("Rollout", canary({"url": peer.address + "/slow", "timeout": "200ms"}), RUN)
    assert answer == Answer(refused=("hook-0: answered 409: wait",))


async def test_nobody_there_has_failed(hooks: Hooks, peer: Peer) -> None:
    answer = await hooks.ask("Rollout", canary({"url": "http://127.0.0.1:1/secret-path"}), RUN)
    assert answer.failed == ("hook-0: it does not answer: Connection refused",)


@pytest.mark.parametrize("status", [302, 303, 307, 308])
async def test_a_redirect_elsewhere_is_not_followed(hooks: Hooks, peer: Peer, elsewhere: Peer, status: int) -> None:
    peer.handlers["/"] = replying(status, Location=elsewhere.address + "/200")
    answer = await hooks.ask("Rollout", canary({"url": peer.address}), RUN)
    assert not answer.allowed
    assert answer.failed
    assert not elsewhere.seen
    assert elsewhere.address not in answer.message


async def test_a_page_behind_a_redirect_is_no_yes(hooks: Hooks, peer: Peer) -> None:
    peer.handlers["/"] = replying(302, Location="/login/200")
    answer = await hooks.ask("Rollout", canary({"url": peer.address}), RUN)
    assert answer.failed == ("hook-0: it redirects the question to a page",)
    peer.handlers["/"] = replying(307, Location="/moved/200")
    assert (await hooks.ask("Rollout", canary({"url": peer.address}), RUN)).allowed


async def test_who_is_busy_is_asked_again_as_often_as_was_said(hooks: Hooks, peer: Peer) -> None:
    left = [503, 502]

    async def busy(request: web.Request) -> web.StreamResponse:
        return web.Response(status=left.pop() if left else 200)

    peer.handlers["/"] = busy
    assert (await hooks.ask("Rollout", canary({"url": peer.address, "retries": 2}), RUN)).allowed
    assert len(peer.seen) == 3
    assert {headers["Idempotency-Key"] for _, headers, _ in peer.seen} == {"run-1/Rollout/2"}
    left[:] = [503]
    answer = await hooks.ask("Rollout", canary({"url": peer.address, "retries": 0}), RUN)
    assert answer.refused == ("hook-0: answered 503",)


async def test_the_token_of_the_secret_is_sent_and_never_told(hooks: Hooks, peer: Peer, client: ApiClient) -> None:
    await secret(client, token="hunter2\n")

    async def echo(request: web.Request) -> web.StreamResponse:
        return web.Response(status=401, text=f"{request.headers['Authorization']} is wrong")

    peer.handlers["/"] = echo
    answer = await hooks.ask("Rollout", canary({"url": peer.address, "secretRef": {"name": "gate"}}), RUN)
    assert peer.seen[0][1]["Authorization"] == "Bearer hunter2"
    assert answer.refused == ("hook-0: answered 401: Bearer [redacted] is wrong",)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (None, "Secret default/gate does not exist"),
        ({"other": "x"}, "Secret default/gate has neither token nor ca.crt"),
        ({"token": "a\nb"}, "Secret default/gate has a token that no header can hold"),
        ({"token": " "}, "Secret default/gate has a token that no header can hold"),
    ],
)
async def test_without_its_secret_nobody_is_asked(
    hooks: Hooks, peer: Peer, client: ApiClient, values: dict[str, str] | None, says: str
) -> None:
    if values is not None:
        await secret(client, **values)
    answer = await hooks.ask("Rollout", canary({"url": peer.address, "secretRef": {"name": "gate"}}), RUN)
    assert answer.failed[0].startswith(f"hook-0: {says}")
    assert not peer.seen


async def test_a_certificate_is_trusted_by_the_authority_in_the_secret(
    hooks: Hooks, secure: Peer, client: ApiClient, authority: Authority
) -> None:
    asked = {"url": secure.address, "secretRef": {"name": "gate"}}
    await secret(client, ca_crt=authority.certificate.read_text())
    assert (await hooks.ask("Rollout", canary(asked), RUN)).allowed
    answer = await hooks.ask("Rollout", canary({"url": secure.address}), RUN)
    assert "its certificate is not trusted" in answer.failed[0]


@pytest.mark.parametrize("wrong", ["another", "no PEM"])
async def test_the_wrong_authority_is_a_failure(
    hooks: Hooks, secure: Peer, client: ApiClient, tmp_path: Path, wrong: str
) -> None:
    (tmp_path / "other").mkdir()
    ca = Authority(tmp_path / "other").certificate.read_text() if wrong == "another" else "nothing"
    await secret(client, ca_crt=ca)
    answer = await hooks.ask("Rollout", canary({"url": secure.address, "secretRef": {"name": "gate"}}), RUN)
    assert "not trusted" in answer.failed[0] or "no certificate in PEM" in answer.failed[0]
    assert not secure.seen


async def test_an_address_stays_untold(hooks: Hooks, peer: Peer) -> None:
    for url in (f"{peer.address}/T000/hunter2/500", "http://localhost:1/hunter2", "https://localhost:1/?x=hunter2"):
        peer.handlers["/T000/hunter2/500"] = replying(500)
        answer = await hooks.ask("Rollout", canary({"url": url}), RUN)
        assert not answer.allowed
        assert "hunter2" not in str(answer)


async def test_connections_are_not_kept_without_end(hooks: Hooks, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 2)
    for retries in range(5):
        assert (await hooks.ask("Rollout", canary({"url": peer.address, "retries": retries}), RUN)).allowed
    assert len(hooks._connections._kept) == 2
