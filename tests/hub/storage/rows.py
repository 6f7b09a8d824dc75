"""Short words for rows and writes."""

from __future__ import annotations

from typing import Any

from trimtab.hub.storage.contract import PROJECTS, Row, RowKey, RowQuery, RowWrite, Storage
from trimtab.store.contract import Op

ORG = "default"
TYPE = "blueprints.infra"


def key(name: str, project: str = "", kind: str = TYPE, organization: str = ORG) -> RowKey:
    return RowKey(organization, kind, project, name)


def put(at: RowKey, expect: int | None = None, **fields: Any) -> RowWrite:
    return RowWrite(row=Row(key=at, **fields), expect=expect)


def delete(at: RowKey, expect: int | None = None) -> RowWrite:
    return RowWrite(row=Row(key=at), op=Op.DELETE, expect=expect)


async def project(storage: Storage, name: str, organization: str = ORG) -> str:
    """Its ID."""
    return (await storage.commit(put(key(name, kind=PROJECTS, organization=organization)))).id


def query(project: str | None = None, **fields: Any) -> RowQuery:
    return RowQuery(**{"organization": ORG, "type": TYPE, "project": project, **fields})


async def listed(storage: Storage, asked: RowQuery) -> list[Row]:
    """All pages, at the revision of the first."""
    rows: list[Row] = []
    page = await storage.list(asked)
    while True:
        rows += page.rows
        if page.after is None:
            return rows
        fields = {name: getattr(asked, name) for name in asked.__struct_fields__}
        page = await storage.list(RowQuery(**{**fields, "after": page.after, "revision": page.revision}))
