"""From the options of the command line to a server: which kubeconfig, which context, which namespace."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from trimtab.cli.codes import Problem, plain
from trimtab.client.api import ApiClient
from trimtab.client.config import Config, ConfigError, load
from trimtab.client.discovery import ApiResource, Catalogue, discover
from trimtab.client.retry import Policy
from trimtab.client.transport import Call, Transport, document_of


class Access(msgspec.Struct, frozen=True):
    """The connection options that every command has."""

    kubeconfig: Path | None = None
    context: str = ""
    namespace: str = ""


class Session:
    """A server that a command talks to. `namespace` is the one that is meant where none is named."""

    def __init__(self, transport: Transport, namespace: str) -> None:
        self.transport = transport
        self.namespace = namespace
        self.client = ApiClient(transport, namespace=namespace)
        self._catalogue: Catalogue | None = None

    async def catalogue(self, *, anew: bool = False) -> Catalogue:
        if self._catalogue is None or anew:
            self._catalogue = await discover(self.transport)
        return self._catalogue

    async def resource(self, word: str) -> ApiResource:
        """The kind that a person means by `word`."""
        found = (await self.catalogue()).find(word)
        if found is None:
            raise unknown(word)
        return found

    async def read(self, path: str, **query: str) -> dict[str, Any]:
        """The document at a path."""
        reply = await self.transport.call(Call(method="GET", path=path, query=query))
        return document_of(reply.body)


@contextlib.asynccontextmanager
async def session(access: Access) -> AsyncIterator[Session]:
    """Connect as the options say. The first request, not this, finds out whether the server is there."""
    from trimtab.client.http import HttpTransport

    config = configured(access)
    transport = HttpTransport(config, policy=Policy(attempts=3), warn=_warn)
    try:
        yield Session(transport, access.namespace or config.namespace)
    finally:
        await transport.close()


def configured(access: Access) -> Config:
    """--kubeconfig; else $KUBECONFIG; else the kubeconfig of `trimtab up` in this folder; else ~/.kube/config."""
    if access.kubeconfig is not None:
        return load(access.kubeconfig, context=access.context)
    if not os.environ.get("KUBECONFIG"):
        ours = Path(os.environ.get("TRIMTAB_DATA_DIR") or ".trimtab") / "kubeconfig"
        if ours.exists():
            return load(ours, context=access.context)
    try:
        return load(context=access.context)
    except ConfigError as error:
        raise Problem(f"{error}; start a server with `trimtab up`, or name one with --kubeconfig") from None


def unknown(word: str) -> Problem:
    return Problem(f'the server has no kind "{word}"')


def _warn(text: str) -> None:
    print(plain(f"Warning: {text}"), file=sys.stderr, flush=True)
