"""What is wrong with a RestService before anybody asks the API that it names. What could hold a secret is never shown."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from msgspec import UnsetType

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.names import dns_subdomain_problems
from trimtab.systems.rest.kinds import RestService
from trimtab.systems.rest.kinds.service import Credentials, Document, RestServiceSpec, SecretReference

LONGEST_NAME = 63
"""A service's name is the value of a label."""
NEEDS_SECRET = {
    "bearer": "token",
    "basic": "username and password",
    "apiKey": "key",
    "mtls": "tls.crt and tls.key",
}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
_OURS = frozenset(("host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade", "te"))
_SECRET = frozenset(("authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token"))


def service_problems(service: RestService) -> list[FieldError]:
    """All of it. Parses an inline document: some hundred milliseconds for a large one."""
    spec = service.spec
    return [
        *_name_problems(service.name),
        *_endpoint_problems(spec),
        *_document_problems(spec.document),
        *_credentials_problems(spec.credentials),
        *_header_problems(spec),
        *_poll_problems(spec),
        *_notification_problems(spec),
    ]


def service_warnings(service: RestService) -> list[str]:
    spec, said = service.spec, []
    host = urlsplit(spec.endpoint).hostname if spec.endpoint.startswith("http:") else None
    if host and spec.credentials.type != "none" and not _is_loopback(host):
        said.append("spec.endpoint: credentials go over the network in the clear: give an https URL")
    if spec.skip_tls_verify:
        said.append("spec.skipTLSVerify: whoever answers is trusted, with your credentials")
    return said


def _name_problems(name: str) -> Iterator[FieldError]:
    if len(name) > LONGEST_NAME:
        yield _wrong("metadata.name", name, f"must have at most {LONGEST_NAME} characters: groups and labels have it")


def _endpoint_problems(spec: RestServiceSpec) -> Iterator[FieldError]:
    from trimtab.systems.rest.calling.endpoint import parsed  # brings aiohttp

    try:
        found = parsed(spec.endpoint)
    except ValueError as error:  # an EndpointError is one, and so is what the standard library cannot split
        yield _unshown("spec.endpoint", spec.endpoint, str(error))
        return
    if found.unix is None and spec.endpoint.partition("://")[2].partition("/")[0] == "":
        yield _wrong("spec.endpoint", spec.endpoint, "names no host")


def _document_problems(document: Document) -> Iterator[FieldError]:
    given = [
        name
        for name, value in (("inline", document.inline), ("url", document.url), ("configMap", document.config_map))
        if not isinstance(value, UnsetType)
    ]
    if len(given) != 1:
        said = "give exactly one of inline, url and configMap"
        yield FieldError("spec.document", FieldProblem.REQUIRED if not given else FieldProblem.FORBIDDEN, None, said)
    if not isinstance(document.url, UnsetType):
        yield from _url_problems("spec.document.url", document.url)
    if not isinstance(document.config_map, UnsetType):
        yield from _object_names("spec.document.configMap", document.config_map.name, document.config_map.namespace)
    if not isinstance(document.inline, UnsetType):
        yield from _inline_problems(document.inline)


def _url_problems(path: str, url: str) -> Iterator[FieldError]:
    try:
        parts = urlsplit(url)
    except ValueError:
        yield _unshown(path, url, "is no URL")
        return
    if parts.scheme not in ("http", "https") or not parts.hostname:
        yield _unshown(path, url, "must be an http or https URL; a file belongs in a ConfigMap")
    elif parts.username is not None:
        yield FieldError(path, FieldProblem.FORBIDDEN, None, "holds a user: documents are fetched without credentials")


def _inline_problems(text: str) -> Iterator[FieldError]:
    from trimtab.systems.rest.openapi.errors import DocumentError
    from trimtab.systems.rest.openapi.loading import load

    try:
        load({"openapi": text.encode()}, "openapi")
    except DocumentError as error:
        where = f"{error.pointer}: " if error.pointer else ""
        yield FieldError("spec.document.inline", FieldProblem.FORBIDDEN, None, f"{where}{error.why}")


def _credentials_problems(given: Credentials) -> Iterator[FieldError]:
    path = "spec.credentials"
    if isinstance(given.secret_ref, UnsetType):
        if keys := NEEDS_SECRET.get(given.type):
            said = f"credentials of type {given.type} come from a Secret with {keys}"
            yield FieldError(f"{path}.secretRef", FieldProblem.REQUIRED, None, said)
    else:
        yield from _secret_names(f"{path}.secretRef", given.secret_ref)
    if given.type != "apiKey":
        for name, value in (("prefix", given.prefix), ("query", given.query)):
            if value:
                yield FieldError(f"{path}.{name}", FieldProblem.FORBIDDEN, None, "is for credentials of type apiKey")
        return
    if given.query and given.header != "Authorization":
        yield FieldError(f"{path}.query", FieldProblem.FORBIDDEN, None, "the key goes into a header or into the query")
    if not _TOKEN.fullmatch(given.header) or given.header.lower() in _OURS:
        yield _wrong(f"{path}.header", given.header, "must be the name of a header that is not the client's own")
    if not given.prefix.isprintable():
        yield FieldError(f"{path}.prefix", FieldProblem.FORBIDDEN, None, "must be printable, such as `Token `")


def _header_problems(spec: RestServiceSpec) -> Iterator[FieldError]:
    for name, value in spec.headers.items():
        path = f"spec.headers[{name!r}]" if not _TOKEN.fullmatch(name) else f"spec.headers.{name}"
        if not _TOKEN.fullmatch(name):
            yield FieldError(path, FieldProblem.FORBIDDEN, None, "is no name of a header")
        elif name.lower() in _SECRET:
            yield FieldError(path, FieldProblem.FORBIDDEN, None, "is a credential: it belongs in spec.credentials")
        elif name.lower() in _OURS:
            yield FieldError(path, FieldProblem.FORBIDDEN, None, "is the client's own")
        elif not value.isprintable():
            yield FieldError(path, FieldProblem.FORBIDDEN, None, "must be printable, in one line")


def _poll_problems(spec: RestServiceSpec) -> Iterator[FieldError]:
    for i, host in enumerate(spec.poll_hosts):
        if not _HOST.fullmatch(host):
            detail = "must be a host, a host with its port, or *.suffix; without https:// and without a path"
            yield _unshown(f"spec.pollHosts[{i}]", host, detail)


def _notification_problems(spec: RestServiceSpec) -> Iterator[FieldError]:
    if isinstance(spec.notifications, UnsetType):
        return
    path, secret = "spec.notifications.tokenSecret", spec.notifications.token_secret
    yield from _secret_names(path, secret)
    if isinstance(secret.namespace, UnsetType):
        yield FieldError(f"{path}.namespace", FieldProblem.REQUIRED, None, "the receiver is nobody's tenant: name it")


def _secret_names(path: str, secret: SecretReference) -> Iterator[FieldError]:
    yield from _object_names(path, secret.name, "" if isinstance(secret.namespace, UnsetType) else secret.namespace)


def _object_names(path: str, name: str, namespace: str) -> Iterator[FieldError]:
    for field, value in (("name", name), ("namespace", namespace)):
        if value and dns_subdomain_problems(value):
            yield _wrong(f"{path}.{field}", value, "no object can have this name: small letters, digits, - and .")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _unshown(path: str, value: str, detail: str) -> FieldError:
    """Without the value where it may hold a password."""
    if "@" in value:
        return FieldError(path, FieldProblem.FORBIDDEN, None, detail.replace(value, "…"))
    return _wrong(path, value, detail)


def _wrong(path: str, value: str, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.INVALID, value[:256], detail)
