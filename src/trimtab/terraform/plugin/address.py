"""Where the provider listens: a unix socket in a folder of its own, or a port of the loopback where there are none."""

from __future__ import annotations

import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Address:
    """`network` is "unix" or "tcp", as go-plugin calls it; `folder` is to be taken away at the end, or ""."""

    __slots__ = ("folder", "listener", "name", "network")

    def __init__(self, listener: socket.socket, network: str, name: str, folder: str) -> None:
        self.listener = listener
        self.network = network
        self.name = name
        self.folder = folder

    def clear(self) -> None:
        """Nothing is left behind, whatever others have done to it meanwhile."""
        for remove, path in ((os.unlink, self.name), (os.rmdir, self.folder)):
            if self.folder:
                try:
                    remove(path)
                except OSError:
                    continue


def listen(environ: Mapping[str, str]) -> Address:
    """Terraform always names a range of ports; like all of its plugins we use them only where there are no unix sockets."""
    if hasattr(socket, "AF_UNIX"):
        for parent in (environ.get("PLUGIN_UNIX_SOCKET_DIR"), environ.get("TMPDIR"), "/tmp"):  # noqa: S108 - a folder of 0700 in it
            try:
                if parent:
                    return _unix(parent)
            except OSError:
                continue  # no such folder, no right to it, or a name too long for a socket
    return _tcp(_port(environ, "PLUGIN_MIN_PORT"), _port(environ, "PLUGIN_MAX_PORT"))


def _unix(parent: str) -> Address:
    folder = os.path.join(parent, f"trimtab-{os.getpid()}-{os.urandom(6).hex()}")
    os.mkdir(folder, 0o700)
    name = os.path.join(folder, "s")
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(name)
        listener.listen(64)
    except OSError:
        listener.close()
        os.rmdir(folder)
        raise
    return Address(listener, "unix", name, folder)


def _tcp(lowest: int, highest: int) -> Address:
    """TLS keeps strangers out, who can reach the loopback too."""
    error = OSError(f"no port is free from {lowest} to {highest}")
    for port in range(lowest, highest + 1):
        listener = socket.socket(socket.AF_INET)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen(64)
        except OSError as failure:
            listener.close()
            error = failure
        else:
            return Address(listener, "tcp", f"127.0.0.1:{listener.getsockname()[1]}", "")
    raise error


def _port(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name) or "0"
    if not text.isdecimal() or int(text) > 65535:
        raise OSError(f"{name} must be a port, not {text!r}")
    return int(text)
