"""What Terraform core does with one resource, with its own checks, in this process."""

from __future__ import annotations

from typing import Any

from tests.terraform import rules
from tests.terraform.framework.schemas import Dice, RandomProvider
from trimtab.terraform.framework import types
from trimtab.terraform.framework.encoding import pack, unpack
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.serving import FrameworkServer
from trimtab.terraform.framework.shaping import shaped
from trimtab.terraform.framework.values import UNKNOWN, distinct, same


class Unusable(Exception):  # noqa: N818 - of a random configuration
    """No resource could do right with this configuration."""


class Core:
    def __init__(self, dice: Dice, schema: Schema) -> None:
        self.server = FrameworkServer(RandomProvider(dice, schema))
        answer = self.server.call("GetProviderSchema", {})
        assert isinstance(answer, dict)
        assert answer["diagnostics"] == []
        self.schema = answer["resource_schemas"]["random_it"]
        self.type = rules.schema_type(self.schema)
        self.state: Any = None
        self.private = b""

    def call(self, method: str, **fields: Any) -> dict[str, Any]:
        answer = self.server.call(method, {"type_name": "random_it", **fields})
        assert isinstance(answer, dict)
        faults = [item["detail"] for item in answer["diagnostics"] if item["severity"] == 1]
        if any("different ones once defaults are set" in fault for fault in faults):
            raise Unusable("two elements of a set become one by a default: the user's mistake, and told as such")
        assert faults == []
        return answer

    def value(self, value: Any) -> dict[str, bytes]:
        return {"msgpack": pack(value, self.type)}

    def plan(self, config: dict[str, Any]) -> tuple[Any, list[Any]]:
        config = shaped(config, self.type)
        answer = self.call(
            "PlanResourceChange",
            prior_state=self.value(self.state),
            proposed_new_state=self.value(config),
            config=self.value(config),
            prior_private=self.private,
        )
        planned = unpack(answer["planned_state"]["msgpack"], self.type)
        assert rules.plan_errors(self.schema, self.state, config, planned) == []
        return planned, answer["requires_replace"]

    def apply(self, config: dict[str, Any]) -> None:
        config = shaped(config, self.type)
        planned, replace = self.plan(config)
        if replace:
            self.state = None
            planned, _ = self.plan(config)
        answer = self.call(
            "ApplyResourceChange",
            prior_state=self.value(self.state),
            planned_state=self.value(planned),
            config=self.value(config),
        )
        self.state = unpack(answer["new_state"]["msgpack"], self.type)
        if collapsed(planned, self.state, self.type):
            raise Unusable("the service keeps less than was asked for")
        assert rules.result_errors(self.schema, planned, self.state) == []

    def refresh(self) -> None:
        answer = self.call("ReadResource", current_state=self.value(self.state))
        before, self.state = self.state, unpack(answer["new_state"]["msgpack"], self.type)
        assert same(before, self.state, self.type)

    def unchanged(self, config: dict[str, Any]) -> None:
        planned, replace = self.plan(config)
        assert replace == []
        assert same(planned, self.state, self.type)


def collapsed(planned: Any, state: Any, type_: types.Type) -> bool:
    """Whether elements of a set fell together when they became known."""
    if planned is None or planned is UNKNOWN or state is None:
        return False
    match type_:
        case types.SetOf(inner):
            return len(distinct(planned, inner)) > len(distinct(state, inner))
        case types.ListOf(inner):
            return any(collapsed(x, y, inner) for x, y in zip(planned, state, strict=False))
        case types.MapOf(inner):
            return any(collapsed(planned[key], state.get(key), inner) for key in planned)
        case types.ObjectOf(attributes):
            return any(collapsed(planned[name], state[name], inner) for name, inner in attributes.items())
    return False
