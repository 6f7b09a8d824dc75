"""A device that breaks off is asked once more, after `connectRetry`: whole rules, and the pause by a clock of the test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import UNSET

from tests.systems.discovery.asked_runs import until_ended
from tests.systems.discovery.station import Station
from tests.systems.discovery.test_attempts import Kept
from trimtab.lab.ssh import SshDevice
from trimtab.model.duration import Duration
from trimtab.model.objectmeta import ObjectMeta
from trimtab.storage.blobs import Digest, read
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.discovery.asking import Asker, Opened
from trimtab.systems.discovery.findings import Access, Identified, Identifier, Login, NotIdentified, Outcome, Tls
from trimtab.systems.discovery.kinds import (
    DiscoveryInfo,
    DiscoveryRule,
    Evidence,
    TargetConnectionProfileSpec,
)
from trimtab.systems.discovery.ledger.attempts import Attempts
from trimtab.systems.discovery.ledger.books import Books
from trimtab.systems.discovery.ledger.records import decode
from trimtab.systems.discovery.settings import Connection, Settings
from trimtab.systems.discovery.vendors.choice import Vendors
from trimtab.testing.clock import FakeClock
from trimtab.testing.ports import free_ports

ADDRESS = "127.46.0.1"


class Door:
    """A way to a device that hangs up on the first few who speak. A probe says nothing, and does not count."""

    def __init__(self, device: SshDevice, breaks_off: int) -> None:
        self._device, self._breaks_off = device, breaks_off
        self.spoken = 0

    @contextlib.asynccontextmanager
    async def open(self, port: int) -> AsyncIterator[None]:
        async with await asyncio.start_server(self._come, ADDRESS, port):
            yield

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            first = await reader.read(4096)
            self.spoken += bool(first)
            if first and self.spoken > self._breaks_off:
                answers, questions = await asyncio.open_connection(self._device.address, self._device.port)
                questions.write(first)
                await asyncio.gather(_carry(reader, questions), _carry(answers, writer))
        writer.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(4096):
            writer.write(data)
            await writer.drain()
    writer.close()


async def swept(station: Station, port: int, connect_retry: str) -> DiscoveryRule:
    await station.secret("login", username="admin", password="right")
    await station.profile("ssh", "ssh", port, connect_retry=Duration(connect_retry))
    await station.ranges("lab", ADDRESS)
    await station.rule("lab", ("ssh",), "login", period="1h")
    return await until_ended(station, lambda rule: True)


async def outcome(station: Station, rule: DiscoveryRule) -> Outcome:
    ledger = decode(await read(station.blobs, Digest(rule.status.ledger), max_bytes=1 << 20))
    return Outcome(ledger.records[ADDRESS].outcome)


@pytest.mark.parametrize(
    ("breaks_off", "connect_retry", "asked", "result"),
    [
        pytest.param(1, "50ms", 2, Outcome.IDENTIFIED, id="once, and it is asked again"),
        pytest.param(1, "0s", 1, Outcome.DISCONNECTED, id="once, and nobody wants it asked again"),
        pytest.param(2, "50ms", 2, Outcome.DISCONNECTED, id="twice, and that is enough"),
    ],
)
async def test_a_device_that_breaks_off_is_asked_once_more_in_the_same_run(
    station: Station, breaks_off: int, connect_retry: str, asked: int, result: Outcome
) -> None:
    (port,) = free_ports(1)
    async with SshDevice(password="right") as device:
        door = Door(device, breaks_off)
        async with door.open(port), station.working():
            rule = await swept(station, port, connect_retry)
            assert len(rule.status.history) == 1
            assert await outcome(station, rule) is result
            assert door.spoken == asked
            assert device.failed_logins == 0


class Moody:
    """A device that does this, one after the other; None is an answer."""

    def __init__(self, *moods: NotIdentified | None) -> None:
        self._moods = list(moods)
        self.asked = 0

    async def identify(self, access: Access) -> Identified:
        self.asked += 1
        mood = self._moods.pop(0)
        if mood is not None:
            raise mood
        return Identified(info=DiscoveryInfo(), evidence=Evidence())

    async def close(self) -> None:
        return


def asker(device: Identifier, clock: FakeClock, folder: Path) -> Asker:
    rule = DiscoveryRule(metadata=ObjectMeta(name="lab", namespace="lab", uid="1"), spec=UNSET)
    book = Kept(FolderBlobs(folder), None, rule)  # type: ignore[arg-type]
    spec = TargetConnectionProfileSpec(protocol="ssh", connect_retry=Duration("10s"))
    settings = Settings(
        rule=rule,
        entries=(),
        connections=(Connection("ssh", spec, (Login("login", {}),)),),
        offers=(),
        tls=Tls(),
        vendors=Vendors([]),
        static=None,
        digest="",
    )
    return Asker(settings, {"ssh": device}, book, Attempts(book, Books(), clock, 900.0), clock)


@pytest.mark.parametrize("why", [Outcome.DISCONNECTED, Outcome.TIMED_OUT])
async def test_the_second_try_is_as_long_after_the_first_as_the_profile_says(tmp_path: Path, why: Outcome) -> None:
    clock, device = FakeClock(), Moody(NotIdentified(why, "it broke off", login="unsent"), None)
    asking = asyncio.create_task(asker(device, clock, tmp_path).ask(ADDRESS, [Opened(0)]))
    await clock.advance(9.9)
    assert device.asked == 1
    await clock.advance(0.1)
    assert device.asked == 2
    assert await asking is not None


@pytest.mark.parametrize(
    "refusal", [Outcome.AUTHENTICATION_FAILED, Outcome.TLS_FAILED, Outcome.KEY_CHANGED, Outcome.PROTOCOL_ERROR]
)
async def test_whoever_judged_us_is_not_asked_again(tmp_path: Path, refusal: Outcome) -> None:
    clock, device = FakeClock(), Moody(NotIdentified(refusal, "no"), None)
    assert await asker(device, clock, tmp_path).ask(ADDRESS, [Opened(0)]) is None
    assert device.asked == 1
