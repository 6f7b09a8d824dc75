"""The rights of a system: what its controllers declare suffices for all that the runtime does for them, and no more."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.runtime.widgets import Maker, Widget, define, running, until_found, widget
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query, Ref
from trimtab.model import kubernetes
from trimtab.model.admission import Admission, Allowed
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Event, Secret
from trimtab.model.scheme import Scheme
from trimtab.runtime.controller import Controller, Watch
from trimtab.runtime.election import Election
from trimtab.runtime.events import Recorder
from trimtab.runtime.manager import Manager
from trimtab.runtime.prepare import prepare
from trimtab.runtime.rights import account, at_home, grants, lease_of, rules_by_place
from trimtab.runtime.system import NAMESPACE, Rule, System
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import LocalTransport
from trimtab.store.memory import MemoryStore
from trimtab.testing.faults import Fault, FaultyTransport, Script

SYSTEM = System(name="widgets", kinds=(Widget,), reconciles=(Maker,))
ADMIN = User("admin", groups=(MASTERS, "system:authenticated"))
GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    store = MemoryStore()
    server = Server(store)
    await server.start()
    yield server
    await server.stop()
    await store.close()


@pytest.fixture
def scheme() -> Scheme:
    return kubernetes.register(Scheme())


@pytest.fixture
async def admin(server: Server, scheme: Scheme) -> ApiClient:
    client = ApiClient(LocalTransport(server, ADMIN), scheme)
    await define(client)
    await prepare(client, [SYSTEM])
    return client


@pytest.fixture
def account_of(server: Server, admin: ApiClient) -> LocalTransport:
    """Calls as the system's account."""
    return LocalTransport(server, User(account(SYSTEM), groups=GROUPS))


async def test_a_system_does_its_work_with_them(admin: ApiClient, account_of: LocalTransport, scheme: Scheme) -> None:
    client = ApiClient(account_of, scheme)
    election = Election(client, SystemClock(), name=lease_of(SYSTEM), namespace=NAMESPACE, identity="one")
    manager = Manager(client, name="widgets", election=election)
    manager.add(Maker())
    async with running(manager):
        await admin.create(widget("one", "default", 3))
        await until_found(admin, Widget, "one", "default", lambda found: found.status and found.status.made == 3)
        await until_found(admin, ConfigMap, "one", "default", lambda found: found.data == {"size": "3"})


async def test_an_event_whose_answer_was_lost_is_looked_up_and_counted_on(
    admin: ApiClient, account_of: LocalTransport, scheme: Scheme
) -> None:
    about = await admin.create(widget("one", "default"))
    clock = SystemClock()
    lossy = FaultyTransport(account_of, Script({1: Fault.LOST_ANSWER}), clock)
    recorder = Recorder(ApiClient(lossy, scheme), clock, component="test.trimtab.dev/rights")
    async with recorder:
        recorder.normal(about, "Seen", "once")
        await recorder.flush()
        recorder.normal(about, "Seen", "once")
    told = (await admin.list(Event, Query(namespace="default"))).items
    assert [event.series.count for event in told if event.series] == [2]
    assert recorder.lost == 0


async def test_they_are_no_more(admin: ApiClient, account_of: LocalTransport, scheme: Scheme) -> None:
    client = ApiClient(account_of, scheme)
    await admin.create(widget("one", "default"))
    with pytest.raises(StatusError, match="forbidden"):
        await client.list(Secret)
    with pytest.raises(StatusError, match="forbidden"):
        await client.delete(Ref(Widget, "one", "default"))


def test_one_who_watches_events_keeps_the_right_to_record_them(scheme: Scheme) -> None:
    class Listener(Controller[Widget]):
        watches = (Watch(kind=Event, to=lambda change: ()),)

    (rule,) = (
        rule
        for rule in rules_by_place(System(name="ear", kinds=(Widget,), reconciles=(Listener,)), scheme)[""]
        if rule["apiGroups"] == ["events.k8s.io"]
    )
    assert set(rule["verbs"]) == {"get", "list", "watch", "create", "patch"}


def test_rules_of_its_own_are_written_as_rbac_has_them(scheme: Scheme) -> None:
    scale = Rule(kinds=("deployments.apps/scale",), verbs=("patch",), names=("web",))
    keys = Rule(kinds=(Secret,), verbs=("get",), own_namespace=True)
    system = System(name="more", reconciles=(), rules=(scale, keys))
    assert {
        "apiGroups": ["apps"],
        "resources": ["deployments/scale"],
        "resourceNames": ["web"],
        "verbs": ["patch"],
    } in rules_by_place(system, scheme)[""]
    assert {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]} in at_home(system, scheme)


def test_a_controller_that_keeps_to_a_namespace_has_rights_only_there(scheme: Scheme) -> None:
    class Kept(Controller[Secret]):
        query = Query(namespace="harbour")
        owns = (ConfigMap,)

    documents = grants(System(name="kept", reconciles=(Kept,)), scheme)
    assert [(d["kind"], d["metadata"].get("namespace")) for d in documents] == [
        ("ServiceAccount", NAMESPACE),
        ("Role", "harbour"),
        ("RoleBinding", "harbour"),
        ("Role", NAMESPACE),
        ("RoleBinding", NAMESPACE),
    ]


def test_nobody_may_make_secrets(scheme: Scheme) -> None:
    """One of the type of a token stands for any account of its namespace."""

    async def function(request: object, reader: object) -> Allowed:
        return Allowed()

    asked = Admission(name="ask", kinds=(Widget,), function=function)  # type: ignore[arg-type]
    documents = grants(System(name="asked", kinds=(Widget,), reconciles=(Maker,), admissions=(asked,)), scheme)
    rules = [rule for d in documents for rule in d.get("rules", ()) if "secrets" in rule["resources"]]
    assert rules == [
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": ["asked-webhook-certs"],
            "verbs": ["get", "patch"],
        }
    ]
    assert [d["metadata"]["name"] for d in documents if d["kind"] == "Secret"] == ["asked-webhook-certs"]


def test_people_with_the_usual_roles_have_them_for_a_systems_kinds(scheme: Scheme) -> None:
    documents = grants(SYSTEM, scheme)
    view, edit = (
        d for d in documents if d["kind"] == "ClusterRole" and d["metadata"]["name"].endswith(("view", "edit"))
    )
    kind = scheme.kind_of(Widget)
    assert view["rules"] == [
        {"apiGroups": [kind.group], "resources": ["widgets", "widgets/status"], "verbs": ["get", "list", "watch"]}
    ]
    assert {verb for rule in edit["rules"] for verb in rule["verbs"]} == {
        *("create", "delete", "deletecollection", "patch", "update"),
    }
    label = "rbac.authorization.k8s.io/aggregate-to-{}"
    assert [view["metadata"]["labels"].get(label.format(role)) for role in ("view", "edit", "admin")] == ["true"] * 3
    assert [edit["metadata"]["labels"].get(label.format(role)) for role in ("view", "edit", "admin")] == [
        *(None, "true", "true"),
    ]
