"""`trimtab terraform install` and `check`: the provider in a mirror, its certificate, and the kinds of a server."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab import __version__
from trimtab.cli.codes import FAILED, OK, Problem, complain, told
from trimtab.terraform.install.places import ADDRESS
from trimtab.terraform.main import home, kinds_path

if TYPE_CHECKING:
    from trimtab.terraform.kinds.access import Access
    from trimtab.terraform.kinds.promises import Promises

BEGIN = f"""\
terraform {{
  required_providers {{ trimtab = {{ source = "{ADDRESS}" }} }}
}}
provider "trimtab" {{ PROVIDER }}
"""
"""Four lines. What the provider needs may come from the environment, too."""

FEW = 8
"""Names that a line shows."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    kubeconfig: Path | None = None
    context: str = ""
    mirror: Path | None = None
    schema_only: bool = False


def install(options: Options) -> int:
    return _guarded(lambda: _install(options))


def check(options: Options) -> int:
    return _guarded(lambda: _check(options))


def _guarded(work: Callable[[], int]) -> int:
    from trimtab.terraform.install.contents import PackageError
    from trimtab.terraform.install.places import UnknownMachine
    from trimtab.terraform.kinds.access import NoAccess
    from trimtab.terraform.kinds.api import ApiError, Unreachable
    from trimtab.terraform.kinds.snapshot import BadSnapshot

    try:
        return work()
    except (PackageError, UnknownMachine, NoAccess, ApiError, BadSnapshot) as error:
        complain(str(error))
        return FAILED
    except Unreachable as error:
        complain(f"{error}; is it running? `trimtab up` starts a server")
        return FAILED
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        code, message = told(error)
        complain(message)
        return code


def _install(options: Options) -> int:
    reached = _reached(options)
    if reached is None and options.schema_only:
        raise Problem("there is no server to ask for its kinds: give --kubeconfig, or start one by `trimtab up`")
    kinds = _kinds(reached) if reached is not None else None  # first: nothing is changed when the server is away
    if not options.schema_only:
        _put(options)
    if reached is None or kinds is None:
        path = kinds_path(os.environ)
        if path.is_file():
            print(f"kinds     as they were, in {path}: there is no server to ask")
        else:
            print("kinds     none yet: run it again with --kubeconfig, once there is a server")
        print(f"\nThen begin with:\n\n{BEGIN.replace(' PROVIDER ', '')}")
        return OK
    _keep(kinds, reached.url)
    if not options.schema_only:
        print(f"\nBegin with these lines, and `terraform init` or `tofu init`:\n\n{_begin(options)}")
    return OK


def _begin(options: Options) -> str:
    """With the kubeconfig where it is not one that the provider finds by itself."""
    found = f' kubeconfig = "{options.kubeconfig.resolve()}" ' if options.kubeconfig else ""
    return BEGIN.replace(" PROVIDER ", found)


def _reached(options: Options) -> Access | None:
    """The server; None when nobody named one."""
    from trimtab.terraform.kinds.access import NoAccess, Settings, access

    given = str(options.kubeconfig or "")
    try:
        return access(Settings(kubeconfig=given, context=options.context))
    except NoAccess as error:
        if given or options.context or "No server is configured" not in str(error):
            raise
        return None


def _asked(reached: Access) -> Any:
    from trimtab.terraform.kinds.api import Api

    return Api(reached)


def _kinds(reached: Access) -> bytes:
    from trimtab.terraform.kinds.precomputing import taken
    from trimtab.terraform.shipped import shipped_hints

    promised = _promised()
    api = _asked(reached)
    try:
        return taken(api.get, shipped_hints(), promised=promised)
    finally:
        api.close()


def _promised() -> Promises:
    """The names that users have in their configurations."""
    from trimtab.terraform.kinds.promises import NO_PROMISES, promises
    from trimtab.terraform.kinds.snapshot import Snapshot

    path = kinds_path(os.environ)
    if not path.is_file():
        return NO_PROMISES
    try:
        return promises(Snapshot(path))
    except ValueError as error:  # of another release, or damaged: it is to be replaced
        complain(f"names of earlier kinds are not known, some may change: {error}")
        return NO_PROMISES


def _put(options: Options) -> None:
    from trimtab.terraform.certificate import ensure
    from trimtab.terraform.install.mirror import filesystem_configuration
    from trimtab.terraform.install.package import package, put
    from trimtab.terraform.install.places import plugins, target, unpacked
    from trimtab.terraform.install.prepared import prepare
    from trimtab.terraform.plugin.identity import folder

    made = package(__version__)
    mirror = (options.mirror or plugins()).expanduser().resolve()
    where = unpacked(mirror, __version__, target())
    changed = put(made, where)
    prepare(made, home(os.environ))
    ensure(folder(os.environ))
    print(f"provider  {ADDRESS} {__version__}")
    print(f"          {where}{'' if changed else ', as it was'}")
    print(f"hash      {made.h1}")
    if options.mirror is not None:
        file = mirror / "terraform.tfrc"
        file.write_text(filesystem_configuration(mirror))
        print(f"settings  export TF_CLI_CONFIG_FILE={file}")


def _keep(kinds: bytes, url: str) -> None:
    from trimtab.terraform.kinds.comparing import compared, kept_digests
    from trimtab.terraform.kinds.snapshot import BadSnapshot, Snapshot, write_snapshot

    path = kinds_path(os.environ)
    before: dict[str, str] | None = None
    if path.is_file():
        with contextlib.suppress(BadSnapshot):  # of another release
            before = kept_digests(Snapshot(path))
    write_snapshot(path, kinds)
    now = kept_digests(Snapshot(path))
    print(f"kinds     {len(now)} of {url}, in {path}")
    if before is not None:
        differences = compared(before, now)
        _changes("new", differences.new)
        _changes("changed", differences.changed)
        _changes("gone", differences.gone)


def _changes(word: str, names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
        print(f"{word:<9} {', '.join(f'trimtab_{name}' for name in names[:FEW])}{more}")


def _check(options: Options) -> int:
    from trimtab.terraform.kinds.catalog import definitions
    from trimtab.terraform.kinds.comparing import compared, digests, kept_digests, titled
    from trimtab.terraform.kinds.definition import head
    from trimtab.terraform.kinds.snapshot import Snapshot
    from trimtab.terraform.shipped import shipped_hints

    path = kinds_path(os.environ)
    if not path.is_file():
        raise Problem(f"there are no kinds in {path} yet: `trimtab terraform install` takes them")
    reached = _reached(options)
    if reached is None:
        raise Problem("there is no server to compare with: give --kubeconfig, or start one by `trimtab up`")
    snapshot = Snapshot(path)
    api = _asked(reached)
    try:
        served = definitions(api.get, shipped_hints(), promised=_promised())
    finally:
        api.close()
    differences = compared(kept_digests(snapshot), digests(served))
    if not differences:
        print(f"all kinds of {reached.url} are known")
        return OK
    heads = {**snapshot.heads, **{one.name: head(one) for one in served}}
    found = [
        (word, title)
        for word, names in (("new", differences.new), ("changed", differences.changed), ("gone", differences.gone))
        for title in sorted({titled(heads[name]) for name in names})
    ]
    for word, title in found:
        print(f"{word}  {title}", file=sys.stderr)
    some = f"1 kind of {reached.url} differs" if len(found) == 1 else f"{len(found)} kinds of {reached.url} differ"
    complain(f"{some} from what is known: run `trimtab terraform install --schema-only`")
    return FAILED
