"""What may be remembered of a body, and shown of a resource."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from tests.systems.rest.syncing_kit import KEY, kind
from trimtab.systems.rest.model import FieldClass, Node
from trimtab.systems.rest.syncing.secrets import LIMIT, observed, sealed

MODEL = kind()


def test_secrets_are_sealed_wherever_they_are() -> None:
    body = {
        "tags": {"a": "1"},
        "properties": {
            "secret": "hunter2",
            "create": "x",
            "rules": [{"name": "a", "password": "hunter2"}],
            "steps": [{"x": 1, "key": "sesame"}],
        },
    }
    kept = sealed(MODEL, body, KEY)
    text = json.dumps(kept)
    assert "hunter2" not in text
    assert "sesame" not in text
    assert kept["tags"] == {"a": "1"}
    assert kept["properties"]["secret"].startswith("hmac-sha256:")
    assert kept["properties"]["rules"][0]["name"] == "a"


def test_a_seal_tells_two_secrets_apart_and_needs_the_key() -> None:
    def seal(secret: Any, key: bytes = KEY) -> Any:
        return sealed(MODEL, {"properties": {"secret": secret}}, key)["properties"]["secret"]

    assert seal("a") == seal("a")
    assert seal("a") != seal("b")
    assert seal("a") != seal("a", b"another")
    assert seal(None) is None
    assert seal({"a": 1, "b": 2}) == seal({"b": 2, "a": 1})


def test_neither_secrets_nor_masks_are_shown() -> None:
    shown, cut = observed(
        MODEL,
        {
            "id": "x",
            "properties": {
                "secret": "hunter2",
                "note": "***",
                "rules": [{"name": "a", "password": "", "state": "ok"}],
                "steps": [{"x": 1, "key": "sesame"}],
            },
        },
    )
    assert shown == {"id": "x", "properties": {"rules": [{"name": "a", "state": "ok"}], "steps": [{"x": 1}]}}
    assert not cut


def test_what_only_an_answer_has_may_be_a_secret_too() -> None:
    keys = Node(type="object", properties={"accessKey": Node(type="string", field=FieldClass.SECRET)})
    model = msgspec.structs.replace(MODEL, observed=keys)
    assert observed(model, {"accessKey": "sesame", "id": "x"}) == ({"id": "x"}, False)


def test_a_secret_that_is_echoed_elsewhere_is_not_shown() -> None:
    live = {"id": "x", "url": "https://user:hunter2@127.0.0.1", "log": ["it is hunter2"], "hunter2": 1}
    assert observed(MODEL, live, secrets=["hunter2", ""]) == ({"id": "x", "log": []}, False)


def test_a_large_resource_is_cut_at_its_largest_parts() -> None:
    live = {
        "id": "x",
        "properties": {"size": 1, "log": ["line"] * 100_000, "net": {"a": "y" * 200_000, "b": "small"}},
    }
    shown, cut = observed(MODEL, live)
    assert cut
    assert len(msgspec.json.encode(shown)) <= LIMIT
    assert shown["id"] == "x"
    assert shown["properties"]["size"] == 1
    assert shown["properties"]["net"]["b"] == "small"
    assert shown["properties"]["log"].startswith("<left out: ")


def test_however_large_it_is_it_fits() -> None:
    many = {f"k{number}": "v" * 10 for number in range(20_000)}
    shown, cut = observed(MODEL, {"tags": many})
    assert cut
    assert len(msgspec.json.encode(shown)) <= LIMIT
    wide, cut = observed(MODEL, many)
    assert cut
    assert len(msgspec.json.encode(wide)) <= LIMIT


def test_a_resource_without_end_is_shown_as_deep_as_it_may_be() -> None:
    live: dict[str, Any] = {}
    for _ in range(500):
        live = {"a": live}
    shown, _ = observed(MODEL, live)
    assert json.dumps(shown).count("a") < 100
