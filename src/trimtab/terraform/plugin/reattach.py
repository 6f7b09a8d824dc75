"""Serving a provider to a Terraform that is told where it is, for tests and debuggers.

Terraform starts no process then and uses no TLS, so a plan takes a fifth of a second. The socket lies in a folder that only
its owner can enter.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator

from trimtab.terraform.plugin.listening import Listening
from trimtab.terraform.plugin.services import plugin_service
from trimtab.terraform.protocol.contract import ProviderServer
from trimtab.terraform.protocol.server import Endpoint


@contextlib.contextmanager
def reattached(provider: ProviderServer, address: str, protocol: int = 6) -> Iterator[dict[str, str]]:
    """`address` is the provider's source, with its host: "trimtab.dev/trimtab/trimtab". Gives Terraform's environment.

    Without a host Terraform and OpenTofu each think of a registry of their own, and one of them would not be told.
    """
    folder = tempfile.mkdtemp(prefix="trimtab-")
    path = os.path.join(folder, "provider")
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(path)
        listener.listen(64)
        service = plugin_service(Endpoint(provider, protocol), shutdown=lambda: None)
        listening = Listening(listener, service, None)
        listening.start()
        try:
            yield {"TF_REATTACH_PROVIDERS": json.dumps({address: _attachment(path, protocol)})}
        finally:
            listening.close()
    finally:
        listener.close()
        shutil.rmtree(folder, ignore_errors=True)


def _attachment(path: str, protocol: int) -> dict[str, object]:
    return {
        "Protocol": "grpc",
        "ProtocolVersion": protocol,
        "Pid": os.getpid(),
        "Test": True,
        "Addr": {"Network": "unix", "String": path},
    }
