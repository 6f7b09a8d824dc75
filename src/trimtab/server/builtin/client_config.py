"""How the API server reaches a webhook: what its URL or its Service must be, for admission and for conversion."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from trimtab.model.errors import FieldError
from trimtab.model.metadata import dns_1035_label_problems
from trimtab.model.names import dns_subdomain_problems
from trimtab.server.builtin import gosource, names
from trimtab.server.builtin.problems import each, invalid, invalid_go, required

FORM = "; desired format: https://host[/path]"
REVIEW_VERSIONS = ("v1", "v1beta1")


def webhook_client(config: dict[str, Any], path: str) -> list[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        return _url(url, f"{path}.url")
    return _service(service or {}, f"{path}.service")


def admission_review_versions(versions: list[str], path: str) -> list[FieldError]:
    if not versions:
        return [required(path, f"must specify one of {', '.join(REVIEW_VERSIONS)}")]
    return conversion_review_versions(versions, path)


def conversion_review_versions(versions: list[str], path: str) -> list[FieldError]:
    if not versions:
        return [required(path)]
    errors = []
    seen = set()
    for index, version in enumerate(versions):
        if version in seen:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        errors += each(f"{path}[{index}]", version, dns_1035_label_problems(version))
    if not seen & set(REVIEW_VERSIONS):
        why = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
        errors.append(invalid_go(path, gosource.strings(versions), why))
    return errors


def _url(url: str, path: str) -> list[FieldError]:
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{FORM}")]
    errors = []
    if parts.scheme != "https":
        errors.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{FORM}"))
    if not host:
        errors.append(invalid(path, "", f"host must be specified{FORM}"))
    if "@" in parts.netloc:
        errors.append(invalid(path, parts.netloc.rpartition("@")[0], "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return errors


def _service(service: dict[str, Any], path: str) -> list[FieldError]:
    errors = []
    # The real server hands name and namespace over in the wrong order, so each error names the other field.
    if not service.get("namespace"):
        errors.append(required(f"{path}.name", "service name is required"))
    if not service.get("name"):
        errors.append(required(f"{path}.namespace", "service namespace is required"))
    port = service.get("port", 443)
    if problems := names.port_number(port):
        errors.append(invalid(f"{path}.port", port, "port is not valid: " + ", ".join(problems)))
    text = service.get("path")
    where = f"{path}.path"
    if not text or text == "/":
        return errors
    if text == "//":
        return [*errors, invalid(where, text, "segment[0] may not be empty")]
    if not text.startswith("/"):
        errors.append(invalid(where, text, "must start with a '/'"))
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            errors.append(invalid(where, text, f"segment[{index}] may not be empty"))
            continue
        errors += each(where, text, (f"segment[{index}]: {problem}" for problem in dns_subdomain_problems(step)))
    return errors
