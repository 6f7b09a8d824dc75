"""The messages of Terraform's plugin protocol 6, as tables: which field of which message has which number.

`METHODS` maps each method to the tables of its request and its answer. List resources, actions and state stores, which
stream, are not among them: a provider that has none is never asked for one.
"""

from __future__ import annotations

from trimtab.terraform.protocol.wire import Table, binary, boolean, enum, integer, many, mapping, one, string

SERVICE = "tfplugin6.Provider"

DYNAMIC_VALUE = Table("DynamicValue", msgpack=binary(1), json=binary(2))
RAW_STATE = Table("RawState", json=binary(1), flatmap=mapping(2))
TIMESTAMP = Table("Timestamp", seconds=integer(1), nanos=enum(2))  # nanos is an int32, on the wire the same as an enum

STEP = Table(
    "AttributePath.Step",
    attribute_name=string(1, oneof=True),
    element_key_string=string(2, oneof=True),
    element_key_int=integer(3, oneof=True),
)
PATH = Table("AttributePath", steps=many(1, STEP))
DIAGNOSTIC = Table("Diagnostic", severity=enum(1), summary=string(2), detail=string(3), attribute=one(4, PATH))
FUNCTION_ERROR = Table("FunctionError", text=string(1), function_argument=integer(2, explicit=True))

ATTRIBUTE = Table("Schema.Attribute")
OBJECT = Table(
    "Schema.Object", attributes=many(1, ATTRIBUTE), nesting=enum(3), min_items=integer(4), max_items=integer(5)
)
ATTRIBUTE.has(
    name=string(1),
    type=binary(2),
    description=string(3),
    required=boolean(4),
    optional=boolean(5),
    computed=boolean(6),
    sensitive=boolean(7),
    description_kind=enum(8),
    deprecated=boolean(9),
    nested_type=one(10, OBJECT),
    write_only=boolean(11),
    deprecation_message=string(12),
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

IDENTITY_ATTRIBUTE = Table(
    "ResourceIdentitySchema.IdentityAttribute",
    name=string(1),
    type=binary(2),
    required_for_import=boolean(3),
    optional_for_import=boolean(4),
    description=string(5),
)
IDENTITY_SCHEMA = Table("ResourceIdentitySchema", version=integer(1), identity_attributes=many(2, IDENTITY_ATTRIBUTE))
IDENTITY = Table("ResourceIdentityData", identity_data=one(1, DYNAMIC_VALUE))

PARAMETER = Table(
    "Function.Parameter",
    name=string(1),
    type=binary(2),
    allow_null_value=boolean(3),
    allow_unknown_values=boolean(4),
    description=string(5),
    description_kind=enum(6),
)
FUNCTION = Table(
    "Function",
    parameters=many(1, PARAMETER),
    variadic_parameter=one(2, PARAMETER),
    return_=one(3, Table("Function.Return", type=binary(1))),
    summary=string(4),
    description=string(5),
    description_kind=enum(6),
    deprecation_message=string(7),
)

SERVER_CAPABILITIES = Table(
    "ServerCapabilities",
    plan_destroy=boolean(1),
    get_provider_schema_optional=boolean(2),
    move_resource_state=boolean(3),
    generate_resource_config=boolean(4),
)
CLIENT_CAPABILITIES = Table("ClientCapabilities", deferral_allowed=boolean(1), write_only_attributes_allowed=boolean(2))
DEFERRED = Table("Deferred", reason=enum(1))

TYPE_METADATA = Table("GetMetadata.TypeMetadata", type_name=string(1))
FUNCTION_METADATA = Table("GetMetadata.FunctionMetadata", name=string(1))

EMPTY = Table("Empty")
DIAGNOSTICS = Table("Diagnostics", diagnostics=many(1, DIAGNOSTIC))
TYPED_CONFIG = Table("TypedConfig", type_name=string(1), config=one(2, DYNAMIC_VALUE))
CAPABLE_CONFIG = Table(
    "CapableConfig",
    type_name=string(1),
    config=one(2, DYNAMIC_VALUE),
    client_capabilities=one(3, CLIENT_CAPABILITIES),
)
IMPORTED = Table(
    "ImportResourceState.ImportedResource",
    type_name=string(1),
    state=one(2, DYNAMIC_VALUE),
    private=binary(3),
    identity=one(4, IDENTITY),
)

METHODS: dict[str, tuple[Table, Table]] = {
    "GetMetadata": (
        EMPTY,
        Table(
            "GetMetadata.Response",
            server_capabilities=one(1, SERVER_CAPABILITIES),
            diagnostics=many(2, DIAGNOSTIC),
            data_sources=many(3, TYPE_METADATA),
            resources=many(4, TYPE_METADATA),
            functions=many(5, FUNCTION_METADATA),
            ephemeral_resources=many(6, TYPE_METADATA),
        ),
    ),
    "GetProviderSchema": (
        EMPTY,
        Table(
            "GetProviderSchema.Response",
            provider=one(1, SCHEMA),
            resource_schemas=mapping(2, SCHEMA),
            data_source_schemas=mapping(3, SCHEMA),
            diagnostics=many(4, DIAGNOSTIC),
            provider_meta=one(5, SCHEMA),
            server_capabilities=one(6, SERVER_CAPABILITIES),
            functions=mapping(7, FUNCTION),
            ephemeral_resource_schemas=mapping(8, SCHEMA),
        ),
    ),
    "GetResourceIdentitySchemas": (
        EMPTY,
        Table(
            "GetResourceIdentitySchemas.Response",
            identity_schemas=mapping(1, IDENTITY_SCHEMA),
            diagnostics=many(2, DIAGNOSTIC),
        ),
    ),
    "ValidateProviderConfig": (
        Table("ValidateProviderConfig.Request", config=one(1, DYNAMIC_VALUE)),
        Table("ValidateProviderConfig.Response", diagnostics=many(2, DIAGNOSTIC)),
    ),
    "ValidateResourceConfig": (CAPABLE_CONFIG, DIAGNOSTICS),
    "ValidateDataResourceConfig": (TYPED_CONFIG, DIAGNOSTICS),
    "UpgradeResourceState": (
        Table("UpgradeResourceState.Request", type_name=string(1), version=integer(2), raw_state=one(3, RAW_STATE)),
        Table("UpgradeResourceState.Response", upgraded_state=one(1, DYNAMIC_VALUE), diagnostics=many(2, DIAGNOSTIC)),
    ),
    "UpgradeResourceIdentity": (
        Table(
            "UpgradeResourceIdentity.Request",
            type_name=string(1),
            version=integer(2),
            raw_identity=one(3, RAW_STATE),
        ),
        Table(
            "UpgradeResourceIdentity.Response",
            upgraded_identity=one(1, IDENTITY),
            diagnostics=many(2, DIAGNOSTIC),
        ),
    ),
    "ConfigureProvider": (
        Table(
            "ConfigureProvider.Request",
            terraform_version=string(1),
            config=one(2, DYNAMIC_VALUE),
            client_capabilities=one(3, CLIENT_CAPABILITIES),
        ),
        DIAGNOSTICS,
    ),
    "ReadResource": (
        Table(
            "ReadResource.Request",
            type_name=string(1),
            current_state=one(2, DYNAMIC_VALUE),
            private=binary(3),
            provider_meta=one(4, DYNAMIC_VALUE),
            client_capabilities=one(5, CLIENT_CAPABILITIES),
            current_identity=one(6, IDENTITY),
        ),
        Table(
            "ReadResource.Response",
            new_state=one(1, DYNAMIC_VALUE),
            diagnostics=many(2, DIAGNOSTIC),
            private=binary(3),
            deferred=one(4, DEFERRED),
            new_identity=one(5, IDENTITY),
        ),
    ),
    "PlanResourceChange": (
        Table(
            "PlanResourceChange.Request",
            type_name=string(1),
            prior_state=one(2, DYNAMIC_VALUE),
            proposed_new_state=one(3, DYNAMIC_VALUE),
            config=one(4, DYNAMIC_VALUE),
            prior_private=binary(5),
            provider_meta=one(6, DYNAMIC_VALUE),
            client_capabilities=one(7, CLIENT_CAPABILITIES),
            prior_identity=one(8, IDENTITY),
        ),
        Table(
            "PlanResourceChange.Response",
            planned_state=one(1, DYNAMIC_VALUE),
            requires_replace=many(2, PATH),
            planned_private=binary(3),
            diagnostics=many(4, DIAGNOSTIC),
            legacy_type_system=boolean(5),
            deferred=one(6, DEFERRED),
            planned_identity=one(7, IDENTITY),
        ),
    ),
    "ApplyResourceChange": (
        Table(
            "ApplyResourceChange.Request",
            type_name=string(1),
            prior_state=one(2, DYNAMIC_VALUE),
            planned_state=one(3, DYNAMIC_VALUE),
            config=one(4, DYNAMIC_VALUE),
            planned_private=binary(5),
            provider_meta=one(6, DYNAMIC_VALUE),
            planned_identity=one(7, IDENTITY),
        ),
        Table(
            "ApplyResourceChange.Response",
            new_state=one(1, DYNAMIC_VALUE),
            private=binary(2),
            diagnostics=many(3, DIAGNOSTIC),
            legacy_type_system=boolean(4),
            new_identity=one(5, IDENTITY),
        ),
    ),
    "ImportResourceState": (
        Table(
            "ImportResourceState.Request",
            type_name=string(1),
            id=string(2),
            client_capabilities=one(3, CLIENT_CAPABILITIES),
            identity=one(4, IDENTITY),
        ),
        Table(
            "ImportResourceState.Response",
            imported_resources=many(1, IMPORTED),
            diagnostics=many(2, DIAGNOSTIC),
            deferred=one(3, DEFERRED),
        ),
    ),
    "GenerateResourceConfig": (
        Table("GenerateResourceConfig.Request", type_name=string(1), state=one(2, DYNAMIC_VALUE)),
        Table("GenerateResourceConfig.Response", config=one(1, DYNAMIC_VALUE), diagnostics=many(2, DIAGNOSTIC)),
    ),
    "MoveResourceState": (
        Table(
            "MoveResourceState.Request",
            source_provider_address=string(1),
            source_type_name=string(2),
            source_schema_version=integer(3),
            source_state=one(4, RAW_STATE),
            target_type_name=string(5),
            source_private=binary(6),
            source_identity=one(7, RAW_STATE),
            source_identity_schema_version=integer(8),
        ),
        Table(
            "MoveResourceState.Response",
            target_state=one(1, DYNAMIC_VALUE),
            diagnostics=many(2, DIAGNOSTIC),
            target_private=binary(3),
            target_identity=one(4, IDENTITY),
        ),
    ),
    "ReadDataSource": (
        Table(
            "ReadDataSource.Request",
            type_name=string(1),
            config=one(2, DYNAMIC_VALUE),
            provider_meta=one(3, DYNAMIC_VALUE),
            client_capabilities=one(4, CLIENT_CAPABILITIES),
        ),
        Table(
            "ReadDataSource.Response",
            state=one(1, DYNAMIC_VALUE),
            diagnostics=many(2, DIAGNOSTIC),
            deferred=one(3, DEFERRED),
        ),
    ),
    "GetFunctions": (
        EMPTY,
        Table("GetFunctions.Response", functions=mapping(1, FUNCTION), diagnostics=many(2, DIAGNOSTIC)),
    ),
    "CallFunction": (
        Table("CallFunction.Request", name=string(1), arguments=many(2, DYNAMIC_VALUE)),
        Table("CallFunction.Response", result=one(1, DYNAMIC_VALUE), error=one(2, FUNCTION_ERROR)),
    ),
    "ValidateEphemeralResourceConfig": (TYPED_CONFIG, DIAGNOSTICS),
    "OpenEphemeralResource": (
        CAPABLE_CONFIG,
        Table(
            "OpenEphemeralResource.Response",
            diagnostics=many(1, DIAGNOSTIC),
            renew_at=one(2, TIMESTAMP),
            result=one(3, DYNAMIC_VALUE),
            private=binary(4, explicit=True),
            deferred=one(5, DEFERRED),
        ),
    ),
    "RenewEphemeralResource": (
        Table("RenewEphemeralResource.Request", type_name=string(1), private=binary(2, explicit=True)),
        Table(
            "RenewEphemeralResource.Response",
            diagnostics=many(1, DIAGNOSTIC),
            renew_at=one(2, TIMESTAMP),
            private=binary(3, explicit=True),
        ),
    ),
    "CloseEphemeralResource": (
        Table("CloseEphemeralResource.Request", type_name=string(1), private=binary(2, explicit=True)),
        DIAGNOSTICS,
    ),
    "StopProvider": (EMPTY, Table("StopProvider.Response", Error=string(1))),
}
