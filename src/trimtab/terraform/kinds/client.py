"""What `configure` makes and operations use: the server, and what the provider's configuration says for all resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.kinds.api import Api, ApiError
from trimtab.terraform.kinds.waiting import Place

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Client:
    api: Api
    project: str = "default"
    wait: bool = True
    force_conflicts: bool = False

    def find(self, place: Place) -> Document | None:
        """The object, with its lineage where we may see it."""
        if not place.definition.hub:
            return self.api.find(place.path)
        try:
            return self.api.find(place.path, {"includeLineage": "true"})
        except ApiError as error:
            if error.code != 403:
                raise
            return self.api.find(place.path)


def client_of(context: Context) -> Client:
    if not isinstance(context.client, Client):
        raise Failed(
            "The provider is not configured",
            "Its configuration depends on values that are not known yet, or it was never configured.",
        )
    return context.client
