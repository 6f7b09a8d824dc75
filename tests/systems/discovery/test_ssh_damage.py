"""A stream that is damaged at any place ends in an outcome, soon, and never in another error."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.systems.discovery.ssh_access import VENDORS, access
from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import EOS
from trimtab.systems.discovery.findings import Identified, NotIdentified
from trimtab.systems.discovery.identify.netconf import NetconfIdentifier


@asynccontextmanager
async def damaging(device: SshDevice, place: int, byte: int) -> AsyncIterator[int]:
    """A way to the device on which one byte of its answers is another. Gives the port."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, at: int) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(4096):
                if 0 <= at < len(data):
                    data = data[:at] + bytes([byte]) + data[at + 1 :]
                at -= len(data)
                writer.write(data)
                await writer.drain()
        writer.close()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_device, to_device = await asyncio.open_connection(device.address, device.port)
        await asyncio.gather(carry(reader, to_device, -1), carry(from_device, writer, place))
        passed.set()

    passed = asyncio.Event()
    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await passed.wait()


async def test_a_stream_that_is_damaged_anywhere_ends_in_an_outcome() -> None:
    chance = random.Random(4)

    async def identify(place: int) -> Identified | NotIdentified:
        async with damaging(device, place, chance.randrange(256)) as port:
            try:
                asked = access("netconf", "127.0.0.1", port, timeout="2s")
                return await NetconfIdentifier(VENDORS).identify(asked)
            except NotIdentified as failure:
                return failure

    async with SshDevice(EOS, lock_after=10_000) as device:
        places = [*range(40), *(chance.randrange(40, 4000) for _ in range(60))]
        found = await asyncio.gather(*(identify(place) for place in places))
    failures = [each for each in found if isinstance(each, NotIdentified)]
    assert failures
    assert all(each.detail.endswith(".") for each in failures)
    assert {each.pin for each in found} == {"", device.pin}  # a key that was claimed and not proved is no evidence
