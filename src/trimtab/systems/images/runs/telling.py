"""Write the status of a job, whoever else writes it: the controller and a worker both have something to say of a run.

Guarantees: a change is a function of the status as it is, so nothing that another said is lost; a conflict is answered by a
fresh read. `Superseded` when the job is gone, was made anew, or tells of another run: then nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable

from trimtab.client.protocol import Client
from trimtab.model.errors import StatusError
from trimtab.runtime.objects import typed, uncached
from trimtab.runtime.status import write_status
from trimtab.systems.images.kinds import DiscoveryJob, DiscoveryJobStatus

ATTEMPTS = 8

Say = Callable[[DiscoveryJobStatus], DiscoveryJobStatus]


class Superseded(Exception):  # noqa: N818 - it reads as what happened
    """The run is not ours to tell of any more."""


async def tell(client: Client, job: DiscoveryJob, say: Say, *, run: str | None = None) -> DiscoveryJob:
    """The job with the status as `say` makes it. With `run`, only while the status is of that run."""
    current = job
    for attempt in range(ATTEMPTS):
        if attempt:
            current = await _read(client, job)
        status = current.status or DiscoveryJobStatus()
        if run is not None and status.run_id != run:
            if attempt:
                raise Superseded(f"{job.name} tells of another run")
            continue  # what we have may be old
        try:
            written: DiscoveryJob = await write_status(client, current, say(status))
        except StatusError as error:
            if error.code == 404:
                raise Superseded(f"{job.name} is gone") from None
            if error.code != 409:
                raise
            conflict = error
        else:
            return written
    raise conflict


async def _read(client: Client, job: DiscoveryJob) -> DiscoveryJob:
    try:
        found = typed(await uncached(client).get(DiscoveryJob, job.name, job.namespace), DiscoveryJob)
    except StatusError as error:
        if error.code == 404:
            raise Superseded(f"{job.name} is gone") from None
        raise
    if found.metadata.uid != job.metadata.uid:
        raise Superseded(f"{job.name} is another one now")
    return found
