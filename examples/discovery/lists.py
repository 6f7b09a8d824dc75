"""Another place for addresses: a text with one address, prefix or range a line, as an inventory exports it.

One kind and one class. `trimtab up --operator examples/discovery/lists.py` runs discovery with it.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from trimtab.model.resource import Resource, Spec
from trimtab.systems.discovery.scope.addresses import Addresses, parse
from trimtab.systems.discovery.scope.implementations import Entry, Implementation
from trimtab.systems.discovery.system import discovery


class AddressListSpec(Spec):
    text: Annotated[str, Meta(max_length=65536, description="One a line; what follows # is for people.")]


class AddressList(Resource, group="discovery", version="v1alpha1"):
    """A text that lists addresses."""

    spec: AddressListSpec


class Lists(Implementation[AddressList]):
    kind = AddressList

    def entries(self, obj: AddressList) -> tuple[Entry, ...]:
        found = {}
        for number, line in enumerate(obj.spec.text.splitlines(), 1):
            if written := line.partition("#")[0].strip():
                try:
                    found[written] = Entry(name=written, source=Addresses(parse(written)))
                except ValueError as error:
                    raise ValueError(f"line {number}: {written} {error}") from None
        return tuple(found.values())


SYSTEM = discovery(Lists())
