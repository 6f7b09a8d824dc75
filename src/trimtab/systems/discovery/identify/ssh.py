"""Identification by SSH: greeting and host key, then the commands that a vendor's profile names.

Flow: log in → the vendor by version line and banner, else by what probe commands print → the profile's commands, each
run once → what each key reads from them. A device of no known vendor is identified by its host key alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trimtab.systems.discovery.findings import Access, Identified
from trimtab.systems.discovery.identify.ssh_terminal import Terminal
from trimtab.systems.discovery.identify.ssh_values import identified
from trimtab.systems.discovery.kinds import Key, SshCommand, SshVendor
from trimtab.systems.discovery.vendors.choice import Choice, Vendors, printable


class SshIdentifier:
    """An Identifier. It keeps nothing between devices."""

    def __init__(self, vendors: Vendors) -> None:
        self._vendors = vendors

    async def identify(self, access: Access) -> Identified:
        """NotIdentified when the device lets nobody in, or breaks."""
        async with Terminal(access) as terminal:
            outputs: dict[str, str] = {}
            choice = await self._choose(terminal, outputs)
            commands = choice.spec.commands if choice.spec else ()
            for entry in commands:
                if entry.command not in outputs:
                    outputs[entry.command] = await terminal.run(entry.command)
            return identified("ssh", choice, self._values(commands, outputs), terminal.session.pin)

    async def close(self) -> None:
        """Nothing is kept open."""

    async def _choose(self, terminal: Terminal, outputs: dict[str, str]) -> Choice[SshVendor]:
        greeting = terminal.session.greeting
        choice = self._vendors.ssh(greeting)
        if choice.spec is not None:
            return choice
        for command in self._vendors.ssh_probes():
            outputs[command] = await terminal.run(command)
        return self._vendors.ssh(greeting, outputs)

    def _values(self, commands: Iterable[SshCommand], outputs: Mapping[str, str]) -> dict[Key, str]:
        values: dict[Key, str] = {}
        for entry in commands:
            text = outputs[entry.command].strip()
            if entry.key in values or not text or text.startswith("%"):  # how CLIs mark an error
                continue
            value = self._vendors.read(entry, text)
            if "\n" in text and value == printable(text):  # the regex found nothing in a page of text
                continue
            if value:
                values[entry.key] = value
        return values
