"""ConversionReview (apiextensions.k8s.io/v1 and v1beta1): what is sent to a webhook, and what its answer is worth. Pure.

Messages are those of the real server. A webhook may change labels and annotations, and no other metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from trimtab.model.errors import StatusError
from trimtab.model.metadata import validate_create
from trimtab.server import gojson
from trimtab.server.auth.wording import quoted
from trimtab.server.strategy import Document

GROUP = "apiextensions.k8s.io"
KNOWN_VERSIONS = ("v1", "v1beta1")
CHANGEABLE = ("labels", "annotations")


class Mistaken(Exception):  # noqa: N818 - it reads as what happened
    """What is wrong with an answer."""


class _Result(msgspec.Struct, frozen=True):
    status: str = ""
    message: str = ""


class _Response(msgspec.Struct, frozen=True):
    uid: str = ""
    result: _Result = _Result()
    objects: list[msgspec.Raw] | None = msgspec.field(name="convertedObjects", default=None)


class _Review(msgspec.Struct, frozen=True):
    kind: str = ""
    api_version: str = msgspec.field(name="apiVersion", default="")
    response: _Response | None = None


_decoder = msgspec.json.Decoder(_Review)


def failed(source: Document, why: str) -> StatusError:
    """The answer to a client whose object could not be converted. `why` goes on after the name of the kind."""
    return StatusError(500, "", f"conversion webhook for {shown_kind(source)} {why}")


def shown_kind(document: Document) -> str:
    """A kind as Go prints it."""
    group, _, version = str(document.get("apiVersion", "")).rpartition("/")
    return f"{group}/{version}, Kind={document.get('kind', '')}"


def review_version(offered: Sequence[str]) -> str:
    """The first version that the webhook understands and we do."""
    found = next((version for version in offered if version in KNOWN_VERSIONS), None)
    if found is None:
        raise StatusError(500, "", "no supported conversion review versions")
    return found


def review(documents: Sequence[Document], desired: str, *, uid: str, version: str) -> Document:
    request = {"uid": uid, "desiredAPIVersion": desired, "objects": list(documents)}
    return {"kind": "ConversionReview", "apiVersion": f"{GROUP}/{version}", "request": request}


def read_answer(body: bytes, documents: Sequence[Document], desired: str, *, uid: str, version: str) -> list[Document]:
    """The converted objects, in the order of `documents`, each with the metadata of its original. Raises StatusError."""
    first = documents[0]
    try:
        objects = _objects(body, uid, version)
    except Mistaken as error:
        raise failed(first, f"failed: {error}") from None
    if len(objects) != len(documents):
        raise failed(first, f"returned {len(objects)} objects, expected {len(documents)}")
    alone = len(documents) == 1
    made = []
    for index, (original, raw) in enumerate(zip(documents, objects, strict=True)):
        where = f"converted object at index {index}"
        try:
            converted = _unstructured(bytes(raw))
        except Mistaken as error:
            why = (
                str(error)
                if alone
                else f"conversion webhook for {shown_kind(original)} returned invalid {where}: {error}"
            )
            raise StatusError(500, "", why) from None
        try:
            _check_kind(original, converted, desired)
        except Mistaken as error:
            raise failed(original, f"returned invalid {'object at index 0' if alone else where}: {error}") from None
        try:
            _check_identity(original, converted)
        except Mistaken as error:
            raise failed(original, f"returned invalid {'object' if alone else where}: {error}") from None
        try:
            made.append({**converted, "metadata": _metadata(original["metadata"], converted)})
        except Mistaken as error:
            where = "metadata" if alone else f"metadata in object at index {index}"
            raise failed(original, f"returned invalid {where}: {error}") from None
    return made


def _objects(body: bytes, uid: str, version: str) -> list[msgspec.Raw]:
    if not body.lstrip().startswith(b"{"):
        raise Mistaken(gojson.not_an_object("array" if body.lstrip().startswith(b"[") else "string"))
    try:
        answer = _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Mistaken(f"the answer is no ConversionReview: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Mistaken(f"couldn't get version/kind; json parse error: {gojson.complaint(body)}") from None
    if not answer.kind:
        raise Mistaken(f"Object 'Kind' is missing in '{_short(body)}'")
    if version == "v1" and answer.api_version == f"{GROUP}/v1beta1" and answer.kind == "ConversionReview":
        raise Mistaken("converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion")
    if version == "v1" and (answer.api_version, answer.kind) != (f"{GROUP}/v1", "ConversionReview"):
        expected = {"apiVersion": f"{GROUP}/v1", "kind": "ConversionReview"}
        got = {"apiVersion": answer.api_version, "kind": answer.kind}
        raise Mistaken(f"expected webhook response of {shown_kind(expected)}, got {shown_kind(got)}")
    if answer.response is None:
        raise Mistaken("no response provided")
    if version == "v1" and answer.response.uid != uid:
        raise Mistaken(f"expected response.uid={quoted(uid)}, got {quoted(answer.response.uid)}")
    result = answer.response.result
    if result.status != "Success":
        raise Mistaken(result.message or f"response.result.status was '{result.status}', not 'Success'")
    return answer.response.objects or []


def _unstructured(raw: bytes) -> Document:
    try:
        converted = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise Mistaken(gojson.complaint(raw)) from None
    if not isinstance(converted, dict) or not isinstance(converted.get("kind"), str) or not converted["kind"]:
        raise Mistaken(f"Object 'Kind' is missing in '{_short(raw)}'")
    return converted


def _check_kind(original: Document, converted: Document, desired: str) -> None:
    if converted.get("apiVersion") != desired:
        raise Mistaken(f"invalid groupVersion (expected {desired}, received {converted.get('apiVersion') or ''})")
    if converted["kind"] != original["kind"]:
        raise Mistaken(f"invalid kind (expected {original['kind']}, received {converted['kind']})")


def _check_identity(original: Document, converted: Document) -> None:
    before, after = original["metadata"], converted.get("metadata")
    after = after if isinstance(after, dict) else {}
    for field, name in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        expected, got = before.get(field) or "", after.get(field) or ""
        if expected != got:
            raise Mistaken(f"must have the same {name}: {expected} != {got}")


def _metadata(before: Document, converted: Document) -> Document:
    """The original's, with the labels and annotations of the answer."""
    if "metadata" not in converted:
        raise Mistaken("missing metadata in converted object")
    after = converted["metadata"]
    if not isinstance(after, dict):
        raise Mistaken(f"invalid metadata of type {_go_type(after)} in converted object")
    kept = {name: value for name, value in before.items() if name not in CHANGEABLE}
    for name in CHANGEABLE:
        value = after.get(name)
        if value is None:
            continue
        if not isinstance(value, dict):
            raise Mistaken(f"invalid metadata.{name} of type {_go_type(value)} in converted object")
        for key, text in value.items():
            if not isinstance(text, str):
                raise Mistaken(f"metadata.{name}[{key}] must be a string, but is {_go_type(text)} in converted object")
        if value != (before.get(name) or {}):
            _check_values(name, value)
        if value:
            kept[name] = value
    return kept


def _check_values(name: str, value: dict[str, str]) -> None:
    sound = {"name": "a", name: value}
    errors = [str(error) for error in validate_create(sound, namespaced=False, name_check=lambda name, prefix: [])]
    if name == "annotations":  # the real server calls them so
        errors = [error.replace("metadata.annotations:", "metadata.annotation:", 1) for error in errors]
    if errors:
        raise Mistaken(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def _go_type(value: Any) -> str:
    if value is None:
        return "<nil>"
    types = {bool: "bool", str: "string", int: "int64", float: "float64", list: "[]interface {}"}
    return types.get(type(value), "map[string]interface {}")


def _short(body: bytes) -> str:
    return body[:2048].decode("utf-8", "replace")
