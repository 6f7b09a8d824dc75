"""The real servers of the examples of the generic reconciler, on this machine: LXD, PowerDNS, Alertmanager, Podman.

They are Debian's, each with files of its own below one folder and on loopback or a unix socket there; nothing of the
machine's own servers is seen or changed. What they held is gone when they end.

    python -m trimtab.lab.rest_demo [lxd] [powerdns] [alertmanager] [docker]
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from trimtab.lab.alertmanager import Alertmanager
from trimtab.lab.lxd import Lxd
from trimtab.lab.podman import Podman
from trimtab.lab.powerdns import PowerDns
from trimtab.testing.processes import PeerFailed

FOLDER = Path("/tmp/trimtab-lab")  # noqa: S108 - the examples name it; it is ours alone, or we refuse
Server = Lxd | PowerDns | Alertmanager | Podman
SERVERS: dict[str, tuple[str, Callable[[Path], Server]]] = {
    "lxd": ("lxd", lambda folder: Lxd(folder / "lxd")),
    "powerdns": ("pdns_server", lambda folder: PowerDns(folder / "powerdns", 8081, 5354)),
    "alertmanager": ("prometheus-alertmanager", lambda folder: Alertmanager(folder / "alertmanager", 9093)),
    "docker": ("podman", lambda folder: Podman(folder / "podman")),
}
"""By the name of its example: the program, and how to start it where the example looks for it."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m trimtab.lab.rest_demo", description="Real servers with an API.")
    parser.add_argument("servers", nargs="*", metavar="SERVER", help=f"{', '.join(SERVERS)} (all of them)")
    chosen = parser.parse_args(arguments).servers or list(SERVERS)
    unknown = [name for name in chosen if name not in SERVERS]
    if unknown:
        parser.error(f"no server {', '.join(unknown)}; there are: {', '.join(SERVERS)}")
    places = f"{os.environ.get('PATH', '')}:/usr/sbin"
    missing = [SERVERS[name][0] for name in chosen if shutil.which(SERVERS[name][0], path=places) is None]
    if missing:
        print(f"error: {', '.join(missing)} not installed; scripts/packages.sh does it on Debian", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _serve(chosen)
    except KeyboardInterrupt:
        return 0
    except (PeerFailed, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        with contextlib.suppress(OSError):  # others may have theirs in it still
            FOLDER.rmdir()
    return 0


def _serve(chosen: Sequence[str]) -> None:
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    if FOLDER.is_symlink() or FOLDER.stat().st_uid != os.getuid():
        raise PeerFailed(f"{FOLDER} is not ours: remove it")
    with contextlib.ExitStack() as running:
        for name in chosen:
            running.enter_context(_taken(FOLDER / name))
            server = SERVERS[name][1](FOLDER)
            running.callback(server.stop)
            print(f"{name:<14} {server.url}")
        print("All of them are on this machine only. Next: examples/rest. Ctrl-C ends them", flush=True)
        signal.pause()


@contextlib.contextmanager
def _taken(folder: Path) -> Iterator[None]:
    """The folder of one server, which goes at the end. PeerFailed when another demo has it: its files are left alone."""
    folder.mkdir(exist_ok=True)
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        raise PeerFailed(f"another demo serves {folder.name} already: use that one, or end it first") from None
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_suffix(".log").unlink(missing_ok=True)
        os.close(held)


if __name__ == "__main__":
    sys.exit(main())
