"""Runs the program many times without importing it each time: this process has everything imported and forks for each
run.

A run has a process, folder, environment, files and exit code of its own, as the installed program has; only the half
second of imports is shared. Commands come as JSON lines on standard input, and what they printed goes back the same
way.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import pkgutil
import sys
import tempfile
import traceback
from typing import Any, BinaryIO


def main() -> None:
    import trimtab.cli
    import trimtab.client

    for package in (trimtab.cli, trimtab.client):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    _warm_up()
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


def _warm_up() -> None:
    """A run here brings in what is imported only then."""
    from trimtab.cli.app import app

    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        app(["version", "--client"])


def run(asked: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(asked["stdin"].encode())
        given.seek(0)
        child = os.fork()
        if child == 0:
            _become(asked, given, out, err)
        _, status = os.waitpid(child, 0)
        return {"code": os.waitstatus_to_exitcode(status), "out": _read(out), "err": _read(err)}


def _become(asked: dict[str, Any], given: BinaryIO, out: BinaryIO, err: BinaryIO) -> None:
    code = 1
    try:
        for number, file in enumerate((given, out, err)):
            os.dup2(file.fileno(), number)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - until the end
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["env"])
        sys.argv = ["trimtab", *asked["words"]]
        from trimtab.cli import main as program

        program()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _read(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()


if __name__ == "__main__":
    main()
