"""Asks a probe's question: an HTTP request, a connection, or a command. The answer is "" or what is wrong.

A probe goes to the pod's own address unless it names a host. Of a response only the status is read. A certificate is not
checked, as Kubernetes does not. A gRPC probe is asked as a connection: it tells that somebody listens, not how he feels.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

Execute = Callable[[Sequence[str], float], Awaitable[str]]
"""Runs a command in a container within so many seconds; "" when it succeeded."""

LINE = 4096  # bytes of a status line


async def ask(
    handler: Mapping[str, Any], *, address: str, ports: Mapping[str, int], execute: Execute, timeout: float
) -> str:
    """ "" when it is well, else one line for people. Never raises for what the other side does."""
    try:
        async with asyncio.timeout(timeout):
            if "exec" in handler:
                return await execute(tuple(handler["exec"].get("command") or ()), timeout)
            if "httpGet" in handler:
                return await _get(handler["httpGet"], address, ports)
            wanted = handler.get("tcpSocket") or handler.get("grpc") or {}
            return await _connect(wanted.get("host") or address, number(wanted.get("port"), ports))
    except TimeoutError:
        return f"no answer within {timeout:g} s"
    except OSError as error:
        return error.strerror or str(error) or type(error).__name__
    except (ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        return str(error)


def number(port: object, ports: Mapping[str, int]) -> int:
    """A port by number or by its name in the container. ValueError."""
    if isinstance(port, int):
        return port
    text = str(port)
    if text in ports:
        return ports[text]
    if text.isdecimal():
        return int(text)
    raise ValueError(f'the container has no port named "{text[:63]}"')


def ports_of(container: Mapping[str, Any]) -> dict[str, int]:
    """The named ports of a container."""
    return {port["name"]: port["containerPort"] for port in container.get("ports") or () if port.get("name")}


async def _connect(host: str, port: int) -> str:
    _, writer = await asyncio.open_connection(host, port)
    await _close(writer)
    return ""


async def _get(wanted: Mapping[str, Any], address: str, ports: Mapping[str, int]) -> str:
    host, port = wanted.get("host") or address, number(wanted.get("port"), ports)
    tls = _unchecked() if wanted.get("scheme") == "HTTPS" else None
    reader, writer = await asyncio.open_connection(host, port, ssl=tls, limit=LINE)
    try:
        headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/trimtab", "Accept": "*/*", "Connection": "close"}
        headers |= {str(each["name"]): str(each.get("value", "")) for each in wanted.get("httpHeaders") or ()}
        path = wanted.get("path") or "/"
        lines = [f"GET {path if path.startswith('/') else '/' + path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("the path or a header of the probe has a line break")
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        await writer.drain()
        status = (await reader.readuntil(b"\n")).split()
    finally:
        await _close(writer)
    code = int(status[1]) if len(status) > 1 and status[1].isdigit() else 0
    return "" if 200 <= code < 400 else f"HTTP status {code}" if code else "the answer is no HTTP"


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _unchecked() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
