"""Work on a schedule: each Survey fetches soundings from a server, counts them, and keeps what it got.

    python -m http.server 8000 --bind 127.0.0.1 --directory examples/operator     # somebody to ask
    trimtab up --operator examples/operator/soundings.py

The history of runs is in the status, the answers are blobs, the token is in a Secret, and a worker process does the sums.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.clock import parse_time
from trimtab.model.conditions import Conditions
from trimtab.model.duration import Duration
from trimtab.model.kind import Column
from trimtab.model.kubernetes import Secret
from trimtab.model.redacted import bearer
from trimtab.model.resource import Resource, Spec
from trimtab.runtime import Context, Controller, Request, Result, Rule, System, TerminalError, generation_changed
from trimtab.runtime.credentials import CredentialError, Credentials, SecretRef
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.outbound import Budget, HostPin, Outbound, OutboundError
from trimtab.runtime.runs import History, Run, Runs
from trimtab.runtime.schedule import Schedule
from trimtab.runtime.status import ready, write_status


class SurveySpec(Spec):
    url: Annotated[str, Meta(description="Where the soundings are: a JSON list of depths in metres.")]
    token: Annotated[str, Meta(description="The Secret whose key `token` is sent.")] | UnsetType = UNSET
    schedule: Annotated[Schedule, Meta(description="When to ask.")] = Schedule(period=Duration("1h"))


class SurveyStatus(Spec):
    conditions: Conditions | UnsetType = UNSET
    history: History | UnsetType = UNSET


class Survey(
    Resource,
    group="coast.example.com",
    version="v1",
    plural="surveys",
    columns=(
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Message", ".status.conditions[?(@.type=='Ready')].message"),
    ),
):
    spec: SurveySpec
    status: SurveyStatus | UnsetType = UNSET


def depths(answer: bytes) -> dict[str, int]:
    """The sums. It runs in a worker, so that a large answer holds nobody up."""
    found = json.loads(answer)
    return {"soundings": len(found), "deepest": max(found, default=0)}


class Surveyor(Controller[Survey]):
    when = generation_changed

    def __init__(self, context: Context) -> None:
        self.blobs, self.workers = context.blobs, context.workers
        self.credentials = Credentials(context.client, clock=context.clock)

    async def start(self) -> None:
        # The URL is a user's: no metadata service of a cloud, and no more than two questions a second for one host.
        self.outbound = Outbound(Budget(rate=2.0, burst=5), host_pin=HostPin(link_local=False))

    async def stop(self) -> None:
        await self.outbound.close()
        await self.credentials.close()

    async def reconcile(self, request: Request) -> Result | None:
        survey = await self.client.find(Survey, request.name, request.namespace)
        if survey is None:
            return None
        return await finalizer(
            self.client, survey, "coast.example.com/soundings", apply=self.keep_up, cleanup=self.let_go
        )

    async def keep_up(self, survey: Survey) -> Result | None:
        """Ask when it is time; then say when it is time again."""
        if problems := survey.spec.schedule.problems():
            raise TerminalError("; ".join(map(str, problems)))
        runs = self.runs_of(survey)
        history = await runs.interrupted(survey.status.history if survey.status else UNSET)
        if not survey.spec.schedule.due(self.clock.now(), began(history), survey.metadata.creation_timestamp or None):
            return self.later(survey, history)
        history, run = runs.start(history, "Schedule")
        survey = await self.tell(survey, history, None, "Asking", "a run goes on")  # before the work begins
        try:
            answer = await self.ask(survey)
            counts = await self.workers.run(depths, answer, timeout=10.0)
        except (OutboundError, CredentialError, ValueError, TypeError) as error:
            history = await runs.finish(history, run.id, "Failed", reason="NoSoundings", message=str(error))
            await self.tell(survey, history, False, "NoSoundings", str(error))
        else:
            history = await runs.finish(history, run.id, "Succeeded", counts=counts, details=answer)
            await self.tell(survey, history, True, "Sounded", f"{counts['soundings']} soundings")
        return self.later(survey, history)

    async def ask(self, survey: Survey) -> bytes:
        headers = {}
        if survey.spec.token:
            token = await self.credentials.token(SecretRef(survey.spec.token, survey.namespace))
            headers["Authorization"] = bearer(token)
        answer = await self.outbound.fetch("GET", survey.spec.url, headers=headers, timeout=20.0)
        if not answer.ok:
            raise ValueError(f"{survey.spec.url} answered {answer.status}")
        return await answer.read()

    async def let_go(self, survey: Survey) -> None:
        """The survey is being deleted: nobody needs its blobs any more."""
        await self.runs_of(survey).forget(survey.status.history if survey.status else UNSET)

    def runs_of(self, survey: Survey) -> Runs:
        return Runs(self.clock, blobs=self.blobs, owner=f"surveys/{survey.metadata.uid}")

    def later(self, survey: Survey, history: tuple[Run, ...]) -> Result | None:
        now = self.clock.now()
        due = survey.spec.schedule.next(now, began(history), survey.metadata.creation_timestamp or None)
        return None if due is None else Result(requeue_after=max(1.0, (due - now).total_seconds()))

    async def tell(
        self, survey: Survey, history: tuple[Run, ...], ok: bool | None, reason: str, message: str
    ) -> Survey:
        before = (survey.status or SurveyStatus()).conditions
        conditions = ready(before, self.clock, survey.metadata.generation, ok, reason, message)
        told: Survey = await write_status(self.client, survey, SurveyStatus(history=history, conditions=conditions))
        return told


def began(history: tuple[Run, ...]) -> datetime | None:
    """When the last run did."""
    return parse_time(history[0].started) if history else None


SYSTEM = System(
    name="soundings",
    kinds=(Survey,),
    reconciles=(Surveyor,),
    controllers=lambda context: [Surveyor(context)],
    rules=(Rule(kinds=(Secret,), verbs=("get", "list", "watch")),),
    needs_blobs=True,
)
