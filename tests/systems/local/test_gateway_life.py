"""Envoy's life: it outlives controllers that were killed, is replaced when it dies, and ends with them in order."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterable
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.systems.local.gateway_kit import PORT, Gateway, ask, client, gateway, scheme, server, to
from trimtab.client.protocol import Ref
from trimtab.model.istio import VirtualService
from trimtab.model.kubernetes import Event, Service
from trimtab.systems.local.gateway import controller as controller_module
from trimtab.systems.local.gateway.controller import GatewayController
from trimtab.systems.local.gateway.envoy.admin import Echo
from trimtab.systems.local.gateway.envoy.bootstrap import CLUSTERS, LISTENERS
from trimtab.systems.local.gateway.envoy.files import Files
from trimtab.systems.local.gateway.envoy.process import Process
from trimtab.systems.local.gateway.telling import NotEchoed, Outcome
from trimtab.systems.local.gateway.translate import translate

__all__ = ["client", "gateway", "scheme", "server"]


def pid_of(controller: GatewayController) -> int:
    record = controller._process.record
    assert record is not None
    return record.pid


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def two_versions(gateway: Gateway) -> None:
    for name in ("web", "web-canary"):
        await gateway.service(name)
        await gateway.backend(name)
    await gateway.virtual_service("web", [to(("web", 100), ("web-canary", 0))])


async def test_envoy_outlives_controllers_that_are_killed_and_is_found_again(gateway: Gateway) -> None:
    await two_versions(gateway)
    async with gateway.working(killed=True) as controller:
        url = await gateway.serving("web")
        await gateway.live("web")
        before, published = pid_of(controller), await gateway.published()
    assert await ask(url) == {"200 web": 1}
    await gateway.route("web", [to(("web", 0), ("web-canary", 100))])
    async with gateway.working() as controller:
        assert (await gateway.live("web"))["status"] == "True"
        assert pid_of(controller) == before
        assert await ask(url) == {"200 web-canary": 1}
        assert await gateway.published() == published
    assert not is_alive(before)


async def test_envoy_goes_on_when_only_the_controllers_end_and_ends_with_the_home(gateway: Gateway) -> None:
    await two_versions(gateway)
    stopping = asyncio.Event()
    async with gateway.working(stopping=stopping) as controller:
        url = await gateway.serving("web")
        before = pid_of(controller)
    assert await ask(url) == {"200 web": 1}
    await gateway.route("web", [to(("web", 0), ("web-canary", 100))])
    async with gateway.working(stopping=stopping) as controller:
        await gateway.live("web")
        assert pid_of(controller) == before
        stopping.set()
    assert not is_alive(before)


async def test_envoy_is_asked_about_more_names_than_fit_into_a_request(gateway: Gateway) -> None:
    await two_versions(gateway)
    async with gateway.working() as controller:
        await gateway.live("web")
        known = "outbound|80||web.shop.svc.cluster.local"
        many = [known, *(f"outbound|80||web-{number}.shop.svc.cluster.local" for number in range(3000))]
        assert known in await controller._process.admin.clusters(many)


async def test_a_port_that_is_taken_is_told_and_tried_again(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_module, "FAILED", 0.1)
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        await gateway.service("web", ports=[{"name": "http", "port": port, "targetPort": PORT}])
        await gateway.service("other")
        await gateway.backend("web")
        await gateway.backend("other")
        async with gateway.working():
            assert await ask(await gateway.serving("other")) == {"200 other": 1}
            address = await gateway.address("web")
            found = await gateway.until(Event, "", lambda event: event.reason == "NoListener")
            assert f"{address}:{port}" in found.note
            taken.close()
            async with asyncio.timeout(20):
                while not await _answers(f"http://{address}:{port}"):  # noqa: ASYNC110 - asks a real server
                    await asyncio.sleep(0.01)


async def _answers(url: str) -> bool:
    try:
        return bool(await ask(url))
    except aiohttp.ClientError:
        return False


async def test_routes_that_envoy_refuses_although_nobody_is_to_blame_are_not_said_to_be_live(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two_versions(gateway)
    async with gateway.working() as controller:
        await gateway.live("web")

        async def refuses(_config: object) -> Outcome:
            return Outcome(refused=frozenset({"mesh"}))

        monkeypatch.setattr(controller._teller, "tell", refuses)
        with pytest.raises(NotEchoed):
            await controller._told(await controller._world())


async def test_one_that_adopts_envoy_tells_it_nothing_twice(gateway: Gateway) -> None:
    await two_versions(gateway)
    async with gateway.working(killed=True):
        await gateway.serving("web")
        await gateway.live("web")
    files = {path: path.stat().st_ino for path in (gateway.folder / "gateway").glob("*/*.json")}
    assert files
    await gateway.virtual_service("later", [to(("web", 100))], hosts=["later.example"])
    async with gateway.working():
        await gateway.live("later")
        changed = {path.name for path, node in files.items() if path.stat().st_ino != node}
    assert changed == {"ingress.json"}


async def test_envoy_that_dies_is_replaced_and_gets_the_same_routes(gateway: Gateway) -> None:
    await two_versions(gateway)
    async with gateway.working() as controller:
        url = await gateway.serving("web")
        await gateway.live("web")
        before = pid_of(controller)
        os.kill(before, signal.SIGKILL)
        url = await gateway.serving("web")
        await gateway.route("web", [to(("web", 0), ("web-canary", 100))])
        await gateway.live("web")
        assert pid_of(controller) != before
        assert await ask(url) == {"200 web-canary": 1}


async def test_bad_routes_are_still_replaced_by_the_good_ones_after_a_restart(gateway: Gateway) -> None:
    await two_versions(gateway)
    async with gateway.working():
        await gateway.serving("web")
        await gateway.live("web")
    await gateway.route("web", [{"redirect": {"uri": "/", "surprise": True}}])
    async with gateway.working():
        bad = await gateway.live("web")
        assert (bad["status"], bad["reason"]) == ("False", "NotUnderstood")
        assert "spec.http[0].redirect.surprise" in bad["message"]
        assert await ask(await gateway.serving("web")) == {"200 web": 1}


async def test_without_envoy_the_status_says_how_to_install_it(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "envoy", None)
    await two_versions(gateway)
    async with gateway.working():
        bad = await gateway.live("web")
        assert (bad["status"], bad["reason"]) == ("False", "EnvoyMissing")
        assert 'pip install "trimtab[local]"' in bad["message"]


async def test_a_service_that_goes_takes_its_listener_and_its_cluster_along(gateway: Gateway) -> None:
    await two_versions(gateway)
    async with gateway.working() as controller:
        await gateway.serving("web")
        await gateway.live("web")
        await gateway.client.delete(Ref(VirtualService, "web", "shop"))
        await gateway.client.delete(Ref(Service, "web-canary", "shop"))
        while await controller._process.admin.clusters(["outbound|80||web-canary.shop.svc.cluster.local"]):
            pass
        left = await controller._process.admin.listeners(["shop.web-canary.80"])
        assert not any(echo.version for echo in left.values())  # it may still let connections end
        assert await ask(await gateway.serving("web")) == {"200 web": 1}


async def test_clusters_that_envoy_refuses_are_named_and_the_others_stay(gateway: Gateway) -> None:
    await two_versions(gateway)
    async with gateway.working() as controller:
        url = await gateway.serving("web")
        await gateway.live("web")
        config = translate(await controller._world())
        name = "outbound|80||web-canary.shop.svc.cluster.local"
        bad = {**config.clusters, name: {**config.clusters[name], "connect_timeout": "-1s"}}
        outcome = await controller._teller.tell(msgspec.structs.replace(config, clusters=bad))
        assert outcome.clusters == {name}
        assert await ask(url) == {"200 web": 1}
        assert (await controller._teller.tell(config)).clusters == frozenset()


async def test_nobody_waits_for_routes_that_no_listener_goes_by(gateway: Gateway) -> None:
    async with gateway.working():
        async with asyncio.timeout(8):  # less than Envoy gets to echo something
            assert (await gateway.published())["ingress"]
        await gateway.service("web")
        await gateway.backend("web")
        assert await ask(await gateway.serving("web")) == {"200 web": 1}
        await gateway.client.delete(Ref(Service, "web", "shop"))
        async with asyncio.timeout(8):
            await gateway.virtual_service("web", [to(("web", 100))])
            assert (await gateway.live("web"))["status"] == "True"


async def test_a_new_envoy_hears_nobody_before_it_knows_who_answers(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two_versions(gateway)
    async with gateway.working() as controller:
        await gateway.serving("web")
        assert controller._files.resources(LISTENERS)
    started: list[object] = []
    start = Process._start

    async def seen(process: Process, command: str) -> None:
        started.append(Files(process.folder).resources(LISTENERS))
        await start(process, command)

    monkeypatch.setattr(Process, "_start", seen)
    async with gateway.working():
        await gateway.serving("web")
    assert started == [[]]


async def test_a_cluster_goes_only_when_no_route_names_it_any_more(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two_versions(gateway)
    async with gateway.working() as controller:
        await gateway.serving("web")
        await gateway.live("web")
        world, name = await controller._world(), "outbound|80||web-canary.shop.svc.cluster.local"
        without = translate(
            msgspec.structs.replace(
                world, services=tuple(each for each in world.services if each.name == "web"), virtual_services=()
            )
        )
        assert name in translate(world).clusters
        assert name not in without.clusters
        told: list[tuple[str, bool]] = []
        put = controller._files.put

        def seen(file: str, resources: Iterable[dict[str, Any]], *, again: bool = False) -> tuple[str, bool]:
            listed = list(resources)
            told.append((file, any(each["name"] == name for each in listed)))
            return put(file, listed, again=again)

        monkeypatch.setattr(controller._files, "put", seen)
        await controller._teller.tell(without)
        monkeypatch.undo()
        assert told[0] == (CLUSTERS, True)
        assert told[-1] == (CLUSTERS, False)
        assert any(file == "routes/mesh.json" for file, _ in told[1:-1])


async def test_routes_are_live_when_they_are_in_force_and_not_when_they_were_read(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two_versions(gateway)
    async with gateway.working() as controller:
        await gateway.live("web")
        asked, routes = [0], controller._process.admin.routes

        async def late(names: Iterable[str]) -> dict[str, Echo]:
            asked[0] += 1
            found = await routes(names)
            return found if asked[0] > 3 else {name: Echo("before") for name in found}

        monkeypatch.setattr(controller._process.admin, "routes", late)
        await gateway.route("web", [to(("web", 50), ("web-canary", 50))])
        await gateway.live("web")
        assert asked[0] > 3


async def test_another_envoy_is_asked_anew_although_nothing_has_changed(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two_versions(gateway)
    async with gateway.working() as controller:
        await gateway.serving("web")
        await gateway.live("web")
        again, routes = asyncio.Event(), controller._process.admin.routes

        async def asked(names: Iterable[str]) -> dict[str, Echo]:
            again.set()
            return await routes(names)

        monkeypatch.setattr(controller._process.admin, "routes", asked)
        os.kill(pid_of(controller), signal.SIGKILL)
        async with asyncio.timeout(20):
            await again.wait()


async def test_a_failure_of_before_says_nothing_of_a_listener_of_now(gateway: Gateway) -> None:
    async with gateway.working() as controller:
        await gateway.published()
        answers = [Echo("", "taken", 5.0), Echo("v1", "taken", 5.0), Echo("v2")]

        async def ask_(_names: Iterable[str]) -> dict[str, Echo]:
            return {"web": answers.pop(0)}

        assert await controller._teller._until(ask_, {"web": "v2"}, 10.0) == {}
        answers = [Echo("v1", "taken", 11.0)]
        assert await controller._teller._until(ask_, {"web": "v2"}, 10.0) == {"web": "taken"}


async def test_what_was_deleted_stands_in_for_nothing(gateway: Gateway) -> None:
    for name in ("web", "web-canary"):
        await gateway.service(name)
        await gateway.backend(name)
    await gateway.virtual_service("web", [to(("web", 0), ("web-canary", 100))])
    async with gateway.working() as controller:
        url = await gateway.serving("web")
        await gateway.live("web")
        assert await ask(url) == {"200 web-canary": 1}
        await gateway.client.delete(Ref(VirtualService, "web", "shop"))
        async with asyncio.timeout(20):
            while await ask(url) != {"200 web": 1}:  # noqa: ASYNC110 - asks a real server
                await asyncio.sleep(0.01)
        assert not list((gateway.folder / "gateway" / "held").iterdir())
        await gateway.virtual_service("web", [{"redirect": {"surprise": True}}])
        assert (await gateway.live("web"))["status"] == "False"
        assert await ask(url) == {"200 web": 1}
        assert not controller._held


async def test_a_process_that_has_envoys_number_by_now_is_left_alone(gateway: Gateway) -> None:
    folder = gateway.folder / "gateway"
    folder.mkdir()
    other = await asyncio.create_subprocess_exec("/bin/sleep", "60")
    try:
        (folder / "envoy.json").write_bytes(msgspec.json.encode({"pid": other.pid, "started": 1}))
        async with gateway.working() as controller:
            await gateway.published()
            assert pid_of(controller) != other.pid
        assert other.returncode is None
    finally:
        other.kill()
        await other.wait()
