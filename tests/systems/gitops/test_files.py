"""Files of documents: large ones are sent in pieces, and none is ever written over what belongs to another document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.systems.gitops.desk import config, message, reason
from tests.systems.gitops.test_up import MANIFEST, Up, up
from trimtab.client.artifacts import upload
from trimtab.client.protocol import Named
from trimtab.client.transport import Call
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.model.yaml import load_all
from trimtab.storage.blobs import digest_of
from trimtab.systems.gitops.artifacts import MAX_BYTES

__all__ = ["up"]

EXAMPLES = Path(__file__).parents[3] / "examples" / "hub"
VERSION = "infra.trimtab.dev/v3"
ADDON = Named(VERSION, "Addon")


def addon(name: str, *files: str) -> str:
    paths = "".join(f"      - name: {file}\n" for file in files)
    artifact = f"  artifact:\n    uploadedYAML:\n      paths:\n{paths}"
    return f"apiVersion: {VERSION}\nkind: Addon\nmetadata:\n  name: {name}\nspec:\n  namespace: x\n{artifact}"


async def put(up: Up, data: bytes, file: str = "m/one.yaml", name: str = "one") -> None:
    """The bytes of a file, from somebody else than the sync."""

    async def pieces() -> Any:
        yield data

    await upload(up.client, ADDON, name, file, pieces(), namespace=up.namespace)


def place(up: Up, file: str = "m/one.yaml", name: str = "one") -> str:
    return f"/apis/{VERSION}/namespaces/{up.namespace}/addons/{name}/artifacts/{file}"


async def alone(up: Up, **spec: Any) -> None:
    """One Addon with one file, synced."""
    up.git.create("team", {"one.yaml": addon("one", "m/one.yaml"), "m/one.yaml": MANIFEST})
    await up.repository()
    await up.sync(exclude=["Repository"], **spec)
    await up.ready()


async def apart(up: Up, git: dict[str, str], system: bytes, **spec: Any) -> None:
    """One Addon, synced both ways; then each side is changed without the other, and the sync goes on."""
    await alone(up, systemToGit=True, **spec)
    await up.change(suspend=True)
    await up.reason("Suspended")
    up.git.commit("team", git)
    await put(up, system)
    await up.change(suspend=False)


async def make(up: Up, name: str, file: str, data: bytes) -> None:
    """An Addon of the system, with the bytes of its file."""
    spec = {"namespace": "x", "artifact": {"uploadedYAML": {"paths": [{"name": file}]}}}
    metadata = {"name": name, "namespace": up.namespace}
    await up.client.create(Untyped({"apiVersion": VERSION, "kind": "Addon", "metadata": metadata, "spec": spec}))

    async def pieces() -> Any:
        yield data

    await upload(up.client, ADDON, name, file, pieces(), namespace=up.namespace)


@pytest.mark.row(27)
async def test_a_file_larger_than_a_request_goes_both_ways(up: Up) -> None:
    data = bytes(range(256)) * 4 * 4096  # more than the server takes at once
    up.git.create("team", {"big.yaml": addon("big", "big.bin"), "big.bin": data})
    await up.repository()
    await up.sync(systemToGit=True, exclude=["Repository"])
    await up.ready()
    base = f"/apis/{VERSION}/namespaces/{up.namespace}/addons/big/artifacts/big.bin"
    assert await up.read(base) == data

    async def other() -> Any:
        yield data[::-1]

    await upload(up.client, ADDON, "big", "big.bin", other(), namespace=up.namespace)
    await up.again()
    assert up.git.read("team")["big.bin"] == data[::-1]


@pytest.mark.row(27)
@pytest.mark.row(28)
async def test_a_version_of_git_is_published_with_the_bytes_of_its_files(up: Up) -> None:
    """Also when the version and the bytes of a file that is there change together, forward or back."""

    def files(version: str, word: str) -> dict[str, str]:
        document = addon("one", "m/one.yaml", "m/two.yaml") + f"  version: {version}\n"
        return {"one.yaml": document, "m/one.yaml": MANIFEST.replace("inside", word), "m/two.yaml": MANIFEST}

    up.git.create("team", files("v1", "first"))
    await up.repository()
    await up.sync(exclude=["Repository"])
    await up.ready()
    for version, word in (("v2", "second"), ("v3", "third"), ("v1", "first")):
        up.git.commit("team", files(version, word))
        assert reason(await up.again()) == "Synced"
        found = await up.client.get(ADDON, "one", up.namespace)
        assert found.raw["spec"]["version"] == version
        assert word.encode() in await up.read(place(up))
    told = json.loads(await up.read(place(up).partition("/artifacts/")[0] + "/versions"))
    assert [item["version"] for item in told["items"]] == ["v1", "v3", "v2"], (
        "the one that it went back to is the newest"
    )


@pytest.mark.row(28)
@pytest.mark.row(49)
async def test_of_what_has_several_versions_git_has_the_latest_alone(up: Up) -> None:
    async def publish(version: str) -> None:
        document = {"apiVersion": VERSION, "kind": "Addon", "metadata": {"name": "one", "namespace": up.namespace}}
        await up.client.apply(Untyped({**document, "spec": {"version": version}}), manager="users", force=True)

    def written() -> list[bytes]:
        return [data for data in up.git.read().values() if b"kind: Addon" in data]

    await make(up, "one", "m/one.yaml", MANIFEST.encode())
    await publish("v1")
    await publish("v2")
    up.git.create("team", {"README.md": "ours"})
    await up.repository()
    await up.sync(systemToGit=True, exclude=["Project", "Repository"])
    await up.until(lambda sync: any(b"version: v2" in data for data in written()))
    await publish("v3")
    await up.until(lambda sync: any(b"version: v3" in data for data in written()))
    await up.ready()
    assert len(written()) == 1
    told = json.loads(await up.read(place(up).partition("/artifacts/")[0] + "/versions"))
    assert [item["version"] for item in told["items"]] == ["v3", "v2", "v1"]


@pytest.mark.row(28)
async def test_other_bytes_for_a_published_version_are_refused_and_nothing_changes(up: Up) -> None:
    document = addon("one", "m/one.yaml") + "  version: v1\n"
    up.git.create("team", {"one.yaml": document, "m/one.yaml": MANIFEST})
    await up.repository()
    await up.sync(exclude=["Repository"])
    await up.ready()
    up.git.commit("team", {"m/one.yaml": MANIFEST.replace("inside", "other")})
    assert reason(await up.again()) == "ApplyFailed"
    assert (await up.client.get(ADDON, "one", up.namespace)).raw["spec"]["version"] == "v1"
    assert await up.read(place(up)) == MANIFEST.encode()


@pytest.mark.row(49)
async def test_new_objects_whose_files_have_one_name_do_not_share_it(up: Up) -> None:
    up.git.create("team", {"README": "ours"})
    await up.repository()
    for name in ("one", "two"):
        await make(up, name, "all.yaml", MANIFEST.replace("inside", name).encode())
    await up.sync(systemToGit=True, exclude=["Repository"])
    await up.reason("Synced")
    files = up.git.read("team")
    place = f"{up.namespace}/addons"
    assert b"name: one" in files[f"{place}/one/all.yaml"]
    assert b"name: two" in files[f"{place}/two/all.yaml"]
    assert {f"{place}/one/one.yaml", f"{place}/two/two.yaml"} <= files.keys()
    count = len(up.git.history("team"))
    await up.again()
    assert len(up.git.history("team")) == count


@pytest.mark.row(49)
async def test_a_file_is_never_written_over_a_document_or_over_the_file_of_another(up: Up) -> None:
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n"
    before = {
        "ingress.yaml": addon("ingress", "mine.yaml"), "mine.yaml": MANIFEST,
        "other.yaml": addon("other", "theirs.yaml"), "theirs.yaml": MANIFEST, "settings.yaml": settings,
    }  # fmt: skip
    up.git.create("team", before)
    await up.repository()
    await up.sync(systemToGit=True, exclude=["Repository"], triggers={"internal": False})
    await up.ready()
    for name in ("settings.yaml", "theirs.yaml"):
        await up.patch_addon(b'{"spec":{"artifact":{"uploadedYAML":{"paths":[{"name":"%b"}]}}}}' % name.encode())

        async def forged() -> Any:
            yield b"forged"

        await upload(up.client, ADDON, "ingress", name, forged(), namespace=up.namespace)
        for how in ("manual", "webhook"):  # which looks only at what changed
            sync = await up.again(how=how)
            assert reason(sync) == "Refused"
            assert f"ingress.yaml: is not written to Git: its file {name} is " in message(sync)
        assert not sync.status.history[0].counts
        assert {path: data.decode() for path, data in up.git.read("team").items()} == before
        assert await up.live("settings") is not None
    assert "NotWritten" in await up.events()


@pytest.mark.row(49)
async def test_a_new_object_whose_file_has_the_name_of_its_document_is_written(up: Up) -> None:
    up.git.create("team", {"README": "ours"})
    await up.repository()
    await make(up, "limits", "limits.yaml", MANIFEST.encode())
    await up.sync(systemToGit=True, exclude=["Repository"])
    await up.reason("Synced")
    files = up.git.read("team")
    place = f"{up.namespace}/addons/limits"
    assert files[f"{place}/limits.yaml"] == MANIFEST.encode()
    assert b"kind: Addon" in files[f"{place}/limits-2.yaml"]
    for _ in range(2):
        await up.again()
    assert up.git.read("team") == files
    assert await up.live("limits", "Addon", VERSION) is not None


@pytest.mark.row(49)
async def test_the_examples_of_the_hub_go_to_git_and_stay(up: Up) -> None:
    """A project that was filled before anybody thought of Git."""
    texts = [(EXAMPLES / name).read_text() for name in ("platform.yaml", "workload.yaml")]
    found = [document for text in texts for document in load_all(text) if document["kind"] != "Project"]
    for document in found:
        await up.client.create(Untyped({**document, "metadata": {**document["metadata"], "namespace": up.namespace}}))
        kind, name = Named(document["apiVersion"], document["kind"]), document["metadata"]["name"]
        manifest = EXAMPLES / "manifests" / f"{name}.yaml"
        if manifest.exists():

            async def pieces(data: bytes = manifest.read_bytes()) -> Any:
                yield data

            await upload(up.client, kind, name, manifest.name, pieces(), namespace=up.namespace)
    up.git.create("team", {"settings.yaml": config("settings", a="1")})
    await up.repository()
    await up.sync(systemToGit=True, include=["*", "ConfigMap"], exclude=["Repository"])
    await up.reason("Synced")
    for _ in range(2):
        await up.again()
    await up.ready()
    files = up.git.read("team")
    for document in found:
        name = document["metadata"]["name"]
        assert await up.live(name, document["kind"], document["apiVersion"]) is not None, name
        assert any(f"kind: {document['kind']}\n".encode() in data for path, data in files.items() if name in path), name


@pytest.mark.row(49)
async def test_sensitive_files_are_in_no_commit(up: Up) -> None:
    up.git.create("team", {"README": "ours"})
    await up.repository()
    paths = [{"name": "open.yaml"}, {"name": "key.txt", "sensitive": True}]
    spec = {"namespace": "x", "artifact": {"uploadedYAML": {"paths": paths}}}
    metadata = {"name": "one", "namespace": up.namespace}
    await up.client.create(Untyped({"apiVersion": VERSION, "kind": "Addon", "metadata": metadata, "spec": spec}))
    for file, data in (("open.yaml", MANIFEST.encode()), ("key.txt", b"hunter2")):

        async def given(data: bytes = data) -> Any:
            yield data

        await upload(up.client, ADDON, "one", file, given(), namespace=up.namespace)
    await up.sync(systemToGit=True, exclude=["Repository"])
    await up.reason("Synced")
    files = up.git.read("team")
    assert files[f"{up.namespace}/addons/one/open.yaml"] == MANIFEST.encode()
    assert not any(b"hunter2" in data or path.endswith("key.txt") for path, data in files.items())


OURS, THEIRS = MANIFEST + "data: {by: git}\n", MANIFEST.encode() + b"data: {by: system}\n"


@pytest.mark.row(27)
@pytest.mark.parametrize(
    "documents", [{}, {"one.yaml": addon("one", "m/one.yaml").replace("namespace: x", "namespace: edge")}]
)
@pytest.mark.parametrize("side", ["git", "system"])
async def test_a_file_that_both_sides_changed_waits_for_a_person(up: Up, side: str, documents: dict[str, str]) -> None:
    await apart(up, {"m/one.yaml": OURS, **documents}, THEIRS)
    await up.reason("Conflicts")
    (conflict,) = await up.conflicts()
    (field,) = conflict.spec.fields
    digests = [f'"{digest_of(data)}"' for data in (MANIFEST.encode(), OURS.encode(), THEIRS)]
    assert [field.path, field.base, field.git, field.system] == ["artifacts/m/one.yaml", *digests]
    assert up.git.read("team")["m/one.yaml"] == OURS.encode()
    assert await up.read(place(up)) == THEIRS
    assert "Conflict" in await up.events()
    await up.client.patch(conflict, conflict.replace(spec=conflict.spec.replace(resolution=side)))
    await up.reason("Synced")
    taken = OURS.encode() if side == "git" else THEIRS
    assert up.git.read("team")["m/one.yaml"] == await up.read(place(up)) == taken
    assert await up.conflicts() == []


@pytest.mark.row(27)
@pytest.mark.parametrize("policy", ["git", "system"])
async def test_the_policy_decides_which_bytes_of_a_file_are_taken(up: Up, policy: str) -> None:
    await apart(up, {"m/one.yaml": OURS}, THEIRS, conflictPolicy=policy)
    await up.reason("Synced")
    taken = OURS.encode() if policy == "git" else THEIRS
    assert up.git.read("team")["m/one.yaml"] == await up.read(place(up)) == taken
    count = len(up.git.history("team"))
    assert reason(await up.again()) == "Synced"
    assert len(up.git.history("team")) == count


async def test_the_same_bytes_on_both_sides_are_no_conflict(up: Up) -> None:
    await apart(up, {"m/one.yaml": OURS}, OURS.encode())
    await up.ready()
    assert await up.conflicts() == []
    await put(up, THEIRS)
    await up.until(lambda sync: up.git.read("team")["m/one.yaml"] == THEIRS)


async def test_a_document_of_the_system_and_a_file_of_git_come_together(up: Up) -> None:
    """A document that is written to Git does not take along files that only Git changed."""
    await apart(up, {"m/one.yaml": OURS}, MANIFEST.encode())
    await up.ready()
    await up.change(suspend=True)
    await up.reason("Suspended")
    up.git.commit("team", {"m/one.yaml": MANIFEST})
    path = place(up).partition("/artifacts/")[0]
    body = b'{"spec": {"namespace": "edge"}}'
    await up.client.transport.call(
        Call(method="PATCH", path=path, body=body, content_type="application/merge-patch+json")
    )
    await up.change(suspend=False)
    await up.reason("Synced")
    files = up.git.read("team")
    assert b"namespace: edge" in files["one.yaml"]
    assert files["m/one.yaml"] == await up.read(place(up)) == MANIFEST.encode()


@pytest.mark.row(27)
async def test_files_that_drifted_come_back_from_git(up: Up) -> None:
    await alone(up)
    await put(up, THEIRS)
    said = await up.trimtab("plan", "fleet", "--exit-code")
    assert (said.returncode, "~ upload" in said.stdout, "differs from Git" in said.stdout) == (2, True, True), said
    assert reason(await up.again()) == "Synced"
    assert await up.read(place(up)) == MANIFEST.encode()
    await up.client.transport.call(Call(method="DELETE", path=place(up)))
    assert reason(await up.again()) == "Synced"
    assert await up.read(place(up)) == MANIFEST.encode()
    await up.client.transport.call(Call(method="DELETE", path=place(up).partition("/artifacts/")[0]))
    assert reason(await up.again()) == "Synced"
    assert await up.read(place(up)) == MANIFEST.encode()
    said = await up.trimtab("plan", "fleet", "--exit-code")
    assert (said.returncode, said.stdout) == (0, "1 unchanged\n"), said


async def test_what_nobody_touched_for_some_runs_is_still_put_right_when_it_drifts(up: Up) -> None:
    await alone(up)
    for _ in range(2):
        assert reason(await up.again()) == "Synced"
        assert reason(await up.again()) == "Synced"
        await put(up, THEIRS)
        assert reason(await up.again()) == "Synced"
        assert await up.read(place(up)) == MANIFEST.encode()
    await up.again()
    changed = {"apiVersion": VERSION, "kind": "Addon", "metadata": {"name": "one", "namespace": up.namespace}}
    await up.client.apply(Untyped({**changed, "spec": {"namespace": "elsewhere"}}), manager="somebody", force=True)
    assert reason(await up.again()) == "Synced"
    assert (await up.client.get(ADDON, "one", up.namespace)).raw["spec"]["namespace"] == "x"
    assert await up.read(place(up)) == MANIFEST.encode()


@pytest.mark.row(27)
async def test_a_file_that_was_deleted_in_the_system_goes_from_git(up: Up) -> None:
    await alone(up, systemToGit=True)
    await up.client.transport.call(Call(method="DELETE", path=place(up)))
    await up.until(lambda sync: "m/one.yaml" not in up.git.read("team"))
    await up.ready()
    assert up.git.read("team").keys() == {"one.yaml"}
    await put(up, THEIRS)
    await up.until(lambda sync: up.git.read("team").get("m/one.yaml") == THEIRS)


@pytest.mark.row(27)
async def test_a_file_that_the_object_names_no_more_goes_from_git(up: Up) -> None:
    """It would be read as a document there."""
    await alone(up, systemToGit=True)
    change = b'{"spec": {"artifact": {"uploadedYAML": {"paths": [{"name": "m/two.yaml"}]}}}}'
    path, media = place(up).partition("/artifacts/")[0], "application/merge-patch+json"
    await up.client.transport.call(Call(method="PATCH", path=path, body=change, content_type=media))
    await up.until(lambda sync: b"two.yaml" in up.git.read("team")["one.yaml"])
    await up.ready()
    assert up.git.read("team").keys() == {"one.yaml"}
    assert await up.live("inside") is None


@pytest.mark.row(50)
async def test_a_plan_has_the_files_of_documents(up: Up, tmp_path: Path) -> None:
    await alone(up, suspend=False, triggers={"internal": False})
    head = up.git.head("team")
    up.git.commit("team", {"m/one.yaml": OURS}, branch="more", force_from=head)
    said = await up.trimtab("plan", "fleet", "--revision", "more", "--exit-code")
    assert (said.returncode, "1 file to upload, 1 unchanged" in said.stdout) == (2, True), said
    assert "~ upload" in said.stdout
    said = await up.trimtab("diff", "fleet", "--revision", "more")
    assert "~ m/one.yaml, a file of " in said.stdout, said
    (tmp_path / "m").mkdir()
    (tmp_path / "one.yaml").write_text(addon("one", "m/one.yaml"))
    (tmp_path / "m/one.yaml").write_text(MANIFEST)
    said = await up.trimtab("plan", "fleet", "--folder", str(tmp_path), "--exit-code")
    assert (said.returncode, said.stdout) == (0, "1 unchanged\n"), said


@pytest.mark.row(49)
async def test_hidden_files_are_refused_on_both_sides(up: Up) -> None:
    """They steer Git, builds and the sync itself."""
    await alone(up, systemToGit=True)
    for name in (".github/workflows/ci.yml", ".trimtabignore", ".git/config"):
        with pytest.raises(StatusError, match="hidden"):
            await make(up, "two", name, b"*")
    assert up.git.read("team").keys() == {"one.yaml", "m/one.yaml"}
    up.git.commit("team", {"two.yaml": addon("two", ".trimtabignore")})
    await up.ask()
    sync = await up.reason("InvalidDocuments")
    assert '".trimtabignore" is hidden' in sync.status.documents[0].message


@pytest.mark.row(27)
async def test_an_object_whose_file_changed_is_not_deleted_unseen(up: Up) -> None:
    await alone(up, systemToGit=True)
    await up.change(suspend=True)
    await up.reason("Suspended")
    up.git.commit("team", {"one.yaml": None, "m/one.yaml": None, "README": "ours"})
    await put(up, THEIRS)
    await up.change(suspend=False)
    await up.reason("Conflicts")
    (conflict,) = await up.conflicts()
    assert await up.read(place(up)) == THEIRS
    await up.client.patch(conflict, conflict.replace(spec=conflict.spec.replace(resolution="system")))
    await up.reason("Synced")
    folder = f"{up.namespace}/addons/one"
    assert up.git.read("team")[f"{folder}/m/one.yaml"] == THEIRS


@pytest.mark.row(49)
async def test_a_file_that_is_too_large_to_be_read_from_git_is_not_written_there(up: Up) -> None:
    """Else nothing of the whole revision would be applied any more."""
    await alone(up, systemToGit=True, triggers={"internal": False})
    await put(up, bytes(MAX_BYTES + 1))
    sync = await up.again()
    assert reason(sync) == "Refused"
    assert f'"m/one.yaml" has more than {MAX_BYTES} bytes' in sync.status.documents[0].message
    assert up.git.read("team")["m/one.yaml"] == MANIFEST.encode()
    up.git.commit("team", {"other.yaml": config("other", x="1")})
    await up.again()
    assert await up.names() == ["other"]


@pytest.mark.row(49)
@pytest.mark.parametrize("exclude", [["Repository"], ["Addon", "Repository"]])
async def test_a_document_that_was_applied_is_not_deleted_because_another_one_names_its_file(
    up: Up, exclude: list[str]
) -> None:
    up.git.create("team", {f"{name}.yaml": config(name, a="1") for name in ("db", "one", "two")})
    await up.repository()
    await up.sync(exclude=exclude)
    await up.ready()
    up.git.commit("team", {"names.yaml": addon("names", "db.yaml")})
    sync = await up.again()
    assert reason(sync) == "InvalidDocuments"
    told = f"is a document that was applied, and is named as a file by names.yaml: ConfigMap {up.namespace}/db"
    assert told in message(sync)
    assert await up.names() == ["db", "one", "two"]


@pytest.mark.row(49)
async def test_a_document_that_the_sync_leaves_out_takes_no_file_of_another_folder(up: Up) -> None:
    up.git.create("team", {"prod/db.yaml": config("db", a="1"), "one.yaml": config("one", a="1")})
    await up.repository()
    await up.sync(exclude=["Addon", "Repository"])
    await up.ready()
    up.git.commit("team", {"a/names.yaml": addon("names", "../prod/db.yaml")})
    assert reason(await up.again()) == "Synced"
    assert await up.names() == ["db", "one"]
