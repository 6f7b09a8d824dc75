"""Lists to their end, and reads that ask only for what changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.systems.rest.calling_kit import World, freely, model, serving
from trimtab.systems.rest.calling.contract import CallError, ErrorClass
from trimtab.systems.rest.calling.pages import pages, read
from trimtab.systems.rest.calling.service import Service
from trimtab.systems.rest.model import Call, Model

LIST = Call(method="GET", path="/things", items="value", next_link="nextLink")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with serving() as made:
        yield made


@pytest.fixture
async def service(world: World) -> AsyncIterator[Service]:
    async with Service(world.url, throttle=freely()) as made:
        yield made


async def items(service: Service, call: Call = LIST, of: Model | None = None) -> list[list[Any]]:
    return [page async for page in pages(service, of or model(), call, "/things?api-version=1")]


def page(*names: str, link: str | None = None, **more: Any) -> web.Response:
    body = {"value": [{"name": name} for name in names], **({"nextLink": link} if link is not None else {}), **more}
    return web.json_response(body)


async def test_pages_follow_links_of_every_form_and_empty_pages_are_no_end(service: Service, world: World) -> None:
    world.answers = [
        page("a", link=f"{world.url}/things?page=2"),
        page(link="/things?page=3"),
        page("b", link="?page=4"),
        page("c", link=""),
    ]
    assert [len(found) for found in await items(service)] == [1, 0, 1, 1]
    assert world.asked == ["GET /things?api-version=1", *(f"GET /things?page={number}" for number in (2, 3, 4))]


async def test_a_link_header_is_followed(service: Service, world: World) -> None:
    world.answers = [
        web.json_response([1], headers={"Link": '</things?page=0>; rel="prev", </things?page=2>; rel="next"'}),
        web.json_response([2], headers={"Link": '</things?page=1>; rel="prev"'}),
    ]
    assert await items(service, Call(method="GET", path="/things")) == [[1], [2]]


async def test_a_next_page_on_another_host_is_never_asked_for(service: Service, world: World) -> None:
    world.answers = [page("a", link="http://evil.example/next")]
    with pytest.raises(CallError, match="leaves the endpoint") as raised:
        await items(service)
    assert raised.value.kind is ErrorClass.TERMINAL


async def test_a_list_that_leads_back_raises(service: Service, world: World) -> None:
    async def around(request: web.Request) -> web.StreamResponse:
        return page("a", link=f"/things?page={(int(request.query.get('page', '0')) + 1) % 3}")

    world.otherwise = around
    with pytest.raises(CallError, match="leads back") as raised:
        await items(service)
    assert raised.value.kind is ErrorClass.TRANSIENT
    assert len(world.seen) <= 4


@pytest.mark.parametrize("body", [{}, {"values": []}, {"value": {}}, {"value": "x"}, [], None])
async def test_what_is_no_list_is_never_taken_for_an_empty_one(service: Service, world: World, body: Any) -> None:
    world.answers = [web.json_response(body) if body is not None else web.Response()]
    with pytest.raises(CallError, match="has no list at value"):
        await items(service)


async def test_null_is_an_empty_list(service: Service, world: World) -> None:
    world.answers = [web.json_response({"Volumes": None, "Warnings": []})]
    assert await items(service, Call(method="GET", path="/volumes", items="Volumes")) == [[]]


async def test_a_list_in_an_envelope(service: Service, world: World) -> None:
    world.answers = [web.json_response({"type": "sync", "metadata": [{"name": "default"}, {"name": "web"}]})]
    found = await items(service, Call(method="GET", path="/1.0/profiles"), model(envelope="metadata"))
    assert found == [[{"name": "default"}, {"name": "web"}]]


async def test_a_list_that_breaks_half_way_raises(service: Service, world: World) -> None:
    world.answers = [page("a", link="/things?page=2"), web.Response(status=500)]
    with pytest.raises(CallError) as raised:
        await items(service)
    assert raised.value.kind is ErrorClass.TRANSIENT


async def test_a_read_asks_only_for_what_changed(service: Service, world: World) -> None:
    world.answers = [web.Response(status=304), web.json_response({"name": "a"})]
    same = await read(service, model(), "/things/a", etag='"1"')
    assert (same.status, same.body) == (304, None)
    assert world.seen[0].headers["If-None-Match"] == '"1"'
    assert (await read(service, model(), "/things/a")).body == {"name": "a"}
    assert "If-None-Match" not in world.seen[1].headers
