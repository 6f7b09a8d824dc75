"""Finished manual jobs go when another one of the same registry starts: never the reserved one, never a running one."""

from __future__ import annotations

from trimtab.client.protocol import Preconditions, Query, Ref
from trimtab.model.errors import StatusError
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.objects import is_deleting
from trimtab.systems.images.kinds import DiscoveryJob, DiscoveryJobStatus, Registry
from trimtab.systems.images.runs.states import State, is_reserved, state_of


async def clean_up(client: CachedClient, registry: Registry, starting: DiscoveryJob) -> None:
    """All but the newest `jobsHistoryLimit` of those that are older than the one that starts."""
    jobs = (await client.list(DiscoveryJob, Query(namespace=starting.namespace))).items
    finished = [job for job in jobs if isinstance(job, DiscoveryJob) and _may_go(job, starting)]
    finished.sort(key=lambda job: (job.metadata.creation_timestamp or "", job.name), reverse=True)
    for job in finished[registry.spec.jobs_history_limit :]:
        try:
            await client.delete(
                Ref(DiscoveryJob, job.name, job.namespace), preconditions=Preconditions(uid=job.metadata.uid or "")
            )
        except StatusError as error:
            if error.code not in (404, 409):
                raise


def _may_go(job: DiscoveryJob, starting: DiscoveryJob) -> bool:
    return (
        job.spec.registry == starting.spec.registry
        and job.metadata.uid != starting.metadata.uid
        and not is_reserved(job)
        and not is_deleting(job)
        and state_of(job.status or DiscoveryJobStatus()) is State.ENDED
    )
