"""Free TCP ports of the loopback interface.

All of them are held until the last is known, so that one call never names a port twice. Between this call and the bind
of whoever gets the port another process may take it: then that process fails to start, loudly.
"""

import contextlib
import socket


def free_ports(count: int) -> tuple[int, ...]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return tuple(each.getsockname()[1] for each in sockets)
