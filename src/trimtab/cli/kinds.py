"""The kinds of all systems that are installed. A system keeps its classes in `trimtab.systems.<name>.kinds`."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator
from types import ModuleType

from trimtab.cli.systems import LOCAL
from trimtab.model.conversion import Convertor
from trimtab.model.resource import Definition, Resource
from trimtab.model.scheme import Scheme


def installed() -> Iterator[tuple[str, ModuleType]]:
    """The names of installed systems, and the modules of their kinds."""
    if importlib.util.find_spec("trimtab.systems") is None:
        return
    systems = importlib.import_module("trimtab.systems")
    for found in sorted(pkgutil.iter_modules(systems.__path__), key=lambda module: module.name):
        if found.name == LOCAL:
            continue
        with contextlib.suppress(ModuleNotFoundError):
            yield found.name, importlib.import_module(f"trimtab.systems.{found.name}.kinds")


def scheme() -> Scheme:
    """A scheme with every class that an installed system defines, but for the one of this machine, which no cluster runs.
    One whose extra is missing is left out."""
    made = Scheme()
    for _, module in installed():
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Resource) and _is_kind(value):
                made.register(value)
        for convertor in _convertors(module):
            made.convert_by(convertor)
    return made


def converting(known: Scheme) -> dict[tuple[str, str], str]:
    """The systems that convert, by the group and name of the kind."""
    hubs = ((name, known.kind_of(each.hub)) for name, module in installed() for each in _convertors(module))
    return {(hub.group, hub.kind): name for name, hub in hubs}


def _convertors(module: ModuleType) -> list[Convertor]:
    return [value for value in vars(module).values() if isinstance(value, Convertor)]


def _is_kind(cls: type[Resource]) -> bool:
    return isinstance(cls.__dict__.get("__definition__"), Definition)
