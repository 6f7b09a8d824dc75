"""OpenAPI v2 as protobuf: the messages of gnostic's `openapi.v2`, as far as our documents need them.

`SHAPE` is their descriptor, a line a message: `name type number`, `*` for repeated. Fields that are documents of their own
(extensions, enumerations) are YAML there, and JSON is YAML.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import orjson
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PROTOBUF = b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ACCEPTED = ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", PROTOBUF.decode())

SHAPE = """
Any: yaml string 2
NamedAny: name string 1, value Any 2
Document: swagger string 1, info Info 2, paths Paths 8, definitions Definitions 9, security *SecurityRequirement 12, \
security_definitions SecurityDefinitions 13
Info: title string 1, version string 2
Paths: path *NamedPathItem 2
NamedPathItem: name string 1, value PathItem 2
PathItem: get Operation 2, put Operation 3, post Operation 4, delete Operation 5, patch Operation 8, \
parameters *ParametersItem 9
Operation: tags *string 1, description string 3, operation_id string 5, produces *string 6, consumes *string 7, \
parameters *ParametersItem 8, responses Responses 9, schemes *string 10, vendor_extension *NamedAny 13
ParametersItem: parameter Parameter 1
Parameter: body_parameter BodyParameter 1, non_body_parameter NonBodyParameter 2
NonBodyParameter: query_parameter_sub_schema QueryParameterSubSchema 3, path_parameter_sub_schema PathParameterSubSchema 4
BodyParameter: description string 1, name string 2, in string 3, required bool 4, schema Schema 5
QueryParameterSubSchema: required bool 1, in string 2, description string 3, name string 4, type string 6, \
unique_items bool 20
PathParameterSubSchema: required bool 1, in string 2, description string 3, name string 4, type string 5, \
unique_items bool 19
Responses: response_code *NamedResponseValue 1
NamedResponseValue: name string 1, value ResponseValue 2
ResponseValue: response Response 1
Response: description string 1, schema SchemaItem 2
SchemaItem: schema Schema 1
Definitions: additional_properties *NamedSchema 1
Properties: additional_properties *NamedSchema 1
NamedSchema: name string 1, value Schema 2
ItemsItem: schema *Schema 1
TypeItem: value *string 1
AdditionalPropertiesItem: schema Schema 1, boolean bool 2
Schema: _ref string 1, format string 2, title string 3, description string 4, multiple_of double 6, maximum double 7, \
exclusive_maximum bool 8, minimum double 9, exclusive_minimum bool 10, max_length int64 11, min_length int64 12, \
pattern string 13, max_items int64 14, min_items int64 15, unique_items bool 16, max_properties int64 17, \
min_properties int64 18, required *string 19, enum *Any 20, additional_properties AdditionalPropertiesItem 21, \
type TypeItem 22, items ItemsItem 23, properties Properties 25, read_only bool 27, vendor_extension *NamedAny 31
SecurityRequirement: additional_properties *NamedStringArray 1
NamedStringArray: name string 1, value StringArray 2
StringArray: value *string 1
SecurityDefinitions: additional_properties *NamedSecurityDefinitionsItem 1
NamedSecurityDefinitionsItem: name string 1, value SecurityDefinitionsItem 2
SecurityDefinitionsItem: api_key_security ApiKeySecurity 2
ApiKeySecurity: type string 1, name string 2, in string 3, description string 4
"""

_TYPES = {"string": 9, "bool": 8, "double": 1, "int64": 3}
_PLAIN = {
    "$ref": "_ref", "format": "format", "title": "title", "description": "description", "multipleOf": "multiple_of",
    "maximum": "maximum", "exclusiveMaximum": "exclusive_maximum", "minimum": "minimum",
    "exclusiveMinimum": "exclusive_minimum", "maxLength": "max_length", "minLength": "min_length", "pattern": "pattern",
    "maxItems": "max_items", "minItems": "min_items", "uniqueItems": "unique_items", "maxProperties": "max_properties",
    "minProperties": "min_properties", "readOnly": "read_only",
}  # fmt: skip

Said = Mapping[str, Any]


def encoded(document: Said) -> bytes:
    """A document of `model.openapi2` as a gnostic `Document`."""
    message = message_class("Document")()
    message.swagger = document["swagger"]
    _fill(message.info, document["info"])
    message.paths.SetInParent()
    for path, item in document["paths"].items():
        _path(item, message.paths.path.add(name=path).value)
    message.definitions.SetInParent()
    for name, said in document["definitions"].items():
        _schema(said, message.definitions.additional_properties.add(name=name).value)
    for name, said in document["securityDefinitions"].items():
        _fill(message.security_definitions.additional_properties.add(name=name).value.api_key_security, said)
    for requirement in document["security"]:
        target = message.security.add()
        for name, scopes in requirement.items():
            one = target.additional_properties.add(name=name).value
            one.SetInParent()
            one.value.extend(scopes)
    data: bytes = message.SerializeToString(deterministic=True)
    return data


@functools.cache
def message_class(name: str) -> Any:
    """The class of a message, for who reads such a document, too."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"openapi.v2.{name}"))


@functools.cache
def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="openapi_v2.proto", package="openapi.v2", syntax="proto3")
    for line in SHAPE.strip().splitlines():
        name, _, fields = line.partition(":")
        message = file.message_type.add(name=name)
        for text in fields.split(","):
            called, kind, number = text.split()
            field = message.field.add(name=called, number=int(number), label=3 if kind.startswith("*") else 1)
            kind = kind.removeprefix("*")
            if kind in _TYPES:
                field.type = _TYPES[kind]
            else:
                field.type, field.type_name = 11, f".openapi.v2.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _path(item: Said, target: Any) -> None:
    target.SetInParent()
    for word, value in item.items():
        if word == "parameters":
            _parameters(value, target.parameters)
        else:
            _operation(value, getattr(target, word))


def _operation(said: Said, target: Any) -> None:
    target.description, target.operation_id = said.get("description", ""), said.get("operationId", "")
    for word in ("tags", "produces", "consumes", "schemes"):
        getattr(target, word).extend(said.get(word) or ())
    _parameters(said.get("parameters") or (), target.parameters)
    for code, answer in said["responses"].items():
        response = target.responses.response_code.add(name=code).value.response
        response.description = answer["description"]
        if "schema" in answer:
            _schema(answer["schema"], response.schema.schema)
    _extensions(said, target)


def _parameters(said: Any, target: Any) -> None:
    for one in said:
        parameter = target.add().parameter
        if one["in"] == "body":
            plain = {word: value for word, value in one.items() if word != "schema"}
            _fill(parameter.body_parameter, plain)
            _schema(one["schema"], parameter.body_parameter.schema)
        else:
            of = getattr(parameter.non_body_parameter, f"{one['in']}_parameter_sub_schema")
            unique = one.get("uniqueItems", False)
            _fill(of, {**{word: value for word, value in one.items() if word != "uniqueItems"}, "unique_items": unique})


def _fill(target: Any, said: Said) -> None:
    target.SetInParent()
    for word, value in said.items():
        setattr(target, word, value)


def _schema(said: Said, target: Any) -> None:
    target.SetInParent()
    for word, value in said.items():
        if word in _PLAIN:
            setattr(target, _PLAIN[word], value)
        elif word == "type":
            target.type.value.extend([value] if isinstance(value, str) else value)
        elif word == "required":
            target.required.extend(value)
        elif word == "enum":
            for one in value:
                target.enum.add(yaml=orjson.dumps(one).decode())
        elif word == "items":
            _schema(value, target.items.schema.add())
        elif word == "additionalProperties":
            if isinstance(value, bool):
                target.additional_properties.boolean = value
            else:
                _schema(value, target.additional_properties.schema)
        elif word == "properties":
            target.properties.SetInParent()
            for name, inner in value.items():
                _schema(inner, target.properties.additional_properties.add(name=name).value)
    _extensions(said, target)


def _extensions(said: Said, target: Any) -> None:
    for word, value in said.items():
        if word.startswith("x-"):
            target.vendor_extension.add(name=word).value.yaml = orjson.dumps(value).decode()
