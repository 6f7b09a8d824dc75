"""What a test knows of an API server, whichever it is: where it is, how to get in, which processes it is made of."""

import base64
import ssl
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from trimtab.model import yaml


class ApiServer(Protocol):
    """A running API server with an administrator's kubeconfig."""

    name: str
    url: str
    kubeconfig: Path

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by what each is, the one that serves the API under "server"."""
        ...

    def logs(self) -> str: ...

    def stop(self) -> None: ...


class Access(NamedTuple):
    """What a kubeconfig says, ready to use: PEM files and a token, each None when the kubeconfig has none."""

    url: str
    ca: Path
    certificate: Path | None
    key: Path | None
    token: str | None

    def tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context


def read_access(kubeconfig: Path) -> Access:
    """The access of the current context; data in the file are written to PEM files next to it."""
    document: dict[str, Any] = yaml.load(kubeconfig.read_text())
    context = _named(document, "contexts", document["current-context"])["context"]
    cluster = _named(document, "clusters", context["cluster"])["cluster"]
    user = _named(document, "users", context["user"])["user"]

    def file(section: dict[str, Any], field: str) -> Path | None:
        if f"{field}-data" in section:
            path = kubeconfig.with_name(f"{kubeconfig.name}.{field}.pem")
            path.touch(mode=0o600)
            path.write_bytes(base64.b64decode(section[f"{field}-data"]))
            return path
        return kubeconfig.parent / section[field] if field in section else None

    ca = file(cluster, "certificate-authority")
    if ca is None:
        raise ValueError(f"{kubeconfig} names no certificate authority")
    certificate, key = file(user, "client-certificate"), file(user, "client-key")
    return Access(cluster["server"], ca, certificate, key, user.get("token"))


def _named(document: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(entry for entry in document[section] if entry["name"] == name)
    return found
