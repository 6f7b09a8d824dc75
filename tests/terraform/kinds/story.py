"""The life of many kinds in one configuration: made, planned again, reordered, imported, and gone."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.terraform.kinds.samples import beginning, enriched
from tests.terraform.kinds.terraforming import Terraform, attached
from trimtab.terraform.kinds.api import Api, ApiError, object_path
from trimtab.terraform.kinds.converting import from_document
from trimtab.terraform.kinds.definition import Definition, Shape
from trimtab.terraform.kinds.snapshot import Snapshot

PROJECT = "every-kind"

Changes = dict[str, Any]
"""By address: what a plan would change; nothing for what stays as it is."""


@dataclass
class Lives:
    """What became of all kinds, step by step."""

    wanted: set[str]
    made: set[str] = field(default_factory=set)
    after_apply: Changes = field(default_factory=dict)
    after_reordering: Changes = field(default_factory=dict)
    imported: set[str] = field(default_factory=set)
    after_import: Changes = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def lived(api: Api, snapshot: Snapshot, kubeconfig: Path, folder: Path, names: Iterable[str]) -> Lives:
    """`PROJECT` is there."""
    definitions = {name: snapshot.definition(name) for name in names}
    documents = {name: example(api, one) for name, one in definitions.items()}
    configs = {name: _config(definitions[name], document) for name, document in documents.items()}
    lives = Lives(set(configs))
    with attached(folder, snapshot, kubeconfig, PROJECT, wait=False) as tf:
        tf.apply({f"trimtab_{name}": {"it": config} for name, config in configs.items()})
        lives.made = {_kind_of(address) for address in tf.addresses()}
        lives.after_apply = _changes(tf)
        turned = {name: _reordered(definitions[name].root, config) for name, config in configs.items()}
        tf.write({f"trimtab_{name}": {"it": config} for name, config in turned.items()})
        lives.after_reordering = _changes(tf)
        (folder / "terraform.tfstate").unlink()
        imports = [
            {"to": f"trimtab_{name}.it", "id": _identifier(definitions[name], document)}
            for name, document in documents.items()
        ]
        tf.write({f"trimtab_{name}": {"it": config} for name, config in configs.items()}, **{"import": imports})
        lives.after_import = _changes(tf)
        tf.run("apply", "-auto-approve", "-no-color")
        lives.imported = {_kind_of(address) for address in tf.addresses()}
        tf.destroy()
    lives.left = [name for name, one in definitions.items() if _is_left(api.find(_path(one, documents[name])))]
    return lives


def _is_left(found: dict[str, Any] | None) -> bool:
    """One that is being deleted is not: nobody waits for it here."""
    return found is not None and "deletionTimestamp" not in found["metadata"]


def _changes(tf: Terraform) -> Changes:
    tf.run("plan", "-no-color", "-out=plan")
    shown = json.loads(tf.run("show", "-json", "plan"))
    return {
        _kind_of(one["address"]): (one["change"]["actions"], _differences(one["change"]))
        for one in shown.get("resource_changes", [])
        if one["change"]["actions"] != ["no-op"]
    }


def _differences(change: dict[str, Any]) -> dict[str, Any]:
    before, after = change.get("before") or {}, change.get("after") or {}
    return {key: (before.get(key), after.get(key)) for key in {*before, *after} if before.get(key) != after.get(key)}


def _kind_of(address: str) -> str:
    return address.removeprefix("trimtab_").removesuffix(".it")


def _identifier(definition: Definition, document: dict[str, Any]) -> str:
    name = str(document["metadata"]["name"])
    return f"{PROJECT}/{name}" if definition.namespaced else name


def example(api: Api, definition: Definition) -> dict[str, Any]:
    def judge(document: dict[str, Any]) -> dict[str, Any] | None:
        try:
            return api.apply(_path(definition, document), document, dry_run=True).document
        except ApiError as error:
            if error.code >= 500 and error.reason:  # without one it is a refusal in other words
                raise
            return None

    least = beginning(definition, f"it-{definition.name.replace('_', '-')}"[:50], PROJECT)
    api.apply(_path(definition, least), least, dry_run=True)
    return enriched(definition, least, judge)


def _path(definition: Definition, document: dict[str, Any]) -> str:
    place = PROJECT if definition.namespaced else ""
    return object_path(definition.group, definition.version, definition.plural, document["metadata"]["name"], place)


def _config(definition: Definition, document: dict[str, Any]) -> dict[str, Any]:
    """The configuration of a document: what it says, and no more."""
    return {name: value for name, value in _given(from_document(definition.root, document)).items() if name != "status"}


def _given(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _given(item) for name, item in value.items() if item is not None}
    return [_given(item) for item in value] if isinstance(value, list) else _escaped(value)


def _escaped(value: Any) -> Any:
    """Text as Terraform's JSON has it: `${` would begin a template."""
    return value.replace("${", "$${").replace("%{", "%%{") if isinstance(value, str) else value


def _reordered(shape: Shape, value: Any) -> Any:
    """Backwards, where order means nothing."""
    items = shape.items
    if isinstance(value, dict) and shape.form == "object":
        fields = {field.name: field.shape for field in shape.fields}
        return {name: _reordered(fields[name], item) for name, item in reversed(list(value.items()))}
    if isinstance(value, dict) and items is not None:
        return {key: _reordered(items, item) for key, item in reversed(list(value.items()))}
    if isinstance(value, list) and items is not None:
        turned = [_reordered(items, item) for item in value]
        return turned[::-1] if shape.form == "set" or len(shape.keys) > 1 else turned
    return copy.deepcopy(value)
