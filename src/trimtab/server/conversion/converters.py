"""Who converts: a webhook, or functions of this process. A definition says which.

A webhook gets many objects at once, within bounds, so that a list costs few calls. It has 30 s, as on the real server.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import orjson

from trimtab.model.conversion import ConversionFailed
from trimtab.server.admission.webhook_client import WebhookClient
from trimtab.server.admission.webhook_match import hooks_of
from trimtab.server.admission.webhook_review import CallFailedError
from trimtab.server.conversion.review import failed, read_answer, review, review_version
from trimtab.server.strategy import Document

TIMEOUT = 30
MAX_OBJECTS = 200
MAX_BYTES = 2 * 1024 * 1024  # of the objects in one review; one of the largest always fits

Convert = Callable[[Document, str], Document]
"""A document, and the apiVersion wanted, to the document in it. Pure; raises ConversionFailed."""


class Converter(Protocol):
    async def convert(self, documents: Sequence[Document], desired: str) -> list[Document]:
        """The documents, none of which is in that apiVersion, in it. Raises StatusError when one cannot be."""
        ...


class WebhookConverter:
    """Asks the webhook of a definition."""

    def __init__(self, definition: Document, client: WebhookClient) -> None:
        webhook = definition["spec"]["conversion"]["webhook"]
        name = f"conversion_webhook_for_{definition['metadata']['name']}"
        asked = {"name": name, "clientConfig": webhook["clientConfig"], "timeoutSeconds": TIMEOUT}
        (self._hook,) = hooks_of({"metadata": {"name": name}, "webhooks": [asked]})
        self._offered = tuple(webhook.get("conversionReviewVersions") or ())
        self._client = client

    async def convert(self, documents: Sequence[Document], desired: str) -> list[Document]:
        made: list[Document] = []
        for batch in batches(documents):
            made += await self._ask(batch, desired)
        return made

    async def _ask(self, documents: Sequence[Document], desired: str) -> list[Document]:
        version, uid = review_version(self._offered), str(uuid.uuid4())
        asked = review(documents, desired, uid=uid, version=version)
        try:
            body = await self._client.call(self._hook, asked)
        except CallFailedError as error:
            raise failed(documents[0], f"failed: {error.why}") from None
        return read_answer(body, documents, desired, uid=uid, version=version)


class FunctionConverter:
    """Calls functions of this process, where they would be a webhook on a cluster."""

    def __init__(self, convert: Convert) -> None:
        self._convert = convert

    async def convert(self, documents: Sequence[Document], desired: str) -> list[Document]:
        try:
            return [self._convert(document, desired) for document in documents]
        except ConversionFailed as error:
            raise failed(documents[0], f"failed: {error}") from None


def batches(documents: Sequence[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for document in documents:
        length = len(orjson.dumps(document)) if len(documents) > 1 else 0
        if batch and (len(batch) == MAX_OBJECTS or size + length > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += length
    if batch:
        yield batch
