"""All versions of one kind, and the way from each to another.

What comes out of a conversion is pruned by the schema of its version, and not defaulted: defaults are set when a client
writes, and when stored bytes are read, each by the schema of the version that is at hand, as on the real server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from trimtab.model.errors import StatusError
from trimtab.server.conversion.converters import Converter
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.store.contract import Entry


class Versions:
    """`forms` has each version by its apiVersion, `storage` is the one that is written."""

    def __init__(self, forms: Mapping[str, Served], storage: Served, converter: Converter) -> None:
        self.forms = forms
        self.storage = storage
        self.schemas = {version: form.kind.schema for version, form in forms.items()}
        self._converter = converter

    async def converted(self, documents: Sequence[Document], desired: str) -> list[Document]:
        """The documents in the version wanted; those that are in it already are the same ones. Raises StatusError."""
        foreign = [document for document in documents if document["apiVersion"] != desired]
        if not foreign:
            return list(documents)
        if desired not in self.forms:
            raise StatusError(500, "", f"request to convert CR to an invalid group/version: {desired}")
        for document in foreign:
            if document["apiVersion"] not in self.forms:
                given = document["apiVersion"]
                raise StatusError(500, "", f"request to convert CR from an invalid group/version: {given}")
        made = await self._converter.convert(foreign, desired)
        for document in made:
            self.forms[desired].kind.schema.prune(document)
        found = iter(made)
        return [document if document["apiVersion"] == desired else next(found) for document in documents]

    def read(self, entry: Entry) -> Document:
        """A stored object, in the version that it is stored in."""
        form = self.forms.get(stored_version(entry))
        if form is None:
            document: Document = orjson.loads(entry.value)
            return document
        return form.decode(entry)


def stored_version(entry: Entry) -> str:
    """The apiVersion of an entry's bytes."""
    return entry.schema.partition("#")[0]
