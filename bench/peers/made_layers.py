"""Layers and images for benchmarks: of any size, made on disk, and pushed without being held in memory."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import aiohttp
from isal import isal_zlib

CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
DPKG = Path("/var/lib/dpkg")
PRIORITIES = ("required", "important", "standard", "optional", "extra")
Fill = Callable[[tarfile.TarFile], None]


class Layer(NamedTuple):
    """A layer in a file, in gzip."""

    path: Path
    digest: str
    diff_id: str

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def debian(path: Path, size: int) -> Layer:
    """What an installer would make: packages of this machine by priority up to the size, and the database of just these."""

    def fill(archive: tarfile.TarFile) -> None:
        left, status, there = size, list[str](), set[str]()
        for stanza, files in _packages():
            if left <= 0:
                break
            status.append(stanza)
            for name in files:
                if name not in there:
                    there.add(name)
                    left -= _added(archive, name)
        body = "\n\n".join(status).encode() + b"\n"
        info = tarfile.TarInfo("var/lib/dpkg/status")
        info.size = len(body)
        archive.addfile(info, io.BytesIO(body))

    return written(path, fill, zlib.compressobj(6, wbits=31))


def large(path: Path, size: int, files: int) -> Layer:
    """Noise up to the size in files of 64 MB, and many small files besides. Noise costs little to make and does not shrink."""
    noise = os.urandom(16 << 20)

    def fill(archive: tarfile.TarFile) -> None:
        for number in range(size // (64 << 20)):
            info = tarfile.TarInfo(f"opt/models/{number}.bin")
            info.size = 64 << 20
            archive.addfile(info, io.BytesIO(noise * 4))
        for number in range(files):
            info = tarfile.TarInfo(f"opt/data/{number // 500}/{number}.txt")
            info.size = 200
            archive.addfile(info, io.BytesIO(noise[number : number + 200]))

    return written(path, fill, isal_zlib.compressobj(0, wbits=31))


def small(path: Path) -> Layer:
    """One Node package, to lie on a base."""

    def fill(archive: tarfile.TarFile) -> None:
        body = b'{"name": "left-pad", "version": "1.3.0"}'
        info = tarfile.TarInfo("app/node_modules/left-pad/package.json")
        info.size = len(body)
        archive.addfile(info, io.BytesIO(body))

    return written(path, fill, zlib.compressobj(6, wbits=31))


def written(path: Path, fill: Fill, compressor: Any) -> Layer:
    """The layer that `fill` makes, at the path."""
    with path.open("wb") as file:
        through = _Through(file, compressor)
        with tarfile.open(fileobj=through, mode="w|", bufsize=1 << 20) as archive:  # type: ignore[call-overload]
            fill(archive)
        through.end()
    return Layer(path, f"sha256:{through.outer.hexdigest()}", f"sha256:{through.inner.hexdigest()}")


class _Through:
    """Compresses what is written, and knows the digests of both sides."""

    def __init__(self, file: IO[bytes], compressor: Any) -> None:
        self.inner, self.outer = hashlib.sha256(), hashlib.sha256()
        self._file, self._compressor = file, compressor

    def write(self, piece: bytes) -> int:
        self.inner.update(piece)
        self._put(self._compressor.compress(piece))
        return len(piece)

    def end(self) -> None:
        self._put(self._compressor.flush())

    def _put(self, piece: bytes) -> None:
        self.outer.update(piece)
        self._file.write(piece)


async def push(url: str, repository: str, tag: str, layers: Sequence[Layer]) -> None:
    """An image of these layers."""
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        }
    ).encode()
    named = f"sha256:{hashlib.sha256(config).hexdigest()}"
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "digest": named, "size": len(config)},
        "layers": [{"mediaType": LAYER, "digest": layer.digest, "size": layer.size} for layer in layers],
    }
    timeout = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(timeout=timeout, raise_for_status=True) as session:
        for layer in layers:
            with layer.path.open("rb") as file:
                await _blob(session, f"{url}/v2/{repository}", layer.digest, file)
        await _blob(session, f"{url}/v2/{repository}", named, io.BytesIO(config))
        place, typed = f"{url}/v2/{repository}/manifests/{tag}", {"Content-Type": MANIFEST}
        async with session.put(place, data=json.dumps(manifest).encode(), headers=typed):
            pass


async def _blob(session: aiohttp.ClientSession, place: str, digest: str, content: IO[bytes]) -> None:
    async with session.head(f"{place}/blobs/{digest}", raise_for_status=False) as there:
        if there.status == 200:
            return
    async with session.post(f"{place}/blobs/uploads/") as started:
        where = started.headers["Location"]
    where += f"{'&' if '?' in where else '?'}digest={digest}"
    async with session.put(where, data=content, headers={"Content-Type": "application/octet-stream"}):
        pass


def _packages() -> Iterator[tuple[str, list[str]]]:
    """The stanza and the files of each installed package, the more important ones first."""
    found = []
    for stanza in (DPKG / "status").read_text().strip().split("\n\n"):
        fields = dict(_FIELD.findall(stanza))
        if not fields.get("Status", "").endswith(" installed"):
            continue
        name, priority = fields["Package"], fields.get("Priority", "extra")
        lists = [DPKG / "info" / f"{name}{end}.list" for end in ("", f":{fields.get('Architecture', '')}")]
        files = next((each.read_text().split("\n") for each in lists if each.exists()), [])
        rank = PRIORITIES.index(priority) if priority in PRIORITIES else len(PRIORITIES)
        found.append((rank, name, stanza, [file.removeprefix("/") for file in files if len(file) > 1]))
    for _, _, stanza, files in sorted(found):
        yield stanza, files


def _added(archive: tarfile.TarFile, name: str) -> int:
    """Put a file of this machine into the archive; how large it is. What is not there any more is passed over."""
    try:
        archive.add(f"/{name}", name, recursive=False, filter=_whole_seconds)
        return Path("/", name).lstat().st_size
    except OSError:
        return 0


def _whole_seconds(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """As builders of images write it: a fraction of a second would need a header of its own."""
    info.mtime = int(info.mtime)
    return info


_FIELD = re.compile(r"^(Package|Status|Priority|Architecture): *(.*)$", re.MULTILINE)
