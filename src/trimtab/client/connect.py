"""From a kubeconfig or a socket to a client in one step."""

from __future__ import annotations

from pathlib import Path

from trimtab.client.api import ApiClient
from trimtab.client.config import Config, load, unix
from trimtab.model.scheme import Scheme


def connect(
    kubeconfig: Path | str | None = None,
    *,
    context: str = "",
    socket: Path | str | None = None,
    config: Config | None = None,
    scheme: Scheme | None = None,
) -> ApiClient:
    """A client of the given kubeconfig's server, or of the one behind a unix socket; with neither, of the usual
    kubeconfig.
    """
    from trimtab.client.http import HttpTransport  # only now: what never connects does not pay for aiohttp

    if config is None:
        config = unix(socket) if socket is not None else load(kubeconfig, context=context)
    return ApiClient(HttpTransport(config), scheme, namespace=config.namespace)
