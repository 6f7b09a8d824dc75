"""A kind in several versions: all go through one of them, the hub, and each other one (a spoke) has a convertor to it.

Convertors are pure and lossless: what one version says and another cannot must be kept by that other, in a field or an
annotation, or it is gone once an object was written in it. `round_trip` tells where that is not so. A function may change
labels and annotations; the rest of the metadata is put back. It raises ConversionFailed with a reason for users.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.model.document import convert, to_document
from trimtab.model.logs import log
from trimtab.model.resource import Resource

if TYPE_CHECKING:
    from trimtab.model.scheme import Scheme

Document = dict[str, Any]

CHANGEABLE = ("labels", "annotations")


class ConversionFailed(Exception):  # noqa: N818 - it reads as what happened
    """The object cannot be shown in that version; the message reaches the user."""


class Convertor(msgspec.Struct, frozen=True, kw_only=True):
    """Between a spoke and the hub: `convert_to` makes a hub object of a spoke, `convert_from` a spoke of a hub object."""

    hub: type[Resource]
    spoke: type[Resource]
    convert_to: Callable[[Any], Any]
    convert_from: Callable[[Any], Any]


class Spokes:
    """The convertors of one kind, by the version of the spoke."""

    def __init__(self, hub: type[Resource]) -> None:
        self.hub = hub
        self._of: dict[type[Resource], Convertor] = {}

    def add(self, convertor: Convertor) -> None:
        if convertor.hub is not self.hub:
            raise ValueError(f"{self.hub.__name__} is the hub of its kind, so {convertor.hub.__name__} cannot be")
        if convertor.spoke is self.hub or convertor.spoke in self._of:
            raise ValueError(f"{convertor.spoke.__name__} has a convertor already, or is the hub")
        self._of[convertor.spoke] = convertor

    def convert(self, scheme: Scheme, document: Document, desired: str) -> Document:
        """The document in the apiVersion wanted, its defaults set. Raises ConversionFailed; what is given stays."""
        given = str(document.get("apiVersion", ""))
        if given == desired:
            return document
        kind = str(document.get("kind", ""))
        source, target = scheme.class_of(given, kind), scheme.class_of(desired, kind)
        if source is None or target is None:
            raise ConversionFailed(f"{kind} of {given} cannot be converted to {desired}")
        before = document.get("metadata")
        if not isinstance(before, dict):
            raise ConversionFailed(f"an object of {given} has no metadata")
        try:
            made = self._made(scheme, convert(dict(document), source), source, target)
        except ConversionFailed:
            raise
        except msgspec.ValidationError as error:
            raise ConversionFailed(f"{kind} of {given} is of another shape: {error}") from None
        except Exception as error:  # a bug in the function: its details are for the log, not for users
            log.error("a conversion failed", kind=kind, to=desired, exc_info=error)
            raise ConversionFailed(f"the conversion of {kind} from {given} to {desired} failed") from error
        shown = {"apiVersion": desired, "kind": kind, **made, "metadata": _metadata(before, made.get("metadata"))}
        shown |= {"apiVersion": desired, "kind": kind}
        scheme.kind_of(target).schema.default(shown)
        return shown

    def _made(self, scheme: Scheme, obj: Resource, source: type[Resource], target: type[Resource]) -> Document:
        hub = obj if source is self.hub else self._convertor(source).convert_to(obj)
        _check(hub, self.hub)
        made = hub if target is self.hub else self._convertor(target).convert_from(hub)
        _check(made, target)
        document: Document = msgspec.json.decode(msgspec.json.encode(to_document(made)))
        return document

    def _convertor(self, spoke: type[Resource]) -> Convertor:
        found = self._of.get(spoke)
        if found is None:
            raise ConversionFailed(f"{spoke.__name__} has no convertor")
        return found


def round_trip(scheme: Scheme, document: Document, through: str) -> Document:
    """A document after it was in another version: the same one, its defaults set, when the convertors lose nothing."""
    return scheme.converted(scheme.converted(document, through), str(document["apiVersion"]))


def _check(made: Any, wanted: type[Resource]) -> None:
    if not isinstance(made, wanted):
        raise TypeError(f"a convertor returned {type(made).__name__}, not {wanted.__name__}")


def _metadata(before: Document, after: Document | None) -> Document:
    """A function that says nothing of the metadata leaves it as it is."""
    if not after:
        return before
    kept = {name: value for name, value in before.items() if name not in CHANGEABLE}
    return kept | {name: after[name] for name in CHANGEABLE if after.get(name)}
