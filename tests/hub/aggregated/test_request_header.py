"""Who a front proxy says is asking: believed by its certificate, or not at all."""

import datetime
import json
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from trimtab.server.auth.request_header import FrontProxy, RequestHeader, front_proxy
from trimtab.testing import pki
from trimtab.testing.pki import Authority, Pair

HEADERS = (
    (b"x-remote-user", b"anna"),
    (b"x-remote-group", b"makers"),
    (b"x-remote-group", b"system:authenticated"),
    (b"x-remote-uid", b"u-1"),
    (b"x-remote-extra-scopes", b"a"),
    (b"x-remote-extra-scopes", b"b"),
    (b"x-remote-extra-example.com%2fteam", "grün".encode()),
)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, name="front-proxy-ca")


def der(pair: Pair) -> bytes:
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    return certificate.public_bytes(serialization.Encoding.DER)


def proxy(authority: Authority, *names: str) -> RequestHeader:
    return RequestHeader(FrontProxy(ca=authority.certificate.read_bytes(), names=names, uid=("x-remote-uid",)))


@pytest.mark.row(21)
def test_the_front_proxy_tells_all_of_a_user(authority: Authority) -> None:
    user = proxy(authority, "proxy").user(der(authority.client("proxy")), HEADERS)
    assert user is not None
    assert (user.name, user.uid, user.groups) == ("anna", "u-1", ("makers", "system:authenticated"))
    assert user.extra == {"scopes": ("a", "b"), "example.com/team": ("grün",)}


@pytest.mark.row(21)
def test_headers_of_anybody_else_are_nothing(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other", name="front-proxy-ca")  # of the same name, with another key
    believed = proxy(authority, "proxy")
    assert believed.user(None, HEADERS) is None
    assert believed.user(der(other.client("proxy")), HEADERS) is None
    assert believed.user(der(authority.client("another")), HEADERS) is None
    assert believed.user(der(authority.server("proxy")), HEADERS) is None  # a certificate for servers
    assert believed.user(b"nonsense", HEADERS) is None
    assert proxy(authority).user(der(authority.client("another")), HEADERS) is not None  # no names: all of them


def test_a_proxy_that_names_nobody_is_nobody(authority: Authority) -> None:
    peer = der(authority.client("proxy"))
    assert proxy(authority).user(peer, ()) is None
    assert proxy(authority).user(peer, ((b"x-remote-group", b"system:masters"),)) is None


def test_who_is_named_counts_as_authenticated_but_for_the_anonymous(authority: Authority) -> None:
    peer, believed = der(authority.client("proxy")), proxy(authority)
    named = believed.user(peer, ((b"x-remote-user", b"system:aggregator"),))
    assert named is not None
    assert named.groups == ("system:authenticated",)
    nobody = believed.user(
        peer, ((b"x-remote-user", b"system:anonymous"), (b"x-remote-group", b"system:unauthenticated"))
    )
    assert nobody is not None
    assert nobody.groups == ("system:unauthenticated",)


def test_a_certificate_is_believed_until_it_ends(authority: Authority) -> None:
    now = datetime.datetime.now(datetime.UTC).timestamp()
    believed = RequestHeader(FrontProxy(ca=authority.certificate.read_bytes()), now=lambda: now)
    peer = der(authority.client("proxy"))
    assert believed.user(peer, HEADERS) is not None
    now += 8 * 86_400
    assert believed.user(peer, HEADERS) is None


def test_nobody_is_believed_for_longer_than_its_authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as short:
        short.setattr(pki, "_VALID", datetime.timedelta(days=1))
        authority = Authority(tmp_path, name="front-proxy-ca")
    now = datetime.datetime.now(datetime.UTC).timestamp()
    believed = RequestHeader(FrontProxy(ca=authority.certificate.read_bytes()), now=lambda: now)
    peer = der(authority.client("proxy"))
    assert believed.user(peer, HEADERS) is not None
    now += 2 * 86_400
    assert believed.user(peer, HEADERS) is None


def test_whom_to_believe_can_change_while_it_runs(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "next").mkdir()
    following = Authority(tmp_path / "next", name="next-ca")
    old, new = der(authority.client("proxy")), der(following.client("proxy"))
    believed = proxy(authority)
    both = authority.certificate.read_bytes() + following.certificate.read_bytes()
    believed.use(FrontProxy(ca=both))
    assert all(believed.user(peer, HEADERS) for peer in (old, new))
    believed.use(FrontProxy(ca=following.certificate.read_bytes()))
    assert believed.user(old, HEADERS) is None
    assert believed.user(new, HEADERS) is not None


def test_the_clusters_configuration_is_read_as_it_is_published(authority: Authority) -> None:
    ca = authority.certificate.read_text()
    found = front_proxy(
        {
            "requestheader-client-ca-file": ca,
            "requestheader-allowed-names": json.dumps(["front-proxy-client"]),
            "requestheader-username-headers": json.dumps(["X-Remote-User", "X-Other"]),
            "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
            "requestheader-extra-headers-prefix": json.dumps(["X-Remote-Extra-"]),
        }
    )
    assert (found.names, found.username) == (("front-proxy-client",), ("x-remote-user", "x-other"))
    assert found.headers == (b"x-remote-user", b"x-other", b"x-remote-group", b"x-remote-extra-")
    told = front_proxy({"requestheader-client-ca-file": ca, "requestheader-uid-headers": json.dumps(["X-Remote-Uid"])})
    assert told.uid == ("x-remote-uid",)


def test_a_uid_counts_only_where_the_cluster_names_its_header(authority: Authority) -> None:
    believed = RequestHeader(FrontProxy(ca=authority.certificate.read_bytes()))
    user = believed.user(der(authority.client("proxy")), HEADERS)
    assert user is not None
    assert user.uid == ""


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "requestheader-client-ca-file"),
        ({"requestheader-client-ca-file": "x"}, "holds no certificate"),
        ({"requestheader-client-ca-file": "BEGIN CERTIFICATE", "requestheader-allowed-names": "x"}, "allowed-names"),
        ({"requestheader-client-ca-file": "BEGIN CERTIFICATE", "requestheader-allowed-names": "[1]"}, "allowed-names"),
    ],
)
def test_a_configuration_that_says_nothing_names_the_key(data: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        front_proxy(data)
