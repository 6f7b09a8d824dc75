"""The systems that are there: installed ones, in `trimtab.systems.<name>.system`, and operators in files of a user's own."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec

from trimtab.model import kubernetes
from trimtab.model.conversion import Convertor
from trimtab.model.resource import Definition, Resource
from trimtab.model.scheme import Scheme

if TYPE_CHECKING:
    from trimtab.runtime.system import System


LOCAL = "local"
"""The system that runs Deployments as processes of this machine: only for those who say so, by `--local-workloads`."""


class NoSystem(Exception):  # noqa: N818 - it reads as what happened
    """A system that cannot be had, in one line for people."""


def installed() -> tuple[str, ...]:
    """The names of the systems in this installation, imported or not; without the one that must be asked for."""
    if importlib.util.find_spec("trimtab.systems") is None:
        return ()
    package = importlib.import_module("trimtab.systems")
    found = (module.name for module in pkgutil.iter_modules(package.__path__) if module.name != LOCAL)
    return tuple(name for name in sorted(found) if importlib.util.find_spec(f"trimtab.systems.{name}.system"))


def load(chosen: str, operators: Sequence[Path] = (), *, local: bool = False) -> tuple[System, ...]:
    """The systems of a comma-separated list, "all" or "none", and those in files; with `local` also the one that runs
    Deployments on this machine. An installed system that a file has with more kinds is only run as the file has it."""
    names = {"all": installed(), "none": ()}.get(chosen) if chosen in ("all", "none") else _split(chosen, local)
    found = [_installed(name, required=chosen != "all") for name in names or ()]
    found += [_installed(LOCAL, required=True)] if local else []
    own = [operator(path) for path in operators]
    kept = [system for system in found if system and not any(_extends(other, system) for other in own)]
    systems = (*kept, *own)
    for system in systems:
        if sum(other.name == system.name for other in systems) > 1:
            raise NoSystem(
                f'two systems are called "{system.name}", and would be one account with one lease: rename one'
            )
    if systems:
        _check(systems)
    return systems


def _extends(own: System, installed: System) -> bool:
    return own.name == installed.name and set(own.kinds) > set(installed.kinds)


def _check(systems: Sequence[System]) -> None:
    """That their kinds can be defined: better told now than by a process that fails at each start."""
    from trimtab.runtime.prepare import definitions

    for system in systems:
        try:
            definitions((system,), scheme_of((system,)))
        except (ValueError, TypeError) as error:
            raise NoSystem(f"{system.source or system.name}: {error}") from None


def _split(chosen: str, local: bool) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in chosen.split(",") if name.strip()))
    if LOCAL in names and not local:
        raise NoSystem(
            f'the system "{LOCAL}" lets Deployments run commands of this machine: say so by `trimtab up --local-workloads`'
        )
    names = tuple(name for name in names if name != LOCAL)
    known = installed()
    for name in names:
        if name not in known:
            raise NoSystem(f'there is no system "{name}"; there are: {", ".join(known) or "none"}')
    return names


def _installed(name: str, *, required: bool) -> System | None:
    try:
        system: System = importlib.import_module(f"trimtab.systems.{name}.system").SYSTEM
        for module in system.requires:
            if importlib.util.find_spec(module) is None:
                raise ModuleNotFoundError(f"No module named {module!r}", name=module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("trimtab"):
            raise
        if required:
            raise NoSystem(f'the system "{name}" needs {error.name}: pip install "trimtab[{name}]"') from None
        return None  # its extra is not installed
    return system


def operator(path: Path) -> System:
    """The system in a file: its `SYSTEM`, or all kinds and controllers that the file defines."""
    from trimtab.runtime.controller import Controller
    from trimtab.runtime.system import System

    module = _imported(path)
    given = getattr(module, "SYSTEM", None)
    if given is not None:
        if not isinstance(given, System):
            raise NoSystem(f"{path}: SYSTEM is no trimtab.runtime.System")
        return msgspec.structs.replace(given, source=str(path))
    own = [v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__]
    controllers = tuple(cls for cls in own if issubclass(cls, Controller) and "reconcile" in vars(cls))
    if not controllers:
        raise NoSystem(f"{path}: it defines no controller; subclass trimtab.runtime.Controller")
    for cls in controllers:
        if not hasattr(cls, "kind"):
            raise NoSystem(f"{path}: {cls.__name__} names no kind; write Controller[YourKind]")
    name = re.sub(r"[^a-z0-9]+", "-", path.stem.lower())[:50].strip("-") or "operator"
    kinds = tuple(cls for cls in own if issubclass(cls, Resource) and is_kind(cls))
    convertors = tuple(value for value in vars(module).values() if isinstance(value, Convertor))
    return System(name=name, kinds=kinds, reconciles=controllers, convertors=convertors, source=str(path))


def scheme_of(systems: Sequence[System]) -> Scheme:
    """Kubernetes' own kinds, and those of the systems, borrowed ones too."""
    made = kubernetes.register(Scheme())
    for system in systems:
        for kind in (*system.classes, *(hub.cls for hub in system.hub), *system.borrowed):
            made.register(kind)
        for convertor in system.convertors:
            made.convert_by(convertor)
    return made


def is_kind(cls: type[Resource]) -> bool:
    return isinstance(cls.__dict__.get("__definition__"), Definition)


def _imported(path: Path) -> ModuleType:
    if not path.is_file():
        raise NoSystem(f"{path}: it is no file" if path.exists() else f"{path}: no such file")
    name = "trimtab_operator_" + re.sub(r"\W", "_", path.stem)  # a file may be called as a module is: secrets.py
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise NoSystem(f"{path}: it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its classes look themselves up here
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise NoSystem(f"{path}{_line_of(error, path)}: {type(error).__name__}: {error}") from error
    return module


def _line_of(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError):
        return f":{error.lineno}"
    own = path.resolve()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).resolve() == own]
    return f":{frames[-1].lineno}" if frames else ""
