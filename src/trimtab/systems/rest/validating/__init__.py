"""What is wrong with a spec of a generated kind: everything at once, each by the path of the field and with what is right.

The same Model that the reconciler works by drives it, so what is accepted here can be rendered. It never shows the value
of a field that may be a secret. The service itself may still refuse what its document allows.

judging   the whole verdict, with the hooks: what admission and a command ask for
shape     a body against its tree: fields, types, bounds, references, secrets
scalars   one value against its node
control   the fields that are ours: name, parent, parameters, resourceID, policy
changes   what may not change once the resource exists
"""

from trimtab.systems.rest.validating.judging import Judgement, judged, problems, warnings

__all__ = ["Judgement", "judged", "problems", "warnings"]
