"""`trimtab terraform spec` and `generate`: provider code specifications, out and in."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.cli.codes import FAILED, NOT_FOUND, OK, Problem, complain
from trimtab.terraform.kinds.naming import PREFIX
from trimtab.terraform.kinds.snapshot import BadSnapshot, Snapshot

if TYPE_CHECKING:
    from trimtab.terraform.framework.schema import Schema
    from trimtab.terraform.kinds.provider import TrimtabProvider


def provider(kinds: Path | None) -> TrimtabProvider:
    """Of a snapshot of kinds. Problem."""
    from trimtab.terraform.kinds.provider import TrimtabProvider
    from trimtab.terraform.main import kinds_path

    path = kinds or kinds_path(os.environ)
    try:
        return TrimtabProvider(Snapshot(path))
    except FileNotFoundError:
        raise Problem(f"{path} is not there: `trimtab terraform install` makes it", NOT_FOUND) from None
    except (BadSnapshot, OSError) as error:
        raise Problem(str(error)) from None


def schemas(offered: Mapping[str, Any], only: tuple[str, ...]) -> dict[str, Schema]:
    """By names without the provider's."""
    chosen = [name for name in offered if not only or name in only]
    return {name.removeprefix(f"{PREFIX}_"): offered[name]().schema() for name in chosen}


def spec(kinds: Path | None, only: tuple[str, ...], out: Path | None) -> int:
    from trimtab.terraform.spec.emitting import emit

    try:
        found = provider(kinds)
        resources, data_sources = found.resources(), found.data_sources()
        unknown = sorted(set(only) - set(resources) - set(data_sources))
        if unknown:
            raise Problem(f"there is no type {', '.join(unknown)}; `trimtab terraform docs` lists all", NOT_FOUND)
        emitted = emit(PREFIX, found.schema(), schemas(resources, only), schemas(data_sources, only))
        text = json.dumps(emitted.document, indent=2, ensure_ascii=False) + "\n"
        if out is None:
            sys.stdout.write(text)
        else:
            out.write_text(text, encoding="utf-8")
        for loss in emitted.losses:
            print(f"note: {loss}", file=sys.stderr)
    except Problem as error:
        complain(str(error))
        return error.code
    except OSError as error:
        complain(str(error))
        return FAILED
    return OK


def generate(document: Path, out: Path) -> int:
    from trimtab.terraform.spec.generating import generate as generated
    from trimtab.terraform.spec.reading import SpecError, load

    try:
        read = load(document)
        out.mkdir(parents=True, exist_ok=True)
        for name, text in generated(read).items():
            (out / name).write_text(text, encoding="utf-8")
            print(out / name)
    except SpecError as error:
        for fault in error.faults:
            complain(fault)
        return FAILED
    except OSError as error:
        complain(str(error))
        return FAILED
    for note in read.notes:
        print(f"note: {note}", file=sys.stderr)
    return OK


def compare(old: Path, new: Path) -> int:
    from trimtab.terraform.spec import comparing
    from trimtab.terraform.spec.reading import SpecError, load

    try:
        changes = comparing.compare(load(old), load(new))
    except (SpecError, OSError) as error:
        for fault in str(error).splitlines():
            complain(fault)
        return FAILED
    for each in changes:
        print(f"{each.level!s:<5}  {each.where}: {each.what}")
    needed = comparing.level(changes)
    print("nothing changed" if needed is None else f"this is a {needed} change")
    unwarned = sum(1 for each in changes if not each.warned)
    if unwarned:
        some = "1 change breaks" if unwarned == 1 else f"{unwarned} changes break"
        complain(f"{some} what works now, without a warning before: deprecate first, or keep what was")
        return FAILED
    return OK
