"""The messages of gNMI that discovery needs, and the names of its calls (openconfig gNMI service 0.10).

Written as descriptors, so that no generated code is kept. A field that is not here, an extension for one, is skipped by
the parser. The messages are in a pool of their own: another gNMI library in the same process is no conflict.
"""

from __future__ import annotations

import enum
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

CAPABILITIES = "/gnmi.gNMI/Capabilities"
GET = "/gnmi.gNMI/Get"


class Encoding(enum.IntEnum):
    """How a value is written."""

    JSON = 0
    BYTES = 1
    PROTO = 2
    ASCII = 3
    JSON_IETF = 4


_MESSAGES: dict[str, str] = {
    "Path": "2 string origin; 3 repeated PathElem elem; 4 string target",
    "PathElem": "1 string name; 2 map key",
    "Decimal64": "1 int64 digits; 2 uint32 precision",
    "ScalarArray": "1 repeated TypedValue element",
    "TypedValue": "1 oneof string string_val; 2 oneof int64 int_val; 3 oneof uint64 uint_val; 4 oneof bool bool_val;"
    " 5 oneof bytes bytes_val; 6 oneof float float_val; 14 oneof double double_val; 7 oneof Decimal64 decimal_val;"
    " 8 oneof ScalarArray leaflist_val; 10 oneof bytes json_val; 11 oneof bytes json_ietf_val;"
    " 12 oneof string ascii_val; 13 oneof bytes proto_bytes",
    "Update": "1 Path path; 3 TypedValue val; 4 uint32 duplicates",
    "Notification": "1 int64 timestamp; 2 Path prefix; 4 repeated Update update; 5 repeated Path delete; 6 bool atomic",
    "ModelData": "1 string name; 2 string organization; 3 string version",
    "CapabilityRequest": "",
    "CapabilityResponse": "1 repeated ModelData supported_models; 2 repeated int32 supported_encodings;"
    " 3 string gNMI_version",
    "GetRequest": "1 Path prefix; 2 repeated Path path; 3 int32 type; 5 int32 encoding; 6 repeated ModelData use_models",
    "GetResponse": "1 repeated Notification notification",
}
"""Each field: number, then repeated or oneof, then its type and its name. An enum is an int32 on the wire, so that a
value which we do not know is kept."""


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="gnmi.proto", package="gnmi", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for written in filter(None, fields.split("; ")):
            _add(message, *written.split())
    return file


def _add(message: Any, number: str, *words: str) -> None:
    *how, kind, name = words
    field = message.field.add(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if "repeated" in how or kind == "map" else field.LABEL_OPTIONAL
    if "oneof" in how:
        if not message.oneof_decl:
            message.oneof_decl.add(name="value")
        field.oneof_index = 0
    if kind == "map":
        entry = message.nested_type.add(name="KeyEntry")
        entry.options.map_entry = True
        _add(entry, "1", "string", "key")
        _add(entry, "2", "string", "value")
        kind = f"{message.name}.KeyEntry"
    if kind[0].isupper():
        field.type, field.type_name = field.TYPE_MESSAGE, f".gnmi.{kind}"
    else:
        field.type = getattr(field, f"TYPE_{kind.upper()}")


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_file())


def _class(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"gnmi.{name}"))


Path = _class("Path")
PathElem = _class("PathElem")
TypedValue = _class("TypedValue")
Update = _class("Update")
Notification = _class("Notification")
ModelData = _class("ModelData")
CapabilityRequest = _class("CapabilityRequest")
CapabilityResponse = _class("CapabilityResponse")
GetRequest = _class("GetRequest")
GetResponse = _class("GetResponse")
