"""Keys and certificates of the server: made once, private, renewed in time, and trusted by real TLS clients."""

from __future__ import annotations

import os
import shutil
import ssl
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest

from trimtab.server.auth.files import UnsafeFileError, read_private, write_private
from trimtab.server.auth.kubeconfig import write_kubeconfig
from trimtab.server.auth.pki import DAY, Pki, ensure_pki, split_pem, ssl_context
from trimtab.server.serve import Settings, serve


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return ensure_pki(tmp_path / "pki")


def _content(pki: Pki) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in pki.directory.iterdir()}


def _names(pki: Pki) -> str:
    shown = subprocess.run(
        ["openssl", "x509", "-in", pki.serving, "-noout", "-ext", "subjectAltName"],
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout


def test_a_second_start_changes_nothing(pki: Pki) -> None:
    before = _content(pki)
    ensure_pki(pki.directory)
    assert _content(pki) == before


def test_directory_and_files_are_for_their_owner_only(pki: Pki) -> None:
    assert stat.S_IMODE(pki.directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in pki.directory.iterdir()} == {0o600}


def test_loading_does_not_need_cryptography(pki: Pki) -> None:
    code = (
        "import sys, pathlib\n"
        "from trimtab.server.auth.pki import ensure_pki, ssl_context\n"
        "ssl_context(ensure_pki(pathlib.Path(sys.argv[1])))\n"
        "assert 'cryptography' not in sys.modules\n"
    )
    subprocess.run([os.sys.executable, "-c", code, str(pki.directory)], check=True)


def test_new_hosts_renew_the_serving_certificate_under_the_same_ca(pki: Pki) -> None:
    before = _content(pki)
    ensure_pki(pki.directory, ["Example.test", "10.0.0.7"])
    after = _content(pki)
    assert (after["ca.crt"], after["sa.key"]) == (before["ca.crt"], before["sa.key"])
    assert after["serving.pem"] != before["serving.pem"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_the_serving_certificate_names_all_hosts(pki: Pki) -> None:
    ensure_pki(pki.directory, ["example.test", "10.0.0.7"])
    names = _names(pki)
    for name in ("DNS:localhost", "IP Address:127.0.0.1", "DNS:kubernetes.default.svc", "DNS:example.test"):
        assert name in names


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize(("file", "purpose"), [("serving.pem", "sslserver"), ("admin.pem", "sslclient")])
def test_openssl_accepts_each_certificate_for_its_purpose(pki: Pki, file: str, purpose: str) -> None:
    command = ["openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile", pki.ca, pki.directory / file]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(("days", "renewed"), [(300, False), (340, True)])
def test_certificates_are_renewed_within_a_month_of_their_end(pki: Pki, days: int, renewed: bool) -> None:
    before = _content(pki)
    ensure_pki(pki.directory, now=time.time() + days * DAY)
    after = _content(pki)
    assert (after["serving.pem"] != before["serving.pem"], after["admin.pem"] != before["admin.pem"]) == (
        renewed,
        renewed,
    )
    assert after["ca.crt"] == before["ca.crt"]


def test_a_lost_state_keeps_the_ca_and_the_tokens(pki: Pki) -> None:
    before = _content(pki)
    pki.state.unlink()
    ensure_pki(pki.directory)
    after = _content(pki)
    for kept in ("ca.crt", "ca.key", "sa.key", "admin.token"):
        assert after[kept] == before[kept]


def test_a_ca_that_does_not_fit_its_key_is_refused(pki: Pki, tmp_path: Path) -> None:
    other = ensure_pki(tmp_path / "other")
    write_private(pki.ca_key, other.ca_key.read_bytes())
    pki.state.unlink()
    with pytest.raises(UnsafeFileError, match="do not belong together"):
        ensure_pki(pki.directory)


def test_a_symbolic_link_is_neither_read_nor_written(tmp_path: Path) -> None:
    target = tmp_path / "target"
    write_private(target, b"secret")
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(UnsafeFileError):
        read_private(link)
    with pytest.raises(UnsafeFileError):
        write_private(link, b"other")
    assert target.read_bytes() == b"secret"


def test_a_linked_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "pki").symlink_to(tmp_path / "real")
    with pytest.raises(UnsafeFileError):
        ensure_pki(tmp_path / "pki")


def test_a_key_that_others_can_read_is_refused(pki: Pki) -> None:
    pki.service_account_key.chmod(0o644)
    with pytest.raises(UnsafeFileError, match="chmod 600"):
        ensure_pki(pki.directory)


def _handshake(pki: Pki, client: ssl.SSLContext) -> tuple[bytes | None, str | None]:
    """One TLS connection over loopback; what the server learned of the client: its certificate and the protocol."""
    import socket

    seen: list[tuple[bytes | None, str | None]] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            try:
                with ssl_context(pki).wrap_socket(connection, server_side=True) as wrapped:
                    seen.append((wrapped.getpeercert(binary_form=True), wrapped.selected_alpn_protocol()))
                    wrapped.sendall(b"x")
            except ssl.SSLError:
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with (
                socket.create_connection(listener.getsockname(), timeout=5) as raw,
                client.wrap_socket(raw, server_hostname="localhost") as wrapped,
            ):
                wrapped.recv(1)
        finally:
            thread.join()
    return seen[0]


def _client(pki: Pki, certificate: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(pki.ca))
    context.set_alpn_protocols(["h2", "http/1.1"])
    if certificate is not None:
        context.load_cert_chain(certificate)
    return context


def test_a_client_without_a_certificate_is_served(pki: Pki) -> None:
    assert _handshake(pki, _client(pki)) == (None, "http/1.1")


def test_the_administrator_certificate_reaches_the_server(pki: Pki) -> None:
    certificate, _ = _handshake(pki, _client(pki, pki.admin))
    assert certificate == ssl.PEM_cert_to_DER_cert(split_pem(pki.admin.read_bytes())[0].decode())


def test_a_certificate_of_another_ca_ends_the_handshake(pki: Pki, tmp_path: Path) -> None:
    stranger = ensure_pki(tmp_path / "stranger")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        _handshake(pki, _client(pki, stranger.admin))


def test_a_serving_certificate_does_not_authenticate_a_client(pki: Pki) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        _handshake(pki, _client(pki, pki.serving))


def test_old_protocols_are_refused(pki: Pki) -> None:
    assert ssl_context(pki).minimum_version == ssl.TLSVersion.TLSv1_2


def test_the_kubeconfig_is_private_and_complete(pki: Pki, tmp_path: Path) -> None:
    from trimtab.model import yaml

    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, "https://127.0.0.1:7443", pki)
    config = yaml.load(path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:7443"
    assert set(config["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}


def test_a_kubeconfig_can_be_for_a_token(pki: Pki, tmp_path: Path) -> None:
    from trimtab.model import yaml

    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, "https://127.0.0.1:7443", pki, token="t: #1")
    assert yaml.load(path.read_text())["users"][0]["user"] == {"token": "t: #1"}


async def test_a_data_directory_that_everybody_can_write_is_refused(tmp_path: Path) -> None:
    """Whoever can put a store there is the administrator."""
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(UnsafeFileError, match="can be written by everybody"):
        async with serve(Settings(data_dir=folder, port=0)):
            pass
    assert not list(folder.iterdir())
