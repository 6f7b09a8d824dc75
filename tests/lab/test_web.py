"""The service of the examples and the requests to it: who answered is counted, failures too, and nothing is lost when it ends."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from trimtab.lab.load import Load, Tally
from trimtab.lab.web import Service


@asynccontextmanager
async def serving(version: str, errors: float = 0.0) -> AsyncIterator[tuple[Service, str]]:
    service = Service(version, errors, 0.0, random.Random(7))
    server = await asyncio.start_server(service.handle, "127.0.0.1", 0)
    async with server:
        yield service, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    current = asyncio.current_task()
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not current))  # who was served is gone


async def test_answers_are_counted_by_version_and_at_the_rate_that_is_asked_for() -> None:
    async with serving("2") as (_, url):
        found = await Load(url, rate=200, connections=4).run(0.5)
    assert set(found.answers) == {"2"}
    assert 50 <= found.answers["2"] <= 110
    assert (found.failed.total(), found.unanswered) == (0, 0)


async def test_a_share_of_the_requests_fails_where_that_is_wanted() -> None:
    async with serving("3", errors=0.5) as (_, url):
        found = await Load(url, rate=400, connections=4).run(0.5)
    assert 0.3 < found.failed["3"] / found.answers["3"] < 0.7


async def test_a_service_that_ends_says_so_with_its_last_answer() -> None:
    async with serving("1") as (service, url):
        load = Load(url, rate=100, connections=1)
        service.stopping = True
        found = await load.run(0.2)
    assert found.answers["1"] > 3
    assert found.unanswered == 0


async def test_a_request_without_an_answer_is_told_apart() -> None:
    async with serving("1") as (_, url):
        pass
    found = await Load(url, rate=100, connections=2).run(0.2)
    assert found.unanswered > 0
    assert "no answer: " in str(found)


def test_it_says_who_answered_how_much() -> None:
    tally = Tally(answers=Counter({"1": 90, "2": 10}), failed=Counter({"2": 3}))
    assert str(tally) == "version 1: 90 (90 %)   version 2: 10 (10 %, 3 failed)"


def test_it_wants_a_url() -> None:
    with pytest.raises(ValueError, match="is wanted"):
        Load("127.0.0.1:80", rate=1, connections=1)
