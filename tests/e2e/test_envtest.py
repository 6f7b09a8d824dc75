"""controller-runtime's own tests pass on the stand-ins. `python -m bench.envtest` runs more of them, beside the real ones."""

from pathlib import Path

import pytest
from bench.envtest import compiled, outcome, source

from tests.needs import needs
from trimtab.cli.envtest_install import install


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("go")
    folder = tmp_path_factory.mktemp("controller-runtime")
    assert install(folder / "ours") == 0
    return source(folder)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("package", "at_least"), [("client", 249), ("cache", 264), ("builder", 40), ("webhook", 8)])
def test_controller_runtimes_tests_pass(module: Path, package: str, at_least: int) -> None:
    seen = outcome(module, package, compiled(module, package), module.parent / "ours")
    assert not seen.failed
    assert seen.passed >= at_least
