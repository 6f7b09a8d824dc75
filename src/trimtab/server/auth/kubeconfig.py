"""The kubeconfig that a client of the embedded server needs: it holds the administrator's key, so it is private."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from trimtab.server.auth.files import read_private, write_private
from trimtab.server.auth.pki import Pki, split_pem


def write_kubeconfig(
    path: Path, server: str, pki: Pki, *, name: str = "trimtab", token: str | None = None, namespace: str = "default"
) -> None:
    """Write `path` (0600, atomically) for `server`, an https URL: as the administrator, or as the owner of `token`."""
    if token is None:
        certificate, key = split_pem(read_private(pki.admin))
        user = [f"client-certificate-data: {_base64(certificate)}", f"client-key-data: {_base64(key)}"]
    else:
        user = [f"token: {json.dumps(token)}"]
    quoted = json.dumps(name)
    lines = [
        "apiVersion: v1",
        "kind: Config",
        "clusters:",
        f"- name: {quoted}",
        "  cluster:",
        f"    server: {json.dumps(server)}",
        f"    certificate-authority-data: {_base64(read_private(pki.ca))}",
        "users:",
        f"- name: {quoted}",
        "  user:",
        *(f"    {line}" for line in user),
        "contexts:",
        f"- name: {quoted}",
        "  context:",
        f"    cluster: {quoted}",
        f"    user: {quoted}",
        f"    namespace: {json.dumps(namespace)}",
        f"current-context: {quoted}",
        "",
    ]
    write_private(path, "\n".join(lines).encode())


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
