"""The controller of Repositories: whether each can be reached, and what it is at."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from trimtab.model.clock import format_time
from trimtab.runtime import Context, Controller, Request, Result
from trimtab.runtime.credentials import CredentialError, Credentials
from trimtab.runtime.git.errors import RemoteError
from trimtab.runtime.objects import is_deleting
from trimtab.runtime.predicates import generation_changed
from trimtab.runtime.status import ready, write_status
from trimtab.systems.gitops.kinds import Repository, RepositoryStatus
from trimtab.systems.gitops.reach import Mirrors


class RepositoryController(Controller[Repository]):
    when = generation_changed
    echo = False

    def __init__(self, context: Context) -> None:
        self._context = context

    async def start(self) -> None:
        self._credentials = Credentials(self._context.client, clock=self.clock)
        self._mirrors = Mirrors(self._context.scratch, self._credentials, "git-asked")

    async def stop(self) -> None:
        if hasattr(self, "_credentials"):
            await self._credentials.close()

    async def reconcile(self, request: Request) -> Result | None:
        repository = await self.client.find(Repository, request.name, request.namespace)
        if repository is None or is_deleting(repository):
            return None
        if repository.spec.type == "helm":
            await self._tell(repository, None, "NotChecked", "charts are fetched when they are used")
            return None
        try:
            async with self._mirrors.open(repository) as mirror:
                heads = await mirror.heads()
        except CredentialError as error:
            await self._tell(repository, False, "CredentialsMissing", str(error))
            return Result(requeue=True)
        except RemoteError as error:
            await self._tell(repository, False, type(error).__name__, str(error))
            return Result(requeue=True) if error.again else Result(requeue_after=repository.spec.interval.seconds)
        revision = heads.get("main") or heads.get("master") or next(iter(heads.values()), "")
        await self._tell(repository, True, "Reachable", "it answers", revision=revision or UNSET, branches=len(heads))
        return Result(requeue_after=repository.spec.interval.seconds)

    async def _tell(self, repository: Repository, ok: bool | None, reason: str, message: str, **changes: Any) -> None:
        status = repository.status or RepositoryStatus()
        generation = repository.metadata.generation
        told = status.replace(
            conditions=ready(status.conditions, self.clock, generation, ok, reason, message),
            observed_generation=generation,
            **changes,
        )
        if told != status:  # the time alone is no news
            told = told.replace(checked_at=format_time(self.clock.now()))
            await write_status(self.client, repository, told)
