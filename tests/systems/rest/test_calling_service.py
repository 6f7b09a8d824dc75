"""A service with one credential, against a real server that does what servers do on bad days."""

from __future__ import annotations

import gzip
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.systems.rest.calling_kit import SkippingClock, World, break_off, freely, hang, serving
from trimtab.model.redacted import Redacted, bearer
from trimtab.systems.rest.calling.contract import Answer, CallError, ErrorClass, Request
from trimtab.systems.rest.calling.endpoint import EndpointError, parsed
from trimtab.systems.rest.calling.login import Login
from trimtab.systems.rest.calling.service import Service

TOKEN = "s3cr3t-t0ken-0f-the-service"
LOGIN = Login(headers={"Authorization": bearer(Redacted(TOKEN))})


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with serving() as made:
        yield made


@pytest.fixture
async def elsewhere() -> AsyncIterator[World]:
    async with serving() as made:
        yield made


@pytest.fixture
async def service(world: World) -> AsyncIterator[Service]:
    async with _service(world) as made:
        yield made


def _service(world: World, login: Login = LOGIN, **options: Any) -> Service:
    clock = SkippingClock()
    options = {"throttle": freely(clock), "clock": clock, "chance": random.Random(1), **options}
    return Service(world.url, login, **options)


def get(url: str = "/things/a", **more: Any) -> Request:
    return Request(**{"verb": "read", "method": "GET", "url": url, **more})


def put(url: str = "/things/a", **more: Any) -> Request:
    return Request(**{"verb": "update", "method": "PUT", "url": url, "body": {"a": 1}, **more})


def json_answer(body: Any, status: int = 200, **headers: str) -> web.Response:
    return web.json_response(body, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})


async def refused(service: Service, request: Request) -> CallError:
    with pytest.raises(CallError) as raised:
        await service.call(request)
    assert TOKEN not in str(raised.value)
    assert raised.value.request == request
    return raised.value


# The request


async def test_a_request_goes_below_the_endpoint_with_its_credential(world: World) -> None:
    service = Service(world.url + "/api/v1/", LOGIN, headers={"X-Team": "blue"})
    async with service:
        answer = await service.call(get("/things/a?api-version=1"))
    assert answer == Answer(
        status=200,
        headers=answer.headers,
        body={"path": "/api/v1/things/a?api-version=1"},
        raw={"path": "/api/v1/things/a?api-version=1"},
        url=world.url + "/api/v1/things/a?api-version=1",
    )
    sent = world.seen[0].headers
    assert (sent["Authorization"], sent["X-Team"], sent["Accept"]) == (f"Bearer {TOKEN}", "blue", "application/json")


async def test_a_body_goes_out_with_its_type_its_wrap_and_its_key(service: Service, world: World) -> None:
    await service.call(put(content_type="application/merge-patch+json", wrap="silence.v1", idempotency_key="k-1"))
    sent = world.seen[0].headers
    assert world.bodies == [b'{"silence":{"v1":{"a":1}}}']
    assert (sent["Content-Type"], sent["Idempotency-Key"]) == ("application/merge-patch+json", "k-1")


async def test_what_has_no_body_is_not_wrapped(service: Service, world: World) -> None:
    await service.call(Request(verb="delete", method="DELETE", url="/things/a", wrap="silence"))
    assert world.bodies == [b""]


async def test_headers_of_a_request_never_replace_the_credential(service: Service, world: World) -> None:
    await service.call(get(headers={"authorization": "Bearer of-somebody-else"}))
    assert world.seen[0].headers.getall("Authorization") == [f"Bearer {TOKEN}"]


@pytest.mark.parametrize("key", [b"two\r\nlines: of-a-key", b"\xff\xfe-no-text"])
async def test_a_key_that_cannot_be_in_a_header_is_not_sent(world: World, key: bytes) -> None:
    async with _service(world, Login(headers={"X-Key": Redacted(key)})) as service:
        error = await refused(service, get())
    assert (error.kind, world.seen) == (ErrorClass.TERMINAL, [])
    assert "it cannot be sent" in str(error)
    assert "of-a-key" not in str(error)


async def test_a_body_that_is_no_json_is_not_sent(service: Service, world: World) -> None:
    error = await refused(service, put(body={"a": 1 << 80}))
    assert (error.kind, error.uncertain, world.seen) == (ErrorClass.TERMINAL, False, [])


async def test_a_key_in_the_query_is_sent_and_never_seen_again(world: World) -> None:
    login = Login(query={"subscription": Redacted("k3y/with&signs")})
    world.answers = [json_answer({"a": 1}, Location=f"{world.url}/operations/1?x=2&subscription=k3y%2Fwith%26signs")]
    async with _service(world, login) as service:
        answer = await service.call(get("/things?x=1"))
    assert world.seen[0].query["subscription"] == "k3y/with&signs"
    assert answer.url == world.url + "/things?x=1"
    assert answer.headers["location"] == f"{world.url}/operations/1?x=2"


async def test_a_unix_socket_is_an_endpoint(tmp_path: Path) -> None:
    async with serving(unix=tmp_path / "s") as world, Service(world.url, LOGIN, throttle=freely()) as service:
        answer = await service.call(get("/1.0/profiles?recursion=1"))
        assert answer.body == {"path": "/1.0/profiles?recursion=1"}
        assert answer.url == "http://localhost/1.0/profiles?recursion=1"
        assert world.seen[0].headers["Authorization"] == f"Bearer {TOKEN}"
        again = await service.call(get("http://localhost/1.0/operations/1", verb="poll"))
        assert again.body == {"path": "/1.0/operations/1"}


async def test_a_socket_that_nobody_listens_at_is_transient(tmp_path: Path) -> None:
    async with Service(f"unix://{tmp_path / 'none'}", throttle=freely(), clock=SkippingClock()) as service:
        error = await refused(service, put())
    assert (error.kind, error.uncertain) == (ErrorClass.TRANSIENT, False)


@pytest.mark.parametrize(
    ("endpoint", "base", "host"),
    [
        ("https://Example.com", "https://example.com:443", "example.com:443"),
        ("http://127.0.0.1:8081/api/v1/", "http://127.0.0.1:8081/api/v1", "127.0.0.1:8081"),
        ("http://[::1]:80/x", "http://[::1]:80/x", "[::1]:80"),
        ("unix:///run/lxd.socket", "http://localhost", "localhost"),
        ("unix:///run/p.sock:/v1.41", "http://localhost/v1.41", "localhost"),
    ],
)
def test_endpoints(endpoint: str, base: str, host: str) -> None:
    found = parsed(endpoint)
    assert (found.base, found.host) == (base, host)


@pytest.mark.parametrize(
    "endpoint", ["ftp://x", "x", "unix:run/x", "https://user:pw@x", "https://x?key=1", "http://x:99999"]
)
def test_what_is_no_endpoint_is_refused_without_its_secrets(endpoint: str) -> None:
    with pytest.raises(EndpointError) as raised:
        parsed(endpoint)
    assert "pw" not in str(raised.value)


# Where the credential goes


async def test_a_poll_url_of_another_host_is_never_asked(service: Service, elsewhere: World) -> None:
    error = await refused(service, get(f"{elsewhere.url}/operations/1", verb="poll"))
    assert error.kind is ErrorClass.TERMINAL
    assert "the poll URL leaves the endpoint" in str(error)
    assert elsewhere.seen == []


async def test_a_poll_host_that_is_allowed_gets_the_credential_for_polls_only(world: World, elsewhere: World) -> None:
    host = elsewhere.url.removeprefix("http://")
    async with _service(world, poll_hosts=(host,)) as service:
        await service.call(get(f"{elsewhere.url}/operations/1", verb="poll"))
        assert elsewhere.seen[0].headers["Authorization"] == f"Bearer {TOKEN}"
        error = await refused(service, get(f"{elsewhere.url}/next", verb="list"))
        assert (error.kind, len(elsewhere.seen)) == (ErrorClass.TERMINAL, 1)


async def test_an_https_endpoint_is_not_polled_by_http() -> None:
    endpoint = parsed("https://a.example")
    assert endpoint.may_poll("https://b.example/x", ("b.example",))
    assert not endpoint.may_poll("http://b.example/x", ("b.example",))
    assert not endpoint.may_poll("https://b.example:444/x", ("b.example:443",))
    assert not endpoint.may_poll("https://a.example.evil/x", ("b.example",))


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1@evil.example/", "ftp://127.0.0.1/x", "x", "http://[::1", "/" + 9000 * "x"],
)
async def test_a_url_that_is_none_of_ours_is_refused(service: Service, world: World, url: str) -> None:
    error = await refused(service, get(url, verb="poll"))
    assert (error.kind, world.seen) == (ErrorClass.TERMINAL, [])


async def test_a_path_that_begins_like_a_host_stays_below_the_endpoint(service: Service, world: World) -> None:
    await service.call(get("//evil.example/x", verb="poll"))
    assert len(world.seen) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_host_is_not_followed(
    service: Service, world: World, elsewhere: World, status: int
) -> None:
    world.answers = [web.Response(status=status, headers={"Location": f"{elsewhere.url}/x"}) for _ in range(2)]
    assert (await refused(service, get())).kind is ErrorClass.TERMINAL
    assert (await refused(service, put())).kind is ErrorClass.TERMINAL
    assert elsewhere.seen == []


async def test_a_redirect_within_the_endpoint_is_followed(service: Service, world: World) -> None:
    world.answers = [web.Response(status=307, headers={"Location": "/things/b"})]
    assert (await service.call(put())).body == {"path": "/things/b"}
    assert world.seen[1].headers["Authorization"] == f"Bearer {TOKEN}"
    assert world.bodies == [b'{"a":1}', b'{"a":1}']


# Bad answers


async def test_html_is_never_an_answer(service: Service, world: World) -> None:
    page = "<html><body>Log in to the proxy: " + 1000 * "x" + "</body></html>"
    world.answers = [
        web.Response(text=page, content_type="text/html"),
        web.Response(text=page, content_type="text/html"),
    ]
    error = await refused(service, get())
    assert (error.kind, error.uncertain) == (ErrorClass.TRANSIENT, False)
    assert str(error) == "GET /things/a: 200: answered text/html, not JSON"
    assert (await refused(service, put())).uncertain


@pytest.mark.parametrize("text", ["<html>404 Not Found nginx</html>", "404 page not found\n"])
async def test_a_404_of_a_proxy_does_not_mean_that_the_resource_is_gone(
    service: Service, world: World, text: str
) -> None:
    kind = "text/html" if "<" in text else "text/plain"
    world.answers = [web.Response(status=404, text=text, content_type=kind)]
    assert (await refused(service, get())).kind is ErrorClass.UNKNOWN


async def test_an_overlay_may_say_that_such_a_404_is_gone(service: Service, world: World) -> None:
    world.answers = [web.Response(status=404, text="<html>gone</html>", content_type="text/html")]
    rules = ({"status": "404", "class": "gone"},)
    assert (await refused(service, get(rules=rules))).kind is ErrorClass.GONE


async def test_a_404_with_nothing_in_it_is_gone(service: Service, world: World) -> None:
    world.answers = [web.Response(status=404)]
    assert (await refused(service, get())).kind is ErrorClass.GONE


async def test_an_answer_that_breaks_off_is_transient_and_a_write_uncertain(service: Service, world: World) -> None:
    world.otherwise = break_off
    error = await refused(service, put())
    assert (error.kind, error.uncertain, len(world.seen)) == (ErrorClass.TRANSIENT, True, 1)
    assert "whether it took effect is not known" in str(error)
    error = await refused(service, get())
    assert (error.kind, error.uncertain, len(world.seen)) == (ErrorClass.TRANSIENT, False, 4)


async def test_a_read_that_broke_off_once_is_read_again(service: Service, world: World) -> None:
    world.answers = [break_off]
    assert (await service.call(get())).body == {"path": "/things/a"}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_is_never_sent_twice(service: Service, world: World, method: str) -> None:
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[method]
    for answer in (break_off, web.Response(status=502), web.Response(status=503, headers={"Retry-After": "0"})):
        world.answers, world.seen = [answer], []
        error = await refused(service, Request(verb=verb, method=method, url="/things/a"))
        assert (error.kind, error.uncertain, len(world.seen)) == (ErrorClass.TRANSIENT, True, 1)


async def test_a_server_that_is_down_leaves_no_doubt(unused_tcp_port: int) -> None:
    async with Service(f"http://127.0.0.1:{unused_tcp_port}", clock=SkippingClock(), throttle=freely()) as service:
        error = await refused(service, put())
    assert (error.kind, error.uncertain, error.code) == (ErrorClass.TRANSIENT, False, "Unreachable")


async def test_a_server_that_hangs_is_given_up(world: World) -> None:
    world.otherwise = hang
    async with Service(world.url, throttle=freely(), timeout=0.05) as service:
        error = await refused(service, put())
    assert (error.kind, error.uncertain, error.code) == (ErrorClass.TRANSIENT, True, "TimedOut")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"half": ', "application/json"),
        (b"plain words", "text/plain"),
        (b"\x00\xff\xfe", "application/octet-stream"),
        (b"[" * 200 + b"]" * 200, "application/json"),
        (b"[" * 100_000, "application/json"),
        (b'{"a": NaN}', "application/json"),
    ],
)
async def test_what_is_no_json_is_never_an_answer(service: Service, world: World, body: bytes, kind: str) -> None:
    world.answers = [web.Response(body=body, content_type=kind)]
    error = await refused(service, get())
    assert (error.kind, error.code) == (ErrorClass.TRANSIENT, "Unreadable")


async def test_a_body_that_unpacks_to_more_than_is_taken_is_refused(service: Service, world: World) -> None:
    packed = gzip.compress(b'"' + b"x" * (17 << 20) + b'"')
    world.answers = [
        web.Response(body=packed, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})
    ]
    error = await refused(service, get())
    assert (error.kind, error.code) == (ErrorClass.UNKNOWN, "TooLarge")


async def test_a_byte_order_mark_and_a_type_of_ones_own_do_not_matter(service: Service, world: World) -> None:
    world.answers = [
        web.Response(body=b'\xef\xbb\xbf{"a": 1}', content_type="application/json"),
        web.Response(body=b'{"a": 1}', content_type="application/vnd.acme+json"),
        web.Response(body=b'{"a": 1}', content_type="text/plain"),
    ]
    assert [(await service.call(get())).body for _ in range(3)] == [{"a": 1}] * 3


async def test_an_empty_answer_is_an_answer(service: Service, world: World) -> None:
    world.answers = [web.Response(status=204), web.Response(status=200), web.Response(text="OK")]
    assert (await service.call(put())).body is None
    assert (await service.call(get())).body is None
    assert (await service.call(Request(verb="delete", method="DELETE", url="/x"))).body is None


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (
            {"error": {"code": "AnotherOperationInProgress", "message": "wait"}},
            ErrorClass.CONFLICT,
            "PUT /things/a: 200 AnotherOperationInProgress: wait",
        ),
        ({"error": "Zone is locked"}, ErrorClass.UNKNOWN, "PUT /things/a: 200: Zone is locked"),
        (
            {"type": "error", "error": "Profile not found", "error_code": 404, "metadata": None},
            ErrorClass.GONE,
            "PUT /things/a: 404: Profile not found",
        ),
    ],
)
async def test_a_success_with_an_error_inside_is_none(
    service: Service, world: World, body: Any, kind: ErrorClass, text: str
) -> None:
    world.answers = [json_answer(body)]
    error = await refused(service, put())
    assert (error.kind, str(error)) == (kind, text)


@pytest.mark.parametrize(
    "body", [{"error": None}, {"error": ""}, {"errors": []}, {"error": {"a": 1}, "id": "x"}, {}, []]
)
async def test_a_resource_with_a_property_called_error_is_a_resource(service: Service, world: World, body: Any) -> None:
    world.answers = [json_answer(body)]
    assert (await service.call(get())).body == body


# Envelopes and conditions


async def test_an_envelope_is_taken_off_and_kept_in_raw(service: Service, world: World) -> None:
    world.answers = [json_answer({"type": "sync", "error": "", "metadata": {"name": "web"}})]
    answer = await service.call(get(envelope="metadata"))
    assert (answer.body, answer.raw["type"]) == ({"name": "web"}, "sync")


async def test_a_304_is_an_answer_only_where_it_was_asked_for(service: Service, world: World) -> None:
    world.answers = [web.Response(status=304), web.Response(status=304)]
    assert (await service.call(get(headers={"If-None-Match": '"1"'}))).status == 304
    assert (await refused(service, get())).status == 304


# What errors say


async def test_a_service_that_repeats_our_secrets_is_not_repeated(service: Service, world: World) -> None:
    password = Redacted("hunter2-the-password")
    said = f"the token {TOKEN} may not set 'hunter2-the-password'"
    world.answers = [json_answer({"error": {"code": "Bad", "message": said}}, 400)]
    error = await refused(service, put(secrets=(password,)))
    assert "hunter2" not in str(error)
    assert str(error) == "PUT /things/a: 400 Bad: the token [redacted] may not set '[redacted]'"


async def test_an_error_is_one_short_line(service: Service, world: World) -> None:
    world.answers = [json_answer({"message": "a\nb\x00\u202e" + "long " * 400}, 400)]
    text = str(await refused(service, get("/" + "deep/" * 60)))
    assert len(text) <= 300
    assert "\n" not in text
    assert text.isprintable()


def test_neither_a_service_nor_a_request_shows_a_secret(world: World) -> None:
    request = put("/x?key=abc123", body={"password": "abc123"})
    assert "abc123" not in repr(request)
    assert TOKEN not in repr(LOGIN)
    assert TOKEN not in repr(_service(world))
