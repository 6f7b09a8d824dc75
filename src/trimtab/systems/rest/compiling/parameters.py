"""Where each parameter of a kind's URLs comes from.

The own name first; then the parent, for what stands in the part of the path that is the parent's; then the service, for
what it has a value of or what the document says that all operations share; and what is left, the object itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from trimtab.systems.rest.addressing import parameters_of
from trimtab.systems.rest.compiling.calls import Named
from trimtab.systems.rest.model import Call, Parameter
from trimtab.systems.rest.openapi.operations import Param


def parameters(
    own: str,
    calls: Sequence[Call],
    operations: Collection[Named],
    identity: str,
    *,
    above: Collection[str],
    given: Mapping[str, str],
) -> tuple[Parameter, ...]:
    """`own` is the template of the resource's own URL; `above` are the parameters that are the parent's, `given` those that
    the service has values for."""
    names = dict.fromkeys(parameters_of(own))
    for call in calls:
        names.update(dict.fromkeys(parameters_of(call.path)))
        for template in call.query.values():
            names.update(dict.fromkeys(parameters_of(template)))
    found = []
    for name in names:
        known = next((param for each in operations if (param := each.parameter(name)) is not None), None)
        if name == identity:
            source = "identity"
        elif name in above:
            source = "parent"
        elif name in given or (known is not None and known.of_client):
            source = "service"
        else:
            source = "object"
        found.append(_parameter(name, source, known))
    return tuple(found)


def parents(own: str, identity: str, parent: str = "") -> tuple[str, ...]:
    """The parameters in the part of a path that is the parent's: as long as the parent's own, when that is known, else all
    before the name."""
    if parent:
        return parameters_of("/".join(own.split("/")[: len(parent.rstrip("/").split("/"))]))
    before, found, _ = own.partition(f"{{{identity}}}") if identity else (own, "", "")
    return parameters_of(before if found else own)


def _parameter(name: str, source: str, param: Param | None) -> Parameter:
    if param is None:
        return Parameter(name=name, source=source)
    pattern = param.schema.get("pattern")
    shortest, longest = param.schema.get("minLength"), param.schema.get("maxLength")
    return Parameter(
        name=name,
        source=source,
        encode=param.encode,
        pattern=pattern if isinstance(pattern, str) else "",
        min_length=shortest if isinstance(shortest, int) else None,
        max_length=longest if isinstance(longest, int) else None,
    )
