"""Many files parsed in processes of their own: reading YAML is slow, and this process has others to serve meanwhile.

Runs in a worker: bytes in, msgpack out. Whatever goes wrong there (a file that takes too long, or too much) is told of the
files of that part; here nothing breaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from trimtab.systems.gitops.parsing import Limits, ParsedFile, Problem, is_json, parse_file

if TYPE_CHECKING:
    from trimtab.runtime.workers import Workers

PART, PART_BYTES = 400, 1 << 20
MANY, MUCH = 600, 256 << 10
"""So many new files, or so many bytes of them, are worth the trip: of some YAML a megabyte takes seconds."""
TIMEOUT = 120.0
MEMORY = 1 << 30


async def parsed_apart(workers: Workers, files: Mapping[str, bytes], limits: Limits) -> dict[str, ParsedFile]:
    """By path. One that is more than a worker can read has that for a problem. WorkerFailed and its like when a part of
    several could not be read at all."""
    import asyncio

    from trimtab.runtime.workers import WorkerMemory, WorkerMessageTooLarge, WorkerTimeout

    async def one(part: Sequence[str]) -> dict[str, ParsedFile]:
        given = [(files[path], is_json(path)) for path in part]
        try:
            answer = await workers.run(parse_part, given, limits, timeout=TIMEOUT, memory=MEMORY)
        except (WorkerMemory, WorkerMessageTooLarge, WorkerTimeout):
            if len(part) > 1:
                raise
            problem = Problem("", 0, f"takes more than {TIMEOUT:g} s or {MEMORY >> 20} MiB to read: split the file")
            return {part[0]: ParsedFile(problems=(problem,))}
        return dict(zip(part, _decoder.decode(answer), strict=True))

    found: dict[str, ParsedFile] = {}
    for answer in await asyncio.gather(*map(one, parted(files))):
        found |= answer
    return found


def parted(files: Mapping[str, bytes]) -> list[list[str]]:
    """Paths, in parts of so many files and bytes. A larger file is alone."""
    parts: list[list[str]] = []
    used = 0
    for path, data in files.items():
        if not parts or used + len(data) > PART_BYTES or len(parts[-1]) == PART:
            parts.append([])
            used = 0
        parts[-1].append(path)
        used += len(data)
    return parts


def parse_part(files: list[tuple[bytes, bool]], limits: Limits) -> bytes:
    """In the worker."""
    return _encoder.encode([parse_file(data, json=json, limits=limits) for data, json in files])


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[ParsedFile])
