"""`trimtab backup` and `trimtab restore`: a server's data in one file, and back."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.cli.conftest import Program, config_map
from trimtab.storage.blobs import Digest
from trimtab.storage.folder import FolderBlobs
from trimtab.store.snapshot import JUMP, after_restore
from trimtab.testing.embedded import TrimtabServer

GEAR = """
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.backup.example.com}
spec:
  group: backup.example.com
  scope: Namespaced
  names: {plural: gears, kind: Gear}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: Namespace
metadata: {name: works}
---
apiVersion: backup.example.com/v1
kind: Gear
metadata: {name: big, namespace: works}
spec: {teeth: 12}
"""
OWNED = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: aaa-owned
  namespace: works
  ownerReferences: [{apiVersion: backup.example.com/v1, kind: Gear, name: big, uid: UID}]
data: {blob: "DIGEST"}
"""
BYTES = b"a ledger"
DIGEST = f"sha256:{hashlib.sha256(BYTES).hexdigest()}"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrimtabServer]:
    with TrimtabServer(tmp_path_factory.mktemp("source"), flags=("--systems", "none")) as server:
        yield server


def at(server: TrimtabServer, bare: Program) -> Program:
    bare.env["KUBECONFIG"] = str(server.kubeconfig)
    return bare


def data_of(server: TrimtabServer) -> str:
    return str(server.kubeconfig.parent)


def filled(program: Program, server: TrimtabServer) -> None:
    """A definition, an object of it, what that owns, and a blob that is named and pinned."""
    assert program("apply", "-f", "-", stdin=GEAR).code == 0
    uid = program("get", "gear", "big", "-n", "works", "-o", "jsonpath={.metadata.uid}").out.strip()

    async def put() -> None:
        blobs = FolderBlobs(Path(data_of(server)) / "blobs")
        await blobs.put(BYTES, media_type="text/plain")
        await blobs.put(b"nobody names this")
        await blobs.pin(Digest(DIGEST), f"test/Gear/works/big/{uid}")

    asyncio.run(put())
    owned = OWNED.replace("UID", uid).replace("DIGEST", DIGEST)
    assert program("apply", "-f", "-", stdin=owned).code == 0


@pytest.fixture
def saved(source: TrimtabServer, bare: Program) -> Path:
    program = at(source, bare)
    filled(program, source)
    ran = program("backup", "saved.tar.gz", "--data-dir", data_of(source))
    assert ran.code == 0, ran.err
    return bare.folder / "saved.tar.gz"


def test_an_archive_is_the_owners_alone_and_tells_what_it_holds(saved: Path, bare: Program) -> None:
    assert saved.stat().st_mode & 0o777 == 0o600
    listed = bare("backup", "--list", "saved.tar.gz").out
    assert "gears.backup.example.com" in listed
    assert f"blobs/{DIGEST.removeprefix('sha256:')}" in listed
    assert hashlib.sha256(b"nobody names this").hexdigest() not in listed
    assert "pki/" not in listed
    assert "whole" in bare("backup", "--verify", "saved.tar.gz").out
    with tarfile.open(saved) as plain:
        assert plain.getnames()[:2] == ["manifest.json", "store.db"]
    assert [path.name for path in bare.folder.iterdir() if path.name.startswith(".")] == []
    assert not list((Path(bare.env["KUBECONFIG"]).parent / "blobs").glob("hold-*"))


def test_keys_are_taken_only_when_asked_for(source: TrimtabServer, bare: Program) -> None:
    ran = bare("backup", "keys.tar.gz", "--with-keys", "--data-dir", data_of(source))
    assert ran.code == 0
    assert "keys" in ran.out
    assert "pki/sa.key" in bare("backup", "--list", "keys.tar.gz").out


def test_a_file_that_is_there_is_not_replaced_unasked(saved: Path, source: TrimtabServer, bare: Program) -> None:
    before = saved.read_bytes()
    ran = bare("backup", "saved.tar.gz", "--data-dir", data_of(source))
    assert (ran.code, saved.read_bytes()) == (1, before)
    assert "--force" in ran.err
    assert bare("backup", "saved.tar.gz", "--force", "--data-dir", data_of(source)).code == 0


def test_a_backup_is_of_one_moment_while_writes_go_on(source: TrimtabServer, bare: Program) -> None:
    """Two objects are written in turn: whatever the moment, the first is never behind the second."""
    program = at(source, bare)
    code = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from trimtab.client.connect import connect\n"
        "from trimtab.model.scheme import Untyped\n"
        "async def main():\n"
        "    client = connect(Path(sys.argv[1]))\n"
        "    for n in range(100000):\n"
        "        for name in ('first', 'second'):\n"
        "            await client.apply(Untyped({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name,"
        " 'namespace': 'default'}, 'data': {'n': str(n)}}), manager='t')\n"
        "        if n == 3: print('going', flush=True)\n"
        "asyncio.run(main())\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, str(source.kubeconfig)], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"going\n"
        for number in range(3):
            assert program("backup", f"{number}.tar.gz", "--data-dir", data_of(source)).code == 0
            target = bare.folder / f"data{number}"
            assert program("restore", f"{number}.tar.gz", "--data-dir", str(target)).code == 0
            first, second = numbers(target / "store.db")
            assert second <= first <= second + 1
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()


def numbers(store: Path) -> tuple[int, int]:
    from trimtab.store.snapshot import snapshot

    with snapshot(store) as kept:
        documents = [orjson.loads(each.value) for each in kept.objects() if each.resource == "configmaps"]
    found = {each["metadata"]["name"]: int(each["data"]["n"]) for each in documents if "n" in (each.get("data") or {})}
    return found["first"], found["second"]


def test_a_restored_directory_starts_ahead_of_all_revisions(saved: Path, source: TrimtabServer, bare: Program) -> None:
    before = bare("get", "gear", "big", "-n", "works", "-o", "jsonpath={.metadata.resourceVersion}").out
    folder = bare.folder / "new"
    ran = bare("restore", "saved.tar.gz", "--data-dir", str(folder / "data"))
    assert ran.code == 0, ran.err
    with TrimtabServer(folder, flags=("--systems", "none")) as restored:
        program = at(restored, bare)
        one = orjson.loads(program("get", "gear", "big", "-n", "works", "-o", "json").out)
        assert (one["spec"], one["metadata"]["resourceVersion"]) == ({"teeth": 12}, before.strip())
        assert program("apply", "-f", "-", stdin=config_map("later")).code == 0
        later = program("get", "cm", "later", "-o", "jsonpath={.metadata.resourceVersion}").out
        assert int(later) > int(before) + JUMP
        assert watched(restored, int(before) + 5) == 410
        authority = (folder / "data" / "pki" / "ca.crt").read_text().strip()
        told = program("get", "cm", "kube-root-ca.crt", "-n", "works", "-o", "json").out
        assert orjson.loads(told)["data"]["ca.crt"].strip() == authority, "new keys, new authority"
    blobs = FolderBlobs(folder / "data" / "blobs")
    assert asyncio.run(blobs.stat(Digest(DIGEST))).media_type == "text/plain"
    assert asyncio.run(blobs.collect(grace=0)).count == 0, "it is pinned"


def watched(server: TrimtabServer, revision: int) -> int:
    path = f"/api/v1/configmaps?watch=1&resourceVersion={revision}&timeoutSeconds=5"
    text = subprocess.run(
        ["kubectl", "--kubeconfig", str(server.kubeconfig), "get", "--raw", path],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return int(orjson.loads(text.splitlines()[0])["object"]["code"])


def test_a_second_restore_of_the_same_archive_is_ahead_of_the_first() -> None:
    first = after_restore(1000, now=1_700_000_000.0)
    assert after_restore(1000, now=1_700_000_060.0) > first + 1_000_000, "more than was written in that minute"
    assert after_restore(first, now=0.0) > first, "whatever the clock says"


def test_a_restore_never_overwrites(saved: Path, bare: Program) -> None:
    bare.write("data/mine.txt", "mine")
    ran = bare("restore", "saved.tar.gz", "--data-dir", "data")
    assert ran.code == 1
    assert "not empty" in ran.err
    assert [path.name for path in (bare.folder / "data").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("what", ["backup", "restore"])
def test_killed_in_the_midst_nothing_has_the_final_name(
    what: str, saved: Path, source: TrimtabServer, bare: Program
) -> None:
    words = {
        "backup": ["backup", "half.tar.gz", "--data-dir", data_of(source)],
        "restore": ["restore", "saved.tar.gz", "--data-dir", "half"],
    }[what]
    stop = "import os, signal\nos.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)\n"
    code = f"{stop}import sys\nsys.argv = ['trimtab', *{words!r}]\nfrom trimtab.cli import main\nmain()\n"
    ran = subprocess.run([sys.executable, "-c", code], cwd=bare.folder, env=bare.env, check=False, capture_output=True)
    assert ran.returncode == -signal.SIGKILL
    assert not (bare.folder / "half.tar.gz").exists()
    assert not (bare.folder / "half").exists()
    assert bare(*words).code == 0
    if what == "backup":
        assert not list(bare.folder.glob(".*.partial")), "what the killed one left is gone"


def tampered(saved: Path, change: str) -> bytes:
    """The archive with one thing wrong."""
    members: list[tuple[tarfile.TarInfo, bytes]] = []
    with tarfile.open(saved) as old:
        for member in old:
            file = old.extractfile(member)
            assert file is not None
            members.append((member, file.read()))
    entry, text = members[0]
    manifest = orjson.loads(text)
    if change == "bytes":
        members[1] = (members[1][0], members[1][1][:-1] + b"x")
    elif change == "link":
        members[1][0].type, members[1][0].linkname = tarfile.SYMTYPE, "/etc/passwd"
    elif change == "traversal":
        manifest["members"][0]["name"] = "../store.db"
    elif change == "unnamed":
        members.insert(1, (tarfile.TarInfo("extra"), b""))
    elif change == "bomb":
        manifest["members"][0]["size"] = 1 << 50
    elif change == "missing":
        members.pop()
    elif change == "newer":
        manifest["format"] = 99
    text = orjson.dumps(manifest)
    members[0] = (entry, text)
    out = io.BytesIO()
    for info, content in members:
        info.size = 0 if info.type == tarfile.SYMTYPE else len(content)
        out.write(info.tobuf(tarfile.GNU_FORMAT) + (content if info.size else b"") + bytes(-info.size % 512))
    out.write(bytes(1024))
    return gzip.compress(out.getvalue(), 1)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("bytes", "other bytes"),
        ("link", "not a plain file"),
        ("traversal", "no place in a backup"),
        ("unnamed", "was expected"),
        ("bomb", "more than a backup may have"),
        ("missing", "header|ends too early"),
        ("newer", "newer Trimtab"),
    ],
)
def test_an_archive_that_is_not_what_it_says_is_refused(change: str, why: str, saved: Path, bare: Program) -> None:
    (bare.folder / "bad.tar.gz").write_bytes(tampered(saved, change))
    for words in (("backup", "--verify", "bad.tar.gz"), ("restore", "bad.tar.gz", "--data-dir", "new")):
        ran = bare(*words)
        assert ran.code == 1
        assert any(part in ran.err for part in why.split("|")), ran.err
    assert not (bare.folder / "new").exists()
    assert not list(bare.folder.glob(".*"))


def test_a_cut_archive_and_another_file_are_refused(saved: Path, bare: Program) -> None:
    bare.write("other.txt", "hello")
    (bare.folder / "cut.tar.gz").write_bytes(saved.read_bytes()[:-200])
    for name in ("other.txt", "cut.tar.gz", "nowhere"):
        assert bare("backup", "--verify", name).code == 1
        assert bare("restore", name, "--data-dir", "new").code == 1
    assert not (bare.folder / "new").exists()


def test_objects_come_back_to_a_running_server(saved: Path, bare: Program, tmp_path: Path) -> None:
    (tmp_path / "running").mkdir()
    with TrimtabServer(tmp_path / "running", flags=("--systems", "none")) as running:
        program = at(running, bare)
        shown = program("restore", "saved.tar.gz", "--server")
        assert shown.code == 0, shown.err
        assert "create     gear.backup.example.com works/big" in shown.lines
        assert "nothing was changed" in shown.out
        assert program("get", "ns", "works").code == 3, "a plan changes nothing"
        ran = program("restore", "saved.tar.gz", "--server", "--yes")
        assert ran.code == 0, ran.err + ran.out
        uid = program("get", "gear", "big", "-n", "works", "-o", "jsonpath={.metadata.uid}").out.strip()
        owned = orjson.loads(program("get", "cm", "aaa-owned", "-n", "works", "-o", "json").out)
        assert owned["metadata"]["ownerReferences"][0]["uid"] == uid, "the owner that it has here"
        blobs = FolderBlobs(running.kubeconfig.parent / "blobs")
        assert asyncio.run(blobs.collect(grace=0)).count == 0, "pinned by the new uid"
        asyncio.run(blobs.unpin(f"test/Gear/works/big/{uid}"))
        assert asyncio.run(blobs.collect(grace=0)).count == 1
        assert " 0 create," in program("restore", "saved.tar.gz", "--server").out
        changed = (
            "apiVersion: backup.example.com/v1\nkind: Gear\nmetadata: {name: big, namespace: works}\nspec: {teeth: 9}\n"
        )
        assert program("apply", "--force-conflicts", "-f", "-", stdin=changed).code == 0
        ran = program("restore", "saved.tar.gz", "--server", "--yes")
        assert ran.code == 1
        assert "conflict   gear.backup.example.com works/big: spec is another on the server" in ran.lines
        assert program("restore", "saved.tar.gz", "--server", "--yes", "--overwrite").code == 0
        assert program("get", "gear", "big", "-n", "works", "-o", "jsonpath={.spec.teeth}").out.strip() == "12"
