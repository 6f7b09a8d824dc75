"""Protobuf bodies of built-in kinds become the documents that JSON bodies are; what is malformed is a 400."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.errors import StatusError
from trimtab.server.builtin import protobuf, reviews, strategies
from trimtab.server.builtin.protobuf import MAGIC, decode, message_name

KINDS = [(s.kind.api_version, s.kind.kind) for s in (*strategies(), *reviews())]
KINDS += [("autoscaling/v1", "Scale"), ("authentication.k8s.io/v1", "TokenRequest")]


def message(api_version: str, kind: str) -> Any:
    name = message_name(api_version, kind)
    assert name is not None
    return made(name)


def made(name: str) -> Any:
    return message_factory.GetMessageClass(protobuf._pool().FindMessageTypeByName(name))()


def body(api_version: str, kind: str, content: Any, **envelope: str) -> bytes:
    """A request body as Go clients make it."""
    unknown = made("k8s.io.apimachinery.pkg.runtime.Unknown")
    unknown.typeMeta.apiVersion, unknown.typeMeta.kind = api_version, kind
    unknown.raw = content if isinstance(content, bytes) else content.SerializeToString()
    for field, value in envelope.items():
        setattr(unknown, field, value)
    data: bytes = unknown.SerializeToString()
    return MAGIC + data


def fixtures() -> Path | None:
    """The folder of encoded objects in the Go module k8s.io/api, if that module is on this machine."""
    command = ["go", "mod", "download", "-json", "k8s.io/api@v0.32.13"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    folder = Path(json.loads(answer.stdout)["Dir"]) / "testdata" / "HEAD"
    return folder if folder.is_dir() else None


ELSEWHERE = ("CustomResourceDefinition", "APIService")
"""Of modules that come without such files."""


@pytest.mark.parametrize(("api_version", "kind"), [kind for kind in KINDS if kind[1] not in ELSEWHERE])
def test_an_object_with_every_field_decodes_to_its_json(api_version: str, kind: str) -> None:
    folder = fixtures()
    if folder is None:
        pytest.skip("the Go module k8s.io/api v0.32.13 is not here")
    group, _, version = api_version.rpartition("/")
    path = folder / f"{group or 'core'}.{version}.{kind}.json"
    assert decode(path.with_suffix(".pb").read_bytes()) == json.loads(path.read_text())


def test_what_go_leaves_out_of_json_is_left_out() -> None:
    lease = message("coordination.k8s.io/v1", "Lease")
    lease.metadata.name = "a"
    lease.metadata.generation = 0
    lease.metadata.creationTimestamp.SetInParent()
    lease.spec.holderIdentity = ""
    assert decode(body("coordination.k8s.io/v1", "Lease", lease)) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "a"},
        "spec": {"holderIdentity": ""},
    }


def test_times_are_written_as_the_api_writes_them() -> None:
    lease = message("coordination.k8s.io/v1", "Lease")
    lease.metadata.creationTimestamp.seconds = 1_700_000_000
    lease.spec.renewTime.seconds = 1_700_000_000
    lease.spec.renewTime.nanos = 6_999
    decoded = decode(body("coordination.k8s.io/v1", "Lease", lease))
    assert decoded["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert decoded["spec"]["renewTime"] == "2023-11-14T22:13:20.000006Z"


def test_bytes_are_base64() -> None:
    secret = message("v1", "Secret")
    secret.data["a"] = b"\x00\x01"
    assert decode(body("v1", "Secret", secret))["data"] == {"a": "AAE="}


def test_a_port_is_a_number_or_a_name() -> None:
    service = message("v1", "Service")
    service.spec.ports.add(port=80).targetPort.intVal = 8080
    service.spec.ports.add(port=81).targetPort.strVal = "http"
    service.spec.ports[1].targetPort.type = 1
    ports = decode(body("v1", "Service", service))["spec"]["ports"]
    assert [port["targetPort"] for port in ports] == [8080, "http"]


def test_a_schema_inside_a_definition_keeps_its_shape() -> None:
    crd = message("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    version = crd.spec.versions.add(name="v1", served=True, storage=True)
    schema = version.schema.openAPIV3Schema
    schema.type = "object"
    schema.xKubernetesPreserveUnknownFields = True
    schema.properties["a"].type = "array"
    schema.properties["a"].items.schema.type = "integer"
    schema.properties["a"].items.schema.minimum = 1.0
    schema.properties["b"].additionalProperties.allows = True
    schema.properties["c"].default.raw = b'{"x":1}'
    schema.properties["c"].additionalProperties.schema.type = "string"
    decoded = decode(body("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd))
    assert decoded["spec"]["versions"][0] == {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {
                    "a": {"type": "array", "items": {"type": "integer", "minimum": 1}},
                    "b": {"additionalProperties": True},
                    "c": {"default": {"x": 1}, "additionalProperties": {"type": "string"}},
                },
            }
        },
    }


def test_delete_options_come_under_the_version_of_any_group() -> None:
    options = made("k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions")
    options.gracePeriodSeconds = 0
    options.propagationPolicy = "Background"
    assert decode(body("apps/v1", "DeleteOptions", options)) == {
        "apiVersion": "apps/v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
    }


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        MAGIC + b"\xff\xff",
        body("v1", "Nothing", b""),
        body("example.com/v1", "ConfigMap", b""),
        body("v1", "ConfigMap", b"\x0a\xff"),
        body("v1", "ConfigMap", b"", contentType="application/json"),
        body("v1", "ConfigMap", b"", contentEncoding="gzip"),
        body("apps/v1", "ControllerRevision", bytes.fromhex("12040a025b5b")),
    ],
)
def test_a_malformed_body_is_a_bad_request(data: bytes) -> None:
    with pytest.raises(StatusError) as raised:
        decode(data)
    assert raised.value.code == 400


def test_a_time_out_of_range_is_a_bad_request() -> None:
    config = message("v1", "ConfigMap")
    config.metadata.creationTimestamp.seconds = 2**62
    with pytest.raises(StatusError, match="unable to decode ConfigMap"):
        decode(body("v1", "ConfigMap", config))


def test_a_body_over_the_limit_is_too_large() -> None:
    with pytest.raises(StatusError) as raised:
        decode(MAGIC + bytes(protobuf.MAX_BODY))
    assert raised.value.code == 413


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(KINDS))
def test_no_bytes_do_anything_but_decode_or_fail_cleanly(data: bytes, kind: tuple[str, str]) -> None:
    with contextlib.suppress(StatusError):
        json.dumps(decode(body(*kind, data)))
