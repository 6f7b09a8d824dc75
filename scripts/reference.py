"""The reference of what operators use, made from the docstrings and signatures of the source: `make docs`.

    python scripts/reference.py [FOLDER]        # docs/reference unless told

The source is read, never imported. A page is a module with its parts: those of a package, in the order in which its
docstring names them, and those whose names begin with the module's own (`queue` and `queue_nats`). So a module that is
taken apart keeps its page.
"""

import ast
import copy
import functools
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "trimtab"
WIDTH = 110
PARAMETERS = (ast.FunctionDef, ast.AsyncFunctionDef)
NAMED = (ast.ClassDef, *PARAMETERS)

ROOMS: Mapping[str, tuple[str, ...]] = {
    "runtime": (),
    "storage": (),
    "testing": (),
    "client": ("protocol", "connect", "follow", "api"),
    "model": (
        "resource",
        "kind",
        "markers",
        "scheme",
        "conversion",
        "kubernetes",
        "objectmeta",
        "conditions",
        "health",
        "admission",
        "errors",
        "crd",
        "clock",
        "duration",
        "quantity",
        "references",
        "redacted",
    ),
}
"""The rooms, and of each the modules that operators use; all when none is named."""

INNER = {
    "runtime": "cache deadline driver guarded informers lease limits nats_connection nats_credentials objects prepare reflector "
    "rights tasks workitem workqueue",
    "storage": "folder http postgres retry serve spool threads",
    "testing": "loop network peer pki ports sealed simulated_process usage",
}
"""How the rooms are made: for those who change them."""

ABOUT = {
    "runtime": "Controllers, and what they share.",
    "storage": "What does not fit into a resource.",
    "testing": "For tests of controllers.",
    "client": "The door to any Kubernetes.",
    "model": "What a kind is, and the words that all share.",
}


class Page(NamedTuple):
    """One module with its parts, and where it stands."""

    room: str
    name: str
    parts: tuple[Path, ...]

    @property
    def module(self) -> str:
        return f"trimtab.{self.room}.{self.name}" if self.name else f"trimtab.{self.room}"

    @property
    def file(self) -> str:
        return f"{self.module.removeprefix('trimtab.')}.md"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    made = written()
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text)


def written() -> dict[str, str]:
    """Every page by the name of its file."""
    found = [page for page in pages() if any(_public(_tree(part)) for part in page.parts)]
    return {"README.md": _index(found), **{page.file: _page(page) for page in found}}


def undocumented() -> list[str]:
    """Classes and functions for operators that have no docstring. Of a package, what it exports is for operators."""
    missing = []
    for page in pages():
        if page.name in INNER.get(page.room, "").split():
            continue
        exported = _exported(page.parts[0])
        for part in page.parts:
            for node in _public(_tree(part)):
                if exported and _name(node) not in exported:
                    continue
                if isinstance(node, NAMED) and not _is_kind(node) and not _doc(node):
                    missing.append(f"{_dotted(part)}.{_name(node)}")
    return missing


def pages() -> list[Page]:
    """All of them, rooms in their order, modules by name."""
    made = []
    for room, chosen in ROOMS.items():
        files = sorted(path for path in (SOURCE / room).rglob("*.py") if path != SOURCE / room / "__init__.py")
        stems = {path.stem for path in files if path.parent == SOURCE / room}
        grouped: dict[str, list[Path]] = {}
        for path in files:
            grouped.setdefault(_page_of(path, room, stems), []).append(path)
        for name, parts in sorted(grouped.items()):
            if not chosen or name in chosen:
                made.append(Page(room, name, _ordered(name, parts)))
    return made


def _page_of(path: Path, room: str, stems: set[str]) -> str:
    inside = path.relative_to(SOURCE / room)
    if len(inside.parts) > 1:
        return inside.parts[0]
    first = path.stem.split("_")[0]
    return first if first in stems else path.stem


def _ordered(name: str, parts: list[Path]) -> tuple[Path, ...]:
    first = min(parts, key=lambda part: (part.stem not in ("__init__", name), part))
    said = ast.get_docstring(_tree(first)) or ""

    def place(part: Path) -> tuple[bool, float, Path]:
        named = said.find(f"`{part.stem}`")
        return part != first, named if named >= 0 else float("inf"), part

    return tuple(sorted(parts, key=place))


def _index(found: list[Page]) -> str:
    lines = [
        "# Reference",
        "",
        "Made from the docstrings by `make docs`; do not edit. How to use all this: [the guide](../operators.md).",
        "",
        "An operator's file usually begins with `from trimtab.runtime import …`, which has "
        + ", ".join(f"[`{name}`]({_where(name, found)})" for name in _exported())
        + ".",
    ]
    for room in ROOMS:
        inner = INNER.get(room, "").split()
        lines += ["", f"## trimtab.{room}", "", ABOUT[room], ""]
        lines += _table(page for page in found if page.room == room and page.name not in inner)
        if inner:
            lines += ["", "How it is made:", ""]
            lines += _table(page for page in found if page.room == room and page.name in inner)
    return "\n".join(lines) + "\n"


def _table(chosen: Iterable[Page]) -> list[str]:
    rows = [f"| [{page.module.removeprefix('trimtab.')}]({page.file}) | {_cell(page)} |" for page in chosen]
    return ["| | |", "|-|-|", *rows]


@functools.cache
def _exported(package: Path = SOURCE / "runtime" / "__init__.py") -> tuple[str, ...]:
    """What a package offers by its own name."""
    for node in _tree(package).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return tuple(ast.literal_eval(node.value))
    return ()


def _where(name: str, found: list[Page]) -> str:
    for page in found:
        for part in page.parts if page.room == "runtime" else ():
            if any(_name(node) == name for node in _public(_tree(part))):
                return f"{page.file}#{name.lower()}"
    return "README.md"


def _cell(page: Page) -> str:
    """The first sentence of what the module says of itself."""
    said = " ".join((ast.get_docstring(_tree(page.parts[0])) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.) |:$", said)[0].rstrip(":.").replace("|", "\\|")


def _page(page: Page) -> str:
    lines = [f"# {page.module}", ""]
    for part in page.parts:
        tree = _tree(part)
        nodes = _public(tree)
        level = "##" if part == page.parts[0] else "###"
        if level == "###":
            if not nodes:
                continue
            lines += [f"## {_dotted(part)}", ""]
        lines += [_prose(ast.get_docstring(tree) or ""), "", f"Source: [{_short(part)}](../../{_short(part)})", ""]
        if part.stem == "__init__" and _exported(part):
            names = ", ".join(f"[`{name}`](#{name.lower()})" for name in _exported(part))
            lines += [f"`from {page.module} import …` has {names}.", ""]
        for node in nodes:
            lines += [*_entry(node, _notes(tree), level), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _short(part: Path) -> str:
    return part.relative_to(ROOT).as_posix()


def _dotted(part: Path) -> str:
    return ".".join(part.relative_to(ROOT / "src").with_suffix("").parts)


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _public(tree: ast.Module) -> list[ast.stmt]:
    """Classes and functions in the order of the source, then values that say what they are or that all use."""
    notes, exported = _notes(tree), _exported()
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        name = _name(node)
        if not name or name.startswith("_"):
            continue
        if isinstance(node, NAMED) or name in notes or name in exported:
            found[name] = node
    return sorted(found.values(), key=lambda node: not isinstance(node, NAMED))


def _name(node: ast.stmt) -> str:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def _is_kind(node: ast.stmt) -> bool:
    """A class that defines a kind says by its fields what it is."""
    return isinstance(node, ast.ClassDef) and any(word.arg == "plural" for word in node.keywords)


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {ast.unparse(item).split("(")[0].split(".")[-1] for item in node.decorator_list}


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return not _decorators(node).isdisjoint({"property", "cached_property"})


def _notes(tree: ast.Module | ast.ClassDef) -> dict[str, str]:
    """The string below a value or a field, which says what it is."""
    said = {}
    for node, after in zip(tree.body, tree.body[1:], strict=False):
        match node, after:
            case ast.Assign() | ast.AnnAssign(), ast.Expr(value=ast.Constant(value=str(text))):
                said[_name(node)] = inspect.cleandoc(text)
    return said


def _doc(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return ast.get_docstring(node) or ""


def _entry(node: ast.stmt, notes: Mapping[str, str], level: str) -> Iterator[str]:
    yield f"{level} {_name(node)}"
    yield ""
    match node:
        case ast.ClassDef():
            yield from _class(node)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _fenced(_signature(node))
            yield _prose(_doc(node))
        case _:
            value = ast.unparse(node)
            if len(value) <= 3 * WIDTH:
                yield from _fenced(value)
            yield _prose(notes.get(_name(node), ""))


def _class(node: ast.ClassDef) -> Iterator[str]:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    head = f"class {node.name}({bases})" if bases else f"class {node.name}"
    fields = list(_fields(node))
    yield from _fenced("\n".join([head + (":" if fields else ""), *fields]))
    yield _prose(_doc(node))
    yield ""
    for name, said in _described(node).items():
        if not name.startswith("_"):
            yield f"- `{name}`: {' '.join(said.split())}"
    methods = {inner.name: inner for inner in node.body if isinstance(inner, PARAMETERS)}  # the last of its overloads
    for inner in methods.values():
        if _shown(inner):
            yield ""
            if inner.name != "__init__":
                yield f"**{node.name}.{inner.name}**"
                yield ""
            yield from _fenced(_signature(inner, of=node.name))
            yield _prose(_doc(inner))


def _fields(node: ast.ClassDef) -> Iterator[str]:
    """What one reads: a struct's fields, properties, the members of an enumeration."""
    for inner in node.body:
        if isinstance(inner, ast.AnnAssign) and not _name(inner).startswith("_"):
            yield f"    {_plain(inner)}"
        elif isinstance(inner, ast.Assign) and any("Enum" in ast.unparse(base) for base in node.bases):
            yield f"    {ast.unparse(inner)}"
        elif isinstance(inner, PARAMETERS) and _is_property(inner) and not inner.name.startswith("_"):
            yield f"    {inner.name}: {ast.unparse(inner.returns or ast.Name('Any'))}"


class _Plain(ast.NodeTransformer):
    """A field's type without what the schema says of it: the descriptions are told below."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        node.keywords = [word for word in node.keywords if word.arg != "description"]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if not (
            isinstance(node.value, ast.Name) and node.value.id == "Annotated" and isinstance(node.slice, ast.Tuple)
        ):
            return node
        kept = [item for item in node.slice.elts if ast.unparse(item) != "Meta()"]
        if len(kept) == 1:
            return kept[0]
        node.slice.elts = kept
        return node


def _plain(node: ast.AnnAssign) -> str:
    return ast.unparse(_Plain().visit(copy.deepcopy(node)))


def _described(node: ast.ClassDef) -> dict[str, str]:
    """What is said of the fields: below them, or to the schema."""
    said: dict[str, str] = {}
    for field in node.body:
        if isinstance(field, ast.AnnAssign):
            words = [
                word for inner in ast.walk(field.annotation) if isinstance(inner, ast.Call) for word in inner.keywords
            ]
            said |= {_name(field): str(ast.literal_eval(word.value)) for word in words if word.arg == "description"}
        elif isinstance(field, PARAMETERS) and _is_property(field) and _doc(field):
            said[field.name] = _doc(field)
    return said | _notes(node)


def _shown(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    if node.name == "__init__":
        return bool(node.args.args[1:] or node.args.kwonlyargs)
    if _is_property(node):
        return False
    return node.name == "__call__" or not node.name.startswith("_")


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef, of: str = "") -> str:
    kinds = _decorators(node)
    answer = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    words = list(_arguments(node.args))
    if of and words and words[0] in ("self", "cls"):
        words = words[1:]
    name = of if node.name == "__init__" else node.name
    answer = "" if node.name == "__init__" else answer
    lead = "async def " if isinstance(node, ast.AsyncFunctionDef) else "" if node.name == "__init__" else "def "
    managed = "async with " if "asynccontextmanager" in kinds else "with " if "contextmanager" in kinds else ""
    line = f"{managed or lead}{name}({', '.join(words)}){answer}"
    if len(line) <= WIDTH:
        return line
    return f"{managed or lead}{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){answer}"


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    """The arguments, one text each."""
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(arguments.defaults)), *arguments.defaults]
    for argument, default in zip(plain, defaults, strict=True):
        yield _with_default(argument, default)
        if arguments.posonlyargs and argument is arguments.posonlyargs[-1]:
            yield "/"
    if arguments.vararg:
        yield f"*{ast.unparse(arguments.vararg)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _with_default(argument, default)
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def _with_default(argument: ast.arg, default: ast.expr | None) -> str:
    text = ast.unparse(argument)
    if default is None:
        return text
    return f"{text} = {ast.unparse(default)}" if argument.annotation else f"{text}={ast.unparse(default)}"


def _fenced(code: str) -> Iterator[str]:
    yield from ("```python", code, "```", "")


def _prose(text: str) -> str:
    """A docstring as Markdown: code that is set in by four gets a fence of its own."""
    lines: list[str] = []
    for block in text.split("\n\n"):
        if block.startswith("    "):
            code = inspect.cleandoc("\n" + block)
            lines += ["```" if code.startswith("<") else "```python", code, "```", ""]
        else:
            lines += [block, ""]
    return "\n".join(lines).rstrip()


if __name__ == "__main__":
    main()
