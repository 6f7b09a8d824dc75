"""Python source of typed structs for generated kinds, to be used with `trimtab.client`.

    from kinds import Machine, MachineSpec, MachineSku
    await client.create(Machine(metadata=ObjectMeta(name="web"), spec=MachineSpec(sku=MachineSku(tier="Small"))))

A type that several kinds have is one class, unless it differs between them or leads to one that does; then each kind has
its own. A union is one class with the fields of all its variants, as in the CRD. No field is required: an object that takes
over what exists has only what it wants to say. Caveat: typed writes do not send null.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from trimtab.systems.rest.generating.declarations import Declared, declared, owner
from trimtab.systems.rest.generating.naming import Names, literal, pascal, quoted
from trimtab.systems.rest.model import Model

_PLACEHOLDER = re.compile("‹([^›]*)›")
_WORD = re.compile(r"[A-Za-z_]+")


def structs(models: Sequence[Model]) -> str:
    """One module for the kinds of a service."""
    by_kind = [(model, declared(model)) for model in models]
    alone = _differing([classes for _, classes in by_kind])
    names = Names(_IMPORTED, (model.kind for model in models))
    written: dict[str, str] = {}
    kinds = []
    for model, classes in by_kind:
        called = {key: _called(key, model, alone, names) for key in classes}
        for key, found in classes.items():
            if called[key] not in written:
                written[called[key]] = _struct(called[key], found, called)
        kinds.append(_kind(model, called["@"]))
    body = "\n\n".join([_listed(models), *written.values(), *kinds])
    return _header(models, body) + body


def _differing(modules: Iterable[dict[str, Declared]]) -> set[str]:
    """The types that are not the same for all kinds that have them, and those that lead there."""
    seen: dict[str, Declared] = {}
    found: set[str] = set()
    users: dict[str, set[str]] = {}
    for classes in modules:
        for key, one in classes.items():
            if seen.setdefault(key, one) != one:
                found.add(owner(key))
            for used in one.uses:
                users.setdefault(owner(used), set()).add(owner(key))
    pending = list(found)
    while pending:
        for user in users.get(pending.pop(), ()):
            if user not in found:
                found.add(user)
                pending.append(user)
    return found


def _called(key: str, model: Model, alone: set[str], names: Names) -> str:
    """The name of the class of a key. Those of a kind's own spec begin with the kind's name."""
    first, *below = key.split("/")
    own = first.startswith("@")
    if key == "@":
        return names.given(f"{model.kind}@", f"{model.kind}Spec")
    base = (model.kind if own else pascal(first)) + "".join(pascal(part) for part in below)
    if own or first in alone:
        return names.given(f"{model.kind}@{key}", base if own else model.kind + base)
    return names.given(key, base)


def _struct(name: str, found: Declared, called: dict[str, str]) -> str:
    lines = [f"class {name}(Spec):", f'    """{quoted(found.description or name)}"""', ""]
    for each in found.fields:
        annotation = _PLACEHOLDER.sub(lambda hit: called[hit.group(1)], each.annotation)
        value = f"field(default=UNSET, name={literal(each.wire)})" if each.renamed else "UNSET"
        lines.append(f"    {each.name}: {annotation} | UnsetType = {value}")
        if each.description:
            lines.append(f'    """{quoted(each.description)}"""')
    return "\n".join(lines) + "\n"


def _kind(model: Model, spec: str) -> str:
    said = {"group": model.group, "version": model.version, "plural": model.plural, "singular": model.singular}
    arguments = "".join(f"    {name}={literal(value)},\n" for name, value in said.items() if value)
    if model.short_names:
        arguments += f"    short=({''.join(f'{literal(name)}, ' for name in model.short_names).rstrip()}),\n"
    return (
        f'class {model.kind}(\n    Resource,\n{arguments}    categories=("rest",),\n):\n'
        f'    """{quoted(model.description or model.kind)}"""\n\n'
        f"    spec: {spec}\n    status: Status | UnsetType = UNSET\n"
    )


def _header(models: Sequence[Model], body: str) -> str:
    """With the imports that the body needs."""
    services = ", ".join(dict.fromkeys(model.service for model in models))
    text = f"The kinds of {services}, typed. Made by `trimtab rest generate`: changes are lost when it runs again."
    used = set(_WORD.findall(body))
    imports = ""
    for module, names in _IMPORTS.items():
        if needed := [name for name in names if name in used]:
            apart = "" if "." in module and "from trimtab" in imports else "\n"
            imports += f"{apart}from {module} import {', '.join(needed)}\n"
    return f'"""{quoted(text, 0)}"""\n\nfrom __future__ import annotations\n{imports}\n'


def _listed(models: Sequence[Model]) -> str:
    names = "".join(f"    {literal(model.kind)},\n" for model in sorted(models, key=lambda model: model.kind))
    return f"__all__ = [\n{names}]\n"


_IMPORTS = {
    "typing": ("Annotated", "Any", "Literal"),
    "msgspec": ("UNSET", "UnsetType", "field"),
    "trimtab.model.markers": ("Keyed",),
    "trimtab.model.resource": ("Resource", "Spec"),
    "trimtab.systems.rest.generating.references": ("Reference", "SecretValue"),
    "trimtab.systems.rest.state": ("Parent", "Policy", "Status"),
}
_IMPORTED = tuple(name for names in _IMPORTS.values() for name in names)
