"""Several servers as one provider, so that an old and a new implementation live together while types move from one to the other.

Each type and function belongs to one server; two servers that claim the same one cannot start together. What is asked of a
type goes to its server, what is asked of the provider goes to all. Terraform configures them with the same configuration, so
their provider schemas must say the same.

Servers may be able to do different things. To Terraform the whole can plan destroys and needs no schema call; a server that
cannot is spared the one and given the other here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final

from trimtab.terraform.protocol.contract import Encoded, Message, ProviderServer, Unimplemented
from trimtab.terraform.protocol.messages import METHODS, SCHEMA, SERVER_CAPABILITIES
from trimtab.terraform.protocol.wire import MAP, Table, resolve, split

_ERROR: Final = 1
_LISTS = {
    "resources": "resource_schemas",
    "data_sources": "data_source_schemas",
    "ephemeral_resources": "ephemeral_resource_schemas",
    "functions": "functions",
}
"""What metadata and schemas call the same things."""
_NOUNS = {
    "resources": "resource",
    "data_sources": "data source",
    "ephemeral_resources": "ephemeral resource",
    "functions": "function",
}
_ROUTES = {
    "ValidateResourceConfig": ("resources", "type_name"),
    "UpgradeResourceState": ("resources", "type_name"),
    "UpgradeResourceIdentity": ("resources", "type_name"),
    "ReadResource": ("resources", "type_name"),
    "PlanResourceChange": ("resources", "type_name"),
    "ApplyResourceChange": ("resources", "type_name"),
    "ImportResourceState": ("resources", "type_name"),
    "GenerateResourceConfig": ("resources", "type_name"),
    "MoveResourceState": ("resources", "target_type_name"),
    "ValidateDataResourceConfig": ("data_sources", "type_name"),
    "ReadDataSource": ("data_sources", "type_name"),
    "ValidateEphemeralResourceConfig": ("ephemeral_resources", "type_name"),
    "OpenEphemeralResource": ("ephemeral_resources", "type_name"),
    "RenewEphemeralResource": ("ephemeral_resources", "type_name"),
    "CloseEphemeralResource": ("ephemeral_resources", "type_name"),
    "CallFunction": ("functions", "name"),
}
_NULL: Final[tuple[Message | None, ...]] = (None, {}, {"msgpack": b"\xc0"}, {"json": b"null"})


class Clash(Exception):  # noqa: N818
    """Two servers claim the same type or function. The text names all three."""


class _Member:
    """A server, and what it has and can."""

    def __init__(self, server: ProviderServer, position: int) -> None:
        self.server = server
        self.name = f"{getattr(server, 'name', type(server).__name__)} (server {position})"
        metadata = _metadata(server)
        self.has: dict[str, list[str]] = {
            kind: [item["name" if kind == "functions" else "type_name"] for item in metadata.get(kind, ())]
            for kind in _LISTS
        }
        self.can: Message = metadata.get("server_capabilities") or {}
        self._asked = threading.Lock()
        self._needs_schema = not self.can.get("get_provider_schema_optional")

    def call(self, method: str, request: Message) -> Message | Encoded:
        if self._needs_schema:
            with self._asked:
                if self._needs_schema and method != "GetProviderSchema":
                    self.server.call("GetProviderSchema", {})
                self._needs_schema = False
        return self.server.call(method, request)


class Mux:
    """A ProviderServer of others. Raises Clash when they cannot live together."""

    def __init__(self, servers: Sequence[ProviderServer]) -> None:
        self._members = [_Member(server, position) for position, server in enumerate(servers, start=1)]
        self._owner: dict[tuple[str, str], _Member] = {}
        for member in self._members:
            for kind, names in member.has.items():
                for name in names:
                    other = self._owner.setdefault((kind, name), member)
                    if other is not member:
                        raise Clash(f"the {_NOUNS[kind]} {name} is in both {other.name} and {member.name}")

    def call(self, method: str, request: Message) -> Message | Encoded:
        if method in _ROUTES:
            return self._routed(method, request)
        if method == "GetMetadata":
            return self._metadata()
        if method == "GetProviderSchema":
            return self._schemas()
        if method in ("GetFunctions", "GetResourceIdentitySchemas"):
            return _joined(self._ask_all(method, request), METHODS[method][1])
        if method in ("ValidateProviderConfig", "ConfigureProvider"):
            return {"diagnostics": _diagnostics(answer for _, answer in self._ask_all(method, request))}
        raise Unimplemented(method)

    def stop(self) -> None:
        for member in self._members:
            member.server.stop()

    def _routed(self, method: str, request: Message) -> Message | Encoded:
        kind, key = _ROUTES[method]
        name = request.get(key, "")
        member = self._owner.get((kind, name))
        if member is None:
            return _refused(method, f"This provider has no {_NOUNS[kind]} {name!r}.")
        if (
            method == "PlanResourceChange"
            and not member.can.get("plan_destroy")
            and request.get("proposed_new_state") in _NULL
        ):
            kept = {"planned_private": request["prior_private"]} if "prior_private" in request else {}
            return {"planned_state": request.get("proposed_new_state", {}), **kept}
        if method == "MoveResourceState" and not member.can.get("move_resource_state"):
            return _refused(method, f"The resource {name!r} cannot take over the state of another.")
        return member.call(method, request)

    def _metadata(self) -> Message:
        lists = {
            kind: [
                {"name" if kind == "functions" else "type_name": name}
                for member in self._members
                for name in member.has[kind]
            ]
            for kind in _LISTS
        }
        return {"server_capabilities": self._capabilities(), **lists}

    def _capabilities(self) -> Message:
        return {
            "plan_destroy": True,
            "get_provider_schema_optional": True,
            "move_resource_state": any(member.can.get("move_resource_state") for member in self._members),
            "generate_resource_config": all(member.can.get("generate_resource_config") for member in self._members),
        }

    def _schemas(self) -> Message:
        answers = self._ask_all("GetProviderSchema", {})
        joined = _joined(answers, METHODS["GetProviderSchema"][1])
        joined["server_capabilities"] = self._capabilities()
        for part in ("provider", "provider_meta"):
            shown = [(member, _sorted(resolve(answer[part], SCHEMA))) for member, answer in answers if part in answer]
            if shown:
                joined[part] = next(answer[part] for _, answer in answers if part in answer)
            for member, schema in shown[1:]:
                if schema != shown[0][1]:
                    joined["diagnostics"].append(_different(part, shown[0], (member, schema)))
        return joined

    def _ask_all(self, method: str, request: Message) -> list[tuple[_Member, Message]]:
        """Those that have no such method are left out."""
        answers = []
        for member in self._members:
            try:
                answer = member.call(method, request)
            except Unimplemented:
                continue
            answers.append((member, split(answer.data, METHODS[method][1]) if isinstance(answer, Encoded) else answer))
        return answers


def _metadata(server: ProviderServer) -> Message:
    """From metadata where there are any, else from the schemas."""
    try:
        return resolve(server.call("GetMetadata", {}), METHODS["GetMetadata"][1])
    except Unimplemented:
        answer = server.call("GetProviderSchema", {})
    table = METHODS["GetProviderSchema"][1]
    schemas = split(answer.data, table) if isinstance(answer, Encoded) else answer
    capabilities = resolve(schemas.get("server_capabilities") or {}, SERVER_CAPABILITIES)
    found: Message = {"server_capabilities": capabilities}
    for kind, part in _LISTS.items():
        key = "name" if kind == "functions" else "type_name"
        found[kind] = [{key: name} for name in schemas.get(part, ())]
    return found


def _joined(answers: Sequence[tuple[_Member, Message]], table: Table) -> Message:
    """The union of all maps, and all that was said."""
    out: Message = {"diagnostics": _diagnostics(answer for _, answer in answers)}
    maps = [field.name for field in table.fields.values() if field.count == MAP]
    for _, answer in answers:
        for name in maps:
            out.setdefault(name, {}).update(answer.get(name, {}))
    return out


def _diagnostics(answers: Iterable[Message | Encoded]) -> list[Any]:
    """What two servers say alike is said once."""
    said: list[Any] = []
    for answer in answers:
        if isinstance(answer, dict):
            said.extend(one for one in answer.get("diagnostics", ()) if one not in said)
    return said


def _refused(method: str, detail: str) -> Message:
    if "diagnostics" in METHODS[method][1].fields:
        return {"diagnostics": [{"severity": _ERROR, "summary": "Not in this provider", "detail": detail}]}
    return {"error": {"text": detail}}


def _sorted(value: Any) -> Any:
    """A schema in one spelling: no order among attributes and blocks, nothing that is only a zero."""
    if isinstance(value, dict):
        inner = {name: _sorted(item) for name, item in value.items()}
        return {name: item for name, item in inner.items() if item not in (None, False, 0, "", b"", [], {})}
    if isinstance(value, list):
        return sorted(
            (_sorted(item) for item in value), key=lambda item: item.get("name") or item.get("type_name") or ""
        )
    return value


def _different(part: str, first: tuple[_Member, Message], second: tuple[_Member, Message]) -> Message:
    what = "configuration" if part == "provider" else "metadata"
    ours, theirs = (_attributes(schema) for _, schema in (first, second))
    names = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    detail = f"The schema of the provider's {what} in {first[0].name} is not the same as in {second[0].name}."
    if names:
        detail += f" They differ in: {', '.join(names)}."
    return {"severity": _ERROR, "summary": "The provider's servers do not agree", "detail": detail}


def _attributes(schema: Message) -> Message:
    return {item["name"]: item for item in schema.get("block", {}).get("attributes", ())}
