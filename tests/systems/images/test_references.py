"""Names of registries, repositories, tags, digests and Images."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.images.registry.references import (
    BadReference,
    Endpoint,
    endpoint,
    image_name,
    is_digest,
    is_repository,
    is_tag,
    matches,
    repository_of,
)

HUB = Endpoint("docker.io", "registry-1.docker.io")


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("registry.example.com", Endpoint("registry.example.com", "registry.example.com")),
        ("https://registry.example.com", Endpoint("registry.example.com", "registry.example.com")),
        ("https://Registry.Example.com:443/", Endpoint("registry.example.com", "registry.example.com")),
        ("registry.example.com:5000", Endpoint("registry.example.com:5000", "registry.example.com:5000")),
        ("https://[::1]:5000", Endpoint("[::1]:5000", "[::1]:5000")),
        ("docker.io", HUB),
        ("https://registry-1.docker.io", HUB),
        ("https://index.docker.io/v1/", HUB),
    ],
)
def test_a_registry_is_named_with_or_without_scheme_and_port(uri: str, expected: Endpoint) -> None:
    assert endpoint(uri) == expected


def test_plain_http_is_only_had_when_it_is_asked_for() -> None:
    assert endpoint("127.0.0.1:5000", plain_http=True).url == "http://127.0.0.1:5000"
    assert endpoint("http://127.0.0.1:5000", plain_http=True).url == "http://127.0.0.1:5000"
    assert endpoint("http://registry.example:80", plain_http=True).url == "http://registry.example"
    with pytest.raises(BadReference, match="plainHTTP"):
        endpoint("http://127.0.0.1:5000")
    with pytest.raises(BadReference, match="leave one"):
        endpoint("https://127.0.0.1:5000", plain_http=True)


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("https://registry.example.com/team", "repositories"),
        ("https://alice:pw@registry.example.com", "authSecret"),
        ("registry.example.com?x=1", "query"),
        ("registry.example.com#x", "query"),
        ("ftp://registry.example.com", "https or http"),
        ("registry.example.com:0", "1 to 65535"),
        ("registry.example.com:65536", "1 to 65535"),
        ("registry.example.com:http", "1 to 65535"),
        ("[::zz]:5000", "IPv6"),
        ("::1", "write it as"),
        ("", "write it as"),
        ("https://", "write it as"),
        ("-a.example", "write it as"),
        ("régistry.example", "ASCII"),
        ("registry.example .com", "ASCII"),
        ("registry.example\n.com", "ASCII"),
    ],
)
def test_a_uri_that_is_none_is_refused_with_what_would_be_right(uri: str, says: str) -> None:
    with pytest.raises(BadReference, match=re.escape(says)):
        endpoint(uri)


def test_a_refusal_does_not_show_a_login() -> None:
    with pytest.raises(BadReference) as refused:
        endpoint("https://alice:hunter2@registry.example.com")
    assert "hunter2" not in str(refused.value)


@given(st.text(max_size=60))
@settings(max_examples=200)
def test_any_text_is_a_registry_or_refused(text: str) -> None:
    try:
        found = endpoint(text)
    except BadReference:
        return
    assert endpoint(found.url) == found


def test_docker_hub_keeps_repositories_of_one_part_in_library() -> None:
    assert repository_of("nginx", HUB) == "library/nginx"
    assert repository_of("grafana/grafana", HUB) == "grafana/grafana"
    assert repository_of("nginx", endpoint("registry.example.com")) == "nginx"


@pytest.mark.parametrize("name", ["a", "a/b", "a-b.c_d__e/f--g", "library/nginx", "0/1"])
def test_repositories_have_a_grammar(name: str) -> None:
    assert is_repository(name)


@pytest.mark.parametrize(
    "name", ["", "A", "a/", "/a", "a//b", "a..b", "../a", "a/../b", "a:1", "a@b", "a b", "a___b", "x" * 256]
)
def test_what_is_no_repository_is_refused(name: str) -> None:
    assert not is_repository(name)
    with pytest.raises(BadReference, match="small letters"):
        repository_of(name, HUB)


def test_tags_and_digests_have_a_grammar() -> None:
    assert all(map(is_tag, ("latest", "v1.2.3", "_x", "1-a", "A" * 128)))
    assert not any(map(is_tag, ("", ".x", "-x", "a/b", "a:b", "A" * 129, "é", "a\n")))
    assert is_digest("sha256:" + "0" * 64)
    assert is_digest("sha512:" + "0" * 128)
    assert not any(map(is_digest, ("sha256:" + "0" * 63, "sha256:" + "G" * 64, "md5:" + "0" * 32, "latest")))


def test_content_matches_the_digest_that_is_its_own() -> None:
    assert matches("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", b"")
    assert not matches("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", b"x")
    assert not matches("nonsense", b"")


TEXTS = st.text(max_size=20)


@given(st.tuples(TEXTS, TEXTS, TEXTS, TEXTS), st.tuples(TEXTS, TEXTS, TEXTS, TEXTS))
@settings(max_examples=200)
def test_image_names_are_valid_names_and_differ_where_any_part_does(
    one: tuple[str, str, str, str], other: tuple[str, str, str, str]
) -> None:
    assert re.fullmatch("[a-z2-7]{52}", image_name(*one))
    assert (image_name(*one) == image_name(*other)) == (one == other)


def test_parts_of_an_image_name_do_not_run_together() -> None:
    assert image_name("r", "a/b", "c", "d") != image_name("r/a", "b", "c", "d")
    assert image_name("r", "ab", "c", "d") != image_name("r", "a", "bc", "d")
