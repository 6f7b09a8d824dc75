"""The kinds of all systems that are installed. A system keeps its classes in `trimtab.systems.<name>.kinds`."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil

from trimtab.cli.systems import LOCAL
from trimtab.model.resource import Definition, Resource
from trimtab.model.scheme import Scheme


def scheme() -> Scheme:
    """A scheme with every class that an installed system defines, but for the one of this machine, which no cluster runs.
    One whose extra is missing is left out."""
    made = Scheme()
    if importlib.util.find_spec("trimtab.systems") is None:
        return made
    systems = importlib.import_module("trimtab.systems")
    for found in sorted(pkgutil.iter_modules(systems.__path__), key=lambda module: module.name):
        if found.name == LOCAL:
            continue
        name = f"trimtab.systems.{found.name}.kinds"
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Resource) and _is_kind(value):
                made.register(value)
    return made


def _is_kind(cls: type[Resource]) -> bool:
    return isinstance(cls.__dict__.get("__definition__"), Definition)
