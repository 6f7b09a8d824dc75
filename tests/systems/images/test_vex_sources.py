"""VEX statements of a namespace: from objects, ConfigMaps and blobs; broken ones are told and left out."""

from __future__ import annotations

import base64
import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.systems.images.advisory_kit import openvex
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.workers import Workers
from trimtab.storage.blobs import BlobDamaged
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.images.kinds import ConfigMapRef, VEXSource, VEXSourceSpec
from trimtab.systems.images.vex_sources import Found, Part, VexSources, compile_one, describe, looked_up, read_source
from trimtab.systems.images.vex_store import load, writing
from trimtab.systems.images.vulnerabilities.openvex import Product, Statement, VexDocument
from trimtab.systems.images.vulnerabilities.report import Finding
from trimtab.systems.images.vulnerabilities.sources import Limits
from trimtab.systems.images.vulnerabilities.vex import VexIndex
from trimtab.testing.clock import FakeClock

BASH = "pkg:deb/debian/bash"
NAMES = [f"CVE-{number}" for number in range(10)]
ONE, TWO = openvex("CVE-1", BASH), openvex("CVE-2", BASH, name="urn:vex:2")


@pytest.fixture
async def blobs(tmp_path: Path) -> FolderBlobs:
    made = FolderBlobs(tmp_path / "blobs")
    await made.ready()
    return made


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    async with Workers(1) as pool:
        yield pool


@pytest.fixture
def sources(defined: ApiClient, blobs: FolderBlobs, workers: Workers, tmp_path: Path) -> VexSources:
    return VexSources(defined, blobs, Scratch(tmp_path / "scratch", 1 << 30), workers)


async def source(client: ApiClient, namespace: str, name: str, **spec: Any) -> VEXSource:
    metadata = ObjectMeta(name=name, namespace=namespace)
    return await client.create(VEXSource(metadata=metadata, spec=VEXSourceSpec(**spec)))


async def config_map(client: ApiClient, namespace: str, name: str, **fields: Any) -> None:
    await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), **fields))


async def vulnerabilities(sources: VexSources, namespace: str) -> list[str]:
    async with sources.statements(namespace) as found:
        documents = load(found.paths, NAMES).documents
    return sorted(
        name for document in documents for statement in document.statements for name in statement.vulnerabilities
    )


def repository(**documents: str) -> bytes:
    """A zip file of a VEX repository, with one folder around everything."""
    packages = [{"id": BASH, "location": f"pkg/{name}.json"} for name in documents]
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("hub-main/vex-repository.json", json.dumps({"name": "A hub"}))
        archive.writestr("hub-main/index.json", json.dumps({"packages": packages}))
        for name, text in documents.items():
            archive.writestr(f"hub-main/pkg/{name}.json", text)
    return whole.getvalue()


async def test_without_sources_nobody_says_anything(sources: VexSources, namespace: str) -> None:
    async with sources.statements(namespace) as found:
        assert found == ((), "")


async def test_all_kinds_of_sources_are_gathered(
    defined: ApiClient, namespace: str, sources: VexSources, blobs: FolderBlobs
) -> None:
    await source(defined, namespace, "inline", inline=ONE)
    await config_map(defined, namespace, "statements", data={"a.json": TWO})
    await source(defined, namespace, "map", config_map=ConfigMapRef(name="statements"))
    zipped = await blobs.put(repository(three=openvex("CVE-3", BASH, name="urn:vex:3")))
    await source(defined, namespace, "hub", blob=zipped)
    single = await blobs.put(openvex("CVE-4", BASH, name="urn:vex:4").encode())
    await source(defined, namespace, "single", blob=single)
    assert await vulnerabilities(sources, namespace) == ["CVE-1", "CVE-2", "CVE-3", "CVE-4"]


async def test_a_source_that_is_switched_off_or_in_another_namespace_does_not_count(
    defined: ApiClient, namespace: str, sources: VexSources
) -> None:
    await source(defined, namespace, "off", inline=ONE, enabled=False)
    await source(defined, "default", f"far-{namespace}", inline=TWO)
    assert await vulnerabilities(sources, namespace) == []


async def test_a_source_says_how_much_it_has(defined: ApiClient, namespace: str, blobs: FolderBlobs) -> None:
    read = await read_source(defined, blobs, await source(defined, namespace, "inline", inline=ONE))
    assert (read.documents, read.statements, read.skipped, read.problem) == (1, 1, (), "")


async def test_a_process_of_its_own_reads_the_same(
    defined: ApiClient, namespace: str, blobs: FolderBlobs, workers: Workers
) -> None:
    hub = await source(defined, namespace, "hub", blob=await blobs.put(repository(one=ONE, bad="{")))
    read = await read_source(defined, blobs, hub, workers=workers)
    assert read == await read_source(defined, blobs, hub)
    assert (read.documents, read.statements) == (1, 1)
    assert "pkg/bad.json" in read.skipped[0]


async def test_a_key_that_is_no_document_is_skipped_and_named(
    defined: ApiClient, namespace: str, blobs: FolderBlobs
) -> None:
    more = {"binary": base64.b64encode(TWO.encode()).decode()}
    await config_map(defined, namespace, "mixed", data={"bad": "{", "good": ONE}, binary_data=more)
    mixed = await source(defined, namespace, "mixed", config_map=ConfigMapRef(name="mixed"))
    read = await read_source(defined, blobs, mixed)
    assert (read.documents, read.problem) == (2, "")
    assert len(read.skipped) == 1
    assert read.skipped[0].startswith("bad: it is no OpenVEX document")


async def test_a_statement_that_was_left_out_is_named(defined: ApiClient, namespace: str, blobs: FolderBlobs) -> None:
    vague = json.loads(ONE)
    vague["statements"].append({"vulnerability": {"name": "CVE-9"}, "status": "perhaps"})
    await config_map(defined, namespace, "vague", data={"vague": json.dumps(vague)})
    read = await read_source(
        defined, blobs, await source(defined, namespace, "vague", config_map=ConfigMapRef(name="vague"))
    )
    assert read.statements == 1
    assert len(read.skipped) == 1
    assert "statement 1" in read.skipped[0]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"config_map": ConfigMapRef(name="nowhere")}, "there is no ConfigMap nowhere"),
        ({"blob": f"sha256:{'0' * 64}"}, "import it again"),
        ({"blob": "latest"}, "is no digest"),
    ],
)
async def test_a_source_that_leads_nowhere_says_so_and_others_count(
    defined: ApiClient, namespace: str, blobs: FolderBlobs, sources: VexSources, spec: dict[str, Any], why: str
) -> None:
    broken = await source(defined, namespace, "broken", **spec)
    read = await read_source(defined, blobs, broken)
    assert why in read.problem
    assert read.documents == 0
    await source(defined, namespace, "good", inline=ONE)
    assert await vulnerabilities(sources, namespace) == ["CVE-1"]


@pytest.mark.parametrize("content", [b"{", b"PK\3\4 damaged", b"PK", repository(), b""])
async def test_a_blob_that_is_no_repository_says_so_without_a_path_of_this_machine(
    defined: ApiClient, namespace: str, blobs: FolderBlobs, content: bytes
) -> None:
    read = await read_source(defined, blobs, await source(defined, namespace, "bad", blob=await blobs.put(content)))
    assert read.problem
    assert "/tmp" not in read.problem


async def test_a_blob_that_is_too_large_is_refused(
    defined: ApiClient, namespace: str, blobs: FolderBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.systems.images.vex_sources.LARGEST_BLOB", 100)
    large = await source(defined, namespace, "large", blob=await blobs.put(repository(one=ONE)))
    assert "limit" in (await read_source(defined, blobs, large)).problem


async def test_a_blob_that_is_damaged_is_told_of_its_source_and_stops_whoever_would_scan_without_it(
    defined: ApiClient, namespace: str, blobs: FolderBlobs, sources: VexSources, tmp_path: Path
) -> None:
    digest = await blobs.put(ONE.encode())
    damaged = await source(defined, namespace, "damaged", blob=digest)
    (file,) = (tmp_path / "blobs" / "sha256").glob(f"*/{digest.partition(':')[2]}")
    file.write_bytes(TWO.encode())
    assert "damaged" in (await read_source(defined, blobs, damaged)).problem
    with pytest.raises(BlobDamaged):
        await vulnerabilities(sources, namespace)
    await blobs.put(ONE.encode())
    assert await vulnerabilities(sources, namespace) == ["CVE-1"]


async def test_the_digest_follows_the_contents_and_nothing_else(
    defined: ApiClient, namespace: str, blobs: FolderBlobs
) -> None:
    await source(defined, namespace, "one", inline=ONE)
    first, _ = await looked_up(defined, blobs, namespace)
    assert first.startswith("sha256:")
    await config_map(defined, namespace, "same", data={"same": ONE})
    await source(defined, namespace, "same", config_map=ConfigMapRef(name="same"))
    assert (await looked_up(defined, blobs, namespace))[0] == first
    held = await defined.get(ConfigMap, "same", namespace)
    await defined.patch(held, held.replace(data={"same": TWO}))
    second, _ = await looked_up(defined, blobs, namespace)
    assert second != first
    await defined.delete(Ref(VEXSource, "same", namespace))
    assert (await looked_up(defined, blobs, namespace))[0] == first
    await defined.delete(Ref(VEXSource, "one", namespace))
    assert (await looked_up(defined, blobs, namespace))[0] == ""


async def test_what_was_read_is_kept_for_as_long_as_the_contents_are_the_same(
    defined: ApiClient, namespace: str, blobs: FolderBlobs, sources: VexSources, tmp_path: Path
) -> None:
    digest = await blobs.put(repository(one=ONE))
    await source(defined, namespace, "hub", blob=digest)
    assert await vulnerabilities(sources, namespace) == ["CVE-1"]
    (file,) = (tmp_path / "blobs" / "sha256").glob(f"*/{digest.partition(':')[2]}")
    file.write_bytes(b"not read again")
    assert await vulnerabilities(sources, namespace) == ["CVE-1"]


async def test_a_blob_that_comes_back_counts_again(
    defined: ApiClient, namespace: str, blobs: FolderBlobs, sources: VexSources, tmp_path: Path
) -> None:
    await source(defined, namespace, "hub", blob=await blobs.put(ONE.encode()))
    shutil.rmtree(tmp_path / "blobs")
    await blobs.ready()
    assert await vulnerabilities(sources, namespace) == []
    await blobs.put(ONE.encode())
    assert await vulnerabilities(sources, namespace) == ["CVE-1"]


# --- bounds ----------------------------------------------------------------------------------------------------------


def bomb(inside: str = "[%s]", piece: str = "{}", size: int = 8 << 20) -> bytes:
    """A repository with one document of many small parts, as large as a document may be."""
    head = '{"@context":"https://openvex.dev/ns/v0.2.0","@id":"urn:bomb","statements":'
    many = ",".join([piece] * ((size - len(head) - len(inside)) // (len(piece) + 1)))
    return repository(bomb=f"{head}{inside % many}}}")


STATEMENT = '[{"vulnerability":{"name":"CVE-9"%s},"products":[%s],"status":"fixed"}]'


@pytest.mark.parametrize(
    ("inside", "piece"),
    [
        ("[%s]", "{}"),
        (STATEMENT % ("", "%s"), "{}"),
        (STATEMENT % ("", "%s"), '"pkg:"'),
        (STATEMENT % ("", '{"@id":"pkg:a/b","subcomponents":[%s]}'), "{}"),
        (STATEMENT % ("", '{"@id":"pkg:a/b","identifiers":{"a":[%s]}}'), "[]"),
        (STATEMENT % (',"aliases":[%s]', '"pkg:a/b"'), '""'),
    ],
)
async def test_whatever_is_in_a_document_of_the_largest_size_it_can_be_read(
    defined: ApiClient, namespace: str, blobs: FolderBlobs, workers: Workers, inside: str, piece: str
) -> None:
    digest = await blobs.put(bomb(inside, piece))
    read = await read_source(defined, blobs, await source(defined, namespace, "bomb", blob=digest), workers=workers)
    assert "memory" not in read.problem
    assert read.digest == digest


async def test_a_source_that_takes_too_much_memory_is_told_and_others_count(
    defined: ApiClient,
    namespace: str,
    blobs: FolderBlobs,
    sources: VexSources,
    workers: Workers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trimtab.systems.images.vex_sources.MEMORY", 128 << 20)
    large = await source(defined, namespace, "large", blob=await blobs.put(bomb()))
    await source(defined, namespace, "good", inline=ONE)
    assert "memory" in (await read_source(defined, blobs, large, workers=workers)).problem
    assert await vulnerabilities(sources, namespace) == ["CVE-1"]
    async with sources.statements(namespace) as found:  # it would be the same again, so nobody waits for it
        assert found.digest == (await looked_up(defined, blobs, namespace))[0]


@pytest.mark.parametrize(("limit", "why"), [("MOST_STATEMENTS", "more than 1 statements"), ("LIMITS", "bytes")])
def test_nothing_counts_of_a_source_over_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, why: str
) -> None:
    (tmp_path / "hub.zip").write_bytes(repository(one=ONE, two=TWO))
    part = Part(Found(blob="sha256:1"), tmp_path / "hub.zip")
    value = {"MOST_STATEMENTS": 1, "LIMITS": Limits(total_bytes=len(ONE) + 200)}[limit]
    monkeypatch.setattr(f"trimtab.systems.images.vex_sources.{limit}", value)
    assert why in describe(part).problem
    compile_one(part, tmp_path / "store")
    assert load([tmp_path / "store"], NAMES).documents == ()


async def test_a_source_whose_process_ends_badly_is_tried_again_later_and_not_named_as_read(
    defined: ApiClient,
    namespace: str,
    blobs: FolderBlobs,
    workers: Workers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FakeClock()
    sources = VexSources(defined, blobs, Scratch(tmp_path / "scratch", 1 << 30), workers, clock=clock)
    await source(defined, namespace, "one", inline=ONE)
    with monkeypatch.context() as slow:
        slow.setattr("trimtab.systems.images.vex_sources.COMPILE_TIMEOUT", 1e-6)
        async with sources.statements(namespace) as found:
            assert found == ((), "")
    assert await vulnerabilities(sources, namespace) == []
    await clock.advance(600)
    async with sources.statements(namespace) as found:
        assert (len(found.paths), found.digest) == (1, (await looked_up(defined, blobs, namespace))[0])


def test_a_source_that_says_more_of_what_is_asked_than_a_scan_can_hold_is_left_out(tmp_path: Path) -> None:
    many = tuple(Statement(vulnerabilities=("CVE-1",), products=(Product((BASH,)),), status="fixed") for _ in range(50))
    for name, said in {"loud": many, "short": many[:1]}.items():
        with writing(tmp_path / name) as writer:
            writer.add(VexDocument(id=name, author="", version=1, timestamp="", statements=said))
    paths = [tmp_path / "loud", tmp_path / "short"]
    assert [document.id for document in load(paths, ["CVE-1"]).documents] == ["loud", "short"]
    documents, left_out = load(paths, ["CVE-1"], most_bytes=1000)
    assert ([document.id for document in documents], left_out) == (["short"], (tmp_path / "loud",))
    assert len(load(paths, ["CVE-2"], most_bytes=1000).documents) == 2


statements = st.builds(
    Statement,
    vulnerabilities=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(tuple),
    products=st.just((Product(("pkg:deb/debian/bash",)),)),
    status=st.sampled_from(["not_affected", "fixed", "affected"]),
    timestamp=st.sampled_from(["", "2026-01-01T00:00:00.000000Z", "2026-01-02T00:00:00.000000Z"]),
)
documents = st.builds(
    VexDocument,
    id=st.sampled_from(["", "urn:a", "urn:b"]),
    author=st.just("a vendor"),
    version=st.integers(0, 2),
    timestamp=st.sampled_from(["", "2026-01-01T00:00:00.000000Z"]),
    statements=st.lists(statements, max_size=4).map(tuple),
)


@given(given_documents=st.lists(documents, max_size=5), name=st.sampled_from(NAMES))
@settings(max_examples=60, deadline=None)
def test_what_is_said_of_a_vulnerability_is_the_same_from_the_file_as_from_all_documents(
    given_documents: list[VexDocument], name: str
) -> None:
    finding = Finding(id=name, advisories=(name,), package="bash", purl="pkg:deb/debian/bash@1", installed_version="1")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store")
        with writing(path) as writer:
            for document in given_documents:
                writer.add(document)
        stored = VexIndex(load([path], [name]).documents).about(finding)
    told = VexIndex(given_documents).about(finding)
    assert [said.order[:3] for said in stored] == [said.order[:3] for said in told]
    assert _by_order(stored) == _by_order(told)


def _by_order(told: Iterable[Any]) -> list[str]:
    """With those of one time, version and document in any order, for nothing says which of them is later."""
    return sorted(f"{said.order[:3]} {said.statement} {said.document.version}" for said in told)
