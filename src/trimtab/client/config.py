"""How to reach a server: its address, what to trust, and who to be. Read from kubeconfigs, from the files that a pod
has, or from the path of a unix socket. Anything wrong is a `ConfigError` that names the file and the field; no secret
is ever in a repr.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from trimtab.client.credentials import Credentials

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ConfigError(Exception):
    """A configuration that cannot be used, in one line for people."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Where the server is and how to get in. `source` says where this was read, for messages."""

    server: str  # https://…, http://… or unix:///path
    namespace: str = "default"
    ca: bytes | None = None  # PEM; None trusts what the system trusts
    verify: bool = True
    tls_server_name: str = ""
    credentials: Credentials | None = None
    headers: tuple[tuple[str, str], ...] = ()  # of impersonation
    source: str = ""

    def __repr__(self) -> str:
        return f"Config(server={self.server!r}, namespace={self.namespace!r}, source={self.source!r})"

    @property
    def socket(self) -> str:
        """The path of a unix socket; "" for servers on the network."""
        return self.server.removeprefix("unix://") if self.server.startswith("unix://") else ""


def load(
    path: Path | str | None = None, *, context: str = "", env: Mapping[str, str] = os.environ, home: Path | None = None
) -> Config:
    """The given kubeconfig; else those of $KUBECONFIG; else ~/.kube/config; else what a pod has."""
    from trimtab.client.kubeconfig import read

    if path is not None:
        return read((Path(path),), context=context, strict=True)
    listed = paths_of(env.get("KUBECONFIG", ""))
    if listed:
        return read(listed, context=context)
    usual = (home or Path.home()) / ".kube" / "config"
    if usual.exists():
        return read((usual,), context=context)
    if not context and env.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(env)
    raise ConfigError(f"no kubeconfig: $KUBECONFIG is not set, {usual} does not exist")


def paths_of(listed: str) -> Sequence[Path]:
    """The files that $KUBECONFIG lists."""
    return tuple(Path(part) for part in listed.split(os.pathsep) if part)


def unix(path: Path | str) -> Config:
    """The server behind a unix socket: its owner needs no credentials."""
    return Config(server=f"unix://{Path(path).absolute()}", source=str(path))


def in_cluster(env: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT) -> Config:
    """As a pod: the address from the environment, the token from a file that is renewed."""
    from trimtab.client.credentials import TokenFile

    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("not in a cluster: $KUBERNETES_SERVICE_HOST is not set")
    token, ca, namespace = folder / "token", folder / "ca.crt", folder / "namespace"
    for needed in (token, ca):
        if not needed.is_file():
            raise ConfigError(f"in a cluster, but {needed} does not exist")
    return Config(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        ca=ca.read_bytes(),
        credentials=TokenFile(token),
        source=str(folder),
    )
