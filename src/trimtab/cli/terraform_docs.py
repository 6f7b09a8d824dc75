"""`trimtab terraform docs`: pages about all types of the provider."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trimtab.cli.codes import FAILED, OK, Problem, complain
from trimtab.cli.terraform_spec import provider

DEFAULT = Path("docs")


def docs(kinds: Path | None, named: Path | None) -> int:
    from trimtab.terraform.docs.kinds import pages

    out = named or DEFAULT
    try:
        made = pages(provider(kinds))
        if named is None:
            _demand_ours(out, made)
        for name, text in made.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except Problem as error:
        complain(str(error))
        return error.code
    except OSError as error:
        complain(str(error))
        return FAILED
    print(f"{len(made)} pages in {out.absolute()}")
    return OK


def _demand_ours(folder: Path, made: Mapping[str, str]) -> None:
    """The folder that nobody named has no pages but ours: those of an earlier snapshot may be among them."""
    if not folder.exists() or not any(folder.iterdir()):
        return
    types = folder / "types.md"
    title = made["types.md"].splitlines()[0]
    if not types.is_file() or not types.read_text(encoding="utf-8", errors="replace").startswith(title):
        raise Problem(
            f"{folder.absolute()} has files of others: say -o {folder} to write among them, or another folder"
        )
