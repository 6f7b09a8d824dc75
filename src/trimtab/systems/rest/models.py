"""Where Models are kept: a ConfigMap each, which a reconcile, admission and commands read. Only the definitions' controller
writes them. Beside the Model it says which definition and which document it was made of, so that one whose document cannot
be had right now goes on with what it had."""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import zlib
from typing import Any

import msgspec

from trimtab.model.kubernetes import ConfigMap
from trimtab.model.scheme import Untyped
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.rest.model import DECODER, ENCODER, Model

KEY = "model.json.gz"
LARGEST = 900_000
"""Bytes of a Model as it is kept: a ConfigMap takes a million."""
MOST_UNPACKED = 32 << 20
MADE_OF = "rest.trimtab.dev/made-of"
DIGEST = "rest.trimtab.dev/digest"


class ModelTooLarge(Exception):  # noqa: N818 - it reads as what is wrong
    """It does not fit into a ConfigMap."""


def name_of(plural: str, group: str) -> str:
    return f"rest-{plural}.{group}"


def digest_of(model: Model) -> str:
    return "sha256:" + hashlib.sha256(ENCODER.encode(model)).hexdigest()


def config_map(model: Model, made_of: str) -> Untyped:
    """The document that keeps it. Raises ModelTooLarge."""
    packed = gzip.compress(ENCODER.encode(model), mtime=0)
    if len(packed) > LARGEST:
        why = f"what is known of {model.kind} takes {len(packed)} bytes, and {LARGEST} fit"
        raise ModelTooLarge(f"{why}: drop fields by overlay.fields.<path>.class: ignored")
    labels = {"app.kubernetes.io/part-of": "trimtab", "rest.trimtab.dev/service": model.service}
    return Untyped(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name_of(model.plural, model.group),
                "namespace": NAMESPACE,
                "labels": labels,
                "annotations": {MADE_OF: made_of, DIGEST: digest_of(model)},
            },
            "binaryData": {KEY: base64.b64encode(packed).decode()},
        }
    )


def kept(found: ConfigMap | Untyped | None) -> Model | None:
    """The Model in a ConfigMap; None when there is none that can be read."""
    raw: Any = {} if found is None else found.raw or {}
    raw = msgspec.json.decode(raw) if isinstance(raw, bytes) else raw
    text = (raw.get("binaryData") or {}).get(KEY)
    if not text:
        return None
    try:
        unpacked = zlib.decompressobj(wbits=31).decompress(base64.b64decode(text, validate=True), MOST_UNPACKED)
        return DECODER.decode(unpacked)
    except (binascii.Error, zlib.error, msgspec.DecodeError, msgspec.ValidationError, ValueError):
        return None


def made_of(found: ConfigMap | Untyped | None) -> str:
    metadata = None if found is None else found.metadata
    return ((metadata.annotations or {}) if metadata is not None else {}).get(MADE_OF, "")
