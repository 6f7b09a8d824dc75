from __future__ import annotations

from pathlib import Path

import pytest

from trimtab.terraform.certificate import ensure
from trimtab.terraform.plugin.identity import Identity


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return ensure(str(tmp_path_factory.mktemp("data") / "identity"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where providers that a test starts keep their key."""
    folder = tmp_path / "home"
    monkeypatch.setenv("TRIMTAB_TERRAFORM_HOME", str(folder))
    return folder
