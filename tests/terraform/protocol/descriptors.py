"""The same messages in the real protobuf, built from our tables when a test asks for them."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from trimtab.terraform.protocol import wire
from trimtab.terraform.protocol.wire import Field, Table

_KINDS = {
    wire.STRING: descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    wire.BYTES: descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    wire.BOOL: descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    wire.INT: descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    wire.ENUM: descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    wire.MESSAGE: descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE,
}


class Real:
    """Classes of protobuf's own for tables."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._file = descriptor_pb2.FileDescriptorProto(name="real.proto", package="real", syntax="proto3")
        self._tables: list[Table] = []  # kept, so that no identity is used twice

    def add(self, table: Table) -> str:
        if id(table) in self._names:
            return self._names[id(table)]
        name = f"M{len(self._names)}"
        self._names[id(table)] = name
        self._tables.append(table)
        message = self._file.message_type.add(name=name)
        oneofs = [field for field in table.fields.values() if field.oneof]
        if oneofs:
            message.oneof_decl.add(name="selector")
        for field in table.fields.values():
            self._add_field(message, name, field)
        return name

    def _add_field(self, message: Any, name: str, field: Field) -> None:
        proto = message.field.add(name=field.name, number=field.number, type=_KINDS[field.kind])
        proto.label = proto.LABEL_OPTIONAL if field.count == wire.ONE else proto.LABEL_REPEATED
        if field.count == wire.MAP:
            # protobuf knows a map by the name of its entries
            entry = "".join(part.capitalize() for part in field.name.split("_")) + "Entry"
            nested = message.nested_type.add(name=entry)
            nested.options.map_entry = True
            nested.field.add(name="key", number=1, type=proto.TYPE_STRING, label=proto.LABEL_OPTIONAL)
            value = nested.field.add(name="value", number=2, type=_KINDS[field.kind], label=proto.LABEL_OPTIONAL)
            if field.table is not None:
                value.type_name = f".real.{self.add(field.table)}"
            proto.type = proto.TYPE_MESSAGE
            proto.type_name = f".real.{name}.{entry}"
            return
        if field.table is not None:
            proto.type_name = f".real.{self.add(field.table)}"
        elif field.oneof:
            proto.oneof_index = 0
        elif field.explicit:
            proto.proto3_optional = True
            proto.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")

    def classes(self) -> dict[str, Any]:
        pool = descriptor_pool.DescriptorPool()
        pool.Add(self._file)
        return {
            name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"real.{name}"))
            for name in self._names.values()
        }


def as_dict(message: Any, table: Table) -> dict[str, Any]:
    """What protobuf holds, in the form that we have."""
    out: dict[str, Any] = {}
    for field in table.fields.values():
        value = getattr(message, field.name)
        if field.count == wire.MAP:
            if value:
                out[field.name] = {
                    key: item if field.table is None else as_dict(item, field.table) for key, item in value.items()
                }
        elif field.count == wire.LIST:
            if value:
                out[field.name] = [item if field.table is None else as_dict(item, field.table) for item in value]
        elif field.explicit:
            if message.HasField(field.name):
                out[field.name] = value if field.table is None else as_dict(value, field.table)
        elif value:
            out[field.name] = value
    return out
