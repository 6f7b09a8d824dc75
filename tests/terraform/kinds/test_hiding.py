"""Secrets that a server quotes when it refuses them: the user is told where, and not what they are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.terraform.kinds.terraforming import Terraform
from trimtab.terraform.framework.diagnostics import Diagnostics
from trimtab.terraform.kinds.api import ApiError
from trimtab.terraform.kinds.definition import INTEGER, JSON, MAP, OBJECT, STRING, Definition, Field, Shape
from trimtab.terraform.kinds.telling import told

TEXTS = Shape(MAP, items=Shape(STRING))
SPEC = Shape(
    OBJECT,
    fields=(
        Field("code", "code", Shape(STRING), sensitive=True),
        Field("free", "free", Shape(JSON), sensitive=True),
        Field("keys", "keys", TEXTS, write_only=True),
        Field("pin", "pin", Shape(INTEGER), sensitive=True),
        Field("plain", "plain", Shape(STRING)),
    ),
)
SAFE = Definition(
    "safe", "safes", "g", "v1", "Safe", "safes", False, False, Shape(OBJECT, fields=(Field("spec", "spec", SPEC),))
)
BODY = {
    "spec": {"code": 'hunter "2', "free": {"a": ["xyzzy"]}, "keys": {"k": "plugh"}, "pin": 4711, "plain": "seen"},
}


def said(message: str, *causes: tuple[str, str]) -> list[str]:
    diagnostics = Diagnostics()
    details = {"causes": [{"field": field, "message": text} for field, text in causes]}
    error = ApiError(422, {"reason": "Invalid", "message": message, "details": details})
    failed = told(error, "It cannot be made", SAFE, BODY, diagnostics)
    return [one.detail for one in (*diagnostics.items, failed.diagnostic)]


@pytest.mark.parametrize(
    ("field", "text", "seen"),
    [
        ("spec.code", 'Invalid value: "hunter \\"2": too weak', "Invalid value: (sensitive value): too weak"),
        ("spec.code", 'Invalid value: "changed by a webhook": no', "Invalid value: (sensitive value): no"),
        ("spec.keys[k]", 'Invalid value: "plugh": no', "Invalid value: (sensitive value): no"),
        ("spec.pin", "Invalid value: 4711: must be less", "Invalid value: (sensitive value): must be less"),
        (
            "spec",
            'Invalid value: {"free":{"a":["xyzzy"]}}: no',
            'Invalid value: {"free":{"a":["(sensitive value)"]}}: no',
        ),
        ("spec.plain", 'Invalid value: "seen": no', 'Invalid value: "seen": no'),
    ],
)
def test_a_cause_tells_no_secret(field: str, text: str, seen: str) -> None:
    assert said("", (field, text)) == [seen]
    assert said("", ("spec.plain", "first"), (field, text)) == ["first", seen]


def test_a_message_without_causes_tells_no_secret() -> None:
    assert said("denied: xyzzy and plugh, 4711 but 47110") == [
        "denied: (sensitive value) and (sensitive value), (sensitive value) but 47110"
    ]


def test_a_secret_that_the_server_refuses_is_not_shown(sea: Terraform) -> None:
    spec: dict[str, Any] = {"depth": 1, "code": "hunter 2"}
    it = {"metadata": {"name": "safe"}, "spec": spec, "wait": False}
    told = sea.apply({"trimtab_water_buoy": {"it": it}}, fails=True)
    assert "Buoy default/safe cannot be created" in told
    assert "should match '^[^ ]*$'" in told
    assert "hunter 2" not in told.replace('"code": "hunter 2"', "")


def test_a_refusal_names_the_key_of_a_secret_and_not_its_value(tf: Terraform) -> None:
    it = {"metadata": {"name": "it"}, "string_data": {"a key": "xyzzy"}}
    told = tf.apply({"trimtab_core_secret": {"it": it}}, fails=True)
    assert "data[a key]: Invalid value" in told
    assert "xyzzy" not in told.replace('"a key": "xyzzy"', "")


def test_a_refusal_names_what_is_missing(tf: Terraform) -> None:
    it = {"metadata": {"name": "it"}, "type": "kubernetes.io/tls", "string_data": {"other": "xyzzy"}}
    told = tf.apply({"trimtab_core_secret": {"it": it}}, fails=True)
    assert "data[tls.crt]: Required value" in told
    assert "data[tls.key]: Required value" in told
