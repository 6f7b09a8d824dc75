"""Layers made by hand for the tests: files to a tar, tars to a layer, layers to an inventory."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping

from trimtab.systems.images.layers.image import Inventory, merge
from trimtab.systems.images.layers.layer import read_layer
from trimtab.systems.images.layers.result import LayerResult

DEBIAN = b'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n'


def tar(
    files: Mapping[str, bytes],
    *,
    symlinks: Mapping[str, str] | None = None,
    hardlinks: Mapping[str, str] | None = None,
    folders: tuple[str, ...] = (),
    form: int = tarfile.PAX_FORMAT,
) -> bytes:
    """An archive with the entries in this order."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=form) as archive:
        for path in folders:
            folder = tarfile.TarInfo(path)
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
        for path, body in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(body)
            info.mode = 0o755
            archive.addfile(info, io.BytesIO(body))
        for kind, links in ((tarfile.SYMTYPE, symlinks or {}), (tarfile.LNKTYPE, hardlinks or {})):
            for path, target in links.items():
                info = tarfile.TarInfo(path)
                info.type = kind
                info.linkname = target
                archive.addfile(info)
    return whole.getvalue()


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def packed(raw: bytes) -> bytes:
    return gzip.compress(raw, 1, mtime=0)


def read(raw: bytes) -> LayerResult:
    """The result of an archive, as a layer in gzip."""
    layer = packed(raw)
    return read_layer([layer], digest=digest(layer), diff_id=digest(raw))


def inventory(*archives: bytes) -> Inventory:
    return merge([read(raw) for raw in archives])


def named(found: Inventory) -> set[tuple[str, str, str]]:
    return {(each.type, each.name, each.version) for each in found.packages}


def jar(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return whole.getvalue()


def dpkg_stanza(name: str, version: str, **more: str) -> bytes:
    fields = {"Package": name, "Status": "install ok installed", "Architecture": "amd64", "Version": version, **more}
    return "".join(f"{key}: {value}\n" for key, value in fields.items()).encode() + b"\n"
