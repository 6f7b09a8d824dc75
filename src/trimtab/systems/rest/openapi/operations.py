"""The operations of a document in one form, whatever version of OpenAPI it is written in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.systems.rest.openapi.references import Place, escaped
from trimtab.systems.rest.openapi.schema import Schema

if TYPE_CHECKING:
    from trimtab.systems.rest.openapi.document import Document

METHODS = ("get", "put", "post", "patch", "delete", "head", "options")

JSON = "application/json"


class Param(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter. `place` is path, query, header, cookie, form or body; `schema` says what it may be."""

    name: str
    place: str
    required: bool
    schema: Schema
    node: Mapping[str, Any]
    shared: bool = False
    """It is defined once for the whole document: then autorest takes it for the client's, if nothing else is said."""

    def extension(self, name: str) -> Any:
        return self.node.get(name)

    @property
    def encode(self) -> bool:
        """False for a value that may have slashes in it, such as the ID of another resource."""
        return self.node.get("x-ms-skip-url-encoding") is not True

    @property
    def of_client(self) -> bool:
        """Whether all operations of a service share its value: `subscriptionId`."""
        return bool(self.node.get("x-ms-parameter-location", "client" if self.shared else "method") == "client")


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What may come back."""

    schema: Schema | None = None
    headers: tuple[str, ...] = ()


class Operation:
    """One method of one path. `key` is where the document has it; `above` is the place of its path."""

    def __init__(self, document: Document, method: str, written: tuple[str, str], place: Place, above: Place) -> None:
        self._document = document
        self._node = document.at(place)
        self.above = above
        self.method = method
        self.written = written
        """The section of the document, `paths` or `x-ms-paths`, and the path as it is there, with its query."""
        self.path, _, query = written[1].partition("?")
        self.query = {name: value for name, _, value in (pair.partition("=") for pair in query.split("&") if pair)}
        """What the path itself has as its query."""
        self.key = place
        self.id = str(self._node.get("operationId", ""))
        self.summary = str(self._node.get("summary") or self._node.get("description") or "")

    def __repr__(self) -> str:
        return f"<Operation {self.method} {self.path}>"

    def extension(self, name: str) -> Any:
        return self._node.get(name)

    @property
    def deprecated(self) -> bool:
        return self._node.get("deprecated") is True

    @cached_property
    def parameters(self) -> tuple[Param, ...]:
        """Those of the operation and of its path; the operation's own count when both have one."""
        found: dict[tuple[str, str], Param] = {}
        for place in (self.above, self.key):
            declared = self._document.at(place).get("parameters")
            for index in range(len(declared) if isinstance(declared, list) else 0):
                param = self._param((place[0], f"{place[1]}/parameters/{index}"))
                if param.name:
                    found[param.place, param.name] = param
        return tuple(found.values())

    def parameter(self, name: str, place: str = "path") -> Param | None:
        return next((param for param in self.parameters if (param.name, param.place) == (name, place)), None)

    @cached_property
    def body(self) -> Schema | None:
        """Of JSON, when there is a choice."""
        if self._document.spec == "2.0":
            return next((param.schema for param in self.parameters if param.place == "body"), None)
        return self._content(self._request)

    def body_of(self, content_type: str) -> Schema | None:
        """Of one content type: OpenAPI 3 may describe a body of its own for each."""
        if self._document.spec == "2.0" or self._request is None:
            return self.body
        content = self._document.at(self._request).get("content")
        if not isinstance(content, dict) or not isinstance(content.get(content_type), dict):
            return None
        return self._schema_in((self._request[0], f"{self._request[1]}/content/{escaped(content_type)}"))

    @cached_property
    def content_types(self) -> tuple[str, ...]:
        """That the body may have."""
        if self._document.spec == "2.0":
            declared = self._node.get("consumes", self._document.root.get("consumes"))
            return tuple(str(each) for each in declared) if isinstance(declared, list) else ()
        content = self._document.at(self._request).get("content") if self._request is not None else None
        return tuple(content) if isinstance(content, dict) else ()

    @cached_property
    def responses(self) -> dict[int | str, Response]:
        """By status; also "default" and "2XX"."""
        declared = self._node.get("responses")
        found: dict[int | str, Response] = {}
        for status in declared if isinstance(declared, dict) else ():
            if not status.startswith("x-"):
                place = (self.key[0], f"{self.key[1]}/responses/{escaped(status)}")
                found[int(status) if status.isdecimal() else status] = self._response(place)
        return found

    @cached_property
    def _request(self) -> Place | None:
        if not isinstance(self._node.get("requestBody"), dict):
            return None
        return self._document.followed((self.key[0], f"{self.key[1]}/requestBody"))

    def _param(self, used: Place) -> Param:
        place = self._document.followed(used)
        node = {**self._document.at(place), **{k: v for k, v in self._document.at(used).items() if k != "$ref"}}
        where = str(node.get("in", ""))
        schema = self._schema_in(place) or self._content(place) or self._document.schema(place)
        return Param(
            name=str(node.get("name", "")),
            place={"formData": "form"}.get(where, where),
            required=node.get("required") is True or where == "path",
            schema=schema,
            node=node,
            shared=place != used,
        )

    def _response(self, used: Place) -> Response:
        place = self._document.followed(used)
        node = self._document.at(place)
        headers = node.get("headers")
        schema = self._schema_in(place) if self._document.spec == "2.0" else self._content(place)
        return Response(schema=schema, headers=tuple(headers) if isinstance(headers, dict) else ())

    def _content(self, place: Place | None) -> Schema | None:
        content = self._document.at(place).get("content") if place is not None else None
        if place is None or not isinstance(content, dict) or not content:
            return None
        chosen = min(content, key=_preference)
        return self._schema_in((place[0], f"{place[1]}/content/{escaped(chosen)}"))

    def _schema_in(self, place: Place) -> Schema | None:
        if not isinstance(self._document.at(place).get("schema"), dict):
            return None
        return self._document.schema((place[0], f"{place[1]}/schema"))


def _preference(content_type: str) -> int:
    """JSON first, then what is nearly JSON; a list of steps last of these."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == JSON:
        return 0
    if kind == "application/json-patch+json":
        return 3
    return 1 if kind.endswith("+json") else 2 if "json" in kind else 4
