"""Which URLs are contacted at all."""

from __future__ import annotations

import pytest

from trimtab.model.redacted import Redacted
from trimtab.runtime.git import Access, BadAddress, Remote
from trimtab.runtime.git.address import parse


@pytest.mark.parametrize(
    ("url", "scheme", "host", "user"),
    [
        ("https://git.example.com/team/a.git", "https", "git.example.com", ""),
        ("https://git.example.com:8443/a", "https", "git.example.com", ""),
        ("HTTPS://git.example.com/a", "https", "git.example.com", ""),
        ("ssh://git@git.example.com:2222/a.git", "ssh", "git.example.com", "git"),
        ("git@git.example.com:team/a.git", "ssh", "git.example.com", "git"),
        ("git.example.com:a.git", "ssh", "git.example.com", ""),
        ("git@[::1]:a.git", "ssh", "::1", "git"),
        ("http://localhost:3000/a.git", "http", "localhost", ""),
        ("http://127.0.0.1/a.git", "http", "127.0.0.1", ""),
        ("git://[::1]/a.git", "git", "::1", ""),
    ],
)
def test_ordinary_addresses_are_read(url: str, scheme: str, host: str, user: str) -> None:
    address = parse(Remote(url=url))
    assert (address.scheme, address.host, address.user) == (scheme, host, user)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "must not be empty"),
        ("ext::sh -c touch% /tmp/x", "spaces"),
        ("ext::sh", "neither a URL"),
        ("ext::https://git.example.com/a", "helper"),
        ("fd::17", "neither a URL"),
        ("--upload-pack=touch", "neither a URL"),
        ("-oProxyCommand=touch:a", "neither a URL"),
        ("ssh://-oProxyCommand=touch/a", "no host"),
        ("ssh://-x@host/a", "the user before"),
        ("git@-oProxyCommand=x:a", "neither a URL"),
        ("host:-x", "neither a URL"),
        ("https://host/-x", "must not begin with '-'"),
        ("/etc", "neither a URL"),
        ("../a.git", "neither a URL"),
        ("file:///etc", "folder of this machine"),
        ("ftp://host/a", "scheme 'ftp'"),
        ("https://ann:secret@host/a", "must not carry a password"),
        ("https://ann@host/a", "must not carry a user"),
        ("https://host", "no repository"),
        ("https://host/a?x=1", "without '\\?'"),
        ("https://host/a\nb", "control characters"),
        ("https://host:99999/a", "cannot be read"),
        ("https:///a", "no host"),
        ("http://git.example.com/a", "set insecure"),
        ("git://git.example.com/a", "set insecure"),
        ("http://127.0.0.1.example.com/a", "set insecure"),
        ("https://" + "a" * 3000, "at most 2048"),
    ],
)
def test_addresses_that_could_be_more_than_that_are_refused(url: str, why: str) -> None:
    with pytest.raises(BadAddress, match=why) as raised:
        parse(Remote(url=url))
    assert str(raised.value).startswith("spec.endpoint: ")
    assert "secret" not in str(raised.value)


def test_plain_transports_go_to_other_machines_only_when_that_is_said() -> None:
    assert parse(Remote(url="http://git.example.com/a", access=Access(insecure=True))).scheme == "http"
    assert parse(Remote(url="file:///srv/a", allow_file=True)).scheme == "file"


def test_the_repr_of_an_access_shows_no_secret() -> None:
    access = Access(
        username="ann",
        password=Redacted("one"),
        token=Redacted("two"),
        key=Redacted("three"),
        passphrase=Redacted("4x"),
    )
    shown = repr(Remote(url="https://host/a", access=access))
    assert "ann" in shown
    assert not any(secret in shown for secret in ("one", "two", "three", "4x"))
