from collections.abc import AsyncIterator

import pytest

from tests.server.api import Api, running


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with running() as api:
        yield api
