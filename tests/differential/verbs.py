"""Short names for the requests that scenarios are made of."""

from typing import Any

from .exchange import Request

JSON = "application/json"
YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def get(path: str, *, accept: str | None = None, until: str | None = None) -> Request:
    return Request(method="GET", path=path, headers=(("Accept", accept),) if accept else (), until=until)


def post(path: str, body: Any, *, content: str = JSON, accept: str | None = None, until: str | None = None) -> Request:
    return _write("POST", path, body, content, accept, until)


def put(path: str, body: Any, *, content: str = JSON, accept: str | None = None, until: str | None = None) -> Request:
    return _write("PUT", path, body, content, accept, until)


def patch(path: str, body: Any, content: str, *, accept: str | None = None) -> Request:
    return _write("PATCH", path, body, content, accept, None)


def merge(path: str, body: Any) -> Request:
    return patch(path, body, MERGE)


def strategic(path: str, body: Any) -> Request:
    return patch(path, body, STRATEGIC)


def json_patch(path: str, *operations: Any) -> Request:
    return patch(path, list(operations), JSON_PATCH)


def apply(path: str, body: Any, *, manager: str = "one", force: bool = False) -> Request:
    joint = "&" if "?" in path else "?"
    return patch(f"{path}{joint}fieldManager={manager}{'&force=true' if force else ''}", body, APPLY)


def delete(path: str, options: Any = None, *, until: str | None = None) -> Request:
    return Request(method="DELETE", path=path, body=options, until=until)


def watch(path: str, events: int, *, since: str = "$rv:0", query: str = "", accept: str | None = None) -> Request:
    """Reads so many events from the past; a watch that should end by itself has `timeoutSeconds` in its query."""
    target = f"{path}?watch=true&resourceVersion={since}{'&' + query if query else ''}"
    return Request(method="GET", path=target, headers=(("Accept", accept),) if accept else (), events=events)


def _write(method: str, path: str, body: Any, content: str, accept: str | None, until: str | None) -> Request:
    headers = (("Content-Type", content),) + ((("Accept", accept),) if accept else ())
    return Request(method=method, path=path, body=body, headers=headers, until=until)
