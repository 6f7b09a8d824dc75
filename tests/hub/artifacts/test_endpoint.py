"""Artifacts over HTTP: in, out, listed, removed; and what is left when something goes wrong."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.hub.artifacts.papers import LIMIT, URL, Desk, desk, names, parsed
from tests.server.api import ADMIN, Api
from trimtab.server import streaming
from trimtab.server.auth.identity import User
from trimtab.server.streaming import is_streamed
from trimtab.storage.blobs import BlobInfo, BlobsUnavailable, Digest
from trimtab.storage.folder import FolderBlobs

MIB = 1 << 20


@pytest.fixture
async def papers(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk(tmp_path, ADMIN) as found:
        yield found


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def file(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "sensitive": False, **more}


@pytest.mark.row(27)
@pytest.mark.row(30)
async def test_a_file_that_the_spec_names_is_put_listed_and_got_back(papers: Desk) -> None:
    await papers.make("one", files=[file("charts/app.tgz"), file("values.yaml", sensitive=True)])
    data = bytes(range(256)) * (20 * 1024)
    put = await papers.put("one", "charts/app.tgz", data)
    assert put.code == 200, put.body
    assert put.doc["digest"] == digest(data)
    assert put.doc["metadata"]["generation"] == 2
    listed = await papers.send("GET", f"{URL}/one/artifacts")
    assert listed.doc["kind"] == "ArtifactList"
    assert listed.doc["items"] == [
        {"path": "charts/app.tgz", "sensitive": False, "digest": digest(data), "size": len(data)},
        {"path": "values.yaml", "sensitive": True},
    ]
    got = await papers.get("one", "charts/app.tgz")
    assert (got.code, got.body) == (200, data)
    assert got.headers["content-length"] == str(len(data))
    assert got.headers["content-disposition"] == "attachment"
    again = await papers.get("one", "charts/app.tgz", if_none_match=got.headers["etag"])
    assert (again.code, again.body) == (304, b"")
    head = await papers.send("HEAD", f"{URL}/one/artifacts/charts/app.tgz")
    assert (head.code, head.body, head.headers["content-length"]) == (200, b"", str(len(data)))


@pytest.mark.row(27)
async def test_the_digest_is_in_the_spec_wherever_the_file_is_named(papers: Desk) -> None:
    await papers.make("one", cover=file("a"), files=[file("a"), file("b")], byLanguage={"en": file("a")})
    await papers.put("one", "a", b"bytes")
    spec = (await papers.send("GET", f"{URL}/one")).doc["spec"]
    known = digest(b"bytes")
    assert spec["cover"]["digest"] == spec["files"][0]["digest"] == spec["byLanguage"]["en"]["digest"] == known
    assert "digest" not in spec["files"][1]


@pytest.mark.row(27)
async def test_the_same_bytes_again_change_nothing(papers: Desk) -> None:
    await papers.make("one", files=[file("a")])
    first = await papers.put("one", "a", b"bytes")
    second = await papers.put("one", "a", b"bytes")
    assert second.doc["metadata"] == first.doc["metadata"]
    assert await papers.kept() == 1


@pytest.mark.row(27)
async def test_a_path_that_the_spec_does_not_name_is_told_which_it_names(papers: Desk) -> None:
    await papers.make("one", files=[file("a/b.yaml"), file("c")])
    for reply in (await papers.put("one", "other", b"x"), await papers.get("one", "other")):
        assert reply.code == 404
        assert "it names: a/b.yaml, c" in reply.doc["message"]
    assert await papers.kept() == 0
    assert (await papers.get("one", "c")).code == 404
    assert (await papers.put("none", "c", b"x")).code == 404


@pytest.mark.row(27)
@pytest.mark.parametrize(
    "path", ["../x", "a/../b", "%2e%2e/x", "%252e%252e/x", "a%00b", "a%5cb", "/etc/passwd", "a//b", "%2Fetc", "./a"]
)
async def test_a_path_that_leads_elsewhere_is_a_bad_request(papers: Desk, path: str) -> None:
    await papers.make("one", files=[file("a")])
    for method in ("GET", "PUT", "DELETE"):
        reply = await papers.send(method, f"{URL}/one/artifacts/{path}", b"x" if method == "PUT" else b"")
        assert reply.code == 400, (method, path, reply)
    assert await papers.kept() == 0


@pytest.mark.row(27)
async def test_writes_of_the_object_keep_what_they_do_not_know(papers: Desk) -> None:
    await papers.make("one", files=[file("a"), file("b")])
    await papers.put("one", "a", b"bytes")
    api = Api(papers.server)
    forged = digest(b"somebody else's")
    applied = {
        "apiVersion": "papers.trimtab.dev/v1",
        "kind": "Paper",
        "spec": {"note": "new", "files": [file("b", digest=forged), file("a"), file("c", digest=forged)]},
    }
    answer = await api.apply(f"{URL}/one", applied, force=True)
    assert answer.code == 200, answer.raw
    assert answer.doc["spec"]["files"] == [file("b"), file("a", digest=digest(b"bytes")), file("c")]
    live = answer.doc
    live["spec"]["files"] = [file("a")]
    assert (await api.put(f"{URL}/one", live)).doc["spec"]["files"] == [file("a", digest=digest(b"bytes"))]
    made = await papers.make("two", files=[file("a", digest=forged)])
    assert "digest" not in made["spec"]["files"][0]


@pytest.mark.row(27)
@pytest.mark.parametrize("told", [True, False])
async def test_too_many_bytes_are_refused_and_none_are_kept(papers: Desk, told: bool) -> None:
    await papers.make("one", files=[file("a")])
    if told:
        reply = await papers.put("one", "a", b"x" * (LIMIT + 1))
        assert reply.code == 413
    else:
        reader, writer = await asyncio.open_unix_connection(papers.socket)
        writer.write(f"PUT {URL}/one/artifacts/a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        for _ in range(LIMIT // MIB + 2):
            writer.write(b"%x\r\n%b\r\n" % (MIB, b"x" * MIB))
            await writer.drain()
        async with asyncio.timeout(10):
            assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
        writer.close()
    assert await papers.kept() == 0
    assert papers.partial() == []
    assert "digest" not in (await papers.send("GET", f"{URL}/one")).doc["spec"]["files"][0]


@pytest.mark.row(27)
async def test_a_connection_that_is_cut_leaves_nothing(papers: Desk) -> None:
    await papers.make("one", files=[file("a")])
    _, writer = await asyncio.open_unix_connection(papers.socket)
    writer.write(
        f"PUT {URL}/one/artifacts/a HTTP/1.1\r\nhost: x\r\ncontent-length: 4000000\r\n\r\n".encode() + b"x" * MIB
    )
    await until(lambda: bool(papers.partial()))
    writer.close()
    await until(lambda: not papers.partial())
    assert await papers.kept() == 0
    assert (await papers.send("GET", f"{URL}/one")).doc["metadata"]["generation"] == 1


@pytest.mark.row(27)
async def test_bytes_that_were_replaced_or_removed_are_let_go_of(papers: Desk) -> None:
    await papers.make("one", files=[file("a"), file("b")])
    await papers.put("one", "a", b"first")
    await papers.put("one", "b", b"first")
    await papers.put("one", "a", b"second")
    assert await papers.kept() == 2  # b still has the first
    removed = await papers.send("DELETE", f"{URL}/one/artifacts/b")
    assert (removed.code, removed.doc["status"]) == (200, "Success")
    assert await papers.kept() == 1
    spec = (await papers.send("GET", f"{URL}/one")).doc["spec"]
    assert spec["files"] == [file("a", digest=digest(b"second")), file("b")]


@pytest.mark.row(27)
async def test_many_writers_of_one_object_all_get_their_bytes_in(papers: Desk) -> None:
    await papers.make("one", files=[file(f"f{number}") for number in range(12)])
    replies = await asyncio.gather(*(papers.put("one", f"f{number}", b"%d" % number) for number in range(12)))
    assert {reply.code for reply in replies} == {200}
    files = (await papers.send("GET", f"{URL}/one")).doc["spec"]["files"]
    assert [each["digest"] for each in files] == [digest(b"%d" % number) for number in range(12)]
    assert await papers.kept() == 12


@pytest.mark.row(27)
async def test_whatever_writers_do_to_one_file_the_last_bytes_stay(papers: Desk) -> None:
    await papers.make("one", files=[file("a")])
    await asyncio.gather(*(papers.put("one", "a", b"%d" % (number % 3)) for number in range(15)))
    assert await papers.kept() == 1
    assert (await papers.get("one", "a")).body in (b"0", b"1", b"2")


async def test_bytes_other_than_were_promised_are_not_kept(papers: Desk) -> None:
    await papers.make("one", files=[file("a")])
    reply = await papers.send("PUT", f"{URL}/one/artifacts/a?digest={digest(b'x')}", b"y")
    assert reply.code == 400
    assert "others" in reply.doc["message"]
    assert (await papers.send("PUT", f"{URL}/one/artifacts/a?digest=md5:1", b"y")).code == 400
    assert (await papers.send("PUT", f"{URL}/one/artifacts/a?digest={digest(b'x')}", b"x")).code == 200


async def test_bytes_that_are_gone_are_an_error_that_says_so(papers: Desk) -> None:
    await papers.make("one", files=[file("a")])
    await papers.put("one", "a", b"bytes")
    live = (await papers.send("GET", f"{URL}/one")).doc
    await papers.blobs.unpin(f"hub/artifacts/{live['metadata']['uid']}")
    assert await papers.kept() == 0
    reply = await papers.get("one", "a")
    assert reply.code == 500
    assert "PUT them again" in reply.doc["message"]
    assert names((await papers.send("GET", f"{URL}/one/artifacts")).doc) == ["a"]
    assert (await papers.put("one", "a", b"bytes")).code == 200
    assert (await papers.get("one", "a")).body == b"bytes"


async def test_other_methods_and_dry_runs_are_refused(papers: Desk) -> None:
    await papers.make("one", files=[file("a")])
    assert (await papers.send("POST", f"{URL}/one/artifacts/a", b"x")).code == 405
    assert (await papers.send("PUT", f"{URL}/one/artifacts", b"x")).code == 405
    assert (await papers.send("PUT", f"{URL}/one/artifacts/a?dryRun=All", b"x")).code == 400
    assert await papers.kept() == 0


@pytest.mark.row(27)
@pytest.mark.row(30)
async def test_roles_name_artifacts_as_a_part_of_the_kind(tmp_path: Path) -> None:
    async with desk(tmp_path, User("reader", groups=("system:authenticated",))) as papers:
        api = Api(papers.server)
        made = {"apiVersion": "papers.trimtab.dev/v1", "kind": "Paper", "metadata": {"name": "one"}}
        await api.post(URL, {**made, "spec": {"files": [file("a")]}})
        role = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        rules = [{"apiGroups": ["papers.trimtab.dev"], "resources": ["papers/artifacts"], "verbs": ["get"]}]
        await api.post(role, {"kind": "ClusterRole", "metadata": {"name": "reading"}, "rules": rules})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reading"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}
        binding = {"kind": "ClusterRoleBinding", "metadata": {"name": "reading"}, "roleRef": reference}
        await api.post(role.replace("roles", "rolebindings"), {**binding, "subjects": [subject]})
        await api.as_("reader").until(f"{URL}/one/artifacts", lambda answer: answer.code == 200)
        assert (await papers.send("GET", f"{URL}/one")).code == 403
        refused = await papers.put("one", "a", b"x")
        assert refused.code == 403
        assert 'cannot update resource "papers/artifacts"' in refused.doc["message"]
        assert (await papers.send("DELETE", f"{URL}/one/artifacts/a")).code == 403
        assert await papers.kept() == 0


async def test_discovery_tells_of_the_part_and_its_verbs(papers: Desk) -> None:
    found = orjson.loads((await papers.send("GET", "/apis/papers.trimtab.dev/v1")).body)
    assert {row["name"]: row["verbs"] for row in found["resources"]}["papers/artifacts"] == ["delete", "get", "update"]


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while True:
            if condition():
                return
            await asyncio.sleep(0.005)


class Moody(FolderBlobs):
    """A place for blobs of which one operation does not work now."""

    fails = ""

    async def put(self, *args: Any, **options: Any) -> Digest:
        self._check("put")
        return await super().put(*args, **options)

    async def pin(self, digest: Digest, owner: str) -> None:
        self._check("pin")
        await super().pin(digest, owner)

    async def stat(self, digest: Digest) -> BlobInfo:
        self._check("stat")
        return await super().stat(digest)

    async def unpin(self, owner: str, digest: Digest | None = None) -> None:
        self._check("unpin")
        await super().unpin(owner, digest)

    def _check(self, name: str) -> None:
        if self.fails == name:
            raise BlobsUnavailable("not now")


@pytest.mark.row(27)
@pytest.mark.parametrize("fails", ["put", "pin", "stat", "unpin"])
async def test_a_place_that_fails_is_told_and_nothing_is_half_done(tmp_path: Path, fails: str) -> None:
    moody = Moody(tmp_path / "blobs")
    async with desk(tmp_path, ADMIN, blobs=moody) as papers:
        await papers.make("one", files=[file("a")])
        await papers.put("one", "a", b"first")
        moody.fails = fails
        reply = await papers.put("one", "a", b"second")
        moody.fails = ""
        recorded = (await papers.send("GET", f"{URL}/one")).doc["spec"]["files"][0]["digest"]
        if fails in ("put", "pin"):
            assert (reply.code, reply.doc["reason"]) == (503, "ServiceUnavailable")
            assert recorded == digest(b"first")
        else:
            assert recorded == digest(b"second")
        assert digest((await papers.get("one", "a")).body) == recorded
        assert (await papers.put("one", "a", b"third")).code == 200
        assert (await papers.get("one", "a")).body == b"third"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (b"/apis/g/v1/namespaces/n/papers/a/artifacts/f", True),
        (b"/apis/g/v1/namespaces/n/papers/a/artifacts/f/g/h/i?x=y", True),
        (b"/apis/g/v1/papers/a/artifacts/f", True),
        (b"/apis/g/v1/namespaces/artifacts/papers/a", False),
        (b"/apis/g/v1/namespaces/artifacts/papers/artifacts/status", False),
        (b"/apis/g/v1/namespaces/n/papers/artifacts/status", False),
        (b"/apis/g/v1/namespaces/n/artifacts/a", False),
        (b"/apis/g/v1/artifacts/a", False),
        (b"/apis/g/v1/namespaces/n/papers/a?x=/artifacts/f", False),
        (b"/apis/g/v1/papers/a/artifacts", False),
        (b"/api/v1/namespaces/n/pods/a/artifacts/f", False),
        (b"/apis/g/artifacts/x", False),
    ],
)
def test_only_files_are_read_as_they_come(url: bytes, expected: bool) -> None:
    assert is_streamed(b"PUT", url) is expected
    assert not is_streamed(b"POST", url)


async def test_an_object_may_be_called_artifacts(papers: Desk) -> None:
    made = await papers.make("artifacts", note="1")
    made["spec"]["note"] = "2"
    changed = await papers.send(
        "PUT", f"{URL}/artifacts?pretty=/artifacts/", orjson.dumps(made), content_type="application/json"
    )
    assert (changed.code, changed.doc["spec"]["note"]) == (200, "2")


class Meddled(FolderBlobs):
    """Somebody does something in the midst of a PUT: after the bytes came, or after they were pinned for the first time."""

    after_put: Callable[[], Awaitable[Any]] | None = None
    forgetful = False

    async def put(self, *args: Any, **options: Any) -> Digest:
        digest = await super().put(*args, **options)
        if self.after_put is not None:
            meanwhile, self.after_put = self.after_put, None
            await meanwhile()
        return digest

    async def pin(self, digest: Digest, owner: str) -> None:
        await super().pin(digest, owner)
        if self.forgetful:  # as one who looked before the spec named it, and lets go after
            self.forgetful = False
            await self.unpin(owner, digest)


async def test_what_a_spec_names_is_held_whoever_let_go_of_it_meanwhile(tmp_path: Path) -> None:
    blobs = Meddled(tmp_path / "blobs")
    async with desk(tmp_path, ADMIN, blobs=blobs) as papers:
        await papers.make("one", files=[file("a")])
        blobs.forgetful = True
        assert (await papers.put("one", "a", b"bytes")).code == 200
        assert not blobs.forgetful
        assert await papers.kept() == 1
        assert (await papers.get("one", "a")).body == b"bytes"


async def test_bytes_are_for_the_object_that_was_there_when_they_began_to_come(tmp_path: Path) -> None:
    blobs = Meddled(tmp_path / "blobs")
    async with desk(tmp_path, ADMIN, blobs=blobs) as papers:
        await papers.make("one", files=[file("a")])

        async def another() -> None:
            assert (await papers.send("DELETE", f"{URL}/one")).code == 200
            await papers.make("one", files=[file("a")])

        blobs.after_put = another
        refused = await papers.put("one", "a", b"bytes")
        assert (refused.code, refused.doc["reason"]) == (409, "Conflict")
        assert (await papers.get("one", "a")).code == 404
        assert await papers.kept() == 0


async def test_what_says_that_it_is_too_long_is_refused_before_it_comes(papers: Desk) -> None:
    await papers.make("one", files=[file("a")])
    reader, writer = await asyncio.open_unix_connection(papers.socket)
    writer.write(f"PUT {URL}/one/artifacts/a HTTP/1.1\r\nhost: x\r\ncontent-length: {LIMIT + 1}\r\n\r\n".encode())
    async with asyncio.timeout(5):
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
    writer.close()


async def test_bytes_that_end_too_early_are_never_taken_for_whole(papers: Desk) -> None:
    await papers.make("one", files=[file("a")])
    data = bytes(range(256)) * 8 * 1024
    await papers.put("one", "a", data)
    [kept] = [path for path in (papers.root / "sha256").rglob("*") if path.is_file() and len(path.name) == 64]
    kept.chmod(0o600)
    kept.write_bytes(data[: MIB + 5] + b"x" + data[MIB + 6 :])  # as a disk that forgets
    reader, writer = await asyncio.open_unix_connection(papers.socket)
    writer.write(f"GET {URL}/one/artifacts/a HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    async with asyncio.timeout(5):
        got = parsed(await reader.read())  # the connection ends: there is no next answer on it
    assert len(got.body) < len(data) == int(got.headers["content-length"])
    writer.close()


async def test_a_body_that_trickles_on_is_not_waited_for_for_ever(
    papers: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "LONGEST", 0.3)
    await papers.make("one", files=[file("a")])
    reader, writer = await asyncio.open_unix_connection(papers.socket)
    writer.write(f"PUT {URL}/one/artifacts/a HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n".encode())

    async def trickle() -> None:
        while not writer.is_closing():
            writer.write(b"x")
            await asyncio.sleep(0.02)

    trickling = asyncio.create_task(trickle())
    async with asyncio.timeout(5):
        assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
    trickling.cancel()
    writer.close()
    assert papers.partial() == []


async def test_a_reader_that_is_slow_makes_the_sender_wait() -> None:
    said: list[str] = []
    body = streaming.BodyStream(
        length=None,
        begin=lambda: said.append("begin"),
        pause=lambda: said.append("pause"),
        resume=lambda: said.append("resume"),
    )
    for _ in range(streaming.HIGH_WATER // MIB + 3):
        body.feed(bytes(MIB))
    assert said == ["pause"]
    reading = aiter(body)
    for _ in range(streaming.HIGH_WATER // MIB + 3):
        await anext(reading)
    body.end()
    assert [piece async for piece in reading] == []
    assert said == ["pause", "begin", "resume"]
