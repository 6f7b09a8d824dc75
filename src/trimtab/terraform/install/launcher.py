"""The file that Terraform executes: a shell for its first lines, Python from there on.

It is the same text on every machine, since its hash is in lock files. What differs from machine to machine it finds in the
data folder, where `trimtab terraform install` put it: which Python to run, and the code compiled for that one. Without
them it runs on `python3` and compiles its code into that folder, never into its own. A folder that anyone may write to is
refused: what is in it is run.
"""

from __future__ import annotations

from trimtab.terraform.install.hashing import digest

_TEXT = """\
#!/bin/sh
''':'
case "$XDG_DATA_HOME" in /*) data=$XDG_DATA_HOME;; *) data=$HOME/.local/share;; esac
export TRIMTAB_TERRAFORM_HOME="${TRIMTAB_TERRAFORM_HOME:-$data/trimtab/terraform}"
case $(ls -ld "$TRIMTAB_TERRAFORM_HOME/." 2>/dev/null) in ????????w*)
  echo "the provider cannot start: it runs what is in $TRIMTAB_TERRAFORM_HOME, and anyone may write there: run chmod o-w on it"
  exit 1;; esac
python="$TRIMTAB_TERRAFORM_HOME/python"; [ -x "$python" ] || python=$(command -v python3) || {
  echo "The Trimtab provider needs Python 3.11 or newer: put it on the PATH, or run: trimtab terraform install" >&2
  exit 1; }
exec "$python" -I -S -B "$0" "$@"
'''
import os
import sys

if sys.version_info < (3, 11):
    sys.exit("The Trimtab provider needs Python 3.11 or newer, this is " + sys.version.split()[0]
             + ": run `trimtab terraform install` on this machine.")
home = os.environ["TRIMTAB_TERRAFORM_HOME"]
ready = os.path.join(home, "code", "DIGEST", sys.implementation.cache_tag)
if os.path.isdir(ready):
    sys.path.insert(0, ready)
else:
    try:
        os.makedirs(home, 0o700, exist_ok=True)  # before something is compiled into it
    except OSError:
        pass  # then nothing is
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
    sys.pycache_prefix, sys.dont_write_bytecode = os.path.join(home, "pycache"), False
from trimtab.terraform.main import main

main()
"""


def launcher(files: dict[str, bytes]) -> bytes:
    """For a package with these files below `lib/`."""
    return _TEXT.replace("DIGEST", digest(files)).encode()
