"""A proto3 file as a tree: messages with their fields, and enums. Services are passed over; proto2 is refused."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.hub.proto.tokens import ProtoError, Token, tokens

MAX_DEPTH = 32


class Field(msgspec.Struct, kw_only=True):
    name: str
    type: str
    number: int
    repeated: bool = False
    key: str = ""  # the type of the keys, of a map
    oneof: str = ""
    json_name: str = ""
    options: dict[str, list[Any]] = {}
    comment: str = ""


class Enum(msgspec.Struct, kw_only=True):
    name: str
    values: list[str] = []
    comment: str = ""


class Message(msgspec.Struct, kw_only=True):
    name: str
    fields: list[Field] = []
    messages: dict[str, Message] = {}
    enums: dict[str, Enum] = {}
    oneofs: dict[str, dict[str, list[Any]]] = {}  # name → options
    reserved: list[str] = []
    options: dict[str, list[Any]] = {}
    comment: str = ""


class File(msgspec.Struct, kw_only=True):
    package: str = ""
    imports: list[str] = []
    messages: dict[str, Message] = {}
    enums: dict[str, Enum] = {}


def parse(text: str) -> File:
    """ProtoError names the line of what is wrong."""
    return _Parser(tokens(text)).file()


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _ahead(self, count: int) -> Token:
        return self._tokens[min(self._at + count, len(self._tokens) - 1)]

    def _take(self, *values: str) -> Token:
        token = self._next
        if values and token.value not in values:
            raise ProtoError(f"line {token.line}: {token.value or 'the end'!r} where {' or '.join(values)} must be")
        if token.kind == "end":
            raise ProtoError(f"line {token.line}: the file ends too early")
        self._at += 1
        return token

    def _word(self) -> str:
        token = self._take()
        if token.kind != "word":
            raise ProtoError(f"line {token.line}: {token.value!r} is no name")
        return token.value

    def _maybe(self, value: str) -> bool:
        if self._next.value == value and self._next.kind != "text":
            self._at += 1
            return True
        return False

    def file(self) -> File:
        file = File()
        while self._next.kind != "end":
            token = self._take()
            if token.value == "syntax":
                self._take("=")
                if (said := self._take()).value != "proto3":
                    raise ProtoError(f'line {said.line}: syntax must be "proto3"')
                self._take(";")
            elif token.value == "package":
                file.package = self._word()
                self._take(";")
            elif token.value == "import":
                if self._next.kind == "word":
                    self._take("public", "weak")
                file.imports.append(self._take().value)
                self._take(";")
            elif token.value == "option":
                self._option({})
                self._take(";")
            elif token.value == "message":
                self._add(file.messages, self._message(token.comment, 1), token)
            elif token.value == "enum":
                self._add(file.enums, self._enum(token.comment), token)
            elif token.value in ("service", "extend"):
                self._skip_block()
            elif token.value != ";":
                raise ProtoError(f"line {token.line}: {token.value!r} begins no definition")
        return file

    def _add(self, known: dict[str, Any], made: Message | Enum, token: Token) -> None:
        if made.name in known:
            raise ProtoError(f"line {token.line}: {made.name} is defined twice")
        known[made.name] = made

    def _message(self, comment: str, depth: int) -> Message:
        if depth > MAX_DEPTH:
            raise ProtoError(f"line {self._next.line}: messages are nested deeper than {MAX_DEPTH}")
        message = Message(name=self._word(), comment=comment)
        self._take("{")
        while not self._maybe("}"):
            token = self._next
            following = self._ahead(1)
            if token.value == ";":
                self._at += 1
            elif token.value == "message" and following.kind == "word":
                self._at += 1
                self._add(message.messages, self._message(token.comment, depth + 1), token)
            elif token.value == "enum" and following.kind == "word" and self._ahead(2).value == "{":
                self._at += 1
                self._add(message.enums, self._enum(token.comment), token)
            elif token.value == "oneof" and self._ahead(2).value == "{":
                self._at += 1
                self._oneof(message)
            elif token.value == "option" and following.value != "=":
                self._at += 1
                self._option(message.options)
                self._take(";")
            elif token.value == "reserved":
                self._at += 1
                message.reserved += self._reserved()
            elif token.value in ("extend", "group", "extensions", "required"):
                raise ProtoError(f"line {token.line}: {token.value} is not proto3 that a kind can be made of")
            else:
                self._field(message, "")
        return message

    def _field(self, message: Message, oneof: str) -> None:
        token = self._next
        repeated = False
        if not oneof:
            while self._next.value in ("repeated", "optional") and self._ahead(1).kind == "word":
                repeated = self._take().value == "repeated" or repeated
        kind, key = self._word(), ""
        if kind == "map" and self._maybe("<"):
            key = self._word()
            self._take(",")
            kind = self._word()
            self._take(">")
        field = Field(name=self._word(), type=kind, number=0, key=key, repeated=repeated, oneof=oneof)
        self._take("=")
        field.number = self._number()
        field.comment = token.comment
        field.options = {}
        if self._maybe("["):
            while True:
                self._one_option(field.options)
                if not self._maybe(","):
                    break
            self._take("]")
        self._take(";")
        field.json_name = str((field.options.get("json_name") or [_camel(field.name)])[0])
        for other in message.fields:
            if other.number == field.number or other.name == field.name or other.json_name == field.json_name:
                raise ProtoError(f"line {token.line}: {field.name} has the name or number of {other.name}")
        message.fields.append(field)

    def _oneof(self, message: Message) -> None:
        name = self._word()
        options: dict[str, list[Any]] = {}
        self._take("{")
        while not self._maybe("}"):
            if self._next.value == "option":
                self._at += 1
                self._option(options)
                self._take(";")
            elif self._next.value == ";":
                self._at += 1
            else:
                self._field(message, name)
        message.oneofs[name] = options

    def _enum(self, comment: str) -> Enum:
        enum = Enum(name=self._word(), comment=comment)
        self._take("{")
        while not self._maybe("}"):
            token = self._take()
            if token.value == "option":
                self._option({})
                self._take(";")
            elif token.value == "reserved":
                self._reserved()
            elif token.value != ";":
                if token.kind != "word":
                    raise ProtoError(f"line {token.line}: {token.value!r} is no name")
                self._take("=")
                self._number()
                if self._maybe("["):
                    while not self._maybe("]"):
                        self._take()
                self._take(";")
                enum.values.append(token.value)
        return enum

    def _reserved(self) -> list[str]:
        found: list[str] = []
        while not self._maybe(";"):
            token = self._take()
            if token.value not in (",", "to", "max"):
                found.append(token.value)
        return found

    def _option(self, options: dict[str, list[Any]]) -> None:
        self._one_option(options)

    def _one_option(self, options: dict[str, list[Any]]) -> None:
        if self._maybe("("):
            name = self._word().lstrip(".")
            self._take(")")
            if self._next.kind == "word" and self._next.value.startswith("."):
                name += self._take().value
        else:
            name = self._word()
        self._take("=")
        options.setdefault(name, []).append(self._constant(0))

    def _constant(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ProtoError(f"line {self._next.line}: an option is nested deeper than {MAX_DEPTH}")
        token = self._take()
        if token.value == "{" and token.kind == "sign":
            found: dict[str, Any] = {}
            while not self._maybe("}"):
                name = self._word()
                self._maybe(":")
                found[name] = self._constant(depth + 1)
                self._maybe(",") or self._maybe(";")
            return found
        if token.kind == "text":
            text = token.value
            while self._next.kind == "text":
                text += self._take().value
            return text
        if token.kind == "number":
            try:
                return int(token.value, 0)
            except ValueError:
                return float(token.value)
        if token.kind == "word":
            return {"true": True, "false": False}.get(token.value, token.value)
        raise ProtoError(f"line {token.line}: {token.value!r} is no value")

    def _number(self) -> int:
        token = self._take()
        try:
            return int(token.value, 0)
        except ValueError:
            raise ProtoError(f"line {token.line}: {token.value!r} is no number") from None

    def _skip_block(self) -> None:
        while self._next.value != "{":
            self._take()
        depth = 0
        while True:
            token = self._take()
            if token.kind == "sign":
                depth += {"{": 1, "}": -1}.get(token.value, 0)
            if depth == 0:
                return


def _camel(name: str) -> str:
    """The name in JSON, as proto3 makes it."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)
