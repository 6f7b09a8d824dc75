"""The forms that `-o` offers for objects: yaml, json, name, jsonpath. Tables are in `tables.py`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import orjson

from trimtab.cli.codes import USAGE, Problem, plain
from trimtab.client.discovery import ApiResource

Document = dict[str, Any]
TABLES = ("table", "wide")


class Form(msgspec.Struct, frozen=True):
    """What was asked for: table, wide, yaml, json, name, or jsonpath with its template."""

    name: str
    template: str = ""

    @property
    def is_table(self) -> bool:
        return self.name in TABLES


def form(text: str) -> Form:
    name, equals, template = text.partition("=")
    if name == "jsonpath" and equals:
        return Form(name, template)
    if text not in (*TABLES, "yaml", "json", "name"):
        raise Problem(f'-o "{text}" is not one of table, wide, yaml, json, name, jsonpath=TEMPLATE', USAGE)
    return Form(text)


class Found(msgspec.Struct, frozen=True):
    """An object, and the kind it was found as."""

    resource: ApiResource
    document: Document


def write(asked: Form, found: Sequence[Found], *, single: bool, managed_fields: bool = False) -> None:
    """Print objects: one as itself when `single`, else a List of them."""
    if not managed_fields:
        for each in found:
            (each.document.get("metadata") or {}).pop("managedFields", None)
    if asked.name == "name":
        for each in found:
            print(plain(named(each.resource, each.document["metadata"]["name"])))
        return
    documents = [each.document for each in found]
    whole = (
        documents[0]
        if single
        else {"apiVersion": "v1", "kind": "List", "items": documents, "metadata": {"resourceVersion": ""}}
    )
    sys.stdout.write(_WRITERS[asked.name](whole, asked.template))
    sys.stdout.flush()


def named(resource: ApiResource, name: str) -> str:
    """`configmap/web`, `deployment.apps/web`."""
    return f"{resource.label}/{name}"


def _yaml(document: Document, _: str) -> str:
    from trimtab.model.yaml import dump

    return dump(document)


def _json(document: Document, _: str) -> str:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"


def _jsonpath(document: Document, template: str) -> str:
    from trimtab.model.jsonpath import JSONPathError, Template

    try:
        return Template.parse(template).render(document)
    except JSONPathError as error:
        raise Problem(f"-o jsonpath: {error}", USAGE) from None


_WRITERS: dict[str, Callable[[Document, str], str]] = {"yaml": _yaml, "json": _json, "jsonpath": _jsonpath}
