"""Random schemas and configurations under the real Terraform: it agrees with our oracle that all is well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.framework.core import Core, Unusable
from tests.terraform.framework.schemas import Dice, RandomProvider
from tests.terraform.framework.terraforming import ADDRESS, Terraform, attached
from trimtab.terraform.framework.schema import Schema, SchemaError, check
from trimtab.terraform.framework.shaping import shaped
from trimtab.terraform.framework.values import Typed


def usable(seed: int) -> tuple[Schema, list[dict[str, Any]]]:
    """The first schema from this seed on, with two configurations that mean different things to no set."""
    while True:
        seed += 1
        dice = Dice(seed)
        schema = dice.schema()
        try:
            check(schema)
            core = Core(dice, schema)
            configs = [shaped(dice.config(schema), core.type) for _ in range(2)]
            for config in configs:
                core.apply(config)
                core.unchanged(config)
        except (SchemaError, Unusable):
            continue
        return schema, configs


def written(value: Any) -> Any:
    """As JSON of a configuration."""
    if isinstance(value, dict):
        return {name: written(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [written(inner) for inner in value]
    return written(value.value) if isinstance(value, Typed) else value


def write(tf: Terraform, config: dict[str, Any]) -> None:
    document = {
        "terraform": {"required_providers": {"toy": {"source": ADDRESS}}},
        "resource": {"random_it": {"it": {"provider": "toy", **written(config)}}},
    }
    (tf.folder / "main.tf.json").write_text(json.dumps(document))


@pytest.mark.row(64)
@pytest.mark.parametrize("seed", range(10_000, 22_000, 1000))
def test_terraform_accepts_and_then_sees_no_change(tmp_path: Path, seed: int) -> None:
    schema, (first, second) = usable(seed)
    dice = Dice(seed)
    type_ = schema.value_type()
    with attached(tmp_path, RandomProvider(dice, schema)) as tf:
        write(tf, first)
        tf.apply()
        write(tf, dice.turned(type_, first))
        tf.unchanged()
        write(tf, second)
        tf.apply()
        tf.unchanged()
