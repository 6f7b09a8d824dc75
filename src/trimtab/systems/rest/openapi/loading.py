"""Documents from memory, from a folder and from a web server. Whatever is read is bounded and stays below one root."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

from trimtab.systems.rest.openapi.document import Document
from trimtab.systems.rest.openapi.errors import DocumentError
from trimtab.systems.rest.openapi.reading import MOST_BYTES
from trimtab.systems.rest.openapi.references import Gathering

if TYPE_CHECKING:
    from trimtab.runtime.outbound import Outbound

AZURE_ROOT = "specification"


def load(
    files: Mapping[str, bytes], entry: str, *, fetch: Callable[[str], bytes] | None = None, folder: str = ""
) -> Document:
    """The document that begins in the file `entry`. `fetch` gives a further file by its path below the root, or raises
    OSError; `folder` is what messages call the root. Raises DocumentError."""
    gathering = Gathering(entry, folder)
    while (file := gathering.missing()) is not None:
        gathering.add(file, _content(files, file, fetch, gathering))
    return Document(gathering.finished())


def from_path(path: Path, root: Path | None = None) -> Document:
    """The document in a file. References may not leave `root`: without one it is the file's own folder, or the nearest
    folder above it that is called `specification`, as Azure's are."""
    real = path.resolve()
    folder = (root or _root_of(real)).resolve()
    if not real.is_relative_to(folder):
        raise DocumentError(str(path), "", f"is not in the folder {folder}; name one that holds it with --root")

    def fetch(file: str) -> bytes:
        found = (folder / file).resolve()
        if not found.is_relative_to(folder):
            raise DocumentError(file, "", f"is a link that leaves the document's folder {folder}; see --root")
        with found.open("rb") as opened:
            return opened.read(MOST_BYTES + 1)

    return load({}, real.relative_to(folder).as_posix(), fetch=fetch, folder=str(folder))


async def from_url(outbound: Outbound, url: str) -> Document:
    """The document at a URL. Its references lead to files of the same origin below the same folder, or are refused."""
    parts = urlsplit(url)
    above, _, name = parts.path.rpartition("/")
    folder = urlunsplit((parts.scheme, parts.netloc, f"{above}/", "", ""))
    gathering = Gathering(name or "openapi", folder)
    first = True
    while (file := gathering.missing()) is not None:
        at = url if first else folder + quote(file)
        gathering.add(file, await _fetched(outbound, at, file, gathering))
        first = False
    return Document(gathering.finished())


async def _fetched(outbound: Outbound, url: str, file: str, gathering: Gathering) -> bytes:
    from trimtab.runtime.outbound import OutboundError

    where = gathering.asked_at(file)
    try:
        response = await outbound.fetch("GET", url, max_bytes=MOST_BYTES)
    except OutboundError as error:
        raise DocumentError(*where, f"{file} cannot be fetched: {error}") from error
    if not response.ok:
        raise DocumentError(*where, f"{file} cannot be fetched: the server answers {response.status}; check the URL")
    if _origin(response.url) != _origin(url):
        raise DocumentError(*where, f"{file} is redirected to another server; give the URL that it leads to")
    return await response.read()


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(str(url))
    return parts.scheme, parts.netloc.lower()


def _content(
    files: Mapping[str, bytes], file: str, fetch: Callable[[str], bytes] | None, gathering: Gathering
) -> bytes:
    if file in files:
        return files[file]
    where = gathering.asked_at(file)
    there = f"; there are: {', '.join(sorted(files)[:8])}" if files else ""
    if fetch is None:
        raise DocumentError(*where, f"needs the file {file}, which is not there{there}")
    try:
        return fetch(file)
    except OSError as error:
        why = error.strerror or str(error)
        raise DocumentError(*where, f"needs the file {file}, which cannot be read: {why}") from error


def _root_of(path: Path) -> Path:
    return next((above for above in path.parents if above.name == AZURE_ROOT), path.parent)
