"""Admission functions as webhooks: what a configuration says, and how a review is answered over HTTPS."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.webhooks_gadgets import ADMISSION, Gadget, gadget, serving
from trimtab.client.api import ApiClient
from trimtab.model.admission import Admission, AdmissionRequest, Allowed, Denied, Operation, Reader
from trimtab.model.kubernetes import Deployment
from trimtab.runtime.certificates.keeper import Certificates
from trimtab.runtime.webhooks.manifest import Service, configurations
from trimtab.runtime.webhooks.patch import json_patch
from trimtab.runtime.webhooks.server import MAX_BODY, MAX_HELD, WebhookServer
from trimtab.server.patch import json_patch as rfc6902

Ask = Callable[..., Any]


class Nothing:
    """A reader of an empty world."""

    async def find(self, kind: Any, name: str, namespace: str = "") -> None:
        return None

    async def list(self, kind: Any, namespace: str = "", labels: str = "") -> list[Any]:
        return []


async def broken(request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
    raise ValueError("password: hunter2")


async def hanging(request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
    await asyncio.Event().wait()
    return Allowed()


@pytest.fixture
async def ask(client: ApiClient, namespace: str) -> AsyncIterator[Ask]:
    """Posts bodies as an API server would; the code and the text of the answer."""
    functions = (
        *ADMISSION,
        Admission(name="broken", kinds=(Gadget,), function=broken),
        Admission(name="hanging", kinds=(Gadget,), function=hanging, timeout=0.01),
    )
    async with serving(client, namespace, functions, Nothing()) as (url, certificates):
        trusted = (await certificates.refresh()).trusted.decode()
        tls = ssl.create_default_context(cadata=trusted)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:

            async def post(path: str, body: Any, **options: Any) -> tuple[int, Any]:
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                async with session.post(url + path, data=io.BytesIO(data), **options) as response:
                    text = await response.text()
                    return response.status, json.loads(text) if response.status == 200 else text

            yield post


def review(document: dict[str, Any] | None, **request: Any) -> dict[str, Any]:
    resource = {"group": "hooks.trimtab.dev", "version": "v1", "resource": "gadgets"}
    asked = {"uid": "u-1", "operation": "CREATE", "resource": resource, "object": document, "namespace": "default"}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked | request}


LOCAL = pytest.mark.parametrize("client", ["local"], indirect=True)


@LOCAL
async def test_a_good_object_is_allowed_under_the_uid_of_the_question(ask: Ask) -> None:
    assert await ask("/validate/gadget-size", review(gadget("a"))) == (
        200,
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": "u-1", "allowed": True}},
    )


@LOCAL
async def test_a_refusal_is_a_whole_status(ask: Ask) -> None:
    _, answer = await ask("/validate/gadget-size", review(gadget("a", size=11), name="a"))
    cause = {"reason": "FieldValueInvalid", "message": "Invalid value: 11: must be at most 10", "field": "spec.size"}
    assert answer["response"] == {
        "uid": "u-1",
        "allowed": False,
        "status": {
            "status": "Failure",
            "message": 'Gadget.hooks.trimtab.dev "a" is invalid: spec.size: Invalid value: 11: must be at most 10',
            "reason": "Invalid",
            "code": 422,
            "details": {"name": "a", "group": "hooks.trimtab.dev", "kind": "Gadget", "causes": [cause]},
        },
    }


@LOCAL
async def test_a_change_is_a_json_patch_of_what_changed(ask: Ask) -> None:
    _, answer = await ask("/mutate/gadget-owner", review(gadget("a"), userInfo={"username": "bob"}))
    assert answer["response"]["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(answer["response"]["patch"])) == [
        {"op": "add", "path": "/metadata/labels", "value": {"hooks.dev/by": "owned"}},
        {"op": "add", "path": "/spec/owner", "value": "bob"},
    ]


@LOCAL
async def test_no_change_is_no_patch(ask: Ask) -> None:
    _, answer = await ask("/mutate/gadget-owner", review(gadget("a", owner="eve")))
    assert answer["response"] == {"uid": "u-1", "allowed": True}


@LOCAL
async def test_warnings_are_in_the_answer(ask: Ask) -> None:
    _, answer = await ask("/validate/gadget-size", review(gadget("a", size=6)))
    assert answer["response"]["warnings"] == ["a gadget of this size is slow"]


DEEP = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":' + b'{"object":' * 100_000


@LOCAL
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        DEEP,
        review(gadget("a")) | {"apiVersion": "admission.k8s.io/v1beta1"},
        review(gadget("a")) | {"kind": "ConversionReview"},
        review(gadget("a")) | {"request": None},
        review(gadget("a"), uid=""),
        review(gadget("a"), operation="CONNECT"),
        review(None),
        review(gadget("a"), operation="DELETE"),
        review(gadget("a"), object=[]),
        review(gadget("a"), resource={"group": "", "version": "v1", "resource": "pods"}),
    ],
)
async def test_what_is_no_review_is_a_bad_request(ask: Ask, body: Any) -> None:
    code, _ = await ask("/validate/gadget-size", body)
    assert code == 400


@LOCAL
@pytest.mark.parametrize("path", ["/", "/validate/none", "/mutate/gadget-size", "/validate/gadget-size/", "/convert"])
async def test_what_was_not_declared_is_not_found(ask: Ask, path: str) -> None:
    assert (await ask(path, review(gadget("a"))))[0] == 404


@LOCAL
async def test_a_body_that_is_too_large_is_not_read(ask: Ask) -> None:
    assert (await ask("/validate/gadget-size", b" " * (MAX_BODY + 1)))[0] == 413


@LOCAL
async def test_a_function_that_fails_is_a_500_that_tells_no_secrets(ask: Ask) -> None:
    code, text = await ask("/validate/broken", review(gadget("a")))
    assert (code, text) == (500, 'admission function "broken" failed: it raised ValueError\n')


@LOCAL
async def test_a_function_that_takes_too_long_is_a_500(ask: Ask) -> None:
    code, text = await ask("/validate/hanging", review(gadget("a")))
    assert (code, text) == (500, 'admission function "hanging" failed: no answer within 0.01 s\n')


@LOCAL
async def test_a_server_that_stops_finishes_what_it_was_asked(client: ApiClient, namespace: str) -> None:
    asked, decided = asyncio.Event(), asyncio.Event()

    async def ponder(request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
        asked.set()
        await decided.wait()
        return Allowed()

    certificates = Certificates(client, namespace=namespace, name="hooks", hosts=("127.0.0.1",))
    tls = ssl.create_default_context(cadata=(await certificates.refresh()).trusted.decode())
    functions = (Admission(name="ponder", kinds=(Gadget,), function=ponder),)
    server = WebhookServer(functions, tls=certificates.context, reader=Nothing(), port=0)
    url = f"https://127.0.0.1:{await server.start()}/validate/ponder"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
        answer = asyncio.create_task(session.post(url, json=review(gadget("a"))))
        await asked.wait()
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0)
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.post(url)
        decided.set()
        response = await answer
        assert (await response.json())["response"]["allowed"] is True
        await stopping


@LOCAL
async def test_a_rotation_drops_no_connection_and_new_ones_see_the_new_certificate(
    client: ApiClient, namespace: str
) -> None:
    async with serving(client, namespace, ADMISSION, Nothing()) as (url, certificates):
        host, port = "127.0.0.1", int(url.rsplit(":", 1)[1])
        tls = ssl.create_default_context(cadata=(await certificates.refresh()).trusted.decode())
        request = b"POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
        reader, writer = await asyncio.open_connection(host, port, ssl=tls)
        before = writer.get_extra_info("ssl_object").getpeercert(True)
        more = Certificates(client, namespace=namespace, name="hooks", hosts=("other",))
        await more.refresh()  # the shortest way to another certificate
        await certificates.refresh()
        _, other = await asyncio.open_connection(host, port, ssl=tls)
        assert other.get_extra_info("ssl_object").getpeercert(True) != before
        writer.write(request)
        assert (await reader.readline()).startswith(b"HTTP/1.1 404")
        for one in (writer, other):
            one.close()
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                await one.wait_closed()


@LOCAL
async def test_who_connects_and_asks_nothing_is_cut_off(client: ApiClient, namespace: str) -> None:
    async with serving(client, namespace, ADMISSION, Nothing(), patience=0.05) as (url, certificates):
        tls = ssl.create_default_context(cadata=(await certificates.refresh()).trusted.decode())
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]), ssl=tls)
        writer.write(b"POST /validate/gadget-size HTTP/1.1\r\nHost:")
        assert await reader.read() == b""
        writer.close()


@LOCAL
async def test_who_is_slow_to_send_a_body_is_told_so(client: ApiClient, namespace: str) -> None:
    async with serving(client, namespace, ADMISSION, Nothing(), patience=0.05) as (url, certificates):
        tls = ssl.create_default_context(cadata=(await certificates.refresh()).trusted.decode())
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]), ssl=tls)
        writer.write(b"POST /validate/gadget-size HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
        writer.close()


HEAD = b"POST /validate/gadget-size HTTP/1.1\r\nHost: x\r\n"


@contextlib.asynccontextmanager
async def half_sent(url: str, tls: ssl.SSLContext, count: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Connections that send a part of a body."""
    opened = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]), ssl=tls)
        writer.write(HEAD + b"Content-Length: 9\r\n\r\n{")
        opened.append((reader, writer))
    yield [reader for reader, _ in opened]
    for _, writer in opened:
        writer.transport.abort()
    await asyncio.sleep(0)  # the loop lets go of their sockets in its next round


@LOCAL
@pytest.mark.parametrize("count", [100, MAX_HELD + 22])
async def test_a_review_is_answered_at_once_however_many_bodies_hang(
    client: ApiClient, namespace: str, count: int
) -> None:
    async with serving(client, namespace, ADMISSION, Nothing()) as (url, certificates):
        tls = ssl.create_default_context(cadata=(await certificates.refresh()).trusted.decode())
        async with (
            half_sent(url, tls, count),
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session,
            asyncio.timeout(1),
        ):
            path = f"{url}/validate/gadget-size"
            async with session.post(path, json=review(gadget("a"))) as response:
                assert (await response.json())["response"]["allowed"] is True


@LOCAL
async def test_when_all_wait_for_work_more_are_told_to_come_again(
    client: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.runtime.webhooks.server.MAX_AT_ONCE", 1)
    monkeypatch.setattr("trimtab.runtime.webhooks.server.MAX_HELD", 1)
    decided, asked = asyncio.Event(), asyncio.Event()

    async def ponder(request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
        asked.set()
        await decided.wait()
        return Allowed()

    functions = (Admission(name="ponder", kinds=(Gadget,), function=ponder),)
    async with serving(client, namespace, functions, Nothing()) as (url, certificates):
        tls = ssl.create_default_context(cadata=(await certificates.refresh()).trusted.decode())
        body = json.dumps(review(gadget("a"))).encode()
        request = b"POST /validate/ponder HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body

        async def post() -> bytes:
            """In one packet, so that no body is on its way for long."""
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]), ssl=tls)
            writer.write(request)
            status = (await reader.readline()).split()[1]
            writer.transport.abort()
            return status

        first = asyncio.create_task(post())
        await asked.wait()
        rivals = {asyncio.create_task(post()) for _ in range(2)}
        refused, rivals = await asyncio.wait(rivals, return_when=asyncio.FIRST_COMPLETED)
        decided.set()
        assert [task.result() for task in refused] == [b"503"]
        assert [await task for task in (first, *rivals)] == [b"200", b"200"]


@LOCAL
async def test_a_second_request_that_is_slow_is_cut_off_too(client: ApiClient, namespace: str) -> None:
    async with serving(client, namespace, ADMISSION, Nothing(), patience=0.5) as (url, certificates):
        tls = ssl.create_default_context(cadata=(await certificates.refresh()).trusted.decode())
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]), ssl=tls)
        writer.write(b"POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        assert (await reader.readuntil(b"404: Not Found")).startswith(b"HTTP/1.1 404")
        writer.write(HEAD)
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()


@LOCAL
async def test_a_connection_that_is_kept_and_silent_outlives_the_patience(client: ApiClient, namespace: str) -> None:
    async with serving(client, namespace, ADMISSION, Nothing(), patience=0.2) as (url, certificates):
        tls = ssl.create_default_context(cadata=(await certificates.refresh()).trusted.decode())
        kept, mute = [await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]), ssl=tls) for _ in "ab"]
        request = b"POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
        for _ in "ab":
            kept[1].write(request)
            assert (await kept[0].readuntil(b"404: Not Found")).startswith(b"HTTP/1.1 404")
            assert await mute[0].read() == b""  # the patience is over
        for _, writer in (kept, mute):
            writer.transport.abort()
        await asyncio.sleep(0)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "a", "~/"])
    | st.sampled_from([0.0, 1.0, 1.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b/c", "~d", ""]), inner),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.sampled_from(["a", "b/c", "~d", ""]), JSON, max_size=4)


@given(DOCUMENTS, DOCUMENTS)
def test_a_patch_makes_one_document_of_the_other(old: Any, new: Any) -> None:
    patched = rfc6902.apply(old, json_patch(old, new))
    assert msgspec.json.encode(patched, order="sorted") == msgspec.json.encode(new, order="sorted")


@given(DOCUMENTS)
def test_a_document_needs_no_patch_to_stay_itself(document: Any) -> None:
    assert json_patch(document, document) == []


def test_configurations_say_what_was_declared() -> None:
    [mutating, validating] = configurations(ADMISSION, name="x", at=Service("ns", "svc"), ca_bundle=b"PEM")
    assert [hook["name"] for hook in mutating["webhooks"]] == ["gadget-owner.trimtab.dev"]
    rule = {"apiGroups": ["hooks.trimtab.dev"], "apiVersions": ["v1"], "resources": ["gadgets"], "scope": "Namespaced"}
    assert validating["webhooks"][0] == {
        "name": "gadget-size.trimtab.dev",
        "clientConfig": {
            "service": {"namespace": "ns", "name": "svc", "port": 443, "path": "/validate/gadget-size"},
            "caBundle": "UEVN",
        },
        "rules": [{"operations": ["CREATE", "UPDATE"], **rule}],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1"],
    }


def test_what_a_cluster_needs_to_heal_is_not_judged_where_it_heals() -> None:
    admission = Admission(name="d", kinds=(Deployment,), function=broken, subresources=("", "scale"))
    [made] = configurations((admission,), name="x", at=Service("ns", "svc"))
    [requirement] = made["webhooks"][0]["namespaceSelector"]["matchExpressions"]
    assert (requirement["operator"], requirement["values"]) == ("NotIn", ["kube-system", "ns"])
    assert made["webhooks"][0]["rules"][0]["resources"] == ["deployments", "deployments/scale"]


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        WebhookServer((ADMISSION[1], ADMISSION[1]), tls=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), reader=Nothing())


def test_a_function_is_asked_about_something() -> None:
    with pytest.raises(ValueError, match="asked about nothing"):
        Admission(name="a", kinds=(), function=broken)
    with pytest.raises(ValueError, match="DNS label"):
        Admission(name="A/b", kinds=(Gadget,), function=broken, operations=(Operation.CREATE,))
