"""Certificates of webhooks: made once, shared, rotated with overlap, told to the API server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query, Ref
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Secret
from trimtab.model.scheme import Untyped
from trimtab.runtime.certificates.issue import perform
from trimtab.runtime.certificates.keeper import Certificates, serving_context
from trimtab.runtime.certificates.publish import DEFINITION, MUTATING, VALIDATING, Targets
from trimtab.runtime.certificates.rotation import Action, Bundle, Lives, State, state_of, step
from trimtab.testing.clock import START, FakeClock

HOSTS = ("127.0.0.1", "hooks.trimtab-system.svc")
DAY = 86_400.0
LIVES = Lives()

_numbers = itertools.count(1)


def configuration(kind: str, name: str) -> Untyped:
    webhook = {
        "name": "a.hooks.dev",
        "clientConfig": {"url": "https://127.0.0.1:1/validate/a"},
        "rules": [{"operations": ["CREATE"], "apiGroups": ["no.dev"], "apiVersions": ["v1"], "resources": ["nones"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    metadata = {"name": name}
    return Untyped(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": metadata,
            "webhooks": [webhook, webhook | {"name": "b.hooks.dev"}],
        }
    )


@pytest.fixture
async def targets(client: ApiClient) -> AsyncIterator[Targets]:
    """One configuration of each kind, without a bundle."""
    name = f"certificates-{next(_numbers)}"
    for kind in (VALIDATING, MUTATING):
        await client.create(configuration(kind.kind, name))
    yield Targets(validating=(name,), mutating=(name, "not-there"))
    for kind in (VALIDATING, MUTATING):
        await client.delete(Ref(kind, name))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def replica(client: ApiClient, namespace: str, targets: Targets, clock: FakeClock) -> Callable[..., Certificates]:
    def made(through: Any = client, **changes: Any) -> Certificates:
        given = {"namespace": namespace, "name": "test", "hosts": HOSTS, "targets": targets, "clock": clock}
        return Certificates(through, **(given | changes))

    return made


async def bundles(client: ApiClient, targets: Targets) -> set[bytes]:
    """What the configurations carry."""
    found = []
    for kind, names in ((VALIDATING, targets.validating), (MUTATING, targets.mutating[:1])):
        for name in names:
            document = (await client.get(kind, name)).raw
            found += [hook["clientConfig"].get("caBundle", "") for hook in document["webhooks"]]
    return {base64.b64decode(text) for text in found}


def shaken(context: ssl.SSLContext, client: ssl.SSLContext | None = None, name: str | None = None) -> x509.Certificate:
    """Shake hands as a client; the server's certificate. Whom to trust, and when, is checked by `trusts`."""
    if client is None:
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(down, up, server_hostname=name)
    theirs = context.wrap_bio(up, down, server_side=True)
    for side in itertools.islice(itertools.cycle((ours, theirs)), 8):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    shown = ours.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown)


def trusts(bundle: bytes, leaf: x509.Certificate, now: datetime) -> None:
    """Raises unless a client with this bundle accepts the certificate at this time."""
    store = Store(x509.load_pem_x509_certificates(bundle))
    for subject in (x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName(HOSTS[1])):
        PolicyBuilder().store(store).time(now).build_server_verifier(subject).verify(leaf, [])


async def test_the_first_replica_makes_what_all_share(replica: Callable[..., Certificates]) -> None:
    made = await asyncio.gather(replica().refresh(), replica().refresh())
    assert made[0] == made[1]


async def test_a_restart_finds_what_there_is(replica: Callable[..., Certificates]) -> None:
    assert await replica().refresh() == await replica().refresh()


async def test_the_secret_has_the_keys_that_other_programs_read(
    replica: Callable[..., Certificates], client: ApiClient, namespace: str
) -> None:
    bundle = await replica().refresh()
    secret = await client.get(Secret, "test-webhook-certs", namespace)
    assert isinstance(secret.data, dict)
    assert secret.type == "Opaque"  # as the manifests of an installation have it, empty: a type cannot be changed
    assert base64.b64decode(secret.data["tls.crt"]).decode() == bundle.serving.certificate
    assert base64.b64decode(secret.data["ca.crt"]) == bundle.trusted


async def test_every_configuration_gets_the_bundle_and_keeps_the_rest(
    replica: Callable[..., Certificates], client: ApiClient, targets: Targets
) -> None:
    before = (await client.get(VALIDATING, targets.validating[0])).raw
    bundle = await replica().refresh()
    assert await bundles(client, targets) == {bundle.trusted}
    after = (await client.get(VALIDATING, targets.validating[0])).raw
    for hook in after["webhooks"]:
        del hook["clientConfig"]["caBundle"]
    assert after["webhooks"] == before["webhooks"]


async def test_a_configuration_that_has_the_bundle_is_not_written(
    replica: Callable[..., Certificates], client: ApiClient, targets: Targets
) -> None:
    await replica().refresh()
    before = (await client.get(VALIDATING, targets.validating[0])).raw["metadata"]["resourceVersion"]
    await replica().refresh()
    after = (await client.get(VALIDATING, targets.validating[0])).raw["metadata"]["resourceVersion"]
    assert after == before


async def test_a_bundle_that_someone_took_away_comes_back(
    replica: Callable[..., Certificates], client: ApiClient, targets: Targets
) -> None:
    bundle = await replica().refresh()
    await client.delete(Ref(VALIDATING, targets.validating[0]))
    await client.create(configuration(VALIDATING.kind, targets.validating[0]))
    await replica().refresh()
    assert await bundles(client, targets) == {bundle.trusted}


async def test_a_definition_that_converts_by_webhook_gets_the_bundle(
    replica: Callable[..., Certificates], client: ApiClient
) -> None:
    schema = {"openAPIV3Schema": {"type": "object"}}
    group = f"converted{next(_numbers)}.dev"
    webhook = {"clientConfig": {"url": "https://127.0.0.1:1/convert"}, "conversionReviewVersions": ["v1"]}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "things", "kind": "Thing"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }
    await client.create(Untyped(definition))
    bundle = await replica(targets=Targets(definitions=(f"things.{group}",))).refresh()
    found = (await client.get(DEFINITION, f"things.{group}")).raw
    assert base64.b64decode(found["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"]) == bundle.trusted


async def test_a_damaged_secret_is_made_anew(
    replica: Callable[..., Certificates], client: ApiClient, namespace: str
) -> None:
    first = await replica().refresh()
    secret = await client.get(Secret, "test-webhook-certs", namespace)
    assert isinstance(secret.data, dict)
    await client.patch(secret, secret.replace(data=secret.data | {"bundle.json": "e30="}))
    second = await replica().refresh()
    assert second.current.certificate != first.current.certificate


@pytest.mark.parametrize("pair", ["serving", "current"])
@pytest.mark.parametrize("client", ["local"], indirect=True)
async def test_keys_that_are_damaged_are_made_anew(
    replica: Callable[..., Certificates], client: ApiClient, namespace: str, pair: str
) -> None:
    first = await replica().refresh()
    broken = msgspec.structs.replace(getattr(first, pair), key="-----BEGIN NOTHING-----")
    damaged = msgspec.json.encode(msgspec.structs.replace(first, **{pair: broken}))
    secret = await client.get(Secret, "test-webhook-certs", namespace)
    assert isinstance(secret.data, dict)
    encoded = {"bundle.json": base64.b64encode(damaged).decode()}
    await client.patch(secret, secret.replace(data=secret.data | encoded))
    second = await replica(hosts=("other",)).refresh()  # for which the authority must sign
    assert second.current.certificate != first.current.certificate


async def test_replicas_that_know_different_hosts_agree_on_all_of_them(replica: Callable[..., Certificates]) -> None:
    one, other = replica(hosts=("one",)), replica(hosts=("other",))
    await one.refresh()
    agreed = await other.refresh()
    assert agreed.hosts == ("one", "other")
    assert await one.refresh() == agreed


async def test_nothing_shows_a_key(replica: Callable[..., Certificates]) -> None:
    bundle = await replica().refresh()
    assert "PRIVATE" not in repr(bundle)


async def test_a_client_that_trusts_the_bundle_connects_with_and_without_a_server_name(
    replica: Callable[..., Certificates], client: ApiClient, targets: Targets
) -> None:
    certificates = replica(clock=SystemClock())
    await certificates.refresh()
    [bundle] = await bundles(client, targets)
    trusting = ssl.create_default_context(cadata=bundle.decode())
    for host in HOSTS:
        shaken(certificates.context, trusting, host)


async def test_only_clients_of_the_named_authority_get_in(replica: Callable[..., Certificates]) -> None:
    strict = replica(client_ca=perform(Action.MAKE, None, START, hosts=HOSTS, lives=LIVES).current.certificate)
    await strict.refresh()
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        shaken(strict.context)


async def test_before_the_first_pass_nobody_gets_in(replica: Callable[..., Certificates]) -> None:
    early = replica()
    assert not early.ready
    with pytest.raises(ssl.SSLError):
        shaken(early.context)
    await early.refresh()
    assert early.ready


async def test_a_pass_that_fails_is_tried_again(replica: Callable[..., Certificates], clock: FakeClock) -> None:
    class Absent:
        """No API server; it comes back after two passes."""

        passes = 0

        async def get(self, *args: Any) -> Any:
            self.passes += 1
            raise ConnectionRefusedError("no API server") if self.passes < 3 else asyncio.CancelledError

    absent = Absent()
    task = asyncio.create_task(replica(absent).run())
    await clock.advance(119)
    assert absent.passes == 2
    await clock.advance(1)
    assert task.cancelled()


class Gate:
    """A client that waits before one of its calls until it is let through."""

    def __init__(self, client: ApiClient, held: int) -> None:
        self._client = client
        self._until = held
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def get(self, *args: Any) -> Any:
        await self._pass()
        return await self._client.get(*args)

    async def patch(self, *args: Any) -> Any:
        await self._pass()
        return await self._client.patch(*args)

    async def _pass(self) -> None:
        self._until -= 1
        if self._until == 0:
            self.reached.set()
            await self.open.wait()


@pytest.mark.parametrize("cause", ["age", "deletion"])
@pytest.mark.parametrize("held", range(1, 7))
async def test_a_replica_that_slept_in_the_middle_of_a_pass_undoes_nothing(
    replica: Callable[..., Certificates],
    client: ApiClient,
    namespace: str,
    targets: Targets,
    clock: FakeClock,
    held: int,
    cause: str,
) -> None:
    """It reads two configurations and one that is not there, then the Secret, then writes both configurations."""
    await replica().refresh()
    for kind in (VALIDATING, MUTATING):
        await client.delete(Ref(kind, targets.validating[0]))
        await client.create(configuration(kind.kind, targets.validating[0]))
    gate = Gate(client, held)
    sleeping = asyncio.create_task(replica(gate).refresh())
    await gate.reached.wait()
    if cause == "age":
        await clock.advance(LIVES.authority.total_seconds() * 0.7)
    else:
        await client.delete(Ref(Secret, "test-webhook-certs", namespace))
    newest = await replica().refresh()
    since = (await client.list(VALIDATING)).revision
    gate.open.set()
    await sleeping
    end = f"{targets.validating[0]}-end"
    await client.create(configuration(VALIDATING.kind, end))
    async with contextlib.aclosing(client.watch(VALIDATING, Query(), since)) as events:
        async for event in events:  # what it wrote on its way
            assert event.object is not None
            if event.object.name == end:
                break
            config = event.object.raw["webhooks"][0]["clientConfig"]
            assert base64.b64decode(config["caBundle"]) == newest.trusted
    await client.delete(Ref(VALIDATING, end))
    assert await bundles(client, targets) == {newest.trusted}


def rotated(bundle: Bundle | None, days: float, *, carried: bool = True, lives: Lives = LIVES) -> Bundle:
    """The bundle when nothing more is to be done on that day."""
    now = START + timedelta(days=days)
    while (action := step(bundle, now, carried=carried, hosts=HOSTS, lives=lives)) is not None:
        bundle = perform(action, bundle, now, hosts=HOSTS, lives=lives)
        carried = False
    assert bundle is not None
    return bundle


def test_the_serving_certificate_is_renewed_at_two_thirds_of_its_life() -> None:
    first = rotated(None, 0)
    assert rotated(first, 59) == first
    later = rotated(first, 60)
    assert later.serving != first.serving
    assert later.trusted == first.trusted


def test_more_hosts_need_another_certificate_and_fewer_do_not() -> None:
    first = rotated(None, 0)
    assert step(first, START, carried=True, hosts=("other",), lives=LIVES) is Action.EXTEND
    assert step(first, START, carried=True, hosts=HOSTS[:1], lives=LIVES) is None


def test_an_authority_goes_through_every_state() -> None:
    first = rotated(None, 0)
    aged = rotated(first, 244, carried=False)
    assert state_of(aged) is State.ANNOUNCED
    assert aged.current == first.current
    carried = perform(Action.CARRY, aged, START + timedelta(days=245), hosts=HOSTS, lives=LIVES)
    assert state_of(carried) is State.CARRIED
    assert step(carried, START + timedelta(days=245, minutes=9), carried=True, hosts=HOSTS, lives=LIVES) is None
    switched = rotated(carried, 245.01, carried=True)
    assert state_of(switched) is State.SWITCHED
    assert (switched.current, switched.trusted) == (aged.next, aged.trusted)
    steady = rotated(switched, 245.01 + 91)
    assert state_of(steady) is State.STEADY
    assert steady.trusted == switched.current.certificate.encode()


def test_nothing_switches_while_a_configuration_lacks_the_next_authority() -> None:
    announced = rotated(rotated(None, 0), 250, carried=False)
    assert rotated(announced, 300, carried=False).current == announced.current


def test_a_bundle_that_is_taken_away_meanwhile_starts_the_waiting_anew() -> None:
    announced = rotated(rotated(None, 0), 250, carried=False)
    carried = perform(Action.CARRY, announced, START + timedelta(days=250), hosts=HOSTS, lives=LIVES)
    assert step(carried, START + timedelta(days=251), carried=False, hosts=HOSTS, lives=LIVES) is Action.RECALL


def test_at_the_end_of_an_authority_the_next_one_takes_over_whether_it_is_carried_or_not() -> None:
    announced = rotated(rotated(None, 0), 364, carried=False)
    assert rotated(announced, 365, carried=False).current == announced.next


def test_after_a_long_absence_everything_is_made_anew() -> None:
    first = rotated(None, 0)
    later = rotated(first, 1000)
    assert later.current != first.current
    assert state_of(later) is State.STEADY


def test_lives_that_cannot_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="three times as long"):
        Lives(authority=timedelta(days=100), serving=timedelta(days=90))


class Unsteady:
    """A client whose calls interleave with those of others, and now and then fail before or after they took place. The
    world is checked before and after each write."""

    def __init__(self, client: ApiClient, chance: random.Random, check: Callable[[], Awaitable[None]]) -> None:
        self._client = client
        self._chance = chance
        self._check = check

    async def get(self, *args: Any) -> Any:
        await self._delay()
        return await self._client.get(*args)

    async def create(self, obj: Any) -> Any:
        await self._delay()
        return await self._client.create(obj)

    async def patch(self, old: Any, new: Any) -> Any:
        await self._delay()
        await self._check()
        written = await self._client.patch(old, new)
        await self._check()
        await self._delay()
        return written

    async def _delay(self) -> None:
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)
        if self._chance.random() < 0.02:
            raise TimeoutError("no answer")


@pytest.mark.parametrize("client", ["local"], indirect=True)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_for_three_years_whoever_trusts_the_configuration_can_connect_to_every_replica(
    client: ApiClient, replica: Callable[..., Certificates], targets: Targets, clock: FakeClock, seed: int
) -> None:
    """Two replicas, each of which now and then does not look for up to 25 days, and serves on."""
    chance = random.Random(seed)
    served: set[x509.Certificate] = set()
    trusted: set[bytes] = set()
    replicas: list[Certificates] = []

    async def check() -> None:
        for bundle in await bundles(client, targets):
            trusted.add(bundle)
            for one in replicas:
                leaf = shaken(one.context)
                served.add(leaf)
                trusts(bundle, leaf, clock.now())

    async def refreshed(one: Certificates) -> None:
        for _ in range(5):
            with contextlib.suppress(TimeoutError):
                await one.refresh()
                return
        raise AssertionError("five failures in a row")

    made = [replica(Unsteady(client, chance, check)) for _ in range(2)]
    for one in made:
        await refreshed(one)
    replicas += made
    due = [0.0, 0.0]
    while clock.now() < START + timedelta(days=3 * 365):
        await clock.advance(max(0.0, min(due) - clock.monotonic()))
        if chance.random() < 0.2:
            await check()
        awake = [index for index in range(2) if due[index] <= clock.monotonic() + DAY]
        await asyncio.gather(*(refreshed(replicas[index]) for index in awake))
        for index in awake:
            pause = chance.uniform(5, 25) if chance.random() < 0.05 else chance.uniform(0.5, 3)
            due[index] = clock.monotonic() + pause * DAY
    assert len(served) >= 3 * 365 // 60
    assert len(trusted) >= 8  # one, two, one … authorities: four rotations and more


def test_a_context_asks_for_modern_tls() -> None:
    assert serving_context().minimum_version is ssl.TLSVersion.TLSv1_2


async def test_a_refusal_is_not_swallowed(replica: Callable[..., Certificates]) -> None:
    class Refusing:
        async def get(self, *args: Any) -> Any:
            raise StatusError(403, "Forbidden", "no")

    with pytest.raises(StatusError, match="no"):
        await replica(Refusing()).refresh()


def test_a_bundle_survives_the_secret() -> None:
    bundle = rotated(rotated(None, 0), 250, carried=False)
    assert msgspec.json.decode(msgspec.json.encode(bundle), type=Bundle) == bundle
