"""NETCONF's messages: written as text, and read without ever building a tree.

A reader keeps only the texts at the paths that were asked for, so that a large answer costs little memory. XML here has
no document type and thus no entities (RFC 6241 §3), and is bounded in depth; its size is bounded by the framing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from xml.parsers import expat
from xml.sax.saxutils import escape

import msgspec

BASE = "urn:ietf:params:xml:ns:netconf:base:1.0"
BASE_1_0 = "urn:ietf:params:netconf:base:1.0"
BASE_1_1 = "urn:ietf:params:netconf:base:1.1"
DEEPEST = 100
LONGEST_TEXT = 4096
MOST_TEXTS = 4096
SLICE = 16 * 1024

Path = tuple[str, ...]


class BadMessage(ValueError):  # noqa: N818 - it reads as what it is
    """It is not XML that NETCONF allows. The message says why."""


class RpcError(msgspec.Struct, frozen=True):
    """An `<rpc-error>` of severity error (RFC 6241 §4.3)."""

    tag: str
    message: str = ""


class Message(msgspec.Struct, frozen=True):
    """What was read: the root's name, and the texts at each path that was asked for, in their order."""

    root: str
    texts: dict[Path, list[str]]
    errors: tuple[RpcError, ...] = ()

    def first(self, path: Path) -> str:
        """The first text that is not empty."""
        return next((text for text in self.texts.get(path, ()) if text), "")


async def read(message: bytes, wanted: Collection[Path]) -> Message:
    """The texts at the wanted paths of local names, from the root's children on. BadMessage.

    A large message is read in slices, between which others get their turn.
    """
    reader = _Reader(wanted)
    message = message.strip()  # nothing may stand before an XML declaration, and servers do put line ends there
    for start in range(0, max(len(message), 1), SLICE):
        reader.feed(message[start : start + SLICE], last=start + SLICE >= len(message))
        if len(message) > SLICE:
            await asyncio.sleep(0)
    return reader.message()


def hello(capabilities: Iterable[str]) -> bytes:
    listed = "".join(f"<capability>{escape(each)}</capability>" for each in capabilities)
    return _document(f'<hello xmlns="{BASE}"><capabilities>{listed}</capabilities></hello>')


def get(message_id: int, subtree: str) -> bytes:
    """A `<get>` with the content of a subtree filter (§7.7)."""
    return rpc(message_id, f'<get><filter type="subtree">{subtree}</filter></get>')


def rpc(message_id: int, operation: str) -> bytes:
    return _document(f'<rpc xmlns="{BASE}" message-id="{message_id}">{operation}</rpc>')


def subtree(paths: Iterable[Path]) -> str:
    """A filter that selects the paths in whatever namespace they are: no namespace means any (§6.2.1)."""
    return "".join(_element(node, ' xmlns=""') for node in _tree(paths).children.values())


def _element(node: _Node, attributes: str = "") -> str:
    name, children = node.path[-1], node.children.values()
    if not children:
        return f"<{name}{attributes}/>"
    return f"<{name}{attributes}>{''.join(_element(child) for child in children)}</{name}>"


def _document(body: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>{body}'.encode()


class _Node:
    """A name on a wanted path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.wanted = False
        self.children: dict[str, _Node] = {}


def _tree(paths: Iterable[Path]) -> _Node:
    root = _Node(())
    for path in paths:
        node = root
        for depth, name in enumerate(path, start=1):
            node = node.children.setdefault(name, _Node(path[:depth]))
        node.wanted = True
    return root


class _Reader:
    def __init__(self, wanted: Collection[Path]) -> None:
        self._texts: dict[Path, list[str]] = {}
        self._errors: list[RpcError] = []
        self._root = ""
        self._tree = _tree([*wanted, *_ERROR_PATHS])
        self._open: list[_Node | None] = []  # the elements around, None where no wanted path leads
        self._text: list[str] | None = None
        self._length = 0
        self._count = 0
        parser = expat.ParserCreate("UTF-8")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        self._parser = parser

    def feed(self, data: bytes, *, last: bool) -> None:
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            raise BadMessage(f"it is not well-formed XML: {error}") from None

    def message(self) -> Message:
        return Message(self._root, self._texts, tuple(self._errors))

    def _doctype(self, *_: object) -> None:
        raise BadMessage("it has a document type, which NETCONF does not allow")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = name[name.rfind(":") + 1 :]
        node: _Node | None
        if not self._open:
            self._root, node = local, self._tree
        elif len(self._open) >= DEEPEST:
            raise BadMessage(f"its elements are nested deeper than {DEEPEST}")
        else:
            around = self._open[-1]
            node = None if around is None else around.children.get(local)
        self._open.append(node)
        self._text, self._length = [] if node is not None and node.wanted else None, 0

    def _characters(self, data: str) -> None:
        if self._text is not None and self._length < LONGEST_TEXT:
            self._text.append(data[: LONGEST_TEXT - self._length])
            self._length += len(data)

    def _end(self, name: str) -> None:
        node = self._open.pop()
        if node is not None and self._text is not None and self._count < MOST_TEXTS:
            self._count += 1
            self._texts.setdefault(node.path, []).append("".join(self._text).strip())
        self._text = None
        if node is not None and node.path == _ERROR:
            self._note_error()

    def _note_error(self) -> None:
        tag, severity, message = (next(iter(self._texts.pop(path, ())), "") for path in _ERROR_PATHS)
        if severity != "warning":
            self._errors.append(RpcError(tag or "unknown", message))


_ERROR = ("rpc-error",)
_ERROR_PATHS = tuple((*_ERROR, name) for name in ("error-tag", "error-severity", "error-message"))
