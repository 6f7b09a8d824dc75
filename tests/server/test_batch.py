"""Many applies in one request: each of them is judged, answered and written down as if it had come by itself."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.test_audit_trail import ADMIN, MAPS, House, house
from trimtab.server.batch import MOST, answer
from trimtab.server.door import Door
from trimtab.server.http import Response, Stream
from trimtab.server.wire import Incoming

NOTHING = {"level": "None"}
QUERY = "?fieldManager=tests&force=true"


def item(name: str, data: Any = None, *, url: str = "") -> dict[str, Any]:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {"a": "1"}}
    return {"url": url or f"{MAPS}/{name}{QUERY}", "body": body}


async def batch(home: House, items: Any, **headers: str) -> list[dict[str, Any]]:
    response = await home.send("POST", "/batch", items, **headers)
    assert isinstance(response, Response)
    assert response.code == 200, response.body
    answers: list[dict[str, Any]] = json.loads(response.body)
    return answers


def on_its_socket(home: House) -> None:
    """The door of the machine's own socket: who comes without credentials is its owner."""
    home.door = Door(home.server, home.server.authenticator, local=ADMIN)


async def test_each_is_applied_and_answered_in_its_place(tmp_path: Path) -> None:
    async with house(tmp_path, NOTHING) as home:
        on_its_socket(home)
        made = await batch(home, [item(f"c{n}", {"n": str(n)}) for n in range(100)])
        assert [each["code"] for each in made] == [201] * 100
        assert [each["body"]["metadata"]["name"] for each in made] == [f"c{n}" for n in range(100)]
        again = await batch(home, [item("c7", {"n": "other"})])
        alone = await home.send("GET", f"{MAPS}/c7")
        assert isinstance(alone, Response)
        assert again[0]["code"] == 200
        assert again[0]["body"] == json.loads(alone.body)
        assert again[0]["body"]["metadata"]["managedFields"][0]["manager"] == "tests"


async def test_what_is_refused_is_refused_alone(tmp_path: Path) -> None:
    async with house(tmp_path, NOTHING) as home:
        on_its_socket(home)
        wrong = item("bad", {"a": 1})
        nowhere = item("lost", url=f"/api/v1/namespaces/none/configmaps/lost{QUERY}")
        unknown = item("odd", url=f"/apis/nothing.dev/v1/things/odd{QUERY}")
        itself = {"url": "/batch", "body": []}
        said = await batch(home, [item("one"), wrong, nowhere, unknown, itself, item("two")])
        assert [each["code"] for each in said] == [201, 500, 404, 404, 405, 201]
        alone = await home.send("PATCH", wrong["url"], wrong["body"], media="application/apply-patch+yaml")
        assert isinstance(alone, Response)
        assert said[1]["body"] == json.loads(alone.body)
        assert said[3]["body"] == "404 page not found\n"


async def test_rights_are_those_of_who_is_named(tmp_path: Path) -> None:
    async with house(tmp_path, NOTHING) as home:
        on_its_socket(home)
        said = await batch(home, [item("one")], impersonate_user="bob")
        assert said[0]["code"] == 403
        assert 'User "bob" cannot patch' in said[0]["body"]["message"]
        refused = await home.send("POST", "/batch", [item("one")], authorization="Bearer wrong")
        assert isinstance(refused, Response)
        assert refused.code == 401


async def test_the_audit_log_has_a_line_for_each(tmp_path: Path) -> None:
    async with house(tmp_path, {"level": "Metadata", "omitStages": ["RequestReceived"]}) as home:
        on_its_socket(home)
        await batch(home, [item("one"), item("two")])
        events = home.events()
    uris = [event["requestURI"] for event in events]
    assert sorted(uris) == sorted([f"{MAPS}/one{QUERY}", f"{MAPS}/two{QUERY}", "/batch"])
    assert len({event["auditID"] for event in events}) == 3


async def test_an_answer_in_pieces_is_put_together() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"kind":'
        yield b'"Flunder"}'

    async def door(incoming: Incoming) -> Stream:
        assert (incoming.method, incoming.path, incoming.query) == ("PATCH", "/apis/w x", b"a=b")
        return Stream(code=201, frames=pieces(), media=b"application/json; charset=utf-8")

    body = json.dumps([{"url": "/apis/w%20x?a=b", "body": {}}]).encode()
    said = await answer(Incoming("POST", "/batch", b"", {}, body, True, None), door)
    assert json.loads(said.body) == [{"code": 201, "body": {"kind": "Flunder"}}]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "a batch is a list"),
        ([{"url": "/api"}], "missing required field"),
        (b"[" * 100_000, "a batch is a list"),
        ([item("one")] * (MOST + 1), f"at most {MOST} items"),
    ],
)
async def test_what_is_no_batch_is_told(tmp_path: Path, body: Any, word: str) -> None:
    async with house(tmp_path, NOTHING) as home:
        on_its_socket(home)
        said = await home.send("POST", "/batch", body)
        assert isinstance(said, Response)
        assert said.code == 400
        assert word in json.loads(said.body)["message"]


async def test_only_the_socket_takes_it(tmp_path: Path) -> None:
    async with house(tmp_path, NOTHING) as home:
        said = await home.send("POST", "/batch", [item("one")])
        assert isinstance(said, Response)
        assert said.code == 405
