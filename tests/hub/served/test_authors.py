"""Who changed a resource last: what the server knows, whatever a writer says."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest

from tests.hub.served.conftest import INFRA, Home, addon
from tests.hub.served.test_attacked import annotations, said
from tests.hub.served.test_served import answer
from trimtab.server.auth.identity import User
from trimtab.server.door import Door
from trimtab.server.serve import Listener

ADDONS = f"/apis/{INFRA}/namespaces/default/addons"
BLUEPRINTS = f"/apis/{INFRA}/namespaces/default/blueprints"
BY, LINEAGE = "hub.trimtab.dev/changed-by", "hub.trimtab.dev/lineage"
ACME_BY, ACME_LINEAGE = "hub.acme.io/changed-by", "hub.acme.io/lineage"
EVERYBODY = ("system:masters", "system:authenticated")
BOB = User("bob", groups=EVERYBODY)


async def test_who_changed_a_resource_is_what_the_server_knows_on_create(home: Home) -> None:
    _, made = await answer(home, ADDONS, "POST", said(addon(), **{BY: "root"}))
    assert annotations(made)[BY] == "ada"


async def test_who_changed_a_resource_cannot_be_said_by_a_change_of_nothing(home: Home) -> None:
    _, made = await answer(home, ADDONS, "POST", addon())
    for claim in ("eve", None):
        code, made = await answer(home, f"{ADDONS}/nginx", "PUT", said(made, **{BY: claim}), user=BOB)
        assert (code, annotations(made)[BY]) == (200, "ada")


@pytest.mark.parametrize("word", ["labels", "description", "annotations", "spec"])
async def test_whoever_changes_what_people_write_is_its_author(home: Home, word: str) -> None:
    _, made = await answer(home, ADDONS, "POST", addon())
    changed = {
        "labels": {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}},
        "description": {**made, "metadata": {**made["metadata"], "description": "a door"}},
        "annotations": said(made, note="mine", **{BY: "eve"}),
        "spec": {**made, "spec": {**made["spec"], "namespace": "edge"}},
    }[word]
    code, shown = await answer(home, f"{ADDONS}/nginx", "PUT", changed, user=BOB)
    assert (code, annotations(shown)[BY]) == (200, "bob")


async def test_what_machines_write_has_no_author(home: Home) -> None:
    """Finalizers, status and lineage are no change of what people wrote."""
    _, made = await answer(home, ADDONS, "POST", addon())
    held = {**made, "metadata": {**made["metadata"], "finalizers": ["acme.io/x"]}}
    _, held = await answer(home, f"{ADDONS}/nginx", "PUT", held, user=BOB)
    assert annotations(held)[BY] == "ada"
    _, synced = await answer(
        home, f"{ADDONS}/nginx", "PUT", said(held, **{LINEAGE: "a@1"}), user=BOB, includeLineage="true"
    )
    assert annotations(synced) == {BY: "ada", LINEAGE: "a@1"}
    status = {**synced, "status": {"observedGeneration": 1}}
    _, shown = await answer(home, f"{ADDONS}/nginx/status", "PUT", said(status, **{BY: "eve"}), user=BOB)
    assert annotations(shown)[BY] == "ada"


@pytest.mark.row(10)
async def test_every_view_knows_the_author_whichever_view_was_written_through(home: Home) -> None:
    theirs = ADDONS.replace("trimtab.dev", "acme.io")
    _, made = await answer(home, ADDONS, "POST", said(addon(), **{ACME_BY: "eve"}))
    assert annotations(made)[BY] == "ada"
    _, shown = await answer(home, f"{theirs}/nginx")
    assert annotations(shown) == {ACME_BY: "ada"}
    changed = said({**shown, "spec": {**shown["spec"], "namespace": "edge"}}, **{BY: "eve"})
    _, shown = await answer(home, f"{theirs}/nginx", "PUT", changed, user=BOB)
    assert annotations(shown) == {ACME_BY: "bob"}
    _, ours = await answer(home, f"{ADDONS}/nginx")
    assert annotations(ours) == {BY: "bob"}


async def test_whoever_brings_a_files_bytes_is_its_author(home: Home) -> None:
    await home.apply(addon())
    listener = Listener(Door(home.server, None, local=BOB))
    folder = Path(tempfile.mkdtemp())
    await listener.listen_unix(str(folder / "s"))
    try:
        reader, writer = await asyncio.open_unix_connection(str(folder / "s"))
        path = f"{ADDONS}/nginx/artifacts/manifests/nginx.yaml"
        writer.write(f"PUT {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4\r\n\r\na: b".encode())
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
    finally:
        await listener.close()
    _, shown = await answer(home, f"{ADDONS}/nginx")
    assert shown["spec"]["artifact"]["uploadedYAML"]["paths"][0]["digest"].startswith("sha256:")
    assert annotations(shown)[BY] == "bob"
