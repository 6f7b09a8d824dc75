"""Reads `application/vnd.kubernetes.protobuf` bodies of built-in kinds into the documents that JSON bodies become.

kubectl and every typed Go client write built-in kinds this way. Answers are JSON, so there is no encoder. What Go would
leave out of JSON is left out here too: the descriptors carry those rules as field presence (see
`scripts/builtin_tables.py`), and the converters below know the few types that have a JSON form of their own.
"""

from __future__ import annotations

import base64
import functools
import importlib.resources
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import orjson
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from trimtab.model.errors import StatusError, bad_request

MAGIC = b"k8s\x00"
MAX_BODY = 3 * 1024 * 1024
"""The largest body, as for JSON. Depth is bounded by the protobuf parser (100 messages)."""

Convert = Callable[[Message], Any]

_API = "k8s.io.api."
_META = "k8s.io.apimachinery.pkg.apis.meta.v1."
_CRD = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1."
_AGGREGATION = "k8s.io.kube_aggregator.pkg.apis.apiregistration."
_UNKNOWN = "k8s.io.apimachinery.pkg.runtime.Unknown"
_EPOCH = datetime(1970, 1, 1)  # without a zone, which would be written too


def decode(body: bytes) -> dict[str, Any]:
    """The document in `body`. Anything that is not one is a 400."""
    if len(body) > MAX_BODY:
        raise StatusError(413, "RequestEntityTooLarge", f"limit is {MAX_BODY}")
    if not body.startswith(MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    unknown = _parse(_UNKNOWN, body[len(MAGIC) :])
    api_version, kind = unknown.typeMeta.apiVersion, unknown.typeMeta.kind
    if unknown.contentEncoding or unknown.contentType not in ("", "application/vnd.kubernetes.protobuf"):
        raise bad_request(f"the protobuf envelope holds {unknown.contentType!r}, which is not protobuf")
    name = message_name(api_version, kind)
    if name is None:
        raise bad_request(f'no kind "{kind}" is registered for version "{api_version}"')
    try:
        fields: dict[str, Any] = _converter(name)(_parse(name, unknown.raw))
    except (ValueError, OverflowError) as error:
        raise bad_request(f"unable to decode {kind}: {error}") from error
    return {"apiVersion": api_version, "kind": kind, **fields}


def message_name(api_version: str, kind: str) -> str | None:
    """The protobuf message of a kind; None where there is none. DeleteOptions are of every group."""
    group, _, version = api_version.rpartition("/")
    if kind in ("DeleteOptions", "Status"):
        return _META + kind
    if group == "apiextensions.k8s.io":
        name = f"{_CRD.removesuffix('v1.')}{version}.{kind}"
    elif group == "apiregistration.k8s.io":
        name = f"{_AGGREGATION}{version}.{kind}"
    else:
        name = f"{_API}{group.split('.')[0] or 'core'}.{version}.{kind}"
    try:
        _message_class(name)
    except (KeyError, TypeError, UnicodeError):
        return None
    return name


def _parse(name: str, data: bytes) -> Any:
    message = _message_class(name)()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise bad_request(f"the body is not a protobuf {name.rpartition('.')[2]}: {error}") from error
    return message


@functools.cache
def _message_class(name: str) -> Any:
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(name))


@functools.cache
def _pool() -> descriptor_pool.DescriptorPool:
    data = (importlib.resources.files(__package__) / "protobuf.bin").read_bytes()
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.Add(file)
    return pool


_converters: dict[str, Convert] = {}


def _converter(name: str) -> Convert:
    """How messages of one type become JSON, compiled at first use."""
    if name in _SPECIAL:
        return _SPECIAL[name]
    if name not in _converters:
        fields: dict[int, tuple[str | None, Callable[[Any], Any] | None]] = {}
        _converters[name] = _message(fields)
        # after that, because types refer to themselves (JSONSchemaProps)
        fields |= {field.number: _field(field) for field in _pool().FindMessageTypeByName(name).fields}
    return _converters[name]


def _message(fields: dict[int, tuple[str | None, Callable[[Any], Any] | None]]) -> Convert:
    def convert(message: Message) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for descriptor, value in message.ListFields():
            json_name, form = fields[descriptor.number]
            shown = form(value) if form is not None else value
            if json_name is None:
                result.update(shown)
            elif shown is not None:
                result[json_name] = shown
        return result

    return convert


def _field(field: Any) -> tuple[str | None, Callable[[Any], Any] | None]:
    """A field's name in JSON (None: its fields belong to the parent), and what to do with its value (None: nothing)."""
    json_name = None if field.json_name.startswith("inline:") else field.json_name
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return json_name, _mapping(inner.fields_by_name["value"])
    one = _value(field)
    if field.is_repeated:
        return json_name, (list if one is None else lambda values: [one(value) for value in values])
    return json_name, one


def _mapping(field: Any) -> Callable[[Any], dict[str, Any]]:
    one = _value(field)
    if one is None:
        return dict
    return lambda values: {key: one(values[key]) for key in values}


def _value(field: Any) -> Callable[[Any], Any] | None:
    if field.message_type is not None:
        return _converter(field.message_type.full_name)
    if field.type == field.TYPE_BYTES:
        return _base64
    if field.type == field.TYPE_DOUBLE:
        return lambda value: int(value) if value.is_integer() and abs(value) < 1e15 else value
    return None


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _time(message: Any) -> str | None:
    """RFC 3339 to the second; Go's zero time is an empty message, which is no time."""
    if not message.ByteSize():
        return None
    return _moment(message.seconds) + "Z"


def _micro_time(message: Any) -> str | None:
    if not message.ByteSize():
        return None
    more, nanos = divmod(message.nanos, 1_000_000_000)
    return f"{_moment(message.seconds + more)}.{nanos // 1000:06}Z"


@functools.lru_cache(maxsize=256)
def _moment(seconds: int) -> str:
    """The same few moments come again and again: of creation, of the last write."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()


def _int_or_string(message: Any) -> int | str:
    value: int | str = message.strVal if message.type else message.intVal
    return value


def _raw(message: Any) -> Any:
    """JSON that travels inside protobuf. Nothing at all is null."""
    data = message.raw if hasattr(message, "raw") else message.Raw
    return orjson.loads(data) if data else None


def _schema_or_bool(message: Any) -> Any:
    if message.HasField("schema"):
        return _converter(_CRD + "JSONSchemaProps")(message.schema)
    return bool(message.allows)


def _schema_or_array(message: Any) -> Any:
    convert = _converter(_CRD + "JSONSchemaProps")
    if message.jSONSchemas:
        return [convert(one) for one in message.jSONSchemas]
    return convert(message.schema) if message.HasField("schema") else None


def _schema_or_names(message: Any) -> Any:
    if message.property:
        return list(message.property)
    return _converter(_CRD + "JSONSchemaProps")(message.schema) if message.HasField("schema") else None


_SPECIAL: dict[str, Convert] = {
    _META + "Time": _time,
    _META + "MicroTime": _micro_time,
    _META + "FieldsV1": _raw,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": lambda message: message.string,
    _API + "authentication.v1.ExtraValue": lambda message: list(message.items),
    _API + "authorization.v1.ExtraValue": lambda message: list(message.items),
    _API + "certificates.v1.ExtraValue": lambda message: list(message.items),
    _CRD + "JSON": _raw,
    _CRD + "JSONSchemaPropsOrBool": _schema_or_bool,
    _CRD + "JSONSchemaPropsOrArray": _schema_or_array,
    _CRD + "JSONSchemaPropsOrStringArray": _schema_or_names,
}
