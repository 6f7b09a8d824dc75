"""What the package holds: the provider's modules, and whatever they import that is not in the standard library.

Found by following the import statements of the sources from `trimtab.terraform.main` on, so that the package is neither
more nor less than what runs. The files are sources alone, the same on every machine: a lock file that holds the hash of
one holds it of all.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ENTRY = "trimtab.terraform.main"
OWN = "trimtab"
LIBRARIES = {"h2": "h2", "hpack": "hpack", "hyperframe": "hyperframe", "msgpack": "msgpack"}
"""Packages that go along whole, by the distribution that they come from."""
LATE = frozenset({"cryptography"})
"""What a module may ask for and do without: the package leaves it out."""


class PackageError(Exception):
    """The package cannot be made; the text says why, and what to do."""


def contents(extra: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """Every file below `lib/`, by its path. `extra` are data files that go along."""
    files = {**_own(), **(extra or {})}
    for package, distribution in LIBRARIES.items():
        files |= _library(package) | _licences(distribution)
    files |= _licences(OWN)
    return {name: files[name] for name in sorted(files)}


def _own() -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    waiting = [ENTRY]
    while waiting:
        module = waiting.pop()
        path = _source(module)
        name = _file(module, path)
        if name in found:
            continue
        found[name] = path.read_bytes()
        for wanted, where in imports(found[name].decode(), module, is_package=path.name == "__init__.py"):
            top = wanted.partition(".")[0]
            if top == OWN:
                waiting += [".".join(wanted.split(".")[:end]) for end in range(1, wanted.count(".") + 2)]
            elif top not in LIBRARIES and top not in LATE and top not in sys.stdlib_module_names:
                raise PackageError(f"{module} imports {wanted} in line {where}, which the provider cannot carry")
    return found


def imports(source: str, module: str, *, is_package: bool = False) -> Iterator[tuple[str, int]]:
    """The modules that a source imports anywhere, with the lines; not those for type checkers alone."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            skipped.update(inner for statement in node.body for inner in ast.walk(statement))
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, is_package)
            yield base, node.lineno
            for alias in node.names:
                if base.partition(".")[0] == OWN and _is_module(f"{base}.{alias.name}"):
                    yield f"{base}.{alias.name}", node.lineno


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    here = module.split(".")
    here = here[: len(here) - node.level + (1 if is_package else 0)]
    return ".".join([*here, *([node.module] if node.module else [])])


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is no package, so that it is a name inside it
        return False


def _source(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise PackageError(f"{module} has no source: install trimtab again with `pip install trimtab[terraform]`")
    return Path(spec.origin)


def _file(module: str, path: Path) -> str:
    stem = module.replace(".", "/")
    return f"{stem}/__init__.py" if path.name == "__init__.py" else f"{stem}.py"


def _library(package: str) -> dict[str, bytes]:
    try:
        root = _source(package).parent
    except PackageError:
        raise PackageError(f"{package} is missing: `pip install trimtab[terraform]` brings it") from None
    return {f"{package}/{path.relative_to(root).as_posix()}": path.read_bytes() for path in root.rglob("*.py")}


def _licences(distribution: str) -> dict[str, bytes]:
    """Whoever passes code on passes its licence on."""
    try:
        files = importlib.metadata.distribution(distribution).files or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    named = [each for each in files if each.name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE"))]
    found = {f"licences/{distribution}/{each.name}": Path(str(each.locate())) for each in named}
    return {name: path.read_bytes() for name, path in found.items() if path.is_file()}
