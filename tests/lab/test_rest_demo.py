"""The servers of the examples by one command."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.systems.rest.real_examples import SERVERS as EXAMPLES
from tests.systems.rest.real_examples import service
from trimtab.lab import rest_demo
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


class Server:
    """One that only keeps a file."""

    url = "http://127.0.0.1:1"

    def __init__(self, folder: Path) -> None:
        (folder / "zones").touch()

    def stop(self) -> None: ...


def test_a_demo_that_comes_second_leaves_the_files_of_the_first_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "lab"
    monkeypatch.setattr(rest_demo, "FOLDER", folder)
    monkeypatch.setattr(rest_demo, "SERVERS", {"powerdns": ("true", lambda folder: Server(folder / "powerdns"))})
    ends: list[int] = []

    def meanwhile() -> None:
        ends.append(main(["powerdns"]))
        assert (folder / "powerdns" / "zones").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(signal, "pause", meanwhile)
    assert main(["powerdns"]) == 0
    assert ends == [1]
    assert "another demo serves powerdns already" in capsys.readouterr().err
    assert not folder.exists()
