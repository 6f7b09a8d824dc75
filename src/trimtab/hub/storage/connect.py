"""From what a user writes after `--hub-storage` to the storage that is meant."""

from __future__ import annotations

import importlib.util
import os
import ssl
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trimtab.hub.storage.contract import Storage
from trimtab.model.clock import Clock
from trimtab.storage.connect import BlobsConfigError, token_from
from trimtab.store.retention import Retention

FORMS = "a file, sqlite:///FILE, postgresql://HOST/DATABASE or https://HOST"


class StorageConfigError(Exception):
    """The URL or one of its companions cannot be used as it is."""


def storage(
    url: str,
    *,
    token_file: Path | None = None,
    ca_file: Path | None = None,
    clock: Clock | None = None,
    retention: Retention | None = None,
) -> Storage:
    """The storage, not yet reached: `await storage.ready()` says whether it can be used. StorageConfigError."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - it is parsed when it is asked for
    except ValueError as error:
        raise StorageConfigError(f"the hub's storage is no URL: {error}") from None
    if parts.scheme not in ("https", "http") and (given := token_file or ca_file) is not None:
        raise StorageConfigError(f"{given} is for a storage over https://: name that, or leave the file out")
    match parts.scheme:
        case "" | "file" | "sqlite":
            return _sqlite(url, clock, retention)
        case "postgresql" | "postgres":
            return _postgres(url, clock, retention)
        case "https" | "http":
            return _http(url, token_file, ca_file, clock)
        case other:
            raise StorageConfigError(f"the hub's storage cannot be {other}://: give {FORMS}")


def _sqlite(url: str, clock: Clock | None, retention: Retention | None) -> Storage:
    from trimtab.hub.storage.sqlite import SqliteStorage

    parts = urlsplit(url)
    if parts.scheme and parts.netloc not in ("", "localhost"):
        raise StorageConfigError(f"{parts.scheme}:// names the machine {parts.netloc}: write {parts.scheme}:///FILE")
    path = unquote(parts.path) if parts.scheme else url
    if not path:
        raise StorageConfigError(f"the hub's storage is empty: give {FORMS}")
    return SqliteStorage(Path(path), clock=clock, retention=retention)


def _postgres(url: str, clock: Clock | None, retention: Retention | None) -> Storage:
    if importlib.util.find_spec("asyncpg") is None:
        raise StorageConfigError("postgresql:// needs an extra: pip install 'trimtab[postgres]'")
    from trimtab.hub.storage.postgres import PostgresStorage

    return PostgresStorage(url, clock=clock, retention=retention)


def _http(url: str, token_file: Path | None, ca_file: Path | None, clock: Clock | None) -> Storage:
    from trimtab.hub.storage.client import HttpStorage

    if token_file is None:
        raise StorageConfigError("a storage over http(s):// needs a token: name its file (`--help` tells how)")
    try:
        token = token_from(token_file)
        token()
        return HttpStorage(url, token=token, ca=None if ca_file is None else os.fspath(ca_file), clock=clock)
    except BlobsConfigError as error:
        raise StorageConfigError(str(error)) from None
    except ssl.SSLError as error:
        raise StorageConfigError(f"{ca_file} has no certificates in PEM: {error.reason}") from None
    except OSError as error:
        raise StorageConfigError(f"{ca_file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise StorageConfigError(str(error)) from None
