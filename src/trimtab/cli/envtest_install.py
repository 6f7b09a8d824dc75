"""The folder that `KUBEBUILDER_ASSETS` names: small executables that run this very Trimtab, and a link to kubectl.

They name the Python and the place of the package that wrote them, so that they work whatever the PATH, the working
directory and the environment of a test are. The Python that they run reads neither of the environment (`-I`).
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import trimtab
from trimtab.cli.codes import FAILED, OK, complain

PROGRAMS = {"kube-apiserver": "trimtab.cli.envtest_apiserver", "etcd": "trimtab.cli.envtest_etcd"}

_TEXT = """\
#!/bin/sh
# Written by `trimtab envtest install`; whoever moves or removes that Trimtab runs it again.
python={python}
[ -x "$python" ] || {{ echo "{name}: there is no $python any more: run trimtab envtest install" >&2; exit 1; }}
exec "$python" -I -c {code} "$@"
"""


def install(directory: Path | None) -> int:
    place = (directory or default_place()).absolute()
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            _replace(place / name, launcher(name))
        kubectl = _link_kubectl(place)
    except OSError as error:
        complain(f"{error.filename or place}: {error.strerror or error}")
        return FAILED
    if not kubectl:
        print("there is no kubectl on the PATH: tests that call it will not find it", file=sys.stderr)
    print(f"export KUBEBUILDER_ASSETS={shlex.quote(str(place))}")
    return OK


def default_place() -> Path:
    data = Path(os.environ.get("XDG_DATA_HOME") or "")
    return (data if data.is_absolute() else Path.home() / ".local" / "share") / "trimtab" / "envtest"


def launcher(name: str) -> str:
    """The text of one executable."""
    package = str(Path(trimtab.__file__).resolve().parents[1])
    code = (
        f"import sys; sys.path.insert(0, {package!r}); from {PROGRAMS[name]} import main; sys.exit(main(sys.argv[1:]))"
    )
    return _TEXT.format(name=name, python=shlex.quote(sys.executable), code=shlex.quote(code))


def _replace(path: Path, text: str) -> None:
    """Whole or not at all: a test may be starting the old one now."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _link_kubectl(place: Path) -> bool:
    link = place / "kubectl"
    found = shutil.which("kubectl")
    if found is None or Path(found).absolute() == link:
        return link.exists()
    if link.is_symlink() or not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(Path(found).absolute())
    return True  # a program that someone put there stays
