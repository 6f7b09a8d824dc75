"""Many files parsed in processes of their own: reading YAML is slow, and this process has others to serve meanwhile.

Runs in a worker: bytes in, msgpack out. Whatever goes wrong there (a file that takes too long, or too much) is told of the
files of that part; here nothing breaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from trimtab.systems.gitops.parsing import Limits, ParsedFile, is_json, parse_file

if TYPE_CHECKING:
    from trimtab.runtime.workers import Workers

PART = 400
MANY = 600
"""So many new files are worth the trip."""
TIMEOUT = 120.0
MEMORY = 1 << 30


async def parsed_apart(workers: Workers, files: Mapping[str, bytes], limits: Limits) -> dict[str, ParsedFile]:
    """By path. WorkerFailed and its like when a part could not be read at all."""
    import asyncio

    paths = list(files)
    parts = [paths[at : at + PART] for at in range(0, len(paths), PART)]

    async def one(part: Sequence[str]) -> dict[str, ParsedFile]:
        given = [(files[path], is_json(path)) for path in part]
        answer = await workers.run(parse_part, given, limits, timeout=TIMEOUT, memory=MEMORY)
        return dict(zip(part, _decoder.decode(answer), strict=True))

    found: dict[str, ParsedFile] = {}
    for answer in await asyncio.gather(*map(one, parts)):
        found |= answer
    return found


def parse_part(files: list[tuple[bytes, bool]], limits: Limits) -> bytes:
    """In the worker."""
    return _encoder.encode([parse_file(data, json=json, limits=limits) for data, json in files])


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[ParsedFile])
