"""What `trimtab hub artifacts` does: files of a resource, listed and carried in pieces."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

import msgspec

from trimtab.cli.access import Access, Session, session
from trimtab.cli.codes import NOT_FOUND, OK, USAGE, Problem, run
from trimtab.cli.tables import Printer, shown
from trimtab.cli.targets import namespace_of, targets
from trimtab.client.artifacts import artifacts, download, upload
from trimtab.client.discovery import ApiResource
from trimtab.client.protocol import Named
from trimtab.client.transport import Call, document_of

STANDARD = "-"
PIECE = 256 * 1024


class Whose(msgspec.Struct, frozen=True):
    kind: Named
    name: str
    namespace: str


def listed(access: Access, word: str, version: str, form: str) -> int:
    return run(_listed(access, word, version, form))


def got(access: Access, word: str, path: str, file: str, version: str) -> int:
    return run(_got(access, word, path, file, version))


def put(access: Access, word: str, path: str, file: str) -> int:
    return run(_put(access, word, path, file))


async def _listed(access: Access, word: str, version: str, form: str) -> int:
    async with session(access) as server:
        whose = await _whose(server, word)
        found = await artifacts(server.client, whose.kind, whose.name, namespace=whose.namespace, version=version)
    if form == "json":
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return OK
    rows = [
        (
            shown(each.path),
            "" if each.size is None else str(each.size),
            shown(each.digest or "not given yet"),
            _yes(each.sensitive),
        )
        for each in found
    ]
    if not rows:
        print(f"{word} names no files", file=sys.stderr)
    else:
        Printer(("PATH", "SIZE", "DIGEST", "SENSITIVE")).add(rows)
    return OK


async def _got(access: Access, word: str, path: str, file: str, version: str) -> int:
    to = None if file == STANDARD else _place(Path(file or PurePosixPath(path).name))
    async with session(access) as server:
        whose = await _whose(server, word)

        async def fetched(to: Path) -> str:
            return await download(
                server.client, whose.kind, whose.name, path, to, namespace=whose.namespace, version=version
            )

        if to is None:  # by way of the disk: nothing is printed that is not whole
            with tempfile.TemporaryDirectory() as folder:
                await fetched(Path(folder) / "file")
                await asyncio.to_thread(_printed, Path(folder) / "file")
            return OK
        digest = await fetched(to)
    print(f"{to}: {digest}")
    return OK


async def _put(access: Access, word: str, path: str, file: str) -> int:
    source = _standard_input() if file == STANDARD else Path(file or PurePosixPath(path).name)
    if isinstance(source, Path) and not source.is_file():
        raise Problem(f"{source} is no file", USAGE)
    async with session(access) as server:
        whose = await _whose(server, word)
        digest = await upload(server.client, whose.kind, whose.name, path, source, namespace=whose.namespace)
    print(f"{word} {path}: {digest}")
    return OK


async def _whose(server: Session, word: str) -> Whose:
    if "/" not in word:
        raise Problem(f'"{word}" is not of the form kind/name, as workload/web', USAGE)
    (target,) = await targets(server, [word])
    resource = target.resource
    await _check_files(server, resource)
    return Whose(Named(resource.api_version, resource.kind), target.names[0], namespace_of(server, resource))


async def _check_files(server: Session, resource: ApiResource) -> None:
    """Problem when objects of this kind have no files: else it would be told that the object is not found."""
    path = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    answer = await server.client.transport.call(Call(method="GET", path=path))
    served = {each.get("name") for each in document_of(answer.body).get("resources") or ()}
    if f"{resource.plural}/artifacts" not in served:
        raise Problem(f"objects of kind {resource.kind} have no files", NOT_FOUND)


async def _standard_input() -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(_some):
        yield piece


def _place(to: Path) -> Path:
    """Where a file may be written."""
    if not to.parent.is_dir():
        raise Problem(f"{to}: there is no folder {to.parent}", USAGE)
    if to.is_dir():
        raise Problem(f"{to} is a folder: name the file in it", USAGE)
    return to


def _printed(path: Path) -> None:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _yes(value: bool) -> str:
    return "yes" if value else ""


def _some() -> bytes:
    """What has come on standard input; nothing at its end."""
    return os.read(sys.stdin.fileno(), PIECE)
