"""Which kind an object in a state is of. A type may mean another kind by another snapshot: then the object is not there,
and it is not gone either.
"""

from __future__ import annotations

from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.resource import Private
from trimtab.terraform.kinds.definition import Definition
from trimtab.terraform.kinds.naming import PREFIX

KIND = "kind"
"""The kind's name in the private state."""


def demand_same(definition: Definition, private: Private) -> None:
    """The object is of this kind, or of one that was never told: then it is from now on."""
    here = f"{definition.kind}.{definition.group}".rstrip(".")
    kept = private.setdefault(KIND, here)
    if kept != here:
        type_name = f"{PREFIX}_{definition.name}"
        raise Failed(
            f"{type_name} is another kind here",
            f"The object is of {kept}, and by the list of kinds on this machine the type is of {here}. Nothing was "
            "changed. Use the list that the object was made with (TRIMTAB_TERRAFORM_KINDS); or `terraform state rm` the "
            f"object, and import it as the type that is of {kept} now.",
        )
