"""Our walker and schema check give the answers that kube-apiserver 1.32.13 gave, message by message.

`test_schema_answers.json` holds them; `test_schema_cluster.py` asks a real server again.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from trimtab.model.errors import FieldError
from trimtab.model.schema import Schema
from trimtab.model.schema.gotext import shown
from trimtab.model.schema.structural import check

ANSWERS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
ROOT = "spec.validation.openAPIV3Schema"


def document() -> dict[str, Any]:
    """One kind with all the fields, each in an object of its own so that defaults stay out of the others' way."""
    fields = ANSWERS["fields"]
    return {
        "type": "object",
        "properties": {name: {"type": "object", "properties": {"v": part}} for name, part in fields.items()},
    }


def said(error: FieldError) -> list[str]:
    """A cause, with the value as Go prints it."""
    silent = error.problem.value[0] in ("Required value", "Forbidden", "Too long")
    value = "" if silent else f": {shown(error.value)}"
    detail = f": {error.detail}" if error.detail else ""
    return [error.path, error.problem.value[1], f"{error.problem.value[0]}{value}{detail}"]


SCHEMA = Schema(document())


@pytest.mark.parametrize("answer", ANSWERS["answers"], ids=lambda a: f"{a['field']}-{json.dumps(a['value'])[:40]}")
def test_a_value_is_judged_as_by_the_real_server(answer: dict[str, Any]) -> None:
    field = answer["field"]
    obj = {"apiVersion": "x.dev/v1", "kind": "Case", field: {"v": copy.deepcopy(answer["value"])}}
    walk = SCHEMA.walk(obj)
    assert [said(error) for error in walk.errors] == answer.get("errors", [])
    if "errors" not in answer:
        assert obj[field] == ({"v": answer["result"]} if answer["kept"] else {})
        assert [f'unknown field "{path}"' for path in walk.unknown] == answer["unknown"]


@pytest.mark.parametrize("answer", ANSWERS["schemas"], ids=lambda a: json.dumps(a["schema"])[:60])
def test_a_schema_is_judged_as_by_the_real_server(answer: dict[str, Any]) -> None:
    errors = [said(error) for error in check(answer["schema"], ROOT, status=answer["status"])]
    assert sorted(errors) == sorted(answer["errors"])
