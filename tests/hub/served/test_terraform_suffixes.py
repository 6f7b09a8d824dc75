"""A kind is the same resource of Terraform under every suffix."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub.served.conftest import Home
from tests.hub.served.test_served import answer
from trimtab.terraform.kinds.catalog import definitions
from trimtab.terraform.kinds.definition import Shape
from trimtab.terraform.shipped import shipped_hints


def marks(shape: Shape, path: str = "") -> Iterator[tuple[str, bool, bool]]:
    for field in shape.fields:
        yield f"{path}{field.wire}", field.computed, field.sensitive
        yield from marks(field.shape, f"{path}{field.wire}.")
    if shape.items is not None:
        yield from marks(shape.items, f"{path}*.")


@pytest.mark.row(10)
@pytest.mark.parametrize("kind", ["Addon", "Cluster", "Workload"])
async def test_what_is_secret_and_what_the_system_writes_is_so_under_every_suffix(home: Home, kind: str) -> None:
    loop = asyncio.get_running_loop()

    def get(path: str) -> Any:
        return asyncio.run_coroutine_threadsafe(answer(home, path), loop).result(30)[1]

    made = await asyncio.to_thread(definitions, get, shipped_hints())
    ours, theirs = (set(marks(one.root)) for one in made if (one.kind, one.branch) == (kind, ()))
    assert ours == theirs
