"""A provider with one resource, one data source and one function, small enough to know by heart."""

from __future__ import annotations

import threading
from typing import Any

import msgpack

from trimtab.terraform.protocol.contract import Encoded, Message, Unimplemented

UNKNOWN = msgpack.ExtType(0, b"\0")


def attribute(name: str, type_: bytes = b'"string"', **more: Any) -> Message:
    return {"name": name, "type": type_, **more}


def schema(*attributes: Message, **more: Any) -> Message:
    return {"version": 0, "block": {"attributes": list(attributes), **more}}


PROVIDER = schema(attribute("endpoint", optional=True))
THING = schema(attribute("name", required=True), attribute("id", computed=True))


class Small:
    """Speaks protocol 6. `prefix` is that of its types, so that several can live together."""

    def __init__(self, prefix: str = "small", *, capabilities: Message | None = None) -> None:
        self.prefix = prefix
        self.stopped = threading.Event()
        self.calls: list[str] = []
        self.capabilities = (
            {"plan_destroy": True, "get_provider_schema_optional": True} if capabilities is None else capabilities
        )

    def stop(self) -> None:
        self.stopped.set()

    def call(self, method: str, request: Message) -> Message | Encoded:
        self.calls.append(method)
        answer = getattr(self, method, None)
        if answer is None:
            raise Unimplemented(method)
        result: Message = answer(request)
        return result

    def GetMetadata(self, request: Message) -> Message:
        return {
            "server_capabilities": self.capabilities,
            "resources": [{"type_name": f"{self.prefix}_thing"}],
            "data_sources": [{"type_name": f"{self.prefix}_echo"}],
            "functions": [{"name": f"{self.prefix}_join"}],
        }

    def GetProviderSchema(self, request: Message) -> Message:
        string = {"type": b'"string"'}
        return {
            "provider": PROVIDER,
            "resource_schemas": {f"{self.prefix}_thing": THING},
            "data_source_schemas": {
                f"{self.prefix}_echo": schema(attribute("text", required=True), attribute("back", computed=True))
            },
            "functions": {
                f"{self.prefix}_join": {
                    "parameters": [{"name": "a", **string}, {"name": "b", **string}],
                    "return": string,
                }
            },
            "server_capabilities": self.capabilities,
        }

    def ValidateProviderConfig(self, request: Message) -> Message:
        return {}

    ValidateResourceConfig = ValidateDataResourceConfig = ConfigureProvider = ValidateProviderConfig

    def UpgradeResourceState(self, request: Message) -> Message:
        return {"upgraded_state": {"json": request["raw_state"]["json"]}}

    def ReadResource(self, request: Message) -> Message:
        return {"new_state": request["current_state"]}

    def PlanResourceChange(self, request: Message) -> Message:
        planned = unpack(request["proposed_new_state"])
        if planned is not None and unpack(request["prior_state"]) is None:
            planned["id"] = UNKNOWN
        return {"planned_state": pack(planned)}

    def ApplyResourceChange(self, request: Message) -> Message:
        planned = unpack(request["planned_state"])
        if planned is not None:
            planned["id"] = f"{self.prefix}/{planned['name']}"
        return {"new_state": pack(planned)}

    def ReadDataSource(self, request: Message) -> Message:
        config = unpack(request["config"])
        return {"state": pack({"text": config["text"], "back": config["text"][::-1]})}

    def CallFunction(self, request: Message) -> Message:
        a, b = (unpack(argument) for argument in request["arguments"])
        return {"result": pack(f"{a}-{b}")}


def pack(value: Any) -> Message:
    return {"msgpack": msgpack.packb(value)}


def unpack(value: Message) -> Any:
    return msgpack.unpackb(value["msgpack"])
