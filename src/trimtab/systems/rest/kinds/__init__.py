"""The kinds of this system; the kinds that it generates live in `<service>.rest.trimtab.dev`."""

from trimtab.systems.rest.kinds.definition import RestDefinition, RestDefinitionSpec, RestDefinitionStatus
from trimtab.systems.rest.kinds.service import RestService, RestServiceSpec, RestServiceStatus

__all__ = [
    "RestDefinition",
    "RestDefinitionSpec",
    "RestDefinitionStatus",
    "RestService",
    "RestServiceSpec",
    "RestServiceStatus",
]
