"""Questions to the cluster: asked once, kept for ten seconds, and never answered with yes by a cluster that is away."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import orjson
import pytest

from tests.hub.artifacts.papers import Paper
from tests.server.api import ADMIN, Api, running
from trimtab.client.api import ApiClient
from trimtab.client.transport import Call, Reply, Unreachable
from trimtab.hub.delegated import ClusterNamespaces, DelegatedAuthorizer, Identities, about_health
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Scheme
from trimtab.server.auth.deciding import decided
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.auth.rbac import Attributes
from trimtab.server.auth.request_header import RequestHeader
from trimtab.server.local import LocalTransport
from trimtab.server.wire import Incoming
from trimtab.testing.clock import FakeClock

ANNA = User("anna", groups=("makers",))


class Cluster:
    """A transport to a server in this process, that counts and can be cut."""

    def __init__(self, api: Api) -> None:
        self._inner = LocalTransport(api.server, ADMIN)
        self.paths: list[str] = []
        self.away = False

    async def call(self, call: Call) -> Reply:
        self.paths.append(call.path)
        await asyncio.sleep(0)
        if self.away:
            raise Unreachable("the cluster is away")
        return await self._inner.call(call)

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._inner.stream(call, inactivity)

    async def close(self) -> None:
        await self._inner.close()


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with running() as api:
        yield api


@pytest.fixture
def cluster(api: Api) -> Cluster:
    return Cluster(api)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def authorizer(cluster: Cluster, clock: FakeClock) -> DelegatedAuthorizer:
    return DelegatedAuthorizer(ApiClient(cluster, Scheme()), clock=clock)


def wanted(user: User = ANNA, verb: str = "get", **more: Any) -> Attributes:
    return Attributes(user, verb, "infra.trimtab.dev", "v3", "blueprints", **more)


async def allow(api: Api, *verbs: str) -> None:
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    rules = [{"apiGroups": ["infra.trimtab.dev"], "resources": ["blueprints"], "verbs": list(verbs)}]
    assert (await api.post(role, {"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": rules})).code == 201
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "makers"}
    binding = {"kind": "ClusterRoleBinding", "metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]}
    assert (await api.post(role.replace("roles", "rolebindings"), binding)).code == 201
    attributes = Attributes(ANNA, "get", "infra.trimtab.dev", "v3", "blueprints")
    async with asyncio.timeout(5):
        while True:
            if api.server.authorizer.authorize(attributes).allowed:
                return
            await asyncio.sleep(0.005)


@pytest.mark.row(21)
async def test_the_cluster_decides_and_its_answer_is_kept_for_ten_seconds(
    api: Api, cluster: Cluster, clock: FakeClock
) -> None:
    asked = authorizer(cluster, clock)
    assert not (await decided(asked, wanted())).allowed
    await allow(api, "get")
    assert not (await decided(asked, wanted())).allowed  # as it was said before
    await clock.advance(10.1)
    assert (await decided(asked, wanted())).allowed
    assert not (await decided(asked, wanted(verb="delete"))).allowed
    assert len(cluster.paths) == 3
    cluster.away = True
    assert (await decided(asked, wanted())).allowed  # kept
    await clock.advance(10.1)
    with pytest.raises(StatusError, match="does not tell") as raised:
        await decided(asked, wanted())
    assert raised.value.code == 503
    cluster.away = False
    assert (await decided(asked, wanted())).allowed


@pytest.mark.row(21)
async def test_equal_questions_at_the_same_time_are_asked_once(cluster: Cluster, clock: FakeClock) -> None:
    asked = authorizer(cluster, clock)
    decisions = await asyncio.gather(*(decided(asked, wanted(namespace="a")) for _ in range(50)))
    assert {decision.allowed for decision in decisions} == {False}
    assert len(cluster.paths) == 1
    await decided(asked, wanted(namespace="b"))
    assert len(cluster.paths) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"user": User("anna")},
        {"user": User("bert", groups=("makers",))},
        {"user": User("anna", uid="u", groups=("makers",))},
        {"user": User("anna", groups=("makers",), extra={"scopes": ("a",)})},
        {"verb": "delete"},
        {"name": "other"},
        {"subresource": "status"},
    ],
)
async def test_an_answer_is_for_the_very_question(cluster: Cluster, clock: FakeClock, other: Any) -> None:
    asked = authorizer(cluster, clock)
    question = {"namespace": "a", "name": "n", "subresource": ""}
    await decided(asked, wanted(**question))
    await decided(asked, wanted(**question))
    assert len(cluster.paths) == 1
    await decided(asked, wanted(**{**question, **other}))
    assert len(cluster.paths) == 2


class Saying:
    """A cluster that says one thing, after a while."""

    def __init__(self, status: dict[str, Any], clock: FakeClock, takes: float = 0.0) -> None:
        self._body = orjson.dumps({"status": status})
        self._clock = clock
        self._takes = takes
        self.asked = 0

    async def call(self, call: Call) -> Reply:
        self.asked += 1
        if self._takes:
            await self._clock.advance(self._takes)
        return Reply(code=201, body=self._body)


@pytest.mark.parametrize(
    ("status", "allowed"),
    [
        ({"allowed": True}, True),
        ({"allowed": True, "denied": True}, False),
        ({"allowed": "true"}, False),
        ({"allowed": 1}, False),
        ({}, False),
    ],
)
async def test_only_a_plain_yes_is_one(status: dict[str, Any], allowed: bool, clock: FakeClock) -> None:
    asked = DelegatedAuthorizer(ApiClient(Saying(status, clock), Scheme()), clock=clock)
    assert (await decided(asked, wanted())).allowed is allowed


async def test_an_answer_is_as_old_as_its_question(clock: FakeClock) -> None:
    cluster = Saying({"allowed": True}, clock, takes=8.0)
    asked = DelegatedAuthorizer(ApiClient(cluster, Scheme()), clock=clock)
    await decided(asked, wanted())
    await clock.advance(1.9)
    await decided(asked, wanted())
    assert cluster.asked == 1
    await clock.advance(0.2)
    await decided(asked, wanted())
    assert cluster.asked == 2


async def test_one_who_leaves_takes_no_answer_away_from_the_others(cluster: Cluster, clock: FakeClock) -> None:
    asked = authorizer(cluster, clock)
    first = asyncio.ensure_future(decided(asked, wanted()))
    second = asyncio.ensure_future(decided(asked, wanted()))
    await asyncio.sleep(0)
    first.cancel()
    assert not (await second).allowed


async def test_masters_and_questions_about_health_need_nobody(cluster: Cluster, clock: FakeClock) -> None:
    cluster.away = True
    asked = authorizer(cluster, clock)
    assert (await decided(asked, wanted(User("root", groups=(MASTERS,)), "delete"))).allowed
    assert (await decided(asked, Attributes(ANNA, "get", path="/readyz"))).allowed
    with pytest.raises(StatusError):
        await decided(asked, Attributes(ANNA, "get", path="/metrics"))


@pytest.mark.parametrize(
    ("path", "yes"),
    [
        ("/healthz", True),
        ("/livez/ping", True),
        ("/readyz/", True),
        ("/healthzz", False),
        ("/apis", False),
        ("", False),
    ],
)
def test_what_is_about_health(path: str, yes: bool) -> None:
    assert about_health(path) is yes


async def test_paths_are_asked_about_as_paths(api: Api, cluster: Cluster, clock: FakeClock) -> None:
    asked = authorizer(cluster, clock)
    everybody = User("x", groups=("system:authenticated",))
    assert (await decided(asked, Attributes(everybody, "get", path="/openapi/v3"))).allowed
    assert not (await decided(asked, Attributes(everybody, "get", path="/metrics"))).allowed


class Nobody(RequestHeader):
    def __init__(self) -> None:
        """Believes nobody."""

    def user(self, peer: bytes | None, headers: Any) -> User | None:
        return None


def incoming(path: str = "/apis", **headers: str) -> Incoming:
    raw = {name.encode(): value.encode() for name, value in headers.items()}
    forged = ((b"x-remote-user", b"admin"), (b"x-remote-group", b"system:masters"))
    return Incoming("GET", path, b"", raw, b"", True, None, proxied=forged)


async def test_who_is_neither_named_nor_has_a_token_of_the_cluster_is_refused(
    cluster: Cluster, clock: FakeClock
) -> None:
    identify = Identities(ApiClient(cluster, Scheme()), Nobody(), clock=clock)
    for headers in ({}, {"authorization": "Basic x"}, {"authorization": "Bearer "}):
        with pytest.raises(StatusError) as raised:
            await identify(incoming(**headers))
        assert raised.value.code == 401
    assert cluster.paths == []
    with pytest.raises(StatusError) as raised:
        await identify(incoming(authorization="Bearer nonsense"))
    assert raised.value.code in (401, 503)
    assert (await identify(incoming("/healthz"))).name == "system:anonymous"


PAPERS = Scheme().kind_of(Paper)


async def test_nothing_is_made_where_the_cluster_has_no_namespace(api: Api, cluster: Cluster, clock: FakeClock) -> None:
    namespaces = ClusterNamespaces(ApiClient(cluster, Scheme()), clock=clock)
    with pytest.raises(StatusError, match='namespaces "team" not found'):
        await namespaces.check_create(PAPERS, "team", "x")
    made = {"kind": "Namespace", "metadata": {"name": "team"}}
    assert (await api.post("/api/v1/namespaces", made)).code == 201
    await namespaces.check_create(PAPERS, "team", "x")
    asked = len(cluster.paths)
    await namespaces.check_create(PAPERS, "team", "y")
    assert len(cluster.paths) == asked  # known for a second
    map_ = {"kind": "ConfigMap", "metadata": {"name": "x", "namespace": "team", "finalizers": ["a.b/c"]}}
    assert (await api.post("/api/v1/namespaces/team/configmaps", map_)).code == 201
    await api.delete("/api/v1/namespaces/team")
    await clock.advance(1.1)
    with pytest.raises(StatusError, match="being terminated") as raised:
        await namespaces.check_create(PAPERS, "team", "z")
    assert raised.value.code == 403
    cluster.away = True
    with pytest.raises(StatusError) as raised:
        await namespaces.check_create(PAPERS, "other", "z")
    assert raised.value.code == 503
