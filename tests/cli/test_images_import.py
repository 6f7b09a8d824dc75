"""`trimtab images import-db` and `import-vex`: from files of this machine to a blob that an object names."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Program
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.runtime.system import NAMESPACE
from trimtab.storage.blobs import Digest, parse_digest
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.images.databases import NAME, current
from trimtab.systems.images.kinds import VEXSource, VEXSourceSpec
from trimtab.systems.images.vex_sources import read_source

# the database


@pytest.fixture
async def home(images_client: ApiClient) -> None:
    """The namespace of the systems, without a database."""
    for made in (
        images_client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})),
        images_client.delete(Ref(ConfigMap, NAME, NAMESPACE)),
    ):
        try:
            await made
        except StatusError as error:
            if error.code not in (404, 409):
                raise


def osv(folder: Path, name: str, package: str = "openssl", ecosystem: str = "Debian:12", **more: Any) -> None:
    document = {
        "id": name,
        "modified": "2026-01-01T00:00:00Z",
        "affected": [
            {
                "package": {"ecosystem": ecosystem, "name": package},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "3.0"}]}],
            }
        ],
        **more,
    }
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(document))


async def test_an_import_publishes_a_database_and_counts_it_by_ecosystem(
    images: Program, images_client: ApiClient, home: None
) -> None:
    osv(images.folder / "osv", "DSA-1")
    osv(images.folder / "osv", "PYSEC-1", "django", "PyPI")
    (images.folder / "osv" / "broken.json").write_text("{")
    ran = images("images", "import-db", "osv")
    assert ran.code == 0, ran.err
    assert ran.lines[:4] == [
        "ECOSYSTEM   ADVISORIES",
        "Debian:12   1",
        "PyPI        1",
        "2 advisories: 2 new or changed, 0 as they were",
    ]
    assert "broken.json" in ran.out
    ref = await current(images_client)
    assert ref is not None
    assert ref.advisories == 2
    await FolderBlobs(images.folder / "blobs").stat(ref.blob)
    shown = images("images", "import-db", "--show")
    assert shown.lines[:3] == ran.lines[:3]
    assert shown.lines[3:] == [
        f"2 advisories, imported at {ref.imported_at}",
        f"contents {ref.digest}, blob {ref.blob}",
    ]


async def test_a_second_import_adds_to_the_first_and_replace_begins_anew(
    images: Program, images_client: ApiClient, home: None
) -> None:
    osv(images.folder / "one", "DSA-1")
    osv(images.folder / "two", "DSA-2")
    with zipfile.ZipFile(images.folder / "two.zip", "w") as archive:
        archive.write(images.folder / "two" / "DSA-2.json", "DSA-2.json")
    assert images("images", "import-db", "one").code == 0
    assert "2 advisories: 1 new or changed" in images("images", "import-db", "two.zip").out
    assert "1 advisories: 1 new or changed" in images("images", "import-db", "two", "--replace").out
    ref = await current(images_client)
    assert ref is not None
    assert ref.advisories == 1


async def test_two_imports_at_once_lose_nothing(images: Program, images_client: ApiClient, home: None) -> None:
    for name in ("one", "two"):
        for number in range(40):
            osv(images.folder / name, f"{name.upper()}-{number}")
    both = [images.installed("images", "import-db", name, stderr=subprocess.PIPE) for name in ("one", "two")]
    for process in both:
        _, err = await asyncio.to_thread(process.communicate, timeout=60)
        assert process.returncode == 0, err
    ref = await current(images_client)
    assert ref is not None
    assert ref.advisories == 80


async def test_the_same_again_changes_nothing(images: Program, images_client: ApiClient, home: None) -> None:
    osv(images.folder / "osv", "DSA-1")
    images("images", "import-db", "osv")
    first = await current(images_client)
    assert "nothing is said that was not said before" in images("images", "import-db", "osv").out
    assert await current(images_client) == first


async def test_a_database_whose_blob_is_missing_can_only_be_replaced(
    images: Program, images_client: ApiClient, home: None
) -> None:
    osv(images.folder / "osv", "DSA-1")
    images("images", "import-db", "osv")
    (images.folder / "elsewhere").mkdir()
    ran = images("images", "import-db", "osv", "--blobs", "elsewhere")
    assert ran.code == 1
    assert "its blob is missing: are these the blobs of this server?" in ran.err
    assert images("images", "import-db", "osv", "--blobs", "elsewhere", "--replace").code == 0


async def test_without_a_database_show_says_how_to_get_one(images: Program, home: None) -> None:
    ran = images("images", "import-db", "--show")
    assert ran.code == 3
    assert "`trimtab images import-db DIR` imports one" in ran.err


async def test_a_source_without_documents_publishes_nothing(
    images: Program, images_client: ApiClient, home: None
) -> None:
    (images.folder / "empty").mkdir()
    ran = images("images", "import-db", "empty")
    assert ran.code == 1
    assert "has no OSV documents" in ran.err
    assert await current(images_client) is None
    assert "neither a folder nor a zip file" in images("images", "import-db", "nothing").err


async def test_an_interrupted_import_publishes_nothing(images: Program, images_client: ApiClient, home: None) -> None:
    for number in range(3000):
        osv(images.folder / "osv", f"DSA-{number}")
    process = images.installed("images", "import-db", "osv", stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert "500: documents" in await asyncio.to_thread(process.stderr.readline)
    process.send_signal(signal.SIGINT)
    await asyncio.to_thread(process.communicate, timeout=30)
    assert process.returncode == 130
    assert await current(images_client) is None


def test_an_import_needs_a_source(bare: Program) -> None:
    assert bare("images", "import-db").code == 2
    assert bare("images", "import-db", "osv", "--show").code == 2


# VEX


def vex(folder: Path, name: str, vulnerability: str = "CVE-2026-1") -> None:
    document = {
        "@context": "https://openvex.dev/ns/v0.2.0",
        "@id": f"https://example.com/{name}",
        "author": "Vendor",
        "timestamp": "2026-01-01T00:00:00Z",
        "version": 1,
        "statements": [
            {
                "vulnerability": {"name": vulnerability},
                "products": [{"@id": "pkg:pypi/django"}],
                "status": "not_affected",
                "justification": "component_not_present",
            }
        ],
    }
    path = folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def repository(folder: Path) -> None:
    """As the specification of VEX repositories has it."""
    vex(folder, "pkg/pypi/django/vex")
    vex(folder, "pkg/pypi/unlisted/vex")
    (folder / "vex-repository.json").write_text(json.dumps({"name": "Vendor's hub"}))
    index = {"packages": [{"id": "pkg:pypi/django", "location": "pkg/pypi/django/vex.json"}]}
    (folder / "index.json").write_text(json.dumps(index))


async def source(client: ApiClient, images: Program) -> VEXSource:
    return await client.get(VEXSource, "hub", images.namespace)


def pins(images: Program, digest: Digest) -> bool:
    """Whether somebody holds the blob."""
    algorithm, value = digest.split(":")
    folder = images.folder / "blobs" / algorithm / value[:2] / f"{value}.pins"
    return folder.is_dir() and any(folder.iterdir())


async def test_a_repository_becomes_a_source_that_reads_as_the_folder_does(
    images: Program, images_client: ApiClient
) -> None:
    repository(images.folder / "hub")
    ran = images("images", "import-vex", "hub", "hub")
    assert (ran.code, ran.out) == (0, "vexsource/hub: 1 documents with 1 statements of Vendor's hub\n")
    read = await read_source(images_client, FolderBlobs(images.folder / "blobs"), await source(images_client, images))
    assert (read.documents, read.statements) == (1, 1)


async def test_a_folder_a_zip_file_and_a_document_are_all_taken(images: Program, images_client: ApiClient) -> None:
    vex(images.folder / "folder", "one")
    with zipfile.ZipFile(images.folder / "some.zip", "w") as archive:
        archive.write(images.folder / "folder" / "one.json", "top/one.json")
    for given in ("folder", "some.zip", "folder/one.json"):
        ran = images("images", "import-vex", given, "hub")
        assert ran.out.startswith("vexsource/hub: 1 documents with 1 statements"), ran.err
        found = await source(images_client, images)
        read = await read_source(images_client, FolderBlobs(images.folder / "blobs"), found)
        assert read.statements == 1


async def test_the_same_files_are_the_same_blob(images: Program, images_client: ApiClient) -> None:
    vex(images.folder / "folder", "one")
    images("images", "import-vex", "folder", "hub")
    first = (await source(images_client, images)).spec.blob
    images("images", "import-vex", "folder", "hub")
    assert (await source(images_client, images)).spec.blob == first
    assert pins(images, parse_digest(str(first)))


async def test_a_renewed_source_holds_only_its_new_blob(images: Program, images_client: ApiClient) -> None:
    vex(images.folder / "folder", "one")
    images("images", "import-vex", "folder", "hub")
    first = parse_digest(str((await source(images_client, images)).spec.blob))
    vex(images.folder / "folder", "one", "CVE-2026-2")
    images("images", "import-vex", "folder", "hub")
    second = parse_digest(str((await source(images_client, images)).spec.blob))
    assert (pins(images, first), pins(images, second)) == (False, True)


async def test_a_source_that_has_something_else_is_left_as_it_is(images: Program, images_client: ApiClient) -> None:
    vex(images.folder / "folder", "one")
    inline = VEXSourceSpec(inline=(images.folder / "folder" / "one.json").read_text())
    metadata = ObjectMeta(name="hub", namespace=images.namespace)
    await images_client.create(VEXSource(metadata=metadata, spec=inline))
    ran = images("images", "import-vex", "folder", "hub")
    assert ran.code != 0
    assert "inline" in ran.err
    assert not list((images.folder / "blobs").glob("sha256/*/*.pins/*"))


async def test_what_is_no_vex_is_refused(images: Program) -> None:
    (images.folder / "folder").mkdir()
    (images.folder / "folder" / "other.json").write_text("{}")
    ran = images("images", "import-vex", "folder", "hub")
    assert ran.code == 1
    assert "folder has no OpenVEX document that can be read: other.json" in ran.err


async def test_what_does_not_count_of_a_document_is_named(images: Program) -> None:
    vex(images.folder / "folder", "one")
    path = images.folder / "folder" / "one.json"
    document = json.loads(path.read_text())
    document["statements"].append({**document["statements"][0], "status": "harmless"})
    path.write_text(json.dumps(document))
    ran = images("images", "import-vex", "folder", "hub")
    assert ran.lines[0].startswith("vexsource/hub: 1 documents with 1 statements")
    assert ran.lines[1].startswith("skipped: https://example.com/one: ")
