"""A Registry from a manifest that is not applied."""

from __future__ import annotations

from pathlib import Path

import msgspec
import orjson

from trimtab.cli.codes import NOT_FOUND, USAGE, Problem
from trimtab.cli.manifests import Bad, Manifest, read
from trimtab.model.document import read as decoded
from trimtab.systems.images.kinds import Registry


def registry_in(file: Path, name: str, namespace: str) -> Registry:
    """The Registry of that name; without a name the only one."""
    found: list[Manifest] = []
    for each in read([str(file)]):
        if isinstance(each, Bad):
            raise Problem(f"{each.where} {each.problem}")
        if each.kind == "Registry" and each.api_version.startswith("images."):
            found.append(each)
    chosen = [each for each in found if name in ("", each.metadata.get("name"))]
    if not chosen:
        there = ", ".join(str(each.metadata.get("name")) for each in found) or "none"
        raise Problem(f"{file} has no Registry{f' {name}' if name else ''}; there are: {there}", NOT_FOUND)
    if len(chosen) > 1:
        names = ", ".join(str(each.metadata.get("name")) for each in chosen)
        raise Problem(f"{file} has several Registries, name one of them: {names}", USAGE)
    document = {**chosen[0].document, "metadata": {"namespace": namespace, **chosen[0].metadata}}
    try:
        return decoded(orjson.dumps(document), Registry)
    except (msgspec.ValidationError, orjson.JSONEncodeError) as error:
        raise Problem(f"{chosen[0].where} is no valid Registry: {error}") from None
