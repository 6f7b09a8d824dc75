"""From the first line to the end of the process.

The end comes in one of three ways: Terraform says Shutdown, a signal says so, or Terraform is gone. In each, calls that run
are told to stop, the socket's folder is taken away, and the process exits at once: Terraform waits for it. SIGINT is not
among them. A terminal sends it to the whole group, but it is for Terraform, which will ask the provider to stop.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from trimtab.terraform.plugin.address import Address
from trimtab.terraform.plugin.identity import RENEW, Identity
from trimtab.terraform.plugin.listening import Listening
from trimtab.terraform.plugin.services import plugin_service
from trimtab.terraform.plugin.tls import server_context
from trimtab.terraform.protocol.contract import ProviderServer
from trimtab.terraform.protocol.server import Endpoint, Lazy

LOOK = 1.0
"""Seconds between looks at the parent, where the system cannot tell us of its end."""


def live(
    make: Callable[[], ProviderServer],
    protocol: int,
    address: Address,
    identity: Identity,
    client: str,
    parent: int,
) -> NoReturn:
    provider = Lazy(make, protocol)
    leaving = threading.Lock()

    def leave(code: int = 0) -> None:
        if not leaving.acquire(blocking=False):
            return  # another thread is at it
        try:
            provider.stop()
            listening.close(goodbye=True)
        finally:
            address.clear()
            sys.stderr.flush()
            os._exit(code)  # threads that wait for a peer would hold up a return

    service = plugin_service(Endpoint(provider, protocol), shutdown=leave)
    listening = Listening(address.listener, service, server_context(identity.path, client))
    woken = _obey_signals(leave)
    threading.Thread(target=_outlive, args=(parent, leave), name="parent", daemon=True).start()
    listening.start()
    provider.warm()
    _renew(identity)
    while True:
        woken.recv(1)


def _obey_signals(leave: Callable[[int], None]) -> socket.socket:
    """Gives what becomes readable with a signal: unlike `pause`, reading it ends for one that came just before."""
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            number = getattr(signal, name)
            signal.signal(number, lambda number, _: leave(128 + number))
    return woken


def _outlive(parent: int, leave: Callable[[], None]) -> None:
    """Waits for the end of the process that started us, and follows it."""
    try:
        handle = os.pidfd_open(parent)
    except (AttributeError, OSError):
        pass
    else:
        import select

        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if os.getppid() == parent:  # else it had ended before, and the handle may be another's
            poll.poll()
    while os.getppid() == parent:
        time.sleep(LOOK)
    leave()


def _renew(identity: Identity) -> None:
    """The certificate in use is good for this run; the next one gets a newer."""
    if identity.ends - time.time() >= RENEW:
        return
    try:
        from trimtab.terraform.plugin.renewal import renewed

        renewed(os.path.dirname(identity.path))
    except Exception as error:
        print(f"the provider's certificate ends soon and could not be renewed: {error}", file=sys.stderr)
