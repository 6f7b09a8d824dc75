"""A type checker sees what a client gives back."""

from __future__ import annotations

from pathlib import Path

from mypy import api

PROGRAM = """
from trimtab.client.api import ApiClient
from trimtab.client.follow import follow
from trimtab.client.protocol import Client, Listing, Named, Query
from trimtab.model.resource import Resource, Spec



class BoatSpec(Spec):
    length: int


class Boat(Resource, group="ports", version="v1"):
    spec: BoatSpec


async def use(client: Client, api: ApiClient) -> None:
    client = api
    reveal_type((await client.get(Boat, "a")).spec.length)
    reveal_type((await client.list(Boat)).items[0].spec)
    made = await api.create(Boat(spec=BoatSpec(length=3)))
    reveal_type(await api.patch(made, made.replace(spec=BoatSpec(length=4))))
    reveal_type(await api.apply(made, manager="us"))
    reveal_type(await client.get(Named("v1", "ConfigMap"), "a"))
    async for event in client.watch(Boat, Query(), ""):
        reveal_type(event.object)
    async for told in follow(client, Boat):
        if isinstance(told, Listing):
            reveal_type(told.items)
        else:
            reveal_type(told.object)
    (await client.get(Boat, "a")).spec.lenght
"""


def test_objects_come_back_as_their_classes(tmp_path: Path) -> None:
    program = tmp_path / "boats.py"
    program.write_text(PROGRAM)
    said, _, _ = api.run(["--strict", "--hide-error-context", "--no-error-summary", str(program)])
    found = [line.partition(": ")[2] for line in said.splitlines() if "boats.py" in line]
    assert found == [
        'note: Revealed type is "int"',
        'note: Revealed type is "boats.BoatSpec"',
        'note: Revealed type is "boats.Boat"',
        'note: Revealed type is "boats.Boat"',
        'note: Revealed type is "Any"',
        'note: Revealed type is "boats.Boat | None"',
        'note: Revealed type is "typing.Sequence[boats.Boat]"',
        'note: Revealed type is "boats.Boat | None"',
        'error: "BoatSpec" has no attribute "lenght"; maybe "length"?  [attr-defined]',
    ]
