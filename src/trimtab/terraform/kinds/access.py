"""Where the server is and who we are there: from the provider's configuration, the environment, or a kubeconfig.

What is given explicitly wins over the environment, an endpoint wins over a kubeconfig. TLS is always verified. A
kubeconfig that names a program to run is refused: Terraform's plans should not run what a file says.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

LARGEST = 1 << 20
"""Bytes of a kubeconfig, at most."""


class NoAccess(ValueError):  # noqa: N818 - it is what we have
    """The settings do not lead to a server; the message says which of them, and what to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user gave; "" is nothing."""

    kubeconfig: str = ""
    context: str = ""
    endpoint: str = ""
    token: str = field(default="", repr=False)
    ca_file: str = ""
    project: str = ""


KUBECONFIGS = ("TRIMTAB_KUBECONFIG", "KUBECONFIG")
"""Environment variables; the first that is set counts."""


@dataclass(frozen=True, slots=True)
class Access:
    """A server, and how to reach it."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    """None: plain HTTP, to this machine only."""
    token: str = field(default="", repr=False)
    base: str = ""
    project: str = "default"

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://{self.host}:{self.port}{self.base}"


def access(given: Settings, environment: Mapping[str, str] | None = None) -> Access:
    """NoAccess when it cannot be told where the server is."""
    env = os.environ if environment is None else environment
    endpoint = given.endpoint or ("" if given.kubeconfig else env.get("TRIMTAB_ENDPOINT", ""))
    project = given.project or env.get("TRIMTAB_PROJECT", "")
    if endpoint:
        token = given.token or env.get("TRIMTAB_TOKEN", "")
        ca_file = given.ca_file or env.get("TRIMTAB_CA_FILE", "")
        return _reach(endpoint, _context(ca_file=ca_file), token, project or "default")
    files = [given.kubeconfig] if given.kubeconfig else [part for part in _candidates(env) if Path(part).is_file()]
    for word in () if files else KUBECONFIGS:
        if named := env.get(word):
            raise NoAccess(f"{word} names {named}, which is not there: give its path from the root, or unset it.")
    if not files:
        raise NoAccess(
            "No server is configured: set `endpoint` and `token`, or `kubeconfig`, in the provider block, or one of the "
            "environment variables TRIMTAB_ENDPOINT and KUBECONFIG."
        )
    return _from_kubeconfig(Path(files[0]).expanduser(), given, project)


def _candidates(env: Mapping[str, str]) -> list[str]:
    for word in KUBECONFIGS:
        if named := env.get(word):
            return [part for part in named.split(os.pathsep) if part]
    return [".trimtab/kubeconfig", str(Path(env.get("HOME", "~")).expanduser() / ".kube" / "config")]


def _from_kubeconfig(path: Path, given: Settings, project: str) -> Access:
    document = _load(path)
    name = given.context or str(document.get("current-context") or "")
    context = _named(document, "contexts", name, "context", path)
    cluster = _named(document, "clusters", str(context.get("cluster", "")), "cluster", path)
    user = _named(document, "users", str(context.get("user", "")), "user", path)
    if cluster.get("insecure-skip-tls-verify"):
        raise NoAccess(f"{path}: insecure-skip-tls-verify is not supported; give the certificate authority instead.")
    if "exec" in user or "auth-provider" in user:
        raise NoAccess(
            f"{path}: the user of context {name} gets credentials by running a program. Give `endpoint` and `token`, or "
            "a context with a token or a client certificate."
        )
    authority = _material(cluster, "certificate-authority", path)
    tls = _context(
        ca=authority.decode(errors="replace") if authority and not given.ca_file else "",
        ca_file=given.ca_file,
        certificate=_material(user, "client-certificate", path),
        key=_material(user, "client-key", path),
    )
    token = given.token or str(user.get("token") or "")
    if not token and user.get("tokenFile"):
        token = _read(path, "tokenFile", str(user["tokenFile"])).decode(errors="replace")
    return _reach(str(cluster.get("server", "")), tls, token, project or str(context.get("namespace") or "default"))


def _load(path: Path) -> dict[str, Any]:
    from trimtab.terraform.kinds.plainyaml import PlainYamlError, load

    try:
        if path.stat().st_size > LARGEST:
            raise NoAccess(f"{path} is too large for a kubeconfig.")
        document = load(path.read_text())
    except OSError as error:
        raise NoAccess(f"The kubeconfig {path} cannot be read: {error.strerror}.") from None
    except (PlainYamlError, UnicodeDecodeError) as error:
        raise NoAccess(f"The kubeconfig {path} cannot be read: {error}.") from None
    if not isinstance(document, dict):
        raise NoAccess(f"{path} is not a kubeconfig.")
    return document


def _named(document: dict[str, Any], section: str, name: str, word: str, path: Path) -> dict[str, Any]:
    for entry in document.get(section) or ():
        if isinstance(entry, dict) and entry.get("name") == name:
            return dict(entry.get(word) or {})
    raise NoAccess(f"{path} has no {word} named {name!r}.")


def _material(section: dict[str, Any], word: str, path: Path) -> bytes:
    if data := section.get(f"{word}-data"):
        try:
            return base64.b64decode(str(data), validate=True)
        except binascii.Error:
            raise NoAccess(f"{path}: {word}-data is not base64.") from None
    if file := section.get(word):
        return _read(path, word, str(file))
    return b""


def _read(path: Path, word: str, file: str) -> bytes:
    """A file that a kubeconfig names."""
    try:
        return (path.parent / file).read_bytes()
    except (OSError, ValueError) as error:
        raise NoAccess(f"{path}: {word} {file} cannot be read: {getattr(error, 'strerror', error)}.") from None


def _context(*, ca: str = "", ca_file: str = "", certificate: bytes = b"", key: bytes = b"") -> ssl.SSLContext:
    try:
        made = ssl.create_default_context(cafile=ca_file or None, cadata=ca or None)
        if certificate and key:
            _load_pair(made, certificate, key)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise NoAccess(f"The certificates cannot be used: {error}.") from None
    return made


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """`ssl` reads keys from files alone: one that only we can read, for a moment."""
    descriptor, name = tempfile.mkstemp(prefix="trimtab-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(certificate + b"\n" + key)
        context.load_cert_chain(name)
    finally:
        os.unlink(name)


def _reach(url: str, tls: ssl.SSLContext, token: str, project: str) -> Access:
    token = token.strip()  # files end with a line
    if not token.isascii() or not token.isprintable():
        raise NoAccess("The token has characters that no token has. Is it a whole file?")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise NoAccess(f"The endpoint is not a URL such as https://host:7443: {error}.") from None
    if "@" in parts.netloc:
        raise NoAccess("The endpoint has a user or a password in it, which no server is sent. Give `token` instead.")
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise NoAccess(f"The endpoint {url!r} is not a URL such as https://host:7443.")
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise NoAccess(f"The endpoint {url} is not encrypted: use https.")
    secure = parts.scheme == "https"
    port = port or (443 if secure else 80)
    return Access(parts.hostname, port, tls if secure else None, token, parts.path.rstrip("/"), project)
