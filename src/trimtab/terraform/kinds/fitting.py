"""What of a live document fits the shape that we know of it. A schema may have changed since an object was written, or
since the snapshot was taken: what does not fit is taken as absent and told by name, so that a plan can mend it.
"""

from __future__ import annotations

from typing import Any

from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.kinds.converting import Misfit, called, from_document, is_key, scalar_from
from trimtab.terraform.kinds.definition import Shape

Unfit = tuple[Path, str]
"""Where, and what was expected there."""


def fitting(shape: Shape, document: Any, unfit: list[Unfit], path: Path = ROOT) -> Any:
    """The document as far as it fits, without fields that the shape does not know; null where it does not."""
    if document is None:
        return None
    items = shape.items
    match shape.form:
        case "object" if isinstance(document, dict):
            wires = {field.wire: field for field in shape.fields}
            return {
                wire: fitting(wires[wire].shape, item, unfit, path.name(wires[wire].name))
                for wire, item in document.items()
                if wire in wires
            }
        case "map" if isinstance(document, dict) and items is not None:
            return {key: fitting(items, item, unfit, path.key(str(key))) for key, item in document.items()}
        case "list" | "set" if isinstance(document, list) and items is not None:
            return [fitting(items, item, unfit, path.index(at)) for at, item in enumerate(document)]
        case "keyed" if isinstance(document, list) and items is not None:
            return _keyed(shape, items, document, unfit, path)
        case "object" | "map" | "list" | "set" | "keyed":
            unfit.append((path, f"expected {_WORDS[shape.form]}, not {called(document)}"))
            return None
    try:
        scalar_from(shape.form, document)
    except Misfit as misfit:
        unfit.append((path, str(misfit)))
        return None
    return document


def value_of(shape: Shape, document: Any, unfit: list[Unfit]) -> Any:
    """The Terraform value of a document as far as it fits."""
    try:
        return from_document(shape, document)
    except Misfit:
        return from_document(shape, fitting(shape, document, unfit))


def _keyed(shape: Shape, items: Shape, document: list[Any], unfit: list[Unfit], path: Path) -> list[Any]:
    found = []
    key = shape.keys[0]
    for at, item in enumerate(document):
        if not isinstance(item, dict):
            unfit.append((path.index(at), f"expected an object, not {called(item)}"))
        elif not is_key(shape, item.get(key)):
            unfit.append((path.index(at), f"expected an item with {key}"))
        else:
            found.append({**fitting(items, item, unfit, path.key(str(item[key]))), key: item[key]})
    return found


def tell(unfit: list[Unfit], what: object, context: Context) -> None:
    """Warnings that name each attribute, the first few of them."""
    for path, text in unfit[:MOST]:
        context.warning(
            f"{path} of {what} does not fit its schema",
            f"{text[:1].upper()}{text[1:]}: it is taken as absent. The kind has changed since the object was written, "
            "or since `trimtab terraform install` took it.",
            path,
        )


MOST = 10
_WORDS = {"object": "an object", "map": "an object", "list": "a list", "set": "a list", "keyed": "a list"}
