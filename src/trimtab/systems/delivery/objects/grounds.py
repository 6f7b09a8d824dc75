"""What one look acts on: a CanaryDeployment as it was read, and whether it still is so.

Each kind is watched by itself, so a cache may have a Deployment as the newest status made it, and not that status: after a
change of leaders the one that stood by could take what its predecessor did for drift, and undo it by a status of the past.
So before the first write of a look the server itself is asked. Nobody but the leader writes the status: what it says then
holds for the rest of the look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from trimtab.model.errors import StatusError
from trimtab.runtime.objects import typed, uncached
from trimtab.runtime.status import is_same_verdict
from trimtab.systems.delivery.kinds.canary import CanaryDeployment

if TYPE_CHECKING:
    from trimtab.runtime.cached import CachedClient

Confirm = Callable[[], Awaitable[None]]
"""To be called before each write. Raises Overtaken."""


class Overtaken(Exception):  # noqa: N818
    """The CanaryDeployment is another by now: nothing was written by what it said. Look again."""


class Grounds:
    """Of one look at one CanaryDeployment."""

    def __init__(self, client: CachedClient, canary: CanaryDeployment) -> None:
        self._client, self._canary, self._confirmed = client, canary, False

    async def confirm(self) -> None:
        """Asks the server, once. Raises Overtaken when spec or status are others now; the cache has them then."""
        if self._confirmed:
            return
        if not await self._stand():
            await self._client.look(CanaryDeployment, self._canary.name, self._canary.namespace)
            raise Overtaken(f"{self._canary.namespace}/{self._canary.name} changed since it was read")
        self._confirmed = True

    async def _stand(self) -> bool:
        try:
            now = await uncached(self._client).get(CanaryDeployment, self._canary.name, self._canary.namespace)
        except StatusError as error:
            if error.code != 404:
                raise
            return False
        return is_same_verdict(self._canary, typed(now, CanaryDeployment))


async def unasked() -> None:
    """For wishes that no status can overtake."""
