"""Values that are only written: Terraform keeps them in no plan and no state, and the server never shows them again.

That the configuration's changed is seen by a digest in the private state: salted, and slow on purpose, since many may read
a state. That the server's changed is seen without knowing it: whoever changes a field takes it from its manager, so the
private state keeps which of these fields were ours after the last write.

What `ignore_changes` leaves is in no configuration that is planned, as if it had been taken out, and in the one that is
applied. An apply that sees both notes that it is ignored, so that the plans after it say nothing. A Secret's is written
again as the server has it; what no server shows is written as it is given.

A Secret's `stringData` is an entry that the server turns into `data`, and nobody's book tells whose it was then. So it is
sent as the `data` that it becomes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.framework.resource import Private
from trimtab.terraform.framework.values import UNKNOWN
from trimtab.terraform.kinds.definition import OBJECT, Definition, Shape

WRITE_ONLY = "write_only"
"""The digest's name in the private state."""
PLAIN, ENCODED = "stringData", "data"
"""Of a Secret: as users write it, and as it is kept."""

Steps = tuple[str, ...]
"""A place in a `fieldsV1` tree."""


def visible(shape: Shape, value: Any) -> Any:
    """The value without what is only written: no plan and no state has it."""
    if not isinstance(value, dict) or shape.items is not None:
        return value
    names = {field.name: field for field in shape.fields}
    return {
        name: None
        if name in names and names[name].write_only
        else (visible(names[name].shape, item) if name in names else item)
        for name, item in value.items()
    }


def _secrets(shape: Shape, value: Any) -> list[Any]:
    """All that is only written, in order."""
    found: list[Any] = []
    if shape.items is not None and isinstance(value, dict | list):
        inner = [value[key] for key in sorted(value)] if isinstance(value, dict) else value
        found += [_secrets(shape.items, item) for item in inner]
    elif isinstance(value, dict):
        for field in shape.fields:
            item = value.get(field.name)
            if field.write_only and item is not None:
                found.append([field.name, item])
            elif item is not None and (inside := _secrets(field.shape, item)):
                found.append(inside)
    return found


def planned(definition: Definition, config: Any, private: Private) -> bool:
    """Whether a plan leaves it as it was last written; notes whether it is in the configuration that is planned."""
    if isinstance(before := private.get(WRITE_ONLY), dict):
        private[WRITE_ONLY] = {**before, "absent": not _is_any(definition.root, config)}
    return is_as_given(definition.root, config, private)


def remember(definition: Definition, config: Any, owned: Mapping[str, Any] | None, private: Private) -> None:
    """After a write; `owned` is what it left us as ours."""
    ignored = is_ignored(definition.root, config, private)
    if ignored and is_secret(definition):
        private[WRITE_ONLY] = {**private[WRITE_ONLY], "ignored": True}
    elif _is_any(definition.root, config):
        salt = os.urandom(16).hex()
        ours = [list(steps) for steps, _ in _places(definition, config) if _has(owned, steps)]
        digest = _digest(_secrets(definition.root, config), salt)
        private[WRITE_ONLY] = {"salt": salt, "digest": digest, "ours": ours, "ignored": ignored}
    else:
        private.pop(WRITE_ONLY, None)


def is_ignored(shape: Shape, config: Any, private: Private) -> bool:
    """Whether the configuration that is applied has it, and the one that was planned had not."""
    return bool((private.get(WRITE_ONLY) or {}).get("absent")) and _is_any(shape, config)


def left(
    definition: Definition,
    document: dict[str, Any],
    config: Any,
    live: Any,
    owned: Mapping[str, Any] | None,
    private: Private,
) -> dict[str, Any]:
    """A document to be written, with what is ignored of a Secret as the server has it, where it is still ours."""
    if not is_secret(definition) or not is_ignored(definition.root, config, private):
        return document
    given = {steps[-1].removeprefix("f:") for steps, _ in _places(definition, config)}
    ours = {steps[-1].removeprefix("f:") for steps in _ours(private) if _has(owned, steps)}
    data = {key: item for key, item in document[ENCODED].items() if key not in given}
    return {**document, ENCODED: data | {key: item for key, item in (live.get(ENCODED) or {}).items() if key in ours}}


def lost(definition: Definition, owned: Mapping[str, Any] | None, private: Private) -> list[Path]:
    """Attributes that are only written and that somebody else has changed, or taken away; none where that is ignored."""
    if (private.get(WRITE_ONLY) or {}).get("ignored"):
        return []
    return [_attribute(definition, steps) for steps in _ours(private) if not _has(owned, steps)]


def forget(private: Private) -> None:
    """What is on the server is not what was written: it is to be written again."""
    private[WRITE_ONLY] = {**(private.get(WRITE_ONLY) or {}), "digest": ""}


def had(definition: Definition, path: Path, private: Private) -> bool:
    """Whether what is at this path is only written, and was ours. A Secret's is at its place in the data."""
    if is_secret(definition):
        return path in [ROOT.name(ENCODED).key(steps[-1].removeprefix("f:")) for steps in _ours(private)]
    return path in [_attribute(definition, steps) for steps in _ours(private)]


def without_ours(definition: Definition, value: dict[str, Any], prior: Any, private: Private) -> dict[str, Any]:
    """A read value without the part of a Secret's data that was given to be written only."""
    if not is_secret(definition) or not isinstance(shown := value.get(ENCODED), dict):
        return value
    said = (prior or {}).get(ENCODED)
    hidden = {steps[1] for steps in _ours(private)} - {f"f:{key}" for key in said or ()}
    kept = {key: item for key, item in shown.items() if f"f:{key}" not in hidden}
    return {**value, ENCODED: kept if kept or said is not None else None}


def encoded(definition: Definition, document: dict[str, Any]) -> dict[str, Any]:
    """A document to be written, with a Secret's plain texts as the data that they become."""
    if not is_secret(definition) or not isinstance(plain := document.get(PLAIN), dict):
        return document
    import base64

    data = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
    rest = {wire: item for wire, item in document.items() if wire != PLAIN}
    return {**rest, ENCODED: {**document.get(ENCODED, {}), **data}}


def given_twice(definition: Definition, config: Mapping[str, Any]) -> list[Path]:
    """Keys that a Secret has plain and encoded: the one would be written over the other, and every plan would show it."""
    if not is_secret(definition):
        return []
    names = {field.wire: field.name for field in definition.root.fields}
    plain, data = (config.get(names.get(wire, wire)) for wire in (PLAIN, ENCODED))
    if not isinstance(plain, dict) or not isinstance(data, dict):
        return []
    both = (key for key, item in plain.items() if item is not None and data.get(key) is not None)
    return [ROOT.name(names.get(PLAIN, PLAIN)).key(key) for key in both]


def is_secret(definition: Definition) -> bool:
    return (definition.group, definition.kind) == ("", "Secret")


def _ours(private: Private) -> list[Steps]:
    kept = private.get(WRITE_ONLY)
    ours = kept.get("ours") if isinstance(kept, dict) else None
    return [tuple(str(step) for step in steps) for steps in ours or () if isinstance(steps, list)]


def _places(definition: Definition, config: Any) -> Iterator[tuple[Steps, Any]]:
    """Where the book tells of what is only written, as far as objects lead there."""
    if is_secret(definition):
        name = next((field.name for field in definition.root.fields if field.wire == PLAIN), "")
        for key, item in (config.get(name) or {}).items():
            if item is not None:
                yield (f"f:{ENCODED}", f"f:{key}"), item
        return
    yield from _fields(definition.root, config, ())


def _fields(shape: Shape, value: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    if shape.form == OBJECT and isinstance(value, dict):
        for field in shape.fields:
            item, here = value.get(field.name), (*steps, f"f:{field.wire}")
            if field.write_only and item is not None:
                yield here, item
            elif item is not None:
                yield from _fields(field.shape, item, here)


def _attribute(definition: Definition, steps: Steps) -> Path:
    words = [step.removeprefix("f:") for step in steps]
    if is_secret(definition):
        name = next((field.name for field in definition.root.fields if field.wire == PLAIN), PLAIN)
        return ROOT.name(name).key(words[-1])
    path, shape = ROOT, definition.root
    for word in words:
        field = shape.field(word)
        if field is None:
            break
        path, shape = path.name(field.name), field.shape
    return path


def _has(owned: Mapping[str, Any] | None, steps: Steps) -> bool:
    for step in steps:
        if not isinstance(owned, Mapping) or step not in owned:
            return False
        owned = owned[step]
    return True


def is_as_given(shape: Shape, config: Any, private: Private) -> bool:
    """Whether what is only written is what it was when it was last written. What is unknown may be anything."""
    secrets, before = _secrets(shape, config), private.get(WRITE_ONLY)
    if not any(_flat(secrets)):
        return before is None or bool(before.get("ignored"))
    if before is None or before.get("ignored") or UNKNOWN in _flat(secrets):
        return False
    return hmac.compare_digest(_digest(secrets, str(before.get("salt"))), str(before.get("digest")))


def _is_any(shape: Shape, config: Any) -> bool:
    return any(_flat(_secrets(shape, config)))


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _flat(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _flat(item)]
    return [value]


def _digest(secrets: list[Any], salt: str) -> str:
    """Slow on purpose: the state is read by many, and a secret may be short."""
    text = json.dumps(secrets, sort_keys=True, default=str).encode()
    return hashlib.scrypt(text, salt=bytes.fromhex(salt), n=1 << 13, r=8, p=1, dklen=32).hex()
