"""From what a user writes after `--blobs` to the place that is meant."""

from __future__ import annotations

import importlib.util
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trimtab.model.clock import Clock
from trimtab.storage.blobs import MAX_BYTES, Blobs

FORMS = "a folder, file:///FOLDER, postgresql://HOST/DATABASE or https://HOST"


class BlobsConfigError(Exception):
    """`--blobs` or one of its companions cannot be used as it is."""


def blobs(
    url: str,
    *,
    token_file: Path | None = None,
    ca_file: Path | None = None,
    clock: Clock | None = None,
    max_bytes: int = MAX_BYTES,
) -> Blobs:
    """The place, not yet reached: `await blobs.ready()` says whether it can be used. BlobsConfigError."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - it is parsed when it is asked for
    except ValueError as error:
        raise BlobsConfigError(f"--blobs is no URL: {error}") from None
    match parts.scheme:
        case "" | "file":
            return _folder(url, clock, max_bytes)
        case "postgresql" | "postgres":
            return _postgres(url, clock, max_bytes)
        case "https" | "http":
            return _http(url, token_file, ca_file, clock, max_bytes)
        case other:
            raise BlobsConfigError(f"--blobs does not know {other}://: give {FORMS}")


def _folder(url: str, clock: Clock | None, max_bytes: int) -> Blobs:
    from trimtab.storage.folder import FolderBlobs

    parts = urlsplit(url)
    if parts.scheme and parts.netloc not in ("", "localhost"):
        raise BlobsConfigError(f"--blobs file:// names the machine {parts.netloc}: write file:///FOLDER")
    path = unquote(parts.path) if parts.scheme else url
    if not path:
        raise BlobsConfigError(f"--blobs is empty: give {FORMS}")
    return FolderBlobs(Path(path), clock=clock, max_bytes=max_bytes)


def _postgres(url: str, clock: Clock | None, max_bytes: int) -> Blobs:
    if importlib.util.find_spec("asyncpg") is None:
        raise BlobsConfigError("--blobs postgresql:// needs an extra: pip install 'trimtab[postgres]'")
    from trimtab.storage.postgres import PostgresBlobs

    return PostgresBlobs(url, clock=clock, max_bytes=max_bytes)


def _http(url: str, token_file: Path | None, ca_file: Path | None, clock: Clock | None, max_bytes: int) -> Blobs:
    from trimtab.storage.http import HttpBlobs

    if token_file is None:
        raise BlobsConfigError("--blobs https:// needs a token: name its file with --blobs-token-file")
    token = token_from(token_file)
    token()
    try:
        return HttpBlobs(
            url, token=token, ca=None if ca_file is None else os.fspath(ca_file), clock=clock, max_bytes=max_bytes
        )
    except ssl.SSLError as error:
        raise BlobsConfigError(f"--blobs-ca-file {ca_file} has no certificates in PEM: {error.reason}") from None
    except OSError as error:
        raise BlobsConfigError(f"--blobs-ca-file {ca_file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise BlobsConfigError(f"--blobs: {error}") from None


def token_from(file: Path) -> Callable[[], str]:
    """Reads the file at each call: a mounted secret is renewed in place. BlobsConfigError, without its content."""

    def token() -> str:
        try:
            text = file.read_text("ascii").strip()
        except OSError as error:
            raise BlobsConfigError(f"the token file {file} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise BlobsConfigError(f"the token file {file} must have one line with the token") from None
        if not text.isprintable() or " " in text or not text:
            raise BlobsConfigError(f"the token file {file} must have one line with the token")
        return text

    return token
