"""A provider of one resource on Trimtab's framework: a name goes in, an id comes out. The peers have the same one."""

from __future__ import annotations

from typing import Any

from trimtab.terraform.plugin.boot import serve


def make() -> Any:
    from trimtab.terraform.framework.attributes import Attribute
    from trimtab.terraform.framework.modifiers import KeepState
    from trimtab.terraform.framework.provider import Provider
    from trimtab.terraform.framework.resource import Resource
    from trimtab.terraform.framework.schema import Schema
    from trimtab.terraform.framework.serving import FrameworkServer
    from trimtab.terraform.framework.trees import State
    from trimtab.terraform.framework.types import STRING

    class Thing(Resource):
        def schema(self) -> Schema:
            identifier = Attribute(STRING, computed=True, modifiers=(KeepState(),))
            return Schema({"name": Attribute(STRING, required=True), "id": identifier})

        def create(self, op: Any) -> State:
            return State({**op.plan.value, "id": f"small/{op.plan['name']}"})

        def read(self, op: Any) -> State:
            return State(op.state.value)

        def delete(self, op: Any) -> None:
            pass

    class Small(Provider):
        def resources(self) -> Any:
            return {"small_thing": Thing}

    return FrameworkServer(Small("small", "0.1.0"))


def main() -> None:
    serve(make)
