"""`trimtab hub artifacts`: files of resources on the command line, the program as a process of its own."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.testing.embedded import TrimtabServer

OPERATOR = Path(__file__).parents[1] / "aggregated" / "letters.py"
PROGRAM = Path(sys.executable).with_name("trimtab")
MIB = 1 << 20

Ran = subprocess.CompletedProcess[bytes]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrimtabServer]:
    folder = tmp_path_factory.mktemp("server")
    with TrimtabServer(folder, flags=["--systems", "none", "--operator", str(OPERATOR)]) as started:
        yield started


class Shell:
    def __init__(self, server: TrimtabServer, folder: Path) -> None:
        self.folder = folder
        self._env = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}

    def __call__(self, *words: str, stdin: bytes = b"") -> Ran:
        return subprocess.run([PROGRAM, *words], input=stdin, cwd=self.folder, env=self._env, capture_output=True)

    def artifacts(self, *words: str, stdin: bytes = b"") -> Ran:
        return self("hub", "artifacts", *words, stdin=stdin)

    def letter(self, name: str, *files: str) -> None:
        named = ", ".join(f"{{name: {file}}}" for file in files)
        manifest = f"apiVersion: letters.trimtab.dev/v1\nkind: Letter\nmetadata: {{name: {name}}}\n"
        done = self("apply", "-f", "-", stdin=f"{manifest}spec: {{files: [{named}]}}\n".encode())
        assert done.returncode == 0, done.stderr


@pytest.fixture
def shell(server: TrimtabServer, tmp_path: Path) -> Shell:
    return Shell(server, tmp_path)


@pytest.mark.row(27)
def test_files_are_put_listed_and_got(shell: Shell) -> None:
    shell.letter("a", "charts/web.tgz", "note")
    data = os.urandom(3 * MIB)
    digest = hashlib.sha256(data).hexdigest()
    (shell.folder / "web.tgz").write_bytes(data)
    done = shell.artifacts("put", "letter/a", "charts/web.tgz")
    assert (done.returncode, done.stdout) == (0, f"letter/a charts/web.tgz: sha256:{digest}\n".encode()), done.stderr
    assert shell.artifacts("put", "ltr/a", "note", "-", stdin=b"by hand").returncode == 0
    listed = shell.artifacts("list", "letter/a").stdout.decode().splitlines()
    assert listed[1].split() == ["charts/web.tgz", str(3 * MIB), f"sha256:{digest}"]
    assert shell.artifacts("get", "letter/a", "charts/web.tgz", "-").stdout == data
    assert shell.artifacts("get", "letter/a", "note").returncode == 0
    assert (shell.folder / "note").read_bytes() == b"by hand"


def test_what_is_wrong_is_said_and_leaves_no_file(shell: Shell) -> None:
    shell.letter("b", "note")
    assert "not given yet" in shell.artifacts("list", "letter/b").stdout.decode()
    for words, code, says in (
        (("get", "letter/b", "note"), 3, "were not given yet"),
        (("get", "letter/b", "other"), 3, "names no file"),
        (("get", "letter/nobody", "note"), 3, "nobody"),
        (("get", "letter/b", "../b", "x"), 1, "names no artifact"),
        (("get", "b", "note"), 2, "kind/name"),
        (("get", "letter/b", "note", "nowhere/note"), 2, "error: nowhere/note: there is no folder nowhere"),
        (("get", "letter/b", "note", "."), 2, "error: . is a folder: name the file in it"),
        (("put", "letter/b", "note"), 2, "note is no file"),
        (("list", "letter/b", "--output", "xml"), 2, "xml"),
        (("list", "configmap/b"), 3, "objects of kind ConfigMap have no files"),
    ):
        done = shell.artifacts(*words)
        assert (done.returncode, says in done.stderr.decode()) == (code, True), (words, done)
        assert b"Traceback" not in done.stderr
    assert list(shell.folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.row(27)
def test_a_large_file_is_never_whole_in_memory(shell: Shell) -> None:
    shell.letter("c", "big")
    with (shell.folder / "big").open("wb") as file:
        for number in range(200):
            file.write(number.to_bytes(4, "big") * (MIB // 4))
    script = (
        "import re, runpy, sys; sys.argv[0] = 'trimtab'\n"
        "try: runpy.run_path(sys.argv.pop(1), run_name='__main__')\n"
        "finally: print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)"
    )
    for words in (("put", "letter/c", "big"), ("get", "letter/c", "big", "again")):
        done = subprocess.run(
            [sys.executable, "-c", script, PROGRAM, "hub", "artifacts", *words],
            cwd=shell.folder,
            env=shell._env,
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr
        assert int(done.stderr.split()[-1]) * 1024 < 150 * MIB
    with (shell.folder / "big").open("rb") as one, (shell.folder / "again").open("rb") as other:
        assert hashlib.file_digest(one, "sha256").digest() == hashlib.file_digest(other, "sha256").digest()
