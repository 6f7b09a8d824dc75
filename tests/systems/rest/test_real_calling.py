"""Our requests to real servers: envelopes, keys, operations, and what their errors mean by the rules of the examples."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from tests.lab.conftest import alertmanager, fresh, lxd, podman, powerdns
from tests.systems.rest.real_examples import models
from trimtab.lab.alertmanager import Alertmanager
from trimtab.lab.lxd import Lxd
from trimtab.lab.podman import Podman
from trimtab.lab.powerdns import PowerDns
from trimtab.model.clock import SystemClock
from trimtab.model.redacted import Redacted
from trimtab.systems.rest.addressing import fill, query_of, url_of
from trimtab.systems.rest.calling import operations
from trimtab.systems.rest.calling.contract import Answer, CallError, ErrorClass, Request
from trimtab.systems.rest.calling.login import Login
from trimtab.systems.rest.calling.pages import pages
from trimtab.systems.rest.calling.service import Service
from trimtab.systems.rest.model import Call, Model
from trimtab.systems.rest.state import Operation

__all__ = ["alertmanager", "fresh", "lxd", "podman", "powerdns"]


class Speaking:
    """One kind of one server, by its Model."""

    def __init__(self, service: Service, model: Model, **values: str) -> None:
        self.service, self.model, self.values = service, model, values

    async def create(self, body: Mapping[str, Any]) -> Answer:
        return await self._call("create", self.model.calls.create, body)

    async def read(self) -> Any:
        assert self.model.calls.read is not None
        return (await self._call("read", self.model.calls.read)).body

    async def update(self, body: Mapping[str, Any]) -> Answer:
        assert self.model.calls.update is not None
        return await self._call("update", self.model.calls.update, body)

    async def delete(self) -> Answer:
        assert self.model.calls.delete is not None
        return await self._call("delete", self.model.calls.delete)

    async def listed(self) -> list[Any]:
        call = self.model.calls.list
        assert call is not None
        url = fill(self.model, call.path, self.values) + query_of(call, self.values)
        return [item async for page in pages(self.service, self.model, call, url) for item in page]

    async def refused(self, verb: str, body: Mapping[str, Any] | None = None) -> CallError:
        call = getattr(self.model.calls, verb)
        with pytest.raises(CallError) as caught:
            await self._call(verb, call, body)
        return caught.value

    async def settled(self, answer: Answer, verb: str) -> operations.Done | operations.Failed | None:
        """The end of the operation that an answer began; None when it began none."""
        call = getattr(self.model.calls, verb)
        clock = SystemClock()
        followed = operations.begin(self.model, call, answer, now=clock.now(), verb=verb)
        while isinstance(followed, Operation):
            outcome = await operations.poll(
                self.service, self.model, followed, now=clock.now(), chance=random.Random(1)
            )
            if not isinstance(outcome, Operation):
                return outcome
            followed = outcome
        return None

    async def _call(self, verb: str, call: Call, body: Mapping[str, Any] | None = None) -> Answer:
        overlay = self.model.overlay
        return await self.service.call(
            Request(
                verb=verb,
                method=call.method,
                url=url_of(self.model, call, "", self.values),
                body=body,
                envelope=overlay.envelope,
                rules=overlay.errors,
            )
        )


@pytest.fixture
async def lxd_service(lxd: Lxd) -> AsyncIterator[Service]:
    async with Service(lxd.url) as service:
        yield service


@pytest.fixture
async def docker_service(podman: Podman) -> AsyncIterator[Service]:
    async with Service(podman.url) as service:
        yield service


@pytest.fixture
async def dns_service(powerdns: PowerDns) -> AsyncIterator[Service]:
    async with Service(powerdns.url, Login(headers={"X-API-Key": Redacted(powerdns.api_key)})) as service:
        yield service


@pytest.fixture
async def silences(alertmanager: Alertmanager) -> AsyncIterator[Speaking]:
    async with Service(alertmanager.url) as service:
        yield Speaking(service, models("alertmanager")["Silence"])


async def test_a_profile_comes_without_its_envelope(lxd_service: Service, fresh: str) -> None:
    profile = Speaking(lxd_service, models("lxd")["Profile"], profile=fresh)
    await profile.create({"name": fresh, "config": {"user.team": "blue"}})
    assert (await profile.read())["config"] == {"user.team": "blue"}
    assert fresh in [each["name"] for each in await profile.listed()]


async def test_a_profile_that_exists_is_told_by_the_text_of_an_error_500(lxd_service: Service, fresh: str) -> None:
    profile = Speaking(lxd_service, models("lxd")["Profile"], profile=fresh)
    await profile.create({"name": fresh})
    assert (await profile.refused("create", {"name": fresh})).kind is ErrorClass.EXISTS


async def test_a_key_that_lxd_does_not_know_means_that_the_spec_must_change(lxd_service: Service, fresh: str) -> None:
    profile = Speaking(lxd_service, models("lxd")["Profile"], profile=fresh)
    await profile.create({"name": fresh})
    error = await profile.refused("update", {"config": {"nonsense": "1"}})
    assert error.kind is ErrorClass.TERMINAL
    assert "Unknown configuration key: nonsense" in str(error)


async def test_a_profile_that_is_not_there_is_gone(lxd_service: Service, fresh: str) -> None:
    assert (
        await Speaking(lxd_service, models("lxd")["Profile"], profile=fresh).refused("read")
    ).kind is ErrorClass.GONE


async def test_a_snapshot_is_followed_until_it_is_there_and_until_it_is_gone(lxd_service: Service, fresh: str) -> None:
    known = models("lxd")
    await Speaking(lxd_service, known["StoragePool"], pool=fresh).create({"name": fresh, "driver": "dir"})
    await Speaking(lxd_service, known["Volume"], pool=fresh, volume="v").create({"name": "v"})
    snapshot = Speaking(lxd_service, known["Snapshot"], pool=fresh, volume="v", snapshot="s")
    assert isinstance(await snapshot.settled(await snapshot.create({"name": "s"}), "create"), operations.Done)
    assert (await snapshot.read())["name"] == "s"
    assert isinstance(await snapshot.settled(await snapshot.delete(), "delete"), operations.Done)
    assert (await snapshot.refused("read")).kind is ErrorClass.GONE


async def test_a_write_that_lxd_does_at_once_begins_no_operation(lxd_service: Service, fresh: str) -> None:
    pool = Speaking(lxd_service, models("lxd")["StoragePool"], pool=fresh)
    assert await pool.settled(await pool.create({"name": fresh, "driver": "dir"}), "create") is None


async def test_a_pool_in_use_waits_for_what_uses_it(lxd_service: Service, fresh: str) -> None:
    pool = Speaking(lxd_service, models("lxd")["StoragePool"], pool=fresh)
    await pool.create({"name": fresh, "driver": "dir"})
    await Speaking(lxd_service, models("lxd")["Volume"], pool=fresh).create({"name": "v"})
    assert (await pool.refused("delete")).kind is ErrorClass.DEPENDENCY


async def test_a_zone_is_made_with_the_key_and_listed(dns_service: Service, fresh: str) -> None:
    zone = Speaking(dns_service, models("powerdns")["Zone"], server="localhost", zone=f"{fresh}.example.")
    await zone.create({"name": f"{fresh}.example.", "kind": "Native"})
    assert (await zone.update({"account": "ours"})).body is None
    assert (await zone.read())["account"] == "ours"
    assert f"{fresh}.example." in [each["name"] for each in await zone.listed()]


async def test_a_wrong_key_is_a_matter_of_login_and_not_shown(powerdns: PowerDns) -> None:
    async with Service(powerdns.url, Login(headers={"X-API-Key": Redacted("wrong-key")})) as service:
        error = await Speaking(service, models("powerdns")["Zone"], server="localhost", zone="a.").refused("read")
    assert error.kind is ErrorClass.AUTH
    assert "wrong-key" not in str(error)


async def test_a_zone_that_exists_is_told_in_plain_text(dns_service: Service, fresh: str) -> None:
    zone = Speaking(dns_service, models("powerdns")["Zone"], server="localhost", zone=f"{fresh}.example.")
    await zone.create({"name": f"{fresh}.example.", "kind": "Native"})
    refused = await zone.refused("create", {"name": f"{fresh}.example.", "kind": "Native"})
    assert refused.kind is ErrorClass.EXISTS


async def test_a_deletion_that_answers_an_empty_page_of_html_is_one(dns_service: Service, fresh: str) -> None:
    name = f"{fresh}.example."
    zone = Speaking(dns_service, models("powerdns")["Zone"], server="localhost", zone=name)
    await zone.create({"name": name, "kind": "Native"})
    entry = Speaking(
        dns_service, models("powerdns")["ZoneMetadata"], server="localhost", zone=name, metadata="ALLOW-AXFR-FROM"
    )
    await entry.create({"metadata": ["192.0.2.1"]})
    assert (await entry.delete()).body is None
    assert (await entry.read())["metadata"] == []


async def test_a_silence_that_never_was_is_gone_though_the_answer_is_a_500(silences: Speaking) -> None:
    silences.values = {"silenceID": "00000000-0000-0000-0000-000000000000"}
    assert (await silences.refused("delete")).kind is ErrorClass.GONE
    assert (await silences.refused("read")).kind is ErrorClass.GONE


@pytest.mark.parametrize("starts", ["2020-01-01T00:00:00Z", "2098-01-01T00:00:00Z"])
async def test_an_end_that_is_past_or_before_the_start_means_that_the_spec_must_change(
    silences: Speaking, starts: str
) -> None:
    body = {
        "matchers": [{"name": "a", "value": "b", "isRegex": False}],
        "startsAt": starts,
        "endsAt": "2020-01-02T00:00:00Z",
        "createdBy": "lab",
        "comment": "late",
    }
    assert (await silences.refused("create", body)).kind is ErrorClass.TERMINAL


async def test_a_network_that_exists_is_told_by_the_text_of_an_error_500(docker_service: Service, fresh: str) -> None:
    network = Speaking(docker_service, models("docker")["Network"], id=fresh)
    await network.create({"Name": fresh})
    assert (await network.refused("create", {"Name": fresh})).kind is ErrorClass.EXISTS


async def test_a_secret_is_read_below_spec_and_a_creation_answers_beside_it(
    docker_service: Service, fresh: str
) -> None:
    secret = Speaking(docker_service, models("docker")["Secret"], id=fresh)
    made = await secret.create({"Name": fresh, "Data": "aHVzaA==", "Labels": {"team": "blue"}})
    assert set(made.body) == {"ID"}
    assert (await secret.read())["Labels"] == {"team": "blue"}


async def test_a_secret_that_exists_is_told_as_a_conflict(docker_service: Service, fresh: str) -> None:
    secret = Speaking(docker_service, models("docker")["Secret"], id=fresh)
    await secret.create({"Name": fresh, "Data": "aHVzaA=="})
    assert (await secret.refused("create", {"Name": fresh, "Data": "aHVzaA=="})).kind is ErrorClass.EXISTS


async def test_volumes_are_listed_from_the_field_that_has_them(docker_service: Service, fresh: str) -> None:
    volume = Speaking(docker_service, models("docker")["Volume"], name=fresh)
    await volume.create({"Name": fresh})
    assert fresh in [each["Name"] for each in await volume.listed()]
