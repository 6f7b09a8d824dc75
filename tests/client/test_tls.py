"""A certificate and its key, shown without a trace on disk."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

import pytest

from trimtab.client.tls import load_pair
from trimtab.testing.pki import Authority


@pytest.fixture(params=["in memory", "in a file"], autouse=True)
def platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in a file":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    elif not hasattr(os, "memfd_create"):
        pytest.skip("this platform has no files in memory")


def test_a_pair_is_loaded_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Authority(tmp_path).client("someone")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, pair.certificate.read_bytes().rstrip(), pair.key.read_bytes())
    assert list(scratch.iterdir()) == []


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, other = authority.client("one"), authority.client("other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with pytest.raises(ssl.SSLError):
        load_pair(context, one.certificate.read_bytes(), other.key.read_bytes())
