"""Which addresses are one device, as one rule knows it: those of one Target, and those that show one key."""

from __future__ import annotations

from trimtab.systems.discovery.ledger.records import Ledger, siblings


class Faces:
    """Of one ledger, as it was when this was made; keys that are shown since are added."""

    def __init__(self, ledger: Ledger) -> None:
        families = (family for family in siblings(ledger).values() if len(family) > 1)
        self._families = {address: family for family in families for address in family}
        self._shown: dict[str, dict[str, set[str]]] = {}
        for address, record in ledger.records.items():
            for protocol, key in record.pins.items():
                self.show(address, protocol, key)

    def of(self, address: str) -> tuple[str, ...]:
        """All addresses of the Target that has this one, in order; else this one alone."""
        return self._families.get(address) or (address,)

    def show(self, address: str, protocol: str, key: str) -> None:
        """It was seen to have this key."""
        self._shown.setdefault(protocol, {}).setdefault(key, set()).add(address)

    def keys(self) -> dict[str, frozenset[str]]:
        """By protocol, all that were shown."""
        return {protocol: frozenset(keys) for protocol, keys in self._shown.items()}

    def showing(self, key: str, protocol: str = "") -> set[str]:
        """The addresses that showed it, by this protocol or by any."""
        shown = [self._shown.get(protocol, {})] if protocol else self._shown.values()
        return {address for keys in shown for address in keys.get(key, ())}
