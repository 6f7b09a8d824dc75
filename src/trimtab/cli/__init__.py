"""The command line. Each command lives in a module of its own, imported when it is called."""

from __future__ import annotations

import sys


def main() -> None:
    """The `trimtab` program."""
    try:
        if sys.argv[1:2] == ["__complete"]:  # while a key is held down: nothing of the command line is imported
            from trimtab.cli import completing

            sys.exit(completing.run(sys.argv[2:]))
        if sys.argv[1:2] == ["up"]:
            from trimtab.cli import quick
            from trimtab.cli.commands_running import up

            quick.run(up, sys.argv[2:])
        from trimtab.cli import app

        app.app()
    except KeyboardInterrupt:  # before anyone listens for it
        sys.exit(130)
