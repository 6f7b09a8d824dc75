"""The server side of NETCONF on a played device: one hello, and the same answer to every get."""

from __future__ import annotations

import re

import asyncssh

from trimtab.lab.ssh_personalities import Fault, Netconf
from trimtab.systems.discovery.identify import netconf_framing as framing
from trimtab.systems.discovery.identify import netconf_xml as xml


class NetconfServer:
    """The server side of a NETCONF session that answers every get alike."""

    def __init__(
        self,
        script: Netconf,
        fault: Fault,
        requests: list[str],
        connection: asyncssh.SSHServerConnection,
        channel: asyncssh.SSHServerChannel[bytes],
    ) -> None:
        self._script, self._fault, self._requests = script, fault, requests
        self._connection, self._channel = connection, channel
        self._decoder: framing.Decoder = framing.EndOfMessage()
        self._frame = framing.ended
        self._greeted = False

    def greet(self) -> None:
        bases = [f"urn:ietf:params:netconf:base:{version}" for version in self._script.versions]
        self._channel.write(framing.ended(xml.hello([*bases, *self._script.capabilities])))

    def receive(self, data: bytes) -> None:
        for message in self._decoder.feed(data):
            text = message.decode()
            if self._greeted:
                self._answer(text)
                continue
            self._greeted = True
            if xml.BASE_1_1 in text and "1.1" in self._script.versions:
                rest = self._decoder.rest()
                self._decoder, self._frame = framing.Chunked(), framing.chunked
                self.receive(rest)
                return

    def _answer(self, request: str) -> None:
        self._requests.append(request)
        found = re.search(r'message-id="([^"]*)"', request)
        head = f'<rpc-reply xmlns="{xml.BASE}" message-id="{found.group(1) if found else ""}">'
        if "<close-session" in request:
            self._channel.write(self._frame(f"{head}<ok/></rpc-reply>".encode()))
            self._channel.exit(0)
            return
        reply = self._frame(f"{head}{self._script.reply}</rpc-reply>".encode())
        match self._fault:
            case Fault.HANG:
                return
            case Fault.DROP_IN_ANSWER:
                self._channel.write(reply[: len(reply) // 2])
                self._connection.close()
            case Fault.BAD_FRAMING:
                self._channel.write(b"\n#0\n\n##\n")
            case Fault.BAD_XML:
                self._channel.write(self._frame(_LAUGHS.encode()))
            case Fault.FLOOD:
                self._channel.write(b"\n#4294967295\n" if self._frame is framing.chunked else b"<data>" * 1_000_000)
            case _:
                self._channel.write(reply)


_LAUGHS = """<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "haha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<rpc-reply><data>&b;</data></rpc-reply>"""
