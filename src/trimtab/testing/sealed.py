"""Nothing random from outside: what a program draws while sealed comes from one seed.

Uids, name suffixes and jitter ask the system or the module `random`. Both are answered from the seed here. The collector of
cycles is held back, since it runs finalizers at moments that no seed decides; what a program reads from the system's own
clock cannot be held, so pass clocks.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
from collections.abc import Iterator
from typing import Any
from unittest import mock

from trimtab.model import logs
from trimtab.server import settle


@contextlib.contextmanager
def sealed(seed: int | str, logger: Any = None) -> Iterator[None]:
    """While inside, randomness comes from `seed`, and the project's log goes to `logger` if there is one."""
    source = random.Random(f"system {seed}")  # noqa: S311 - texts are hashed the same way everywhere
    state, collecting, log = random.getstate(), gc.isenabled(), logs.log._logger
    gc.disable()
    random.seed(f"module {seed}")
    settle._randomness.clear()  # drawn ahead
    if logger is not None:
        logs.log._logger = logger
    try:
        with (
            mock.patch.object(os, "urandom", source.randbytes),
            mock.patch.object(random, "_urandom", source.randbytes),
            mock.patch.object(random, "Random", _generator(source)),
        ):
            yield
    finally:
        settle._randomness.clear()
        random.setstate(state)
        logs.log._logger = log
        if collecting:
            gc.enable()


def _generator(source: random.Random) -> type[random.Random]:
    """`random.Random` itself asks the system when it is given no seed, past `os.urandom`."""

    class Random(random.Random):
        def __init__(self, seed: Any = None) -> None:
            super().__init__(source.getrandbits(64) if seed is None else seed)

    return Random
