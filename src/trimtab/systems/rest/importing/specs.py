"""From what a read gives to a spec: what the resource says of itself, as far as anybody may write it.

Without what is read-only, what is empty or the schema's default, and lists whose items are kinds of their own. A secret
becomes a reference to a key of a Secret that someone has to make; one that no read shows is only named, since nobody can
tell whether it is set. What admission would refuse is left out and named: a service may have what its document forbids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trimtab.model.errors import FieldProblem
from trimtab.systems.rest.model import FieldClass, Model, Node, Writer
from trimtab.systems.rest.syncing.comparing import equal, same
from trimtab.systems.rest.syncing.leaves import DEPTH, HIDDEN, body_node, child, item_node
from trimtab.systems.rest.syncing.paths import MISSING, Path, Wild, drop, format_path, get, parse
from trimtab.systems.rest.syncing.stripping import stripped
from trimtab.systems.rest.validating import problems

Body = dict[str, Any]

MOST_DROPPED = 64
_KEY = re.compile(r"[^-._A-Za-z0-9]+")


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A spec without the fields that are ours."""

    spec: Body
    secrets: Mapping[str, str] = {}
    """Key of the Secret → path of the field that refers to it."""
    untold: tuple[str, ...] = ()
    """Paths of secrets that no read shows."""
    refused: tuple[str, ...] = ()
    """What the service has and admission would not take, each with why."""


def written(model: Model, live: Body, secret: str, control: Body, embedded: Iterable[str] = ()) -> Written:
    """`secret` is the name of the Secret to refer to, `control` what the spec has besides, `embedded` are the paths of
    lists that are kinds of their own."""
    identity = (model.identity.field,) if model.identity.field else ()
    for path in (*embedded, *model.overlay.keep, *model.overlay.ignored, *model.overlay.body, *identity):
        live = _without(live, parse(path))
    walk = _Walk(model, secret)
    body = walk.object(body_node(model), stripped(model, live, Writer.ALL), live, ())
    names = {wire: field for field, wire in model.renamed.items()}
    spec = {names.get(field, field): value for field, value in body.items()}
    spec, refused = _acceptable(model, spec, control)
    return Written(spec=spec, secrets=walk.secrets, untold=tuple(walk.untold), refused=tuple(refused))


def _without(value: Any, path: Path) -> Any:
    """As `drop`, for patterns too: without a field wherever it is."""
    step, rest = path[0], path[1:]
    if step is Wild.ITEM and rest and isinstance(value, list):
        return [_without(item, rest) for item in value]
    if step is Wild.FIELD and isinstance(value, dict):
        return {name: _without(item, rest) for name, item in value.items()} if rest else {}
    if isinstance(step, str) and rest and isinstance(value, dict) and step in value:
        return {**value, step: _without(value[step], rest)}
    return value if isinstance(step, Wild) else drop(value, path)


class _Walk:
    """`kept` is what may be written of `live`; the two are walked side by side, for masks are in the second alone."""

    def __init__(self, model: Model, secret: str) -> None:
        self._model, self._secret = model, secret
        self.secrets: dict[str, str] = {}
        self.untold: list[str] = []

    def object(self, node: Node, kept: Body, live: Mapping[str, Any], path: Path) -> Body:
        node_ = self._model.variant(node, live)
        made: Body = {}
        for name in live:
            below = child(self._model, node_, name)
            if below.field is FieldClass.SECRET:
                if live[name] not in (None, "", [], {}):
                    made[name] = self._reference((*path, name))
                continue
            if name not in kept or below.field in HIDDEN:
                continue
            said = self._value(below, kept[name], live[name], (*path, name))
            if said is MISSING and name not in node_.properties:
                said = type(kept[name])()  # of a map, the key says something too
            if said is not MISSING and (name == node.discriminator or not _is_default(self._model, below, said)):
                made[name] = said
        for name, below in node_.properties.items():
            if live.get(name) in (None, "", [], {}) and self._model.node(below).field is FieldClass.SECRET:
                self.untold.append(format_path((*path, name)))
        return made

    def _value(self, node: Node, kept: Any, live: Any, path: Path) -> Any:
        """MISSING where there is nothing to say."""
        if len(path) >= DEPTH:
            return kept
        if isinstance(kept, dict) and isinstance(live, dict):
            made = self.object(node, kept, live, path)
            return made if made or (not kept and node.default) else MISSING
        if isinstance(kept, list) and isinstance(live, list):
            return self._list(node, kept, live, path) if kept or node.default else MISSING
        return kept

    def _list(self, node: Node, kept: list[Any], live: list[Any], path: Path) -> list[Any]:
        below = item_node(self._model, node)
        alike = live if len(live) == len(kept) else kept
        return [
            self._item(node, below, one, other, (*path, at))
            for at, (one, other) in enumerate(zip(kept, alike, strict=True))
        ]

    def _item(self, node: Node, below: Node, kept: Any, live: Any, path: Path) -> Any:
        """All items stay, however little is left to say of one: a list with fewer is another list."""
        if not isinstance(kept, dict) or not isinstance(live, dict) or len(path) >= DEPTH:
            return kept
        keys = {key: kept[key] for key in node.keys if key in kept}
        return {**keys, **self.object(below, kept, live, path)}

    def _reference(self, path: Path) -> Body:
        whole = format_path(path)
        names = [step for step in path if isinstance(step, str)]
        for key in (_key(names[-1]), _key(whole)):
            if self.secrets.setdefault(key, whole) == whole:
                break
        return {"secretRef": {"name": self._secret, "key": key}}


def _key(text: str) -> str:
    return _KEY.sub("-", text).strip("-")[:253] or "value"


def _is_default(model: Model, node: Node, value: Any) -> bool:
    if node.default is None:
        return False
    if isinstance(value, dict | list):
        return equal(node.default, value)
    return same(model, node, node.default, value)


def _acceptable(model: Model, spec: Body, control: Body) -> tuple[Body, list[str]]:
    refused: list[str] = []
    for _ in range(MOST_DROPPED):
        wrong = [each for each in problems(model, {**control, **spec}) if each.path.startswith("spec.")]
        if not wrong:
            break
        for each in wrong:
            path = _droppable(parse(each.path.removeprefix("spec.")))
            if get(spec, path) is MISSING:
                continue
            spec = drop(spec, path)
            if each.problem is not FieldProblem.FORBIDDEN:  # what nobody may write is not missed
                refused.append(f"{format_path(path)}: {each.detail}")
    return spec, refused


def _droppable(path: Path) -> Path:
    """Without an item a list is another list: then all of it goes."""
    while path and not isinstance(path[-1], str):
        path = path[:-1]
    return path
