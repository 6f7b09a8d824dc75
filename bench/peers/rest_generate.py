"""From OpenAPI documents to kinds, in a process of its own, beside what `referencing` does with the same documents.

    python bench/peers/rest_generate.py kinds|resolve|referencing FILES

`kinds` is all that `trimtab rest generate` makes: proposals, Models, CRDs, structs and docs. `resolve` and `referencing` only
load a document and look up every reference in every file that it reaches, and print how many there are. FILES names one
document in each line. What is printed is JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

HERE = Path(__file__).parent


class Figure(NamedTuple):
    """Of one process. `wall` is without its start and imports, `cpu` and `peak` are of all of it."""

    documents: int
    made: int
    wall: float
    cpu: float
    peak: float


def measure(what: str, files: Sequence[Path]) -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        used, names = Path(folder) / "used.json", Path(folder) / "files"
        names.write_text("\n".join(map(str, files)))
        command = [sys.executable, str(HERE / "used.py"), str(used), sys.executable, __file__, what, str(names)]
        told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        return Figure(len(files), told["made"], told["wall"], **json.loads(used.read_text()))


def documents(folder: Path) -> list[Path]:
    """All that have paths: others hold what documents share."""
    found = (path for path in sorted(folder.rglob("*.json")) if "examples" not in path.parts)
    return [path for path in found if b'"paths"' in path.read_bytes()]


def kinds(files: Sequence[Path]) -> int:
    from trimtab.systems.rest.compiling.compile import compile_model
    from trimtab.systems.rest.compiling.proposing import propose
    from trimtab.systems.rest.generating.crd import crd
    from trimtab.systems.rest.generating.docs import docs
    from trimtab.systems.rest.generating.structs import structs
    from trimtab.systems.rest.kinds.service import Document, RestServiceSpec
    from trimtab.systems.rest.openapi import from_path

    service = RestServiceSpec(endpoint="https://api.example.com", document=Document(inline="{}"))
    made = 0
    for file in files:
        document = from_path(file)
        models = [
            compile_model(document, each, service=service, service_name="it", group="it.rest.trimtab.dev")
            for each in propose(document, "it")
        ]
        for model in models:
            crd(model)
        structs(models)
        docs(models)
        made += len(models)
    return made


def resolve(files: Sequence[Path]) -> int:
    """Every reference of every file, as `Document` looks them up."""
    from trimtab.systems.rest.openapi import from_path
    from trimtab.systems.rest.openapi.references import references, target

    made = 0
    for file in files:
        found = from_path(file).files
        for name, tree in found.trees.items():
            for pointer, reference in references(name, tree):
                found.followed(target((name, pointer), reference, ""))
                made += 1
    return made


def referencing(files: Sequence[Path]) -> int:
    """The same references, each by a resolver of the library."""
    from referencing import Registry
    from referencing.jsonschema import DRAFT4

    from trimtab.systems.rest.openapi.references import references

    made = 0
    for file in files:
        trees: dict[str, Any] = {}
        pending = [file.resolve().as_uri()]
        while pending:
            uri = pending.pop()
            if uri not in trees:
                trees[uri] = json.loads(path_of(uri).read_bytes())
                pending += [urldefrag(urljoin(uri, found)).url for _, found in references(uri, trees[uri])]
        registry: Registry[Any] = Registry().with_contents(trees.items(), default_specification=DRAFT4)
        for uri, tree in trees.items():
            resolver = registry.resolver(uri)
            for _, reference in references(uri, tree):
                resolver.lookup(reference)
                made += 1
    return made


def path_of(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


JOBS: dict[str, Callable[[Sequence[Path]], int]] = {"kinds": kinds, "resolve": resolve, "referencing": referencing}


def main(what: str, names: str) -> None:
    files = [Path(line) for line in Path(names).read_text().splitlines()]
    JOBS[what]([])  # imports
    began = time.perf_counter()
    made = JOBS[what](files)
    print(json.dumps({"made": made, "wall": time.perf_counter() - began}))


if __name__ == "__main__":
    main(*sys.argv[1:])
