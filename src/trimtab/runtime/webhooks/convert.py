"""ConversionReview (apiextensions.k8s.io/v1): a custom resource from one of its versions to another. Pure.

A conversion gets a copy of the document and the version wanted, and returns it in that version; it raises
ConversionFailed with a reason that users may read. It may change labels and annotations, and no other metadata: the API
server refuses that, so the metadata is put back here. All objects of a request are converted, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from trimtab.model.conversion import ConversionFailed
from trimtab.model.kind import Kind
from trimtab.model.logs import log
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme
from trimtab.runtime.webhooks.review import BadReview

API_VERSION = "apiextensions.k8s.io/v1"
CHANGEABLE = ("labels", "annotations")

Document = dict[str, Any]


class Conversion(msgspec.Struct, frozen=True):
    """How objects of a kind change their version. `kind` may be any of the versions."""

    kind: type[Resource] | Kind
    convert: Callable[[Document, str], Document]


Conversions = Mapping[tuple[str, str], Callable[[Document, str], Document]]
"""By group and kind."""


class _Request(msgspec.Struct, frozen=True):
    uid: str
    desired: str = msgspec.field(name="desiredAPIVersion")
    objects: list[Document]


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _Request


def conversions_of(declared: Sequence[Conversion], scheme: Scheme) -> Conversions:
    """Those that are declared, and those of the scheme's convertors."""
    made: dict[tuple[str, str], Callable[[Document, str], Document]] = {
        (group, kind): partial(_by_scheme, scheme, group) for group, kind in scheme.converted_kinds
    }
    kinds = [(c, c.kind if isinstance(c.kind, Kind) else scheme.kind_of(c.kind)) for c in declared]
    return made | {(kind.group, kind.kind): conversion.convert for conversion, kind in kinds}


def _by_scheme(scheme: Scheme, group: str, document: Document, version: str) -> Document:
    return scheme.converted(document, f"{group}/{version}")


def converted(conversions: Conversions, body: bytes) -> bytes:
    """The answer to a review. Raises BadReview for a body that is none; a conversion that fails is an answer too."""
    try:
        review = msgspec.json.decode(body, type=_Review)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"the body is no ConversionReview: {error}") from None
    if (review.api_version, review.kind) != (API_VERSION, "ConversionReview") or not review.request.uid:
        raise BadReview(f"the body must be a ConversionReview of {API_VERSION} with a uid")
    response: Document = {"uid": review.request.uid}
    try:
        response["convertedObjects"] = [
            _one(conversions, obj, review.request.desired) for obj in review.request.objects
        ]
        response["result"] = {"status": "Success"}
    except ConversionFailed as error:
        response = {"uid": review.request.uid, "result": {"status": "Failure", "message": str(error)}}
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "ConversionReview", "response": response})


def _one(conversions: Conversions, given: Document, desired: str) -> Document:
    api_version, kind = str(given.get("apiVersion", "")), str(given.get("kind", ""))
    if api_version == desired:
        return given
    group, _, _ = api_version.rpartition("/")
    wanted_group, _, version = desired.rpartition("/")
    convert = conversions.get((group, kind))
    if convert is None or group != wanted_group:
        raise ConversionFailed(f"{kind} of {api_version} cannot be converted to {desired}")
    before = given.get("metadata")
    if not isinstance(before, dict):
        raise ConversionFailed(f"an object of {api_version} has no metadata")
    copy: Document = msgspec.json.decode(msgspec.json.encode(given))
    try:
        made = dict(convert(copy, version))
        changed = made.get("metadata") or {}
        kept = {name: value for name, value in before.items() if name not in CHANGEABLE}
        metadata = kept | {name: changed[name] for name in CHANGEABLE if name in changed}
    except ConversionFailed:
        raise
    except Exception as error:  # a bug in the conversion: its details are for the log, not for users
        log.error("a conversion failed", kind=kind, to=desired, exc_info=error)
        raise ConversionFailed(f"the conversion of {kind} from {api_version} to {desired} failed") from error
    return made | {"apiVersion": desired, "kind": kind, "metadata": metadata}
