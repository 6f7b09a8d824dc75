"""`trimtab hub proto`: hub kinds as proto3 files, with field numbers that never change their meaning."""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trimtab.hub.proto.loading import Loaded
    from trimtab.model.hub import HubResource


def proto(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KIND]...", help="Such as Blueprint, or blueprints; all of them when none is named."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the files go.")] = Path("proto"),
    lock: Annotated[
        Path, typer.Option(metavar="FILE", help="Keeps the numbers of fields; keep it in version control.")
    ] = Path("proto.lock.json"),
) -> None:
    """Write hub kinds as proto3 files.

    A field keeps the number that the lock file gives it; one that was removed stays reserved.

    Example:  trimtab hub proto Blueprint Addon --out proto --lock proto.lock.json
    """
    raise typer.Exit(run(kinds or [], out, lock))


def run(names: Sequence[str], out: Path, lock: Path) -> int:
    """The exit code. Every written file is named on standard output."""
    from trimtab.cli.codes import FAILED, NOT_FOUND, OK, complain
    from trimtab.cli.systems import NoSystem, load
    from trimtab.hub.proto.lock import LockError

    try:
        known = [kind.cls for system in load("all") for kind in system.hub]
        chosen, unknown = pick(known, names)
        if unknown:
            there = ", ".join(sorted(cls.__definition__.kind for cls in known)) or "none"
            complain(f"there is no hub kind {', '.join(unknown)}; there are {there}")
            return NOT_FOUND
        for path in write(chosen, out, lock):
            sys.stdout.write(f"{path}\n")
    except (NoSystem, LockError, OSError) as error:
        complain(str(error))
        return FAILED
    return OK


def loaded(said: str) -> Loaded:
    """The kind in a file, as `trimtab up --proto` is told: FILE, or GROUP/VERSION=FILE. NoSystem."""
    from trimtab.cli.systems import NoSystem
    from trimtab.hub.proto import common
    from trimtab.hub.proto.loading import is_kind, load
    from trimtab.hub.proto.parser import parse
    from trimtab.hub.proto.tokens import ProtoError

    named, _, file = said.rpartition("=")
    group, _, version = named.partition("/")
    path = Path(file)
    sources = {common.FILE: common.TEXT, **_imported(path)}
    try:
        kinds = [each.name for each in parse(sources[path.name]).messages.values() if is_kind(each)]
        if len(kinds) != 1:
            told = f"several kinds, {', '.join(kinds)}" if kinds else "no kind: a message with metadata and spec"
            raise NoSystem(f"{path} has {told}; it must have one")
        return load(sources, kinds[0], group=group, version=version)
    except ProtoError as error:
        raise NoSystem(f"{path}: {error}") from None


def _imported(path: Path) -> dict[str, str]:
    """The file, and those beside it that it imports, by whichever folder's name, and that these import. NoSystem names the
    one that cannot be read."""
    from trimtab.cli.systems import NoSystem
    from trimtab.hub.proto import common
    from trimtab.hub.proto.parser import parse
    from trimtab.hub.proto.tokens import ProtoError

    found: dict[str, str] = {}
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file.name in found:
            continue
        try:
            found[file.name] = file.read_text()
            imports = parse(found[file.name]).imports
        except (OSError, UnicodeDecodeError, ProtoError) as error:
            raise NoSystem(f"{file}: {error}") from None
        beside = [path.parent / PurePosixPath(each).name for each in imports if each != common.FILE]
        waiting += [each for each in beside if each.is_file()]
    return found


def pick(known: Sequence[type[HubResource]], names: Sequence[str]) -> tuple[list[type[HubResource]], list[str]]:
    """The classes that names mean, and the names that mean none."""
    by_name: dict[str, type[HubResource]] = {}
    for cls in known:
        said = cls.__definition__
        for name in (said.kind, said.plural, said.singular or said.kind, f"{said.plural}.{said.group}", *said.short):
            by_name.setdefault(name.lower(), cls)
    unknown = [name for name in names if name.lower() not in by_name]
    return list(dict.fromkeys(by_name[name.lower()] for name in names if name not in unknown)) or list(known), unknown


def write(classes: Sequence[type[HubResource]], out: Path, lock: Path) -> list[Path]:
    """Write the lock, then the files and the hub's own: a number that someone can see is kept. A kind that ships and is not
    in the lock yet begins with the numbers that it ships with."""
    from trimtab.hub.proto import common, writing
    from trimtab.hub.proto import lock as locking

    chosen = {writing.kind_key(cls) for cls in classes}
    begun = {kind: messages for kind, messages in locking.shipped().kinds.items() if kind in chosen}
    numbers = locking.Lock(kinds=begun | locking.read(lock).kinds)
    texts = {common.FILE: common.TEXT}
    for cls in classes:
        made = writing.written(cls, numbers)
        texts[made.path], numbers = made.text, made.lock
    locking.write(lock, numbers)
    paths = []
    for name, text in sorted(texts.items()):
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths
