"""`stage`: a hub with the platform's kinds, in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.systems.platform.stage import Stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    made = await Stage.made(tmp_path)
    yield made
    await made.close()
