"""The key and certificate: private, renewed in time, and never half there."""

from __future__ import annotations

import os
import ssl
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from tests.needs import needs
from trimtab.terraform.certificate import LIFE, ensure
from trimtab.terraform.plugin.identity import DAY, MAKER, RENEW, Unsafe, find, folder
from trimtab.terraform.plugin.renewal import NoMaker, renewed


def test_it_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    os.umask(old := os.umask(0))  # whatever the umask is
    os.umask(0)
    try:
        made = ensure(str(tmp_path / "a" / "b"))
    finally:
        os.umask(old)
    assert os.stat(made.path).st_mode & 0o777 == 0o600
    assert os.stat(tmp_path / "a" / "b").st_mode & 0o777 == 0o700


def test_it_is_a_p256_certificate_for_localhost_that_ends_when_its_name_says(tmp_path: Path) -> None:
    made = ensure(str(tmp_path / "a"))
    certificate = x509.load_pem_x509_certificate(Path(made.path).read_bytes())
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)
    assert int(certificate.not_valid_after_utc.timestamp()) == made.ends == int(Path(made.path).stem)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    certificate.verify_directly_issued_by(certificate)


def test_it_is_kept_until_it_nears_its_end_and_then_renewed(tmp_path: Path) -> None:
    where = str(tmp_path / "a")
    now = time.time()
    first = ensure(where, now)
    assert ensure(where, now + LIFE - RENEW - DAY) == first
    second = ensure(where, now + LIFE - RENEW + DAY)
    assert second.ends > first.ends
    assert second.certificate != first.certificate
    assert os.path.exists(first.path)  # a provider that has just started may be about to load it
    third = ensure(where, now + LIFE + LIFE)
    assert not os.path.exists(first.path)
    assert find(where, now + LIFE + LIFE) == third


def test_one_that_has_ended_is_not_used(tmp_path: Path) -> None:
    where = str(tmp_path / "a")
    made = ensure(where)
    assert find(where, made.ends - 1) == made
    assert find(where, made.ends) is None
    assert find(str(tmp_path / "nothing")) is None


def test_many_makers_at_once_make_one(tmp_path: Path) -> None:
    where = str(tmp_path / "a")
    code = f"from trimtab.terraform.certificate import ensure; print(ensure({where!r}).certificate)"
    with ThreadPoolExecutor(4) as threads:
        made = set(threads.map(lambda _: subprocess.check_output([sys.executable, "-c", code]), range(4)))
    assert len(made) == 1
    assert len(list(Path(where).glob("*.pem"))) == 1


def test_what_a_maker_that_died_left_behind_is_cleared_and_never_used(tmp_path: Path) -> None:
    where = tmp_path / "a"
    where.mkdir(mode=0o700)
    (where / ".1234.partial").write_text("-----BEGIN CERT")
    made = ensure(str(where))
    assert sorted(path.name for path in where.iterdir()) == sorted([".lock", MAKER, os.path.basename(made.path)])


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o620, 0o602])
def test_a_key_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    made = ensure(str(tmp_path / "a"))
    os.chmod(made.path, mode)
    with pytest.raises(Unsafe, match=f"mode {mode:04o}"):
        find(str(tmp_path / "a"))


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    ensure(str(tmp_path / "a"))
    os.chmod(tmp_path / "a", 0o755)
    with pytest.raises(Unsafe, match="mode 0755"):
        find(str(tmp_path / "a"))


def test_a_file_that_holds_no_certificate_is_named(tmp_path: Path) -> None:
    made = ensure(str(tmp_path / "a"))
    Path(made.path).write_text("nothing")
    with pytest.raises(Unsafe, match="holds no certificate"):
        find(str(tmp_path / "a"))


def test_a_provider_that_cannot_make_one_asks_the_python_that_made_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = str(tmp_path / "a")
    first = ensure(where, time.time() - LIFE + DAY)
    monkeypatch.setitem(sys.modules, "cryptography", None)  # as in a provider that was started with -S
    second = renewed(where)
    assert second.ends > first.ends + DAY


def test_a_provider_that_cannot_and_knows_nobody_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setenv("PATH", str(tmp_path))  # no openssl either
    with pytest.raises(NoMaker, match="trimtab terraform install"):
        renewed(str(tmp_path / "a"))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HOME": "/h"}, "/h/.local/share/trimtab/terraform/identity"),
        ({"HOME": "/h", "XDG_DATA_HOME": "/x"}, "/x/trimtab/terraform/identity"),
        ({"HOME": "/h", "XDG_DATA_HOME": "relative"}, "/h/.local/share/trimtab/terraform/identity"),
        ({"HOME": "/h", "XDG_DATA_HOME": "/x", "TRIMTAB_TERRAFORM_HOME": "/t"}, "/t/identity"),
    ],
)
def test_where_it_lies(environment: dict[str, str], expected: str) -> None:
    assert folder(environment) == expected


def test_openssl_makes_one_where_python_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("openssl")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    made = renewed(str(tmp_path / "identity"))
    assert stat.S_IMODE(os.stat(made.path).st_mode) == 0o600
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.path)
    assert renewed(str(tmp_path / "identity")) == made, "once"


def test_an_openssl_that_fails_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    broken = tmp_path / "openssl"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    with pytest.raises(NoMaker, match="openssl could not make a certificate"):
        renewed(str(tmp_path / "identity"))


def test_a_maker_that_is_gone_is_no_hindrance_where_there_is_openssl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("openssl")
    where = tmp_path / "a"
    first = ensure(str(where), time.time() - LIFE + DAY)
    (where / MAKER).write_text("/no/such/python")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert renewed(str(where)).ends > first.ends + DAY
    for key in where.glob("*.pem"):
        key.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoMaker, match=r"by /no/such/python .*trimtab terraform install"):
        renewed(str(where))
