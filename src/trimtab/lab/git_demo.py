"""The Git server of the example of Git sync: one repository on this machine, with a folder's files as its first commit.

    python -m trimtab.lab.git_demo examples/gitops/fleet [--port 7418]

It is git's own daemon on loopback: everybody here may read and push. What it held is gone when it ends.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from trimtab.lab.git_daemon import GitDaemon
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import PeerFailed

PORT = 7418


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m trimtab.lab.git_demo", description="A Git server with a repository."
    )
    parser.add_argument("folder", type=Path, help="what the repository begins with; it is called as the folder")
    parser.add_argument("--port", type=int, default=PORT, help="of 127.0.0.1 (%(default)s); 0 picks one")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is no folder")
    if shutil.which("git") is None:
        print("error: git is not installed; Debian's package has the same name", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory() as made:
            _serve(Path(made), options.folder.resolve(), options.port or free_ports(1)[0])
    except KeyboardInterrupt:
        return 0
    except PeerFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _serve(made: Path, folder: Path, port: int) -> None:
    with GitDaemon(made, port) as daemon:
        files = {
            str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
        }
        daemon.repositories.create(folder.name)
        daemon.repositories.commit(folder.name, files, message="Begin", who="Ann <ann@example.com>")
        print(f"{daemon.url(folder.name)} has {len(files)} files. Next: kubectl apply -f examples/gitops/sync.yaml")
        print("Ctrl-C ends it", flush=True)
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
