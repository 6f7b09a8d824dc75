"""Devices that are asked at the same time do not keep each other from their end."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.systems.discovery.test_connect_retry import asker
from trimtab.systems.discovery.asking import Opened
from trimtab.systems.discovery.findings import Access, Identified
from trimtab.systems.discovery.kinds import DiscoveryInfo, Evidence
from trimtab.testing.clock import FakeClock


class TwoKeys:
    """Addresses that show two keys in one session, as behind something that balances load; each in another order."""

    def __init__(self) -> None:
        self._both = asyncio.Barrier(2)

    async def identify(self, access: Access) -> Identified:
        assert access.admit is not None
        first, second = ("one", "two") if access.address.endswith("1") else ("two", "one")
        await access.admit(first)
        await self._both.wait()
        await access.admit(second)
        return Identified(info=DiscoveryInfo(), evidence=Evidence())

    async def close(self) -> None:
        return


async def test_two_that_show_two_keys_each_do_not_wait_for_each_other(tmp_path: Path) -> None:
    asking = asker(TwoKeys(), FakeClock(), tmp_path)
    async with asyncio.timeout(5):
        await asyncio.gather(*(asking.ask(address, [Opened(0)]) for address in ("10.0.0.1", "10.0.0.2")))
