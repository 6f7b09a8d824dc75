from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terraform.framework.terraforming import Terraform, attached
from tests.terraform.framework.toy import Toy, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def tf(tmp_path: Path, world: World) -> Iterator[Terraform]:
    with attached(tmp_path, Toy(world)) as running:
        yield running
