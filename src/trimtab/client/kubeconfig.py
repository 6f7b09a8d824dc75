"""Kubeconfig files: merged as kubectl merges them, and read into a `Config`.

Of several files the first that names a cluster, user or context wins, whole; files of a list that do not exist are
skipped. Relative paths are relative to the file that names them. A field that changes how to connect and that we do not
know is refused.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from trimtab.client.config import Config, ConfigError
from trimtab.client.credentials import Credentials, Fixed, Identity, TokenFile, basic, bearer
from trimtab.client.exec_plugin import VERSIONS, ExecCredentials, Plugin

_HEADER = re.compile("[A-Za-z0-9!#$%&'*+.^_`|~-]+")
MAX_FILE = 4 * 1024 * 1024


class _Section(NamedTuple):
    """One named entry, and the file it is from."""

    fields: dict[str, Any]
    file: Path
    label: str  # clusters["name"].cluster

    def wrong(self, field: str, problem: str) -> ConfigError:
        return ConfigError(f"{self.file}: {self.label}.{field}: {problem}")

    def text(self, field: str) -> str:
        value = self.fields.get(field)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(field, "must be text")
        return value

    def flag(self, field: str) -> bool:
        value = self.fields.get(field)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(field, "must be true or false")
        return bool(value)

    def pem(self, field: str) -> bytes:
        """Inline data, which wins, or the file that is named."""
        inline, named = self.text(f"{field}-data"), self.text(field)
        if inline:
            try:
                return base64.b64decode(inline, validate=True)
            except binascii.Error:
                raise self.wrong(f"{field}-data", "is not base64") from None
        if not named:
            return b""
        path = self.path(named)
        try:
            if path.stat().st_size > MAX_FILE:
                raise self.wrong(field, f"{path} is larger than {MAX_FILE} bytes")
            return path.read_bytes()
        except OSError as error:
            raise self.wrong(field, f"{path} cannot be read: {error.strerror}") from None

    def texts(self, field: str) -> list[str]:
        value = self.fields.get(field) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(field, "must be a list of texts")
        return value

    def mapping(self, field: str) -> dict[str, Any]:
        value = self.fields.get(field) or {}
        if not isinstance(value, dict):
            raise self.wrong(field, "must be a mapping")
        return value

    def path(self, named: str) -> Path:
        return self.file.parent / named


def read(paths: Sequence[Path], *, context: str = "", strict: bool = False) -> Config:
    """The current context of these files, or the named one. `strict`: every file must exist."""
    documents = [(path, _parsed(path)) for path in paths if strict or path.exists()]
    listed = os.pathsep.join(map(str, paths))
    if not documents:
        raise ConfigError(f"{listed} does not exist")
    return _config(*_chosen(documents, listed, context))


def parse(content: bytes, *, context: str = "", source: str = "kubeconfig") -> Config:
    """One that came from elsewhere, such as a Secret. It must hold all that it needs: files and sockets of this machine,
    and programs to run on it, are refused, and so is a server without TLS. `source` is its name in messages."""
    try:
        config = _self_contained([(Path(source), _loaded(content, source))], source, context)
    except ConfigError as error:  # sections name files by their whole path, and this is none
        raise ConfigError(str(error).replace(str(Path(source).absolute()), source)) from None
    return msgspec.structs.replace(config, source=source)


def _self_contained(documents: Sequence[tuple[Path, dict[str, Any]]], source: str, context: str) -> Config:
    chosen, cluster, user = _chosen(documents, source, context)
    if not cluster.text("server").startswith("https://"):
        raise cluster.wrong("server", "must be an https address")
    for section, fields in ((cluster, _FILES[:1]), (user, _FILES[1:])):
        for field in fields:
            if section.fields.get(field) is not None:
                instead = "token" if field == "tokenFile" else f"{field}-data"
                raise section.wrong(field, f"names a file of another machine: give {instead} instead")
    if user.fields.get("exec") is not None:
        raise user.wrong("exec", "would run a program here: give a token or a client certificate instead")
    return _config(chosen, cluster, user)


_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def _chosen(
    documents: Sequence[tuple[Path, dict[str, Any]]], listed: str, context: str
) -> tuple[_Section, _Section, _Section]:
    """The sections of the context, its cluster and its user."""
    current = context or next((doc["current-context"] for _, doc in documents if doc.get("current-context")), "")
    if not current:
        raise ConfigError(f"{listed}: current-context: is not set, and no context was asked for")
    chosen = _section(documents, "context", str(current))
    cluster = _section(documents, "cluster", _required(chosen, "cluster"))
    user_name = chosen.text("user")
    user = _section(documents, "user", user_name) if user_name else _Section({}, chosen.file, "users")
    return chosen, cluster, user


def _config(context: _Section, cluster: _Section, user: _Section) -> Config:
    server = _required(cluster, "server").rstrip("/")
    _check_address(cluster, server)
    if cluster.text("proxy-url"):
        raise cluster.wrong("proxy-url", "proxies are not supported: remove it, or reach the server another way")
    ca, insecure = cluster.pem("certificate-authority"), cluster.flag("insecure-skip-tls-verify")
    if ca and insecure:
        raise cluster.wrong("insecure-skip-tls-verify", "must not be set together with a certificate authority")
    return Config(
        server=server,
        namespace=context.text("namespace") or "default",
        ca=ca or None,
        verify=not insecure,
        tls_server_name=cluster.text("tls-server-name"),
        credentials=_credentials(user, cluster),
        headers=_impersonation(user),
        source=str(cluster.file),
    )


def _check_address(cluster: _Section, server: str) -> None:
    """Messages show the address, so nothing secret may be in it."""
    if not server.isprintable() or (" " in server and not server.startswith("unix://")):
        raise cluster.wrong("server", "must be an address, without spaces and line breaks")
    try:
        parts = urlsplit(server)
        known = parts.scheme in ("https", "http", "unix") and (parts.scheme == "unix" or bool(parts.hostname))
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:  # it would quote what may be a password
        raise cluster.wrong("server", "is no address: its host or its port cannot be read") from None
    if parts.username is not None or parts.password is not None:
        raise cluster.wrong("server", "must not hold credentials: give a token, or username and password, of the user")
    if not known:
        raise cluster.wrong("server", f"{server!r} is no https, http or unix address")
    if parts.query or parts.fragment:
        raise cluster.wrong("server", "must be an address and a path, without ? and #")


def _credentials(user: _Section, cluster: _Section) -> Credentials | None:
    if user.fields.get("auth-provider") is not None:
        raise user.wrong("auth-provider", "is not supported: Kubernetes replaced it by exec plugins")
    certificate, key = user.pem("client-certificate"), user.pem("client-key")
    if bool(certificate) != bool(key):
        raise user.wrong("client-certificate", "a certificate and its key belong together; one is missing")
    if user.fields.get("exec") is not None:
        if certificate or user.text("token"):
            raise user.wrong("exec", "must not be set together with a token or a certificate")
        return ExecCredentials(_plugin(user, cluster))
    if token_file := user.text("tokenFile"):
        return TokenFile(user.path(token_file), certificate=certificate, key=key)
    authorization = ""
    if token := user.text("token"):
        if not token.isprintable():
            raise user.wrong("token", "must be one line")
        authorization = bearer(token)
    elif username := user.text("username"):
        authorization = basic(username, user.text("password"))
    if not authorization and not certificate:
        return None
    return Fixed(Identity(authorization=authorization, certificate=certificate, key=key))


def _plugin(user: _Section, cluster: _Section) -> Plugin:
    given = user.mapping("exec")
    section = _Section(given, user.file, f"{user.label}.exec")
    command, version = _required(section, "command"), _required(section, "apiVersion")
    if version not in VERSIONS:
        raise section.wrong("apiVersion", f"{version!r} is not one of {', '.join(VERSIONS)}")
    mode = section.text("interactiveMode") or ("IfAvailable" if version == VERSIONS[1] else "")
    if mode not in ("Never", "IfAvailable", "Always"):
        raise section.wrong("interactiveMode", "must be Never, IfAvailable or Always")
    try:
        variables = {str(pair["name"]): str(pair["value"]) for pair in given.get("env") or ()}
    except (TypeError, KeyError):
        raise section.wrong("env", "must be a list of names with values") from None
    if os.sep in command:
        command = str(section.path(command))
    return Plugin(
        command=command,
        args=tuple(section.texts("args")),
        env=variables,
        api_version=version,
        interactive=mode,
        install_hint=section.text("installHint"),
        cluster=_told(cluster) if section.flag("provideClusterInfo") else None,
        source=f"{user.file}: {section.label}",
    )


def _told(cluster: _Section) -> dict[str, Any]:
    """The cluster as ExecCredential's spec has it."""
    ca = cluster.pem("certificate-authority")
    told: dict[str, Any] = {
        "server": cluster.text("server"),
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.flag("insecure-skip-tls-verify"),
        "certificate-authority-data": base64.b64encode(ca).decode(),
    }
    extensions = cluster.fields.get("extensions")
    for extension in extensions if isinstance(extensions, list) else ():
        if isinstance(extension, dict) and extension.get("name") == "client.authentication.k8s.io/exec":
            told["config"] = extension.get("extension")
    return {name: value for name, value in told.items() if value}


def _impersonation(user: _Section) -> tuple[tuple[str, str], ...]:
    headers: list[tuple[str, str]] = []
    if name := user.text("as"):
        headers.append(("Impersonate-User", name))
    if uid := user.text("as-uid"):
        headers.append(("Impersonate-Uid", uid))
    headers += [("Impersonate-Group", group) for group in user.texts("as-groups")]
    extra = _Section(user.mapping("as-user-extra"), user.file, f"{user.label}.as-user-extra")
    for key in extra.fields:
        headers += [(f"Impersonate-Extra-{key}", value) for value in extra.texts(key)]
    for header, value in headers:
        if not _HEADER.fullmatch(header) or not value.isprintable():
            raise user.wrong("as", f"{header!r} would be no header: leave out spaces and line breaks")
    if headers and not name:
        raise user.wrong("as", "must be set where as-uid, as-groups or as-user-extra is")
    return tuple(headers)


def _required(section: _Section, field: str) -> str:
    value = section.text(field)
    if not value:
        raise section.wrong(field, "is missing")
    return value


def _section(documents: Sequence[tuple[Path, dict[str, Any]]], kind: str, name: str) -> _Section:
    for path, document in documents:
        entries = document.get(f"{kind}s") or []
        if not isinstance(entries, list):
            raise ConfigError(f"{path}: {kind}s: must be a list")
        for entry in entries:
            if isinstance(entry, dict) and entry.get("name") == name:
                label = f'{kind}s["{name}"].{kind}'
                fields = entry.get(kind) or {}
                if not isinstance(fields, dict):
                    raise ConfigError(f"{path}: {label}: must be a mapping")
                return _Section(fields, path.absolute(), label)
    files = os.pathsep.join(str(path) for path, _ in documents)
    raise ConfigError(f'{files}: {kind}s: there is no {kind} named "{name}"')


def _parsed(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    return _loaded(content, path)


def _loaded(content: bytes, path: Path | str) -> dict[str, Any]:
    from trimtab.model.yaml import YamlError, load

    if len(content) > MAX_FILE:
        raise ConfigError(f"{path}: is larger than {MAX_FILE} bytes")
    try:
        document = load(content.decode())
    except (YamlError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is no YAML: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: is no kubeconfig")
    return document
