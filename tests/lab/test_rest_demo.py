"""The servers of the examples by one command."""

from __future__ import annotations

import pytest

from tests.systems.rest.real_examples import SERVERS as EXAMPLES
from tests.systems.rest.real_examples import service
from trimtab.lab.rest_demo import FOLDER, SERVERS, main


def test_each_example_has_its_server() -> None:
    assert set(SERVERS) == set(EXAMPLES)


@pytest.mark.parametrize("name", ["lxd", "docker"])
def test_an_example_looks_for_its_socket_where_the_server_puts_it(name: str) -> None:
    assert service(name).endpoint.startswith(f"unix://{FOLDER}/")


def test_a_server_that_there_is_not_is_told_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nonsense"])
    assert "no server nonsense; there are: lxd, powerdns, alertmanager, docker" in capsys.readouterr().err


def test_a_program_that_is_missing_is_told_by_its_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    assert main(["powerdns"]) == 1
    assert "pdns_server not installed" in capsys.readouterr().err
