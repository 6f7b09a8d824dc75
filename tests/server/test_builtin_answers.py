"""Built-in kinds take, default, refuse and show objects as kube-apiserver 1.32.13 does, message by message.

`test_builtin_answers.json` holds what a real one answered; `test_builtin_cluster.py` asks one again.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.server.builtin_real import (
    ANSWERS,
    Answer,
    normal,
    normal_cells,
    strategy_of,
    whole,
    without_controllers,
    without_uids,
)
from tests.server.builtin_samples import CHANGES, SAMPLES
from trimtab.model import metadata as object_meta
from trimtab.model.clock import format_time
from trimtab.model.errors import FieldError
from trimtab.server.builtin.native import Native

REAL: dict[str, Answer] = json.loads(ANSWERS.read_text())


def settled(strategy: Native, new: dict[str, Any], old: dict[str, Any] | None, subresource: str) -> list[FieldError]:
    """What a write does with an object, in the server's order."""
    kind = strategy.kind
    created = old["metadata"]["creationTimestamp"] if old else format_time(strategy.clock.now())
    new["metadata"] |= {
        "uid": "0c3e6d0e-0000-4000-8000-000000000000",
        "creationTimestamp": created,
        "resourceVersion": "1",
    }
    if strategy.has_generation:
        new["metadata"]["generation"] = old["metadata"]["generation"] if old else 1
    walk = kind.schema.walk(new)
    strategy.default(new)
    strategy.prepare(new, old, subresource)
    if old is not None and strategy.has_generation and strategy.bumps_generation(new, old):
        new["metadata"]["generation"] += 1
    before = old["metadata"] if old else None
    checked = object_meta.validate(
        new["metadata"], namespaced=kind.namespaced, old=before, name_check=strategy.name_check
    )
    return [*checked, *walk.errors, *strategy.validate(new, old, subresource)]


def failure(errors: list[FieldError]) -> Answer:
    return {"code": 422, "causes": sorted({(error.path, without_uids(error.body)) for error in errors})}


def as_recorded(answer: Answer) -> Answer:
    """An answer after a trip through JSON."""
    made: Answer = json.loads(json.dumps(answer))
    return made


@pytest.mark.parametrize(("case", "group", "name", "sample"), SAMPLES, ids=[sample[0] for sample in SAMPLES])
def test_creating(case: str, group: str, name: str, sample: dict[str, Any]) -> None:
    strategy = strategy_of(group, name)
    document = whole(strategy.kind, sample)
    errors = settled(strategy, document, None, "")
    if errors:
        answer = failure(errors)
    else:
        answer = {
            "code": 201,
            "object": normal(document),
            "columns": [[column.name, column.type, column.format, column.priority] for column in strategy.columns],
            "cells": normal_cells(strategy.cells(document) or []),
        }
    assert as_recorded(answer) == REAL[case]


@pytest.mark.parametrize("change", CHANGES, ids=[change[0] for change in CHANGES])
def test_updating(change: tuple[str, str, str, dict[str, Any], dict[str, Any], str]) -> None:
    case, group, name, before, after, subresource = change
    strategy = strategy_of(group, name)
    old, new = whole(strategy.kind, before), whole(strategy.kind, after)
    new["metadata"]["name"] = old["metadata"]["name"]
    settled(strategy, old, None, "")
    if name == "CustomResourceDefinition":
        old["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    errors = settled(strategy, new, old, subresource)
    if errors:
        answer = failure(errors)
    else:
        cells = normal_cells(strategy.cells(new) or [])
        answer = {"code": 200, "object": without_controllers(normal(new)), "cells": cells}
    assert as_recorded(answer) == REAL[case]
