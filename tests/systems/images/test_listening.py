"""What registries tell of pushes: the real one tells it, on both API servers; whoever else comes learns nothing."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.needs import needs
from tests.runtime.widgets import logged, tapped, until_found
from tests.systems.images.documents import made
from trimtab.client.api import ApiClient
from trimtab.client.transport import Call, Reply, Transport, Unreachable
from trimtab.lab import registry_images as images
from trimtab.lab.registry import Registry as LabRegistry
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.credentials import Credentials
from trimtab.systems.images.kinds import Registry
from trimtab.systems.images.listening import MAX_BYTES, MAX_EVENTS, Listener
from trimtab.systems.images.runs.claim import PUSHED, pushed
from trimtab.testing.ports import free_ports

TOKEN = "a-token-that-nobody-guesses"
MEDIA_TYPE = "application/vnd.docker.distribution.events.v1+json"
APP = images.image([images.layer({"etc/os-release": b"ID=debian\n"})])


class Place:
    """A listener, and a Registry named `lab` that takes the token."""

    def __init__(self, client: ApiClient, namespace: str, port: int) -> None:
        self.client, self.namespace = client, namespace
        self.host = f"http://127.0.0.1:{port}"
        self.url = f"{self.host}/{namespace}/lab"

    async def tell(
        self, events: Any, token: str = TOKEN, url: str = "", media_type: str = MEDIA_TYPE
    ) -> tuple[int, str]:
        body = events if isinstance(events, bytes) else json.dumps({"events": events}).encode()
        headers = {"Content-Type": media_type} | ({"Authorization": f"Bearer {token}"} if token else {})
        async with (
            aiohttp.ClientSession() as session,
            session.post(url or self.url, data=io.BytesIO(body), headers=headers) as answer,
        ):
            return answer.status, await answer.text()

    async def pushed(self) -> Any:
        return pushed((await self.client.get(Registry, "lab", self.namespace)).metadata.annotations or {})


@pytest.fixture
async def place(defined: ApiClient, namespace: str) -> AsyncIterator[Place]:
    await token_secret(defined, namespace, TOKEN)
    await defined.create(made("Registry", "lab", namespace, notifications={"tokenSecret": "told"}))
    async with Credentials(defined) as credentials:
        listener = Listener(defined, credentials)
        yield Place(defined, namespace, await listener.start())
        await listener.stop()


async def token_secret(client: ApiClient, namespace: str, token: str, name: str = "told") -> None:
    await client.create(
        Secret(metadata=ObjectMeta(name=name, namespace=namespace), type="Opaque", string_data={"token": token})
    )


def push(repository: str, tag: str | None, action: str = "push") -> dict[str, Any]:
    """As distribution tells it."""
    target = {
        "mediaType": images.OCI_MANIFEST,
        "digest": APP.digest,
        "size": 424,
        "length": 424,
        "repository": repository,
        "url": f"http://127.0.0.1/v2/{repository}/manifests/{APP.digest}",
        **({"tag": tag} if tag is not None else {}),
    }
    return {
        "id": "1",
        "timestamp": "2026-01-01T00:00:00Z",
        "action": action,
        "target": target,
        "request": {"id": "1", "addr": "127.0.0.1", "host": "127.0.0.1", "method": "PUT", "useragent": "test"},
        "actor": {},
        "source": {"addr": "lab:5000", "instanceID": "1"},
    }


async def test_a_real_registry_tells_of_a_push(place: Place, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with LabRegistry(tmp_path, port, notify=place.url, notify_token=TOKEN) as registry:
        async with images.Pusher(registry.url) as pusher:
            await pusher.push("team/app", "1.0", APP)
            await pusher.push("team/app", "1.1", images.index([images.entry(APP, "linux/amd64")]))
        found = await until_found(
            place.client,
            Registry,
            "lab",
            place.namespace,
            lambda registry: len((pushed(registry.metadata.annotations or {}) or {}).get("team/app", ())) == 2,
        )
    assert pushed(found.metadata.annotations) == {"team/app": ("1.0", "1.1")}


async def test_a_push_of_skopeo_is_told_of(place: Place, tmp_path: Path) -> None:
    needs("skopeo")
    one, two = free_ports(2)
    with (
        LabRegistry(tmp_path / "a", one) as source,
        LabRegistry(tmp_path / "b", two, notify=place.url, notify_token=TOKEN) as registry,
    ):
        async with images.Pusher(source.url) as pusher:
            await pusher.push("team/app", "1.0", APP)
        command = ["skopeo", "--insecure-policy", "copy", "--src-tls-verify=false", "--dest-tls-verify=false"]
        command += [f"docker://{source.host}/team/app:1.0", f"docker://{registry.host}/team/copy:2.0"]
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
        await until_found(
            place.client,
            Registry,
            "lab",
            place.namespace,
            lambda registry: pushed(registry.metadata.annotations or {}) == {"team/copy": ("2.0",)},
        )


async def test_a_registry_tells_again_what_could_not_be_kept(
    defined: ApiClient, namespace: str, tmp_path: Path
) -> None:
    await defined.create(made("Registry", "lab", namespace, notifications={"tokenSecret": "told"}))
    port, listening = free_ports(2)
    url = f"http://127.0.0.1:{listening}/{namespace}/lab"
    async with Credentials(defined) as credentials:
        listener = Listener(defined, credentials, port=listening)
        with LabRegistry(tmp_path, port, notify=url, notify_token=TOKEN) as registry:
            async with images.Pusher(registry.url) as pusher:
                await pusher.push("team/app", "1.0", APP)  # nobody listens yet, and there is no Secret
            await listener.start()
            await token_secret(defined, namespace, TOKEN)
            try:
                await until_found(
                    defined,
                    Registry,
                    "lab",
                    namespace,
                    lambda registry: pushed(registry.metadata.annotations or {}) == {"team/app": ("1.0",)},
                )
            finally:
                await listener.stop()


async def test_tags_of_one_envelope_are_one_write(defined: ApiClient, namespace: str) -> None:
    await token_secret(defined, namespace, TOKEN)
    await defined.create(made("Registry", "lab", namespace, notifications={"tokenSecret": "told"}))
    client, tap = tapped(defined)
    async with Credentials(defined) as credentials:
        listener = Listener(client, credentials)
        place = Place(defined, namespace, await listener.start())
        events = [push("team/app", "1"), push("team/app", "2"), push("team/web", "1"), push("team/app", "1")]
        assert (await place.tell(events))[0] == 200
        assert len(tap.writes) == 1
        assert await place.pushed() == {"team/app": ("1", "2"), "team/web": ("1",)}
        assert (await place.tell(events))[0] == 200
        assert len(tap.writes) == 1  # they are there
        await listener.stop()


async def test_what_is_pushed_is_added_to_what_was(place: Place) -> None:
    assert await place.tell([push("team/app", "1")]) == (200, "kept\n")
    assert await place.tell([push("team/app", "2"), push("other", "1")]) == (200, "kept\n")
    assert await place.pushed() == {"other": ("1",), "team/app": ("1", "2")}


@pytest.mark.parametrize(
    "events",
    [
        [],
        [push("team/app", "1", "pull")],
        [push("team/app", "1", "delete")],
        [push("team/app", None)],
        [push("team/app", "")],
        [push("Team/App", "1")],
        [push("team/app", "a b")],
        [push("../etc", "1")],
        [push("*", "1")],
        [push("team/app", "x" * 129)],
        [{}],
        [{"action": "push"}],
    ],
)
async def test_what_we_have_no_use_for_is_taken_and_forgotten(place: Place, events: list[Any]) -> None:
    assert await place.tell(events) == (200, "nothing to keep\n")
    assert PUSHED not in ((await place.client.get(Registry, "lab", place.namespace)).metadata.annotations or {})


@pytest.mark.parametrize(
    ("uri", "selected", "told"),
    [
        ("https://registry.example.com", ["team/app"], {"team/app": ("1",)}),
        ("https://docker.io", ["nginx"], {"library/nginx": ("1",)}),
        ("https://registry.example.com", ["nginx"], None),
        ("https://registry.example.com/odd", ["team/app"], None),
    ],
)
async def test_only_repositories_that_the_registry_selects_count(
    place: Place, uri: str, selected: Sequence[str], told: Any
) -> None:
    now = await place.client.get(Registry, "lab", place.namespace)
    await place.client.patch(now, now.replace(spec=now.spec.replace(uri=uri, repositories=tuple(selected))))
    assert (await place.tell([push(name, "1") for name in ("team/app", "library/nginx", "team/web")]))[0] == 200
    assert await place.pushed() == told


async def test_whoever_has_no_valid_token_learns_nothing(place: Place) -> None:
    await place.client.create(made("Registry", "silent", place.namespace))
    await place.client.create(made("Registry", "lost", place.namespace, notifications={"tokenSecret": "nowhere"}))
    await token_secret(place.client, place.namespace, "", "empty")
    await place.client.create(made("Registry", "empty", place.namespace, notifications={"tokenSecret": "empty"}))
    events = [push("team/app", "1")]
    answers = {
        await place.tell(events, token="wrong"),
        await place.tell(events, token=""),
        await place.tell(events, token=TOKEN[:-1]),
        await place.tell(events, token="t\xf6ken"),
        await place.tell(b"x" * (MAX_BYTES + 1), token="wrong"),
    }
    for name in ("nowhere", "silent", "lost", "empty", "Odd", "a%2Fb"):
        answers.add(await place.tell(events, url=f"{place.host}/{place.namespace}/{name}"))
    answers.add(await place.tell(events, url=f"{place.host}/elsewhere/lab"))
    assert answers == {(401, "no Registry of this name takes this token\n")}
    assert await place.pushed() is None


async def test_another_scheme_than_bearer_is_no_token(place: Place) -> None:
    async with aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Basic {TOKEN}", "Content-Type": MEDIA_TYPE}
        async with session.post(place.url, data=b"{}", headers=headers) as answer:
            assert answer.status == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_a_new_token_is_known_when_the_secret_changes(place: Place) -> None:
    assert (await place.tell([push("team/app", "1")]))[0] == 200
    secret = await place.client.get(Secret, "told", place.namespace)
    await place.client.patch(secret, secret.replace(string_data={"token": "new"}))
    async with asyncio.timeout(10):
        while (await place.tell([push("team/app", "2")], token="new"))[0] != 200:
            pass
    assert (await place.tell([push("team/app", "3")]))[0] == 401
    assert await place.pushed() == {"team/app": ("1", "2")}


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b"", MEDIA_TYPE, 400),
        (b"{", MEDIA_TYPE, 400),
        (b"{}", MEDIA_TYPE, 400),
        (b'{"events": 1}', MEDIA_TYPE, 400),
        (b'{"events": [{"action": 1}]}', MEDIA_TYPE, 400),
        (b'{"events": [], "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", MEDIA_TYPE, 400),
        (b'{"events": ["\xff"]}', MEDIA_TYPE, 400),
        (b'{"events": []}', "application/json", 400),
        (b'{"events": [' + b"{}," * MAX_EVENTS + b"{}]}", MEDIA_TYPE, 413),
        (b" " * (MAX_BYTES + 1), MEDIA_TYPE, 413),
    ],
)
async def test_what_is_no_envelope_is_refused(place: Place, body: bytes, media_type: str, status: int) -> None:
    answer = await place.tell(body, media_type=media_type)
    assert answer[0] == status
    assert TOKEN not in answer[1]
    assert await place.pushed() is None


async def test_an_envelope_of_version_2_is_read(place: Place) -> None:
    version_2 = MEDIA_TYPE.replace("v1", "v2")
    assert (await place.tell([push("team/app", "1")], media_type=version_2))[0] == 200


async def test_other_paths_and_methods_are_not_there(place: Place) -> None:
    assert (await place.tell([], url=f"{place.host}/"))[0] == 404
    async with aiohttp.ClientSession() as session, session.get(place.url) as answer:
        assert answer.status == 405


async def test_many_that_tell_at_once_lose_nothing(place: Place) -> None:
    answers = await asyncio.gather(*(place.tell([push("team/app", str(i))]) for i in range(8)))
    kept = {str(i) for i, answer in enumerate(answers) if answer[0] == 200}
    assert {answer[0] for answer in answers} <= {200, 503}
    assert kept <= set((await place.pushed())["team/app"])


class Broken:
    """A transport whose patches fail."""

    def __init__(self, inner: Transport, failure: Exception) -> None:
        self._inner, self._failure = inner, failure
        self.stream, self.close = inner.stream, inner.close

    async def call(self, call: Call) -> Reply:
        if call.method == "PATCH":
            raise self._failure
        return await self._inner.call(call)


@pytest.mark.parametrize(
    "failure",
    [
        Unreachable("the server is away"),
        TimeoutError("too late"),
        StatusError(409, "Conflict", "the object has been modified"),
        StatusError(403, "Forbidden", f"{TOKEN} may not"),
        StatusError(500, "InternalError", "etcd"),
    ],
)
async def test_what_is_not_written_is_not_kept(defined: ApiClient, namespace: str, failure: Exception) -> None:
    await token_secret(defined, namespace, TOKEN)
    await defined.create(made("Registry", "lab", namespace, notifications={"tokenSecret": "told"}))
    broken = ApiClient(Broken(defined.transport, failure), defined.scheme)  # type: ignore[arg-type]
    async with Credentials(defined) as credentials:
        listener = Listener(broken, credentials)
        place = Place(defined, namespace, await listener.start())
        with logged() as lines:
            assert await place.tell([push("team/app", "1")]) == (503, "it could not be kept: tell it again later\n")
        await listener.stop()
    assert await place.pushed() is None
    assert TOKEN not in repr(lines)
    assert any(line["log_level"] == "warning" for line in lines)


async def test_nothing_that_is_logged_shows_a_token(place: Place) -> None:
    with logged() as lines:
        await place.tell([push("team/app", "1")])
        await place.tell([push("team/app", "1")], token="another-token")
        await place.tell(b"{", token=TOKEN)
    assert lines
    assert TOKEN not in repr(lines)
    assert "another-token" not in repr(lines)


async def test_a_body_that_never_ends_is_given_up(defined: ApiClient, namespace: str) -> None:
    await token_secret(defined, namespace, TOKEN)
    await defined.create(made("Registry", "lab", namespace, notifications={"tokenSecret": "told"}))
    async with Credentials(defined) as credentials:
        listener = Listener(defined, credentials, patience=0.2)
        port = await listener.start()
        for head in (
            f"POST /{namespace}/lab HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\n",
            "POST /a",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head.encode())
            async with asyncio.timeout(10):
                answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 408") or answer == b""
            writer.close()
        await listener.stop()


async def test_a_registry_that_is_deleted_meanwhile_stops_nobody(place: Place) -> None:
    registry = await place.client.get(Registry, "lab", place.namespace)
    listener = Listener(place.client, None)  # type: ignore[arg-type]
    gone = registry.replace(metadata=msgspec.structs.replace(registry.metadata, name="gone", resource_version="1"))
    await listener._write(gone, {"team/app": ("1",)})
