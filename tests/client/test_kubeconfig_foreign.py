"""Kubeconfigs of others: what is in them neither breaks a request apart nor is shown where it should not be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trimtab.client.config import ConfigError
from trimtab.client.kubeconfig import parse


def foreign(server: str = "https://a.test", **user: Any) -> bytes:
    return json.dumps(
        {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": server}}],
            "users": [{"name": "it", "user": user}],
        }
    ).encode()


@pytest.mark.parametrize(
    ("server", "says"),
    [
        ("https://ann:hush@a.test", "must not hold credentials"),
        ("https://hush@a.test", "must not hold credentials"),
        ("https://a.test:hush", "its port cannot be read"),
        ("https://a.test:99999", "its port cannot be read"),
        ("https://[::1", "cannot be read"),
        ("https://a.test?token=hush", "without ? and #"),
        ("https://a.test#hush", "without ? and #"),
        ("https://a.test/\r\nX-Evil: hush", "without spaces and line breaks"),
        ("https://a.test/ hush", "without spaces and line breaks"),
        ("https:///path", "is no https, http or unix address"),
    ],
)
def test_an_address_is_one_and_holds_nothing_else(server: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(foreign(server), source="Secret x")
    assert says in str(refused.value)
    assert str(refused.value).startswith('Secret x: clusters["it"].cluster.server: ')
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("user", "field"),
    [
        ({"token": "a\r\nX-Evil: 1"}, "token"),
        ({"as": "ann\r\nImpersonate-Group: system:masters"}, "as"),
        ({"as": "ann", "as-groups": ["a\nb"]}, "as"),
        ({"as": "ann", "as-uid": "a\nb"}, "as"),
        ({"as": "ann", "as-user-extra": {"k\r\nX-Evil": ["1"]}}, "as"),
        ({"as": "ann", "as-user-extra": {"k": ["1\n2"]}}, "as"),
    ],
)
def test_what_goes_into_headers_is_one_line(user: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(foreign(**user), source="Secret x")
    assert f'users["it"].user.{field}: ' in str(refused.value)


def test_what_is_right_is_kept_and_named_by_where_it_came_from() -> None:
    config = parse(foreign("https://[::1]:6443/under/", token="t", **{"as": "ann", "as-groups": ["x y"]}), source="S x")
    assert config.server == "https://[::1]:6443/under"
    assert config.headers == (("Impersonate-User", "ann"), ("Impersonate-Group", "x y"))
    assert config.source == "S x"
