"""What `trimtab up` says when it cannot start: one line that names the cause, and exit code 1."""

import subprocess
import sys
from pathlib import Path

import pytest

from trimtab.testing.embedded import TrimtabServer

TRIMTAB = str(Path(sys.executable).with_name("trimtab"))


def refused(data_dir: Path, *flags: str, code: int = 1) -> str:
    """The words of a start that must fail."""
    command = [TRIMTAB, "up", "--data-dir", str(data_dir), "--port", "0", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr


def test_a_data_directory_has_one_server(trimtab_server: TrimtabServer) -> None:
    message = refused(trimtab_server.kubeconfig.parent)
    assert "in use" in message
    assert str(trimtab_server.pids["server"]) in message
    assert len(message.splitlines()) == 1


def test_a_port_has_one_server(trimtab_server: TrimtabServer, tmp_path: Path) -> None:
    port = trimtab_server.url.rpartition(":")[2]
    message = refused(tmp_path / "data", "--port", port)
    assert "in use" in message
    assert port in message
    assert len(message.splitlines()) == 1


def test_a_port_is_a_number_of_16_bits(tmp_path: Path) -> None:
    assert "99999" in refused(tmp_path / "data", "--port", "99999", code=2)


def test_an_address_of_another_machine_is_refused(tmp_path: Path) -> None:
    assert "192.0.2.1" in refused(tmp_path / "data", "--host", "192.0.2.1")


@pytest.mark.parametrize("place", ["file/data", "/proc/trimtab"])
def test_a_data_directory_that_cannot_be_made_is_named(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    message = refused(tmp_path / place)
    assert str(tmp_path / place) in message
    assert len(message.splitlines()) == 1


def test_a_foreign_file_in_the_place_of_the_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("not a database, but somebody's text")
    message = refused(tmp_path)
    assert "store.db" in message
    assert (tmp_path / "store.db").read_text() == "not a database, but somebody's text"


def test_a_refused_start_leaves_the_running_server_at_work(trimtab_server: TrimtabServer) -> None:
    before = trimtab_server.kubeconfig.read_bytes()
    refused(trimtab_server.kubeconfig.parent)
    assert trimtab_server.kubeconfig.read_bytes() == before
    assert (trimtab_server.kubeconfig.parent / "trimtab.sock").is_socket()
