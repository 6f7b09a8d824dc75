"""The provider as a process: its first line, who may speak with it, and how it ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.terraform.plugin.small import pack, unpack
from trimtab.terraform.certificate import LIFE, ensure
from trimtab.terraform.plugin import boot
from trimtab.terraform.plugin.client import Client
from trimtab.terraform.plugin.identity import DAY, Identity
from trimtab.terraform.plugin.link import Link
from trimtab.terraform.plugin.remote import NoProvider, RemoteProvider, _environment
from trimtab.terraform.plugin.tls import client_context

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "tests.terraform.plugin.program"]


@pytest.fixture(autouse=True)
def _at_root(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.chdir(ROOT)
    ensure(str(home / "identity"))


@contextmanager
def started(identity: Identity, **environment: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The process, and the fields of its line."""
    process = subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment(identity) | environment
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        yield process, process.stdout.readline().strip().split("|")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_a_person_who_runs_it_by_hand_is_told_what_it_is() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == boot.BY_HAND


def test_its_line_says_where_it_is_and_nothing_else_comes_out_of_it(identity: Identity) -> None:
    with started(identity, TMPDIR="/tmp") as (process, fields):
        assert fields[:3] == ["1", "6", "unix"]
        assert fields[4] == "grpc"
        assert os.stat(os.path.dirname(fields[3])).st_mode & 0o777 == 0o700
        _wait_until_made(identity, fields)
        process.terminate()
        out, err = process.communicate()
        assert out == ""
        assert "a stray print" in err
        assert "a stray write" in err


def test_it_answers_the_provider_s_methods_over_tls(identity: Identity) -> None:
    provider = RemoteProvider(COMMAND, identity)
    try:
        assert provider.protocol == 6
        answer = provider.call(
            "ReadDataSource", {"type_name": "small_echo", "config": pack({"text": "abc", "back": None})}
        )
        assert isinstance(answer, dict)
        assert unpack(answer["state"]) == {"text": "abc", "back": "cba"}
    finally:
        provider.close()


def test_after_shutdown_it_is_gone_within_a_second_and_leaves_nothing(identity: Identity, tmp_path: Path) -> None:
    place = tmp_path / "s"
    place.mkdir()
    os.environ["PLUGIN_UNIX_SOCKET_DIR"] = str(place)
    try:
        provider = RemoteProvider(COMMAND, identity)
    finally:
        del os.environ["PLUGIN_UNIX_SOCKET_DIR"]
    began = time.monotonic()
    provider.close()
    assert time.monotonic() - began < 1
    assert provider._process.returncode == 0
    assert list(place.iterdir()) == []


def test_a_client_without_a_certificate_is_refused(identity: Identity) -> None:
    with started(identity) as (_, fields):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
            _first_byte(fields[3], context)


def test_a_client_with_another_certificate_is_refused(identity: Identity, tmp_path: Path) -> None:
    import base64

    other = ensure(str(tmp_path / "other"))
    with started(identity) as (_, fields):
        context = client_context(other.path, base64.b64decode(fields[5] + "==="))
        with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
            _first_byte(fields[3], context)
        provider = _connect(identity, fields)  # and the right one still gets in
        provider.close()


def test_without_a_client_certificate_in_its_environment_it_does_not_start(identity: Identity) -> None:
    with started(identity, PLUGIN_CLIENT_CERT="") as (process, fields):
        assert "TF_DISABLE_PLUGIN_TLS" in fields[0]
        assert process.wait() == 1


def test_a_key_that_others_can_read_is_not_used(identity: Identity, home: Path) -> None:
    (key,) = (home / "identity").glob("*.pem")
    key.chmod(0o640)
    with started(identity) as (process, fields):
        assert "is open to others (mode 0640)" in fields[0]
        assert process.wait() == 1


def test_without_a_certificate_it_makes_one(identity: Identity, home: Path) -> None:
    for key in (home / "identity").iterdir():
        key.unlink()
    with started(identity) as (_, fields):
        _connect(identity, fields).close()
        (key,) = (home / "identity").glob("*.pem")
        assert key.stat().st_mode & 0o777 == 0o600


def test_a_temporary_folder_with_a_name_too_long_for_sockets_is_no_hindrance(
    identity: Identity, tmp_path: Path
) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    with started(identity, TMPDIR=str(long)) as (_, fields):
        assert fields[2] == "unix"
        assert fields[3].startswith("/tmp/")
    assert list(long.iterdir()) == []


def test_an_interrupt_of_the_terminal_s_is_left_to_terraform(identity: Identity) -> None:
    with started(identity) as (process, fields):
        first = _connect(identity, fields)  # it has set itself up
        process.send_signal(signal.SIGINT)
        second = _connect(identity, fields)
        assert process.poll() is None
        first.close()
        second.close()


def test_calls_that_run_are_told_to_stop_when_it_is_terminated(identity: Identity) -> None:
    with started(identity) as (process, fields):
        _wait_until_made(identity, fields)
        process.terminate()
        assert "told to stop" in process.communicate()[1]


def test_a_certificate_that_nears_its_end_is_used_once_more_and_renewed_meanwhile(
    identity: Identity, home: Path
) -> None:
    where = home / "identity"
    shutil.rmtree(where)
    old = ensure(str(where), time.time() - LIFE + 10 * DAY)
    with started(identity) as (process, fields):
        assert fields[5] == old.certificate
        _wait_until_made(identity, fields)
        until = time.monotonic() + 60
        while len(list(where.glob("*.pem"))) < 2:
            assert time.monotonic() < until
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
            assert process.poll() is None
    with started(identity) as (_, fields):
        assert fields[5] != old.certificate


def test_it_takes_its_socket_away_when_it_is_terminated(identity: Identity) -> None:
    with started(identity) as (process, fields):
        _connect(identity, fields).close()
        process.terminate()
        assert process.wait() == 128 + signal.SIGTERM
        assert not os.path.exists(os.path.dirname(fields[3]))


def test_it_does_not_outlive_the_terraform_that_started_it(identity: Identity) -> None:
    starter = (
        "import subprocess, sys, os\n"
        f"child = subprocess.Popen({COMMAND!r}, stdout=subprocess.PIPE)\n"
        "print(child.pid, child.stdout.readline().decode(), flush=True)\n"
        "sys.stdin.read()\n"
        "os._exit(0)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", starter],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(identity),
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    pid, _, line = parent.stdout.readline().partition(" ")
    handle = os.pidfd_open(int(pid))
    try:
        _connect(identity, line.strip().split("|")).close()
        parent.kill()
        parent.wait()
        import select

        poll = select.poll()
        poll.register(handle, select.POLLIN)
        assert poll.poll(10_000), "the provider is still there"
        assert not os.path.exists(os.path.dirname(line.split("|")[3]))
    finally:
        os.close(handle)
        parent.stdin.close()
        parent.stdout.close()


def test_nothing_dear_is_imported_before_the_line() -> None:
    code = (
        "import sys; before = set(sys.modules); import trimtab.terraform.plugin.boot; print(*set(sys.modules) - before)"
    )
    source = ROOT / "src"
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(source)!r}); {code}"]
    imported = {name.partition(".")[0] for name in subprocess.check_output(command, text=True).split()}
    socket_s_own = {
        "socket",
        "_socket",
        "selectors",
        "enum",
        "types",
        "operator",
        "_operator",
        "functools",
        "_functools",
        "math",
    }
    socket_s_own |= {"select", "collections", "_collections", "itertools", "keyword", "reprlib", "errno", "array"}
    own = {"trimtab", "__future__", "time", "stat", "_stat", "os", "posixpath", "genericpath", "_collections_abc"}
    assert imported - socket_s_own <= own


def test_a_program_that_is_no_provider_is_named_with_what_it_said(identity: Identity) -> None:
    with pytest.raises(NoProvider, match="hello"):
        RemoteProvider(["/bin/echo", "hello"], identity)
    with pytest.raises(NoProvider):
        RemoteProvider(["/bin/true"], identity)


def _connect(identity: Identity, fields: list[str]) -> Link:
    import base64

    sock = socket.socket(socket.AF_UNIX)
    sock.connect(fields[3])
    link = Link(sock)
    link.secure(client_context(identity.path, base64.b64decode(fields[5] + "===")), "localhost")
    return link


def _wait_until_made(identity: Identity, fields: list[str]) -> None:
    client = Client(_connect(identity, fields))
    client.call("/tfplugin6.Provider/GetMetadata", b"")
    client.close()


def _first_byte(path: str, context: ssl.SSLContext) -> bytes:
    """TLS 1.3 refuses a client after its handshake, so the refusal comes with the first read."""
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(path)
        with context.wrap_socket(raw, server_hostname="localhost") as wrapped:
            return wrapped.recv(1)
