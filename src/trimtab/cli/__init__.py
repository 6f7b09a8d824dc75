"""The command line. Each command lives in a module of its own, imported when it is called."""

from __future__ import annotations


def main() -> None:
    """The `trimtab` program."""
    from trimtab.cli.app import app

    app()
