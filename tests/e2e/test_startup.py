"""What `trimtab up` says when it cannot start: one line that names the cause, and exit code 1."""

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from trimtab.server.serve import Settings, serve
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


def populate(data_dir: Path) -> None:
    async def once() -> None:
        async with serve(Settings(data_dir=data_dir, port=0)):
            pass

    asyncio.run(once())


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """One that a server has used."""
    populate(tmp_path / "data")
    return tmp_path / "data"


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


@pytest.mark.parametrize(("at", "size"), [(0, 4000), (6000, 300)], ids=["pages", "rows"])
def test_a_store_with_damage_in_its_midst_is_named(at: int, size: int, data_dir: Path) -> None:
    store = data_dir / "store.db"
    content = bytearray(store.read_bytes())
    for page in range(2 * 8192, len(content), 8192):
        content[page + at : page + at + size] = random.Random(page).randbytes(size)
    store.write_bytes(content)
    message = refused(data_dir)
    assert message.startswith(f"trimtab: {store} is damaged (")
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"no key"])
def test_a_key_for_tokens_that_cannot_be_used_is_named(content: bytes, data_dir: Path) -> None:
    key = data_dir / "pki" / "sa.key"
    key.write_bytes(content)
    message = refused(data_dir)
    assert message.startswith(f"trimtab: {key} cannot be used: ")
    assert len(message.splitlines()) == 1


def test_a_certificate_authority_without_its_key_is_not_replaced_in_silence(data_dir: Path) -> None:
    pki = data_dir / "pki"
    (pki / "ca.key").unlink()
    message = refused(data_dir)
    assert f"{pki / 'ca.key'} is gone" in message
    assert f"remove {pki / 'ca.crt'} too" in message
    assert len(message.splitlines()) == 1
    (pki / "ca.crt").unlink()
    populate(data_dir)
    assert (pki / "ca.key").exists()


def test_a_refused_start_leaves_the_running_server_at_work(trimtab_server: TrimtabServer) -> None:
    before = trimtab_server.kubeconfig.read_bytes()
    refused(trimtab_server.kubeconfig.parent)
    assert trimtab_server.kubeconfig.read_bytes() == before
    assert (trimtab_server.kubeconfig.parent / "trimtab.sock").is_socket()
