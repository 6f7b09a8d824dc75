"""Our codec and the real protobuf, side by side."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.terraform.protocol.descriptors import Real, as_dict
from trimtab.terraform.protocol import messages, messages5, wire
from trimtab.terraform.protocol.contract import Encoded, InvalidRequest
from trimtab.terraform.protocol.wire import Field, Table, decode, encode, resolve, split

TABLES = [table for methods in (messages.METHODS, messages5.METHODS) for tables in methods.values() for table in tables]
_real = Real()
_names = {id(table): _real.add(table) for table in TABLES}
_classes = _real.classes()


def real(table: Table) -> Any:
    return _classes[_names[id(table)]]


def _scalar(field: Field) -> st.SearchStrategy[Any]:
    return {
        wire.STRING: st.text(max_size=8),
        wire.BYTES: st.binary(max_size=8),
        wire.BOOL: st.booleans(),
        wire.INT: st.integers(-(1 << 63), (1 << 63) - 1),
        wire.ENUM: st.integers(-(1 << 31), (1 << 31) - 1),
    }[field.kind]


def _value(field: Field, depth: int) -> st.SearchStrategy[Any]:
    item = _scalar(field) if field.table is None else contents(field.table, depth - 1)
    if field.count == wire.MAP:
        return st.dictionaries(st.text(max_size=4), item, max_size=3)
    if field.count == wire.LIST:
        return st.lists(item, max_size=3)
    return item


def contents(table: Table, depth: int = 4) -> st.SearchStrategy[dict[str, Any]]:
    @st.composite
    def draw_contents(draw: st.DrawFn) -> dict[str, Any]:
        fields = [field for field in table.fields.values() if field.table is None or depth > 0]
        chosen = draw(st.lists(st.sampled_from(fields), unique=True)) if fields else []
        one = [field for field in chosen if field.oneof]
        return {field.name: draw(_value(field, depth)) for field in chosen if field not in one[1:]}

    return draw_contents()


def plain(message: dict[str, Any], table: Table) -> dict[str, Any]:
    """Without what protobuf does not tell from absence."""
    out: dict[str, Any] = {}
    for name, value in message.items():
        field = table.fields[name]
        inner = field.table
        if inner is not None and field.count == wire.MAP:
            value = {key: plain(item, inner) for key, item in value.items()}
        elif inner is not None and field.count == wire.LIST:
            value = [plain(item, inner) for item in value]
        elif inner is not None:
            value = plain(value, inner)
        if value or (field.explicit and field.count == wire.ONE):
            out[name] = value
    return out


some_message = st.sampled_from(TABLES).flatmap(lambda table: st.tuples(st.just(table), contents(table)))


@given(some_message)
@settings(deadline=None)
def test_protobuf_reads_what_we_write(case: tuple[Table, dict[str, Any]]) -> None:
    table, message = case
    assert as_dict(real(table).FromString(encode(message, table)), table) == plain(message, table)


@given(some_message)
@settings(deadline=None)
def test_we_read_what_protobuf_writes(case: tuple[Table, dict[str, Any]]) -> None:
    table, message = case
    theirs = real(table).FromString(encode(message, table)).SerializeToString()
    assert plain(decode(theirs, table), table) == plain(message, table)
    assert resolve(split(theirs, table), table) == decode(theirs, table)
    assert resolve(Encoded(theirs), table) == decode(theirs, table)


@given(some_message, st.data())
@settings(deadline=None, max_examples=400)
def test_we_take_and_refuse_the_same_bytes_as_protobuf(case: tuple[Table, dict[str, Any]], data: st.DataObject) -> None:
    table, message = case
    raw = bytearray(encode(message, table))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=4))
    assert_same(bytes(raw), table)


@given(st.binary(max_size=40), st.sampled_from(TABLES))
@settings(deadline=None, max_examples=400)
def test_any_bytes_are_taken_or_refused_as_protobuf_does(raw: bytes, table: Table) -> None:
    assert_same(raw, table)


def assert_same(raw: bytes, table: Table) -> None:
    try:
        theirs = as_dict(real(table).FromString(raw), table)
    except DecodeError:
        theirs = None
    try:
        ours = plain(decode(raw, table), table)
    except InvalidRequest as error:
        if "no such field number" in str(error):
            return  # the specification forbids the number 0; protobuf in Go refuses it, in Python it does not
        ours = None
    assert ours == theirs


def test_a_field_with_the_number_zero_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no such field number"):
        decode(b"\0\0", messages.EMPTY)


def test_encoded_messages_stand_where_messages_do() -> None:
    schema = {"version": 3, "block": {"attributes": [{"name": "a", "type": b'"string"'}]}}
    ready = Encoded(encode(schema, messages.SCHEMA))
    table = messages.METHODS["GetProviderSchema"][1]
    message = {"provider": schema, "resource_schemas": {"x": schema}}
    assert encode({"provider": ready, "resource_schemas": {"x": ready}}, table) == encode(message, table)
    assert encode(Encoded(b"as it is"), table) == b"as it is"
    parts = split(encode(message, table), table)
    assert parts == {"provider": ready, "resource_schemas": {"x": ready}}


def test_messages_that_nest_too_deep_are_refused() -> None:
    """An attribute nests in itself; nobody may have our stack for it."""
    deep = b""
    for _ in range(1000):
        deep = wire._VALUE_TAG[:0] + messages.OBJECT.fields["attributes"].tag + wire._sized(deep)
        deep = messages.ATTRIBUTE.fields["nested_type"].tag + wire._sized(deep)
    with pytest.raises(InvalidRequest, match="too deep"):
        decode(deep, messages.ATTRIBUTE)
    with pytest.raises(InvalidRequest, match="too deep"):
        decode(b"\x7b" * 5000, messages.ATTRIBUTE)  # groups of a field that we do not know


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ({"sumary": "x"}, "Diagnostic has no field 'sumary'"),
        ({"summary": b"x"}, "Diagnostic.summary: text is wanted, not bytes"),
        ({"severity": "error"}, "Diagnostic.severity: a whole number is wanted"),
        ({"severity": True}, "Diagnostic.severity: a whole number is wanted"),
        ({"attribute": {"steps": [{"element_key_int": "0"}]}}, "Diagnostic.attribute: AttributePath.steps"),
        ({"attribute": ["a"]}, "AttributePath is a message, not list"),
    ],
)
def test_an_answer_that_says_what_its_table_cannot_is_named(message: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        encode(message, messages.DIAGNOSTIC)


def test_an_element_with_the_index_zero_is_sent() -> None:
    path = {"steps": [{"attribute_name": "list"}, {"element_key_int": 0}]}
    assert decode(encode(path, messages.PATH), messages.PATH) == path
