"""A process that writes rows without end, and prints the number and revision of each as soon as it is acknowledged."""

from __future__ import annotations

import asyncio
import sys

from tests.hub.storage.rows import key, put
from trimtab.hub.storage.connect import storage as connect
from trimtab.hub.storage.contract import RowConflict, StorageUnavailable


async def main(url: str, name: str, count: int) -> None:
    storage = connect(url)
    await storage.ready()

    async def one(number: int) -> None:
        while True:
            try:
                row = await storage.commit(put(key(f"{name}-{number}"), expect=0, body={"n": number}))
            except (StorageUnavailable, RowConflict) as error:
                print("failed", number, type(error).__name__, flush=True)
                if isinstance(error, RowConflict):
                    return
            else:
                print("stored", number, row.revision, flush=True)
                return

    async def lane(start: int) -> None:
        for number in range(start, count, 8):
            await one(number)

    await asyncio.gather(*map(lane, range(8)))
    await storage.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
