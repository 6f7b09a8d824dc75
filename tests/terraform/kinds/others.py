"""Others who write to the same server: by hand, by controllers, from Git."""

from __future__ import annotations

from typing import Any

from trimtab.terraform.kinds.api import APPLY, Api

Document = dict[str, Any]


def changed(api: Api, path: str, patch: Document, *, manager: str = "somebody", status: bool = False) -> Document:
    """A merge patch, as `kubectl edit` sends it; of the status, as a controller does."""
    return api._call(
        "PATCH",
        f"{path}/status" if status else path,
        query={"fieldManager": manager},
        body=patch,
        media="application/merge-patch+json",
    ).document


def applied(api: Api, path: str, body: Document, *, manager: str, **query: str) -> Document:
    return api._call(
        "PATCH", path, query={"fieldManager": manager, "force": "true", **query}, body=body, media=APPLY
    ).document


def config_map(name: str, namespace: str, **data: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def config_map_path(name: str, namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"
