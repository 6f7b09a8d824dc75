"""A hub's storage read without a server: the same documents as clients get, and what cannot be told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from tests.hub.kit import KEY
from tests.hub.served.conftest import HUB, KINDS, Home, addon, blueprint, home, project
from trimtab.client.transport import Call
from trimtab.hub.offline import Kept, Untold, contents
from trimtab.hub.proxies.hydrating import ids_in
from trimtab.hub.storage.contract import Row, RowKey, RowWrite
from trimtab.hub.storage.snapshot import hub_snapshot
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.model.hub import HubKind
from trimtab.systems.platform.kinds import Addon

__all__ = ["home"]


async def read(path: Path, kinds: Any = KINDS) -> tuple[dict[str, Kept], list[Untold]]:
    """Of a copy, as a backup takes one."""
    copy = path.with_name("copy.db")
    with hub_snapshot(path) as snapshot:
        snapshot.copy(copy, lambda done, total: None)
        types = {type_: count for (_, type_), count in snapshot.types().items()}
    storage = SqliteStorage(copy)
    try:
        found = await contents(storage, kinds, types)
    finally:
        await storage.close()
    named = {f"{each.document['kind']} {each.document['metadata']['name']}": each for each in found.resources}
    return named, list(found.untold)


async def test_documents_are_those_that_clients_get_with_names_alone(home: Home, tmp_path: Path) -> None:
    await home.apply(project("blue"))
    await home.apply(addon())
    await home.apply({"apiVersion": HUB, "kind": "Repository", "metadata": {"name": "r", "namespace": "blue"},
                      "spec": {"endpoint": "https://127.0.0.1:1/r.git"}})  # fmt: skip
    shared = {"sharing": {"enabled": True, "projects": [{"name": "blue"}]}}
    served = await home.apply(blueprint(**shared))
    found, untold = await read(tmp_path / "hub.db")
    assert untold == []
    assert [*found] == ["Addon nginx", "Blueprint base", "Project blue", "Project default", "Repository r"]
    assert found["Blueprint base"].document == served
    assert found["Repository r"].document["metadata"]["namespace"] == "blue"
    assert not [*ids_in([each.document for each in found.values()])]


async def test_versions_are_told_in_the_order_in_which_they_were_published(home: Home, tmp_path: Path) -> None:
    await home.apply(blueprint(version="v2", addons=("a",)))
    await home.apply(blueprint(version="v1", addons=("a", "b")))
    found, _ = await read(tmp_path / "hub.db")
    versions = found["Blueprint base"].versions
    assert [(each.name, len(each.spec["addons"])) for each in versions] == [("v2", 1), ("v1", 2)]
    assert versions[-1].spec == found["Blueprint base"].document["spec"]


async def test_lineage_is_in_them(home: Home, tmp_path: Path) -> None:
    document = addon()
    document["metadata"]["annotations"] = {KEY: "default/desk@1"}
    path = "/apis/infra.trimtab.dev/v3/namespaces/default/addons"
    call = Call(method="POST", path=path, query={"includeLineage": "true"}, body=orjson.dumps(document))
    await home.client.transport.call(call)
    found, _ = await read(tmp_path / "hub.db")
    assert found["Addon nginx"].document["metadata"]["annotations"][KEY] == "default/desk@1"


async def test_what_cannot_be_told_is_counted(home: Home, tmp_path: Path) -> None:
    await home.apply(addon())
    storage = home.hub.storage
    for type_, name, body in (
        ("tickets.desk", "t", {}),
        ("intents.addons.infra", "nginx", {}),
        ("addons.infra", "bad", {}),
    ):
        at = (await storage.ids("default", "projects.hub", None, ["default"]))["default"]
        await storage.commit(RowWrite(row=Row(key=RowKey("default", type_, at, name), body=body)))
    found, untold = await read(tmp_path / "hub.db")
    assert "Addon nginx" in found
    assert Untold("tickets.desk", 1, "no such kind is known here") in untold
    assert [(each.what, each.damaged) for each in untold] == [
        ("addons.infra default/bad", True),
        ("tickets.desk", False),
    ]


async def test_a_kind_of_another_service_comes_back_from_there(home: Home, tmp_path: Path) -> None:
    await home.apply(addon())
    others = tuple(HubKind(cls=Addon, accessor=object) if kind.cls is Addon else kind for kind in KINDS)
    found, untold = await read(tmp_path / "hub.db", others)
    assert [*found] == ["Project default"]
    assert untold == [Untold("addons.infra", 1, "a service of their own holds them")]
