"""The messages of gNMI on the wire. Both our sides are made of one definition, so the bytes are written out here."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.systems.discovery.identify import gnmi_messages as messages
from trimtab.systems.discovery.identify.gnmi_paths import parse, to_message


def field(number: int, content: bytes) -> bytes:
    """A field with a length, as protobuf writes it: number and type in one byte, then the length."""
    assert len(content) < 128
    return bytes(((number << 3) | 2, len(content))) + content


KEY = field(2, field(1, b"slot") + field(2, b"A"))
PATH = field(3, field(1, b"platform")) + field(3, field(1, b"control") + KEY)


def test_a_get_asks_as_the_service_defines_it() -> None:
    request = messages.GetRequest(
        prefix=messages.Path(target="OC-YANG"),
        path=[to_message(parse("openconfig:/platform/control[slot=A]"), modules=True)],
        encoding=messages.Encoding.JSON_IETF.value,
    )
    origin = field(2, b"openconfig")
    assert request.SerializeToString(deterministic=True) == (
        field(1, field(4, b"OC-YANG")) + field(2, origin + PATH) + b"\x28\x04"
    )


def test_capabilities_are_read_as_the_service_defines_them() -> None:
    model = field(1, b"openconfig-system") + field(2, b"OpenConfig working group") + field(3, b"2.0.0")
    extension = field(4, b"\x0a\x00")
    packed, single = field(2, b"\x04\x00"), b"\x10\x02"
    answer = messages.CapabilityResponse.FromString(field(1, model) + packed + single + field(3, b"0.10.0") + extension)
    [read] = answer.supported_models
    assert (read.name, read.organization, read.version) == ("openconfig-system", "OpenConfig working group", "2.0.0")
    assert list(answer.supported_encodings) == [4, 0, 2]
    assert answer.gNMI_version == "0.10.0"


@pytest.mark.parametrize(
    ("wire", "name", "value"),
    [
        (field(1, b"x"), "string_val", "x"),
        (b"\x10\x03", "int_val", 3),
        (b"\x18\x03", "uint_val", 3),
        (b"\x20\x01", "bool_val", True),
        (field(5, b"x"), "bytes_val", b"x"),
        (b"\x35\x00\x00\x00\x3f", "float_val", 0.5),
        (b"\x71\x00\x00\x00\x00\x00\x00\xe0\x3f", "double_val", 0.5),
        (field(7, b"\x08\x05\x10\x01"), "decimal_val", None),
        (field(8, field(1, field(1, b"x"))), "leaflist_val", None),
        (field(10, b"1"), "json_val", b"1"),
        (field(11, b"1"), "json_ietf_val", b"1"),
        (field(12, b"x"), "ascii_val", "x"),
        (field(13, b"x"), "proto_bytes", b"x"),
    ],
)
def test_an_answer_is_read_as_the_service_defines_it(wire: bytes, name: str, value: Any) -> None:
    update = field(1, PATH) + field(3, wire)
    answer = messages.GetResponse.FromString(field(1, b"\x08\x01" + field(2, b"") + field(4, update)))
    [read] = answer.notification[0].update
    assert [each.name for each in read.path.elem] == ["platform", "control"]
    assert read.val.WhichOneof("value") == name
    if value is not None:
        assert getattr(read.val, name) == value


def test_a_decimal_has_digits_and_a_precision() -> None:
    value = messages.TypedValue.FromString(field(7, b"\x08\x05\x10\x01"))
    assert (value.decimal_val.digits, value.decimal_val.precision) == (5, 1)
