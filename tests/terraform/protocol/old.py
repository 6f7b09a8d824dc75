"""A server of protocol 5."""

from __future__ import annotations

from tests.terraform.plugin.small import Small, attribute, schema
from trimtab.terraform.protocol import messages5
from trimtab.terraform.protocol.contract import Encoded, Message, Unimplemented
from trimtab.terraform.protocol.wire import encode

BLOCKS = [
    {"type_name": "disk", "nesting": 2, "max_items": 3, "block": {"attributes": [attribute("size", required=True)]}}
]
SECRET = schema(
    attribute("token", optional=True, write_only=True, deprecation_message="use another"), block_types=BLOCKS
)


class Old:
    """Speaks protocol 5, by its names, and encodes its schemas in its own numbers."""

    def __init__(self, prefix: str = "old") -> None:
        self.small = Small(prefix)
        self.calls: list[str] = []

    def stop(self) -> None:
        self.small.stop()

    def call(self, method: str, request: Message) -> Message | Encoded:
        self.calls.append(method)
        if method not in messages5.METHODS:
            raise Unimplemented(method)
        names = {old: new for new, old in messages5.RENAMED.items()}
        answer = self.small.call(names.get(method, method), request)
        assert isinstance(answer, dict)
        if method == "GetSchema":
            answer["resource_schemas"][f"{self.small.prefix}_secret"] = Encoded(encode(SECRET, messages5.SCHEMA))
            return Encoded(encode(answer, messages5.METHODS[method][1]))
        if method == "PrepareProviderConfig":
            return {"prepared_config": request["config"], "diagnostics": [{"severity": 2, "summary": "heard"}]}
        return answer
