"""What a user writes after --blobs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trimtab.storage.connect import BlobsConfigError, blobs


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    return file


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("data/blobs", "FolderBlobs('data/blobs')"),
        ("/var/lib/blobs", "FolderBlobs('/var/lib/blobs')"),
        ("file:///var/lib/my%20blobs", "FolderBlobs('/var/lib/my blobs')"),
        ("postgresql://me:s3cret@db.example/trimtab", "PostgresBlobs('postgresql://db.example/trimtab')"),
        ("postgres://db.example/trimtab", "PostgresBlobs('postgres://db.example/trimtab')"),
        ("https://hub.example/storage/", "HttpBlobs('https://hub.example/storage')"),
    ],
)
def test_each_form_names_its_place_and_no_secret(url: str, shown: str, token_file: Path) -> None:
    assert repr(blobs(url, token_file=token_file)) == shown


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "--blobs is empty"),
        ("s3://bucket", "--blobs does not know s3://: give a folder"),
        ("file://host/folder", "write file:///FOLDER"),
        ("https://hub.example:port", "--blobs is no URL"),
        ("http://hub.example", "--blobs: blobs over HTTP need https://"),
    ],
)
def test_what_cannot_be_used_is_said(url: str, says: str, token_file: Path) -> None:
    with pytest.raises(BlobsConfigError, match=re.escape(says)):
        blobs(url, token_file=token_file)


def test_https_needs_a_token_file() -> None:
    with pytest.raises(BlobsConfigError, match="--blobs-token-file"):
        blobs("https://hub.example")


@pytest.mark.parametrize("content", ["", "two words", "two\nlines", "t\u00f6ken"])
def test_a_token_file_without_a_token_is_said_without_its_content(tmp_path: Path, content: str) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    with pytest.raises(BlobsConfigError, match="token file") as caught:
        blobs("https://hub.example", token_file=file)
    assert not content or content not in str(caught.value)


def test_a_certificate_file_that_is_none_is_said(tmp_path: Path, token_file: Path) -> None:
    with pytest.raises(BlobsConfigError, match="--blobs-ca-file"):
        blobs("https://hub.example", token_file=token_file, ca_file=token_file)
    with pytest.raises(BlobsConfigError, match="--blobs-ca-file"):
        blobs("https://hub.example", token_file=token_file, ca_file=tmp_path / "nothing")
