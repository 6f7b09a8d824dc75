"""One run of the `git` program against a remote: an environment of its own, limits, and an end.

Guarantees: nothing of the machine's or the account's Git configuration is read, no hook, helper, prompt or agent is
used; the process and all that it started are gone when the call returns, however it returns; no file that it writes and
no process of it is larger than the limits; the keys that it was given are removed. Secrets are in its environment and
in files that only we may read, never among its arguments.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from trimtab.model.redacted import Redacted, basic
from trimtab.runtime.git.access import Access, Remote
from trimtab.runtime.git.address import Address
from trimtab.runtime.git.errors import GitMissing, HostKeyUnknown, TimedOut, TooLarge
from trimtab.runtime.git.limits import Limits
from trimtab.runtime.git.ssh_keys import ANSWER, asking

SAID = 64 * 1024
"""Bytes of complaints that are kept: the last ones."""
ANYBODY = "x-access-token"
"""The username beside a token that has none: what GitHub wants, and what others take, who look at the token alone. The Git
endpoints of most take Basic only, whatever their APIs do."""
_LINES = 512
"""Bytes of output for each ref that a server may name."""
_LIMITED = 'trap "" XFSZ && ulimit -f "$1" && ulimit -d "$2" && shift 2 && exec "$@"'
"""A file that becomes too large is then a failed write, which git tells and cleans up after, and not its death."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|\x1b\[[0-9;]*[A-Za-z]")


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended. A negative code is the signal that ended it."""

    code: int
    output: bytes
    errors: str


async def run(
    folder: Path,
    address: Address,
    remote: Remote,
    arguments: Sequence[str],
    *,
    limits: Limits,
    room: int,
    said: bytes = b"",
    memory: int | None = None,
    stall: float | None = None,
) -> Said:
    """`room` is how many bytes a file may have, `memory` how many a process. Silence longer than `stall` ends it, as
    `limits.time` does: TimedOut."""
    if shutil.which("git") is None:
        raise GitMissing("the program 'git' is missing on this machine; install the package 'git'")
    with _private(folder, address, remote.access, limits) as env, tempfile.TemporaryFile(dir=folder) as told:
        told.write(said)
        told.seek(0)
        command = [
            "/bin/sh",
            "-c",
            _LIMITED,
            "sh",
            str(max(1, room // 512)),
            str((memory or limits.memory_bytes) // 1024),
        ]
        # Not the event loop's way, which copies the tables of this process first: of a large one that takes tens of
        # milliseconds, in which nothing else runs. This starts it with vfork.
        process = subprocess.Popen(  # noqa: ASYNC220, S603
            [*command, "git", "--git-dir", str(folder), *arguments],
            cwd=folder, env=env, start_new_session=True,
            stdin=told, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(limits.time), _streams(process) as (stdout, stderr):
                output, errors = await _listen(stdout, stderr, limits, stall)
                code = await asyncio.to_thread(process.wait)
        except TimeoutError:
            raise TimedOut(f"the server did not finish within {limits.time:g} s") from None
        finally:
            await _end(process)
    return Said(code=code, output=output, errors=_clean(errors, remote.access))


@contextlib.asynccontextmanager
async def _streams(
    process: subprocess.Popen[bytes],
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamReader]]:
    """What it says, and what it complains of."""
    loop = asyncio.get_running_loop()
    async with contextlib.AsyncExitStack() as stack:
        readers = []
        for pipe in (process.stdout, process.stderr):
            reader = asyncio.StreamReader()
            transport, _ = await loop.connect_read_pipe(partial(asyncio.StreamReaderProtocol, reader), pipe)
            stack.callback(transport.close)
            readers.append(reader)
        yield readers[0], readers[1]


async def _listen(
    stdout: asyncio.StreamReader, stderr: asyncio.StreamReader, limits: Limits, stall: float | None
) -> tuple[bytes, bytes]:
    heard = asyncio.Event()
    output, errors = bytearray(), bytearray()

    async def take(stream: asyncio.StreamReader, into: bytearray, *, most: int, whole: bool) -> None:
        while piece := await stream.read(65536):
            heard.set()
            into += piece
            if len(into) > most:
                if whole:
                    raise TooLarge(f"the server names more than the {limits.refs} branches and tags that are allowed")
                del into[:-most]

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(take(stdout, output, most=limits.refs * _LINES, whole=True))
            group.create_task(take(stderr, errors, most=SAID, whole=False))

    talking = asyncio.ensure_future(both())
    try:
        while not talking.done():
            heard.clear()
            listening = asyncio.ensure_future(heard.wait())
            try:
                done, _ = await asyncio.wait({talking, listening}, timeout=stall, return_when="FIRST_COMPLETED")
            finally:
                listening.cancel()
            if not done:
                raise TimedOut(f"the server was silent for {stall:g} s")
        try:
            talking.result()
        except* TooLarge as group:
            raise group.exceptions[0] from None
    finally:
        talking.cancel()
        with contextlib.suppress(asyncio.CancelledError, ExceptionGroup):
            await talking
    return bytes(output), bytes(errors)


async def _end(process: subprocess.Popen[bytes]) -> None:
    """It and its children, which share its session. Shielded: whoever is cancelled here still leaves nothing behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await asyncio.shield(asyncio.to_thread(process.wait))


@contextlib.contextmanager
def _private(folder: Path, address: Address, access: Access, limits: Limits) -> Iterator[dict[str, str]]:
    """The environment. Files with secrets live as long as the run."""
    with tempfile.TemporaryDirectory(prefix="run-", dir=folder) as place:
        home = Path(place)
        settings = {**_SETTINGS, f"protocol.{address.scheme}.allow": "always"}
        env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": place,
            "XDG_CONFIG_HOME": place,
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "/bin/false",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_PROTOCOL_FROM_USER": "1",
        }
        if address.scheme in ("https", "http"):
            settings |= _http(home, access, limits)
        elif address.scheme == "ssh":
            env |= _ssh(home, address, access, limits)
        env["GIT_CONFIG_COUNT"] = str(len(settings))
        for number, (name, value) in enumerate(settings.items()):
            env[f"GIT_CONFIG_KEY_{number}"], env[f"GIT_CONFIG_VALUE_{number}"] = name, value
        yield env


_SETTINGS: Mapping[str, str] = {
    "protocol.allow": "never",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.askPass": "/bin/false",
    "credential.helper": "",
    "fetch.unpackLimit": "1",  # always one pack: its size is what the limit on files is about
    "fetch.fsckObjects": "false",  # nothing is ever checked out, and old honest histories fail it
    "fetch.recurseSubmodules": "false",
    "fetch.writeCommitGraph": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "transfer.credentialsInUrl": "die",
    "protocol.version": "2",
}


def _http(home: Path, access: Access, limits: Limits) -> dict[str, str]:
    settings = {
        "http.followRedirects": "false",  # the credentials are for this server and not for one that it names
        "http.lowSpeedLimit": "1",
        "http.lowSpeedTime": str(max(1, round(limits.stall))),
        "http.sslVerify": "false" if access.insecure else "true",
    }
    if access.ca:
        _write(home / "ca.pem", access.ca.encode())
        settings["http.sslCAInfo"] = str(home / "ca.pem")
    if header := _authorization(access):
        settings["http.extraHeader"] = "Authorization: " + header.reveal()
    return settings


def _authorization(access: Access) -> Redacted | None:
    if access.token:
        return basic(access.username or ANYBODY, access.token)
    if access.password:
        return basic(access.username, access.password)
    return None


def _ssh(home: Path, address: Address, access: Access, limits: Limits) -> dict[str, str]:
    """Settings of ssh come first in its arguments: they win over what a host could have in a configuration. Its files are named
    from the folder that it runs in: in a path ssh takes spaces, quotes and percent signs for its own."""
    if not access.known_hosts.strip() and not access.insecure:
        raise HostKeyUnknown(
            f"the host key of {address.host} is not known: give its line as of 'ssh-keyscan {address.host}', "
            "compared with what the server's owner publishes, as known_hosts"
        )
    _write(home / "known_hosts", access.known_hosts.encode() + b"\n")
    options = {
        "StrictHostKeyChecking": "no" if access.insecure else "yes",
        "UserKnownHostsFile": os.devnull if access.insecure else f"{home.name}/known_hosts",
        "GlobalKnownHostsFile": os.devnull,
        "UpdateHostKeys": "no",
        "VerifyHostKeyDNS": "no",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "IdentityFile": f"{home.name}/key" if access.key else "none",
        "PreferredAuthentications": "publickey" if access.key else "password,keyboard-interactive",
        "NumberOfPasswordPrompts": "1",
        "ConnectTimeout": str(max(1, round(limits.connect))),
        "ServerAliveInterval": str(max(1, round(limits.stall / 3))),
        "ForwardAgent": "no",
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
        "ControlMaster": "no",
        "ControlPath": "none",
        "LogLevel": "ERROR",
    }
    if not address.user:
        options["User"] = access.username or "git"  # as nearly all forges have it
    command = " ".join(["ssh", "-F", os.devnull, *(f"-o {name}={_quoted(value)}" for name, value in options.items())])
    env = {"GIT_SSH_COMMAND": command, "GIT_SSH_VARIANT": "ssh"}
    if access.key:
        _write(home / "key", access.key.reveal_bytes().strip() + b"\n")
    answer = access.passphrase if access.key else access.password
    if answer:
        _write(home / "answer", ANSWER, mode=0o700)
    env |= asking(home / "answer" if answer else "/bin/false", answer.reveal() if answer else "")
    return env


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"


def _write(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    path.touch(mode=mode)
    path.write_bytes(content)


def _clean(errors: bytes, access: Access) -> str:
    """As it may be shown: without control characters and, should a server repeat one, without secrets."""
    text = _CONTROL.sub("", errors.decode(errors="replace").replace("\r", "\n"))
    for secret in access.secrets():
        if value := secret.reveal_bytes().decode(errors="replace").strip():
            text = text.replace(value, repr(secret))
    return text
