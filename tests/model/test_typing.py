"""A type checker sees the fields of users' kinds."""

from __future__ import annotations

from pathlib import Path

from mypy import api

PROGRAM = """
from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from trimtab.model.duration import Duration
from trimtab.model.kind import Column
from trimtab.model.markers import Immutable, OneOf
from trimtab.model.resource import Resource, Spec


class BoatSpec(Spec, one_of=OneOf("sail", "motor")):
    length: Annotated[int, Immutable()]
    sail: str | UnsetType = UNSET
    motor: str | UnsetType = UNSET
    period: Duration = Duration("1m")


class Boat(Resource, group="ports", version="v1", short=("bt",), columns=(Column("Length", ".spec.length"),)):
    spec: BoatSpec


boat = Boat(spec=BoatSpec(length=3))
reveal_type(boat.spec.length)
reveal_type(boat.replace(spec=boat.spec.replace(sail="red")).spec.period)
boat.spec.lenght
BoatSpec(sail="red")
BoatSpec(length="long")
boat.spec = BoatSpec(length=1)
"""


def test_fields_are_typed_required_and_read_only(tmp_path: Path) -> None:
    program = tmp_path / "boats.py"
    program.write_text(PROGRAM)
    said, _, _ = api.run(["--strict", "--hide-error-context", "--no-error-summary", str(program)])
    found = [line.partition(": ")[2] for line in said.splitlines() if "boats.py" in line]
    assert found == [
        'note: Revealed type is "int"',
        'note: Revealed type is "trimtab.model.duration.Duration"',
        'error: "BoatSpec" has no attribute "lenght"; maybe "length"?  [attr-defined]',
        'error: Missing named argument "length" for "BoatSpec"  [call-arg]',
        'error: Argument "length" to "BoatSpec" has incompatible type "str"; expected "int"  [arg-type]',
        'error: Property "spec" defined in "Boat" is read-only  [misc]',
    ]
