"""What an admission function may read, over a client: of the API server on a cluster, or of a controller's cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

from trimtab.client.protocol import Client, Query
from trimtab.model.errors import StatusError
from trimtab.model.kind import Kind
from trimtab.model.resource import Resource

R = TypeVar("R", bound=Resource)


class ClientReader:
    """Fulfils `model.admission.Reader`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @overload
    async def find(self, kind: type[R], name: str, namespace: str = "") -> R | None: ...
    @overload
    async def find(self, kind: Kind, name: str, namespace: str = "") -> Any: ...

    async def find(self, kind: type[Resource] | Kind, name: str, namespace: str = "") -> Any:
        try:
            return await self._client.get(kind, name, namespace)
        except StatusError as error:
            if error.code == 404:
                return None
            raise

    @overload
    async def list(self, kind: type[R], namespace: str = "", labels: str = "") -> Sequence[R]: ...
    @overload
    async def list(self, kind: Kind, namespace: str = "", labels: str = "") -> Sequence[Any]: ...

    async def list(self, kind: type[Resource] | Kind, namespace: str = "", labels: str = "") -> Sequence[Any]:
        return (await self._client.list(kind, Query(namespace=namespace, labels=labels))).items
