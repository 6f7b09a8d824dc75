"""The messages of plugin protocol 5, where they are not those of protocol 6.

Protocol 5 has no nested attributes, numbers two fields of an attribute otherwise, and calls six methods by other names.
`RENAMED` maps a method of protocol 6 to what protocol 5 calls it; all dicts are keyed alike, so nothing else is to translate.
"""

from __future__ import annotations

from trimtab.terraform.protocol import messages
from trimtab.terraform.protocol.messages import DIAGNOSTIC, DYNAMIC_VALUE
from trimtab.terraform.protocol.wire import Table, binary, boolean, enum, integer, many, mapping, one, string

SERVICE = "tfplugin5.Provider"

RENAMED = {
    "GetProviderSchema": "GetSchema",
    "ValidateProviderConfig": "PrepareProviderConfig",
    "ValidateResourceConfig": "ValidateResourceTypeConfig",
    "ValidateDataResourceConfig": "ValidateDataSourceConfig",
    "ConfigureProvider": "Configure",
    "StopProvider": "Stop",
}

ATTRIBUTE = Table(
    "Schema.Attribute",
    name=string(1),
    type=binary(2),
    description=string(3),
    required=boolean(4),
    optional=boolean(5),
    computed=boolean(6),
    sensitive=boolean(7),
    description_kind=enum(8),
    deprecated=boolean(9),
    write_only=boolean(10),
    deprecation_message=string(11),
)
BLOCK = Table("Schema.Block")
NESTED_BLOCK = Table(
    "Schema.NestedBlock",
    type_name=string(1),
    block=one(2, BLOCK),
    nesting=enum(3),
    min_items=integer(4),
    max_items=integer(5),
)
BLOCK.has(
    version=integer(1),
    attributes=many(2, ATTRIBUTE),
    block_types=many(3, NESTED_BLOCK),
    description=string(4),
    description_kind=enum(5),
    deprecated=boolean(6),
    deprecation_message=string(7),
)
SCHEMA = Table("Schema", version=integer(1), block=one(2, BLOCK))

METHODS: dict[str, tuple[Table, Table]] = {
    **{RENAMED.get(name, name): tables for name, tables in messages.METHODS.items()},
    "GetSchema": (
        messages.EMPTY,
        Table(
            "GetProviderSchema.Response",
            provider=one(1, SCHEMA),
            resource_schemas=mapping(2, SCHEMA),
            data_source_schemas=mapping(3, SCHEMA),
            diagnostics=many(4, DIAGNOSTIC),
            provider_meta=one(5, SCHEMA),
            server_capabilities=one(6, messages.SERVER_CAPABILITIES),
            functions=mapping(7, messages.FUNCTION),
            ephemeral_resource_schemas=mapping(8, SCHEMA),
        ),
    ),
    "PrepareProviderConfig": (
        Table("PrepareProviderConfig.Request", config=one(1, DYNAMIC_VALUE)),
        Table("PrepareProviderConfig.Response", prepared_config=one(1, DYNAMIC_VALUE), diagnostics=many(2, DIAGNOSTIC)),
    ),
}
