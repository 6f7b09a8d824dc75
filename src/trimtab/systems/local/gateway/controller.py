"""Keeps one Envoy in step with Services, Pods, VirtualServices and DestinationRules, and says in their status what is live.

There is one Envoy, so there is one thing to reconcile: any change asks for the whole. Changes that come while it is at work
are taken together by the next turn; there is no other delay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.model.istio import DestinationRule, VirtualService
from trimtab.model.kubernetes import ConfigMap, Deployment, Pod, Service
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource
from trimtab.runtime import (
    Change,
    Context,
    Controller,
    Predicate,
    Request,
    Result,
    Rule,
    Watch,
    any_change,
    generation_changed,
)
from trimtab.systems.local.gateway.names import Key
from trimtab.systems.local.gateway.world import World, key_of

if TYPE_CHECKING:
    from trimtab.systems.local.gateway.envoy.process import Record
    from trimtab.systems.local.gateway.translate import Config
    from trimtab.systems.local.pods.truth import Truth

WHOLE = Request("", "envoy")
MANAGER = "gateway"
NAMESPACE, PUBLISHED = "trimtab-system", "data-plane"
TURNS = 4
"""How often one reconcile may leave out what Envoy refused."""
MISSING, FAILED = 30.0, 5.0

RULES = (
    Rule(
        kinds=("virtualservices.networking.istio.io/status", "destinationrules.networking.istio.io/status"),
        verbs=("get", "patch"),
    ),
    Rule(kinds=(ConfigMap,), verbs=("get", "create", "patch"), own_namespace=True),
)
"""What it may do beyond its declarations."""


def _asks(kind: type[Resource], when: Predicate = any_change) -> Watch:
    """Any change of a kind asks for the whole, in the kind's name: the others need not be read again."""
    request = Request("", kind.__name__)

    def to(_change: Change) -> Iterable[Request]:
        return (request,)

    return Watch(kind=kind, to=to, when=when)


class GatewayController(Controller[Service]):
    """See the module. The folder for Envoy is `gateway` in the home's data directory."""

    name = "gateway"
    when = Predicate(lambda _change: False)
    watches = (
        _asks(Service),
        _asks(Pod),
        _asks(Deployment, generation_changed),
        _asks(VirtualService, generation_changed),
        _asks(DestinationRule, generation_changed),
    )
    concurrency = 1
    echo = False

    def __init__(self, context: Context, truth: Truth | None = None) -> None:
        if context.data_dir is None:
            raise ValueError("the local data plane needs a data directory")
        self._context, self._truth = context, truth
        self._folder: Path = context.data_dir / "gateway"
        self._refused: dict[Key, tuple[Any, str]] = {}
        self._refused_rules: dict[Key, tuple[Any, str]] = {}
        self._published: dict[str, str] = {}
        self._guard: asyncio.Task[None] | None = None
        self._met: Record | None = None
        self._before: World | None = None
        self._annotated: object = None
        self._ready = False

    # --- its life ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        from trimtab.systems.local.gateway import ports
        from trimtab.systems.local.gateway.envoy.bootstrap import LISTENERS
        from trimtab.systems.local.gateway.envoy.files import Files
        from trimtab.systems.local.gateway.envoy.process import Process
        from trimtab.systems.local.gateway.held import Held
        from trimtab.systems.local.gateway.mirror import Mirror
        from trimtab.systems.local.gateway.serving import MetricsServer
        from trimtab.systems.local.gateway.telling import Teller
        from trimtab.systems.local.gateway.translate import Memory

        if self._truth is not None:
            await self._truth.told(self.client)
        self._mirror, self._memory = Mirror(self.client), Memory()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._files = Files(self._folder)
        self._process = Process(self._folder)
        if not await self._process.adopt():
            self._files.put(LISTENERS, ())  # a new Envoy hears nobody before it knows who answers now
        self._teller = Teller(self._files, self._process.admin)
        self._held = Held(self._folder / "held")
        self._ports = ports.load(self._folder / "ports.json")
        self._server = MetricsServer(self.metrics)
        await self._server.start(self._ports.metrics)
        self._save_ports(self._ports.ingress)
        self._ready = True
        self.wake(WHOLE)

    async def stop(self) -> None:
        """Envoy ends with the home; when only the controllers end, they will be back, and find it as it is."""
        stopping = self._context.stopping
        if stopping is not None and not stopping.is_set():
            await self.abandon()
            return
        await self._leave()
        if self._ready:
            await self._process.stop()

    async def pause(self) -> None:
        """Nothing of it acts by itself: whoever works next finds Envoy as it is."""
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None

    async def abandon(self) -> None:
        """As if we were killed: Envoy lives on."""
        await self._leave()
        if self._ready:
            await self._process.leave()
            self._ready = False

    async def _leave(self) -> None:
        await self.pause()
        if self._ready:
            await self._server.stop()

    async def metrics(self) -> bytes:
        """What Envoy counted, as Prometheus text in Istio's names."""
        from trimtab.systems.local.gateway.metrics import STATS, istio_text

        return istio_text(await self._process.admin.get("/stats/prometheus", filter=STATS))

    # --- reconcile ---------------------------------------------------------------------------------------------------

    async def reconcile(self, request: Request) -> Result | None:
        from trimtab.systems.local.gateway.envoy.process import LOG, EnvoyFailed, EnvoyMissing
        from trimtab.systems.local.pods.logs import rotate

        if request.namespace:
            return None  # a Service's own; the whole is asked for anyway
        self._mirror.stale(request.name)
        world = await self._world()
        try:
            await self._process.ensure()
        except EnvoyFailed as failed:
            self.log.error("no data plane", error=str(failed))
            await self._report_all(world, "EnvoyFailed", str(failed)[:300])
            return Result(requeue_after=FAILED)
        except EnvoyMissing as missing:
            self.log.error("no data plane", error=str(missing))
            await self._report_all(world, "EnvoyMissing", str(missing))
            return Result(requeue_after=MISSING)
        self._meet()
        config, unheard = await self._told(world)
        await self._report(world, config)
        await self._annotate(world, config)
        await self._publish()
        self._say_unheard(world, unheard)
        await asyncio.to_thread(rotate, self._folder / LOG)
        return Result(requeue_after=FAILED) if unheard else None

    def _meet(self) -> None:
        """Another Envoy than before knows nothing of what was told, and is watched over anew."""
        if self._process.record != self._met:
            self._teller.forget()
            self._watch_over()
            self._met = self._process.record

    async def _world(self) -> World:
        from trimtab.systems.local.gateway.addresses import addresses
        from trimtab.systems.local.gateway.ports import lowest

        services, virtual_services = await self._mirror.all(Service), await self._mirror.all(VirtualService)
        pods, deployments = await self._mirror.all(Pod), await self._mirror.all(Deployment)
        rules, ingress = await self._mirror.all(DestinationRule), self._ports.ingress
        before = self._before
        ground = (services, pods, deployments, rules, ingress)
        if before is not None and ground == (
            *(before.services, before.pods, before.deployments, before.destination_rules, before.ingress),
        ):
            self._before = before.routed(virtual_services)
        else:
            self._before = World(
                services=services,
                pods=pods,
                deployments=deployments,
                virtual_services=virtual_services,
                destination_rules=rules,
                addresses=addresses(services),
                ingress=ingress,
                lowest=lowest(),
            )
        return self._before

    async def _told(self, world: World) -> tuple[Config, dict[str, str]]:
        """Tell Envoy; leave out what it refuses, and tell it again. What it was told at last, and the listeners that it
        could not make."""
        from trimtab.systems.local.gateway import ports
        from trimtab.systems.local.gateway.culprits import culprits
        from trimtab.systems.local.gateway.names import INGRESS
        from trimtab.systems.local.gateway.telling import NotEchoed
        from trimtab.systems.local.gateway.translate import translate

        specs: dict[Key, Any] = {key_of(each): each.spec for each in world.virtual_services}
        self._refused = {key: held for key, held in self._refused.items() if specs.get(key) == held[0]}
        rules: dict[Key, Any] = {key_of(each): each.spec for each in world.destination_rules}
        self._refused_rules = {key: held for key, held in self._refused_rules.items() if rules.get(key) == held[0]}
        self._held.only(set(specs))
        for _ in range(TURNS):
            refused = {key: text for key, (_, text) in self._refused.items()}
            rules_refused = {key: text for key, (_, text) in self._refused_rules.items()}
            config = translate(world, self._held, refused, rules_refused, self._memory)
            outcome = await self._teller.tell(config)
            if INGRESS in outcome.failed and not ports.fixed_ingress():
                self._save_ports(ports.free())
                world = msgspec.structs.replace(world, ingress=self._ports.ingress)
                continue
            if outcome.clusters and self._blamed_rules(world, outcome.clusters):
                continue
            if not outcome.refused:
                break
            guilty = await culprits(config, outcome.refused, specs, self._held)
            self.log.warning("Envoy refused routes", of=sorted(map(str, guilty)), listeners=sorted(outcome.refused))
            for key, text in guilty.items():
                self._refused[key] = (specs[key], text)
        else:
            raise NotEchoed("Envoy refuses routes, and nobody's are to blame")
        for key, problems in config.problems.items():
            if not any(problem.error for problem in problems):
                self._held.keep(key, specs[key])
        return config, outcome.failed

    def _blamed_rules(self, world: World, refused: frozenset[str]) -> bool:
        """Leave out the DestinationRules of clusters that Envoy refused. False when none is to blame."""
        from trimtab.systems.local.gateway.names import fqdn, meant

        words = self._process.last_words()[-500:]
        self.log.error("Envoy refused clusters", clusters=sorted(refused), error=words)
        blamed = False
        for rule in world.destination_rules:
            host = rule.spec.get("host") if isinstance(rule.spec, dict) else None
            service = meant(host, rule.namespace) if isinstance(host, str) else None
            if service and any(name.endswith(f"|{fqdn(service)}") for name in refused):
                blamed = blamed or key_of(rule) not in self._refused_rules
                self._refused_rules[key_of(rule)] = (rule.spec, (words.splitlines() or ["it gave no reason"])[-1])
        return blamed

    def _watch_over(self) -> None:
        """Ask for a reconcile when Envoy ends."""

        async def guard() -> None:
            await self._process.ended()
            self.wake(WHOLE)

        if self._guard is not None:
            self._guard.cancel()
        self._guard = asyncio.create_task(guard(), name="envoy guard")

    # --- what is said of it ------------------------------------------------------------------------------------------

    async def _report(self, world: World, config: Config) -> None:
        from trimtab.systems.local.gateway.statuses import status

        now = self.clock.now()
        found: list[tuple[Any, Any]] = [(each, config.problems) for each in world.virtual_services]
        found += [(each, config.rule_problems) for each in world.destination_rules]
        for each, problems in found:
            about = problems.get(key_of(each), ())
            await self._write(each, status(each.status, each.metadata.generation or 0, about, now))

    async def _report_all(self, world: World, reason: str, message: str) -> None:
        from trimtab.systems.local.gateway.statuses import status

        now = self.clock.now()
        everyone: tuple[Any, ...] = (*world.virtual_services, *world.destination_rules)
        for each in everyone:
            made = status(each.status, each.metadata.generation or 0, (), now, reason=reason, message=message)
            await self._write(each, made)

    async def _write(self, obj: Any, status: dict[str, Any]) -> None:
        """A conflict means that the object changed: it is looked at again."""
        from trimtab.model.errors import StatusError
        from trimtab.runtime.status import write_status

        try:
            self._mirror.keep(await write_status(self.client, obj, status))
        except StatusError as error:
            if error.code not in (404, 409):
                raise
            self.wake(Request("", type(obj).__name__))

    async def _annotate(self, world: World, config: Config) -> None:
        """Each Service says where it is reached, and who answers."""
        from trimtab.model.errors import StatusError
        from trimtab.systems.local.gateway.addresses import ADDRESS, ENDPOINTS, PORTS

        if self._annotated is world.ports:
            return  # nothing but VirtualServices has changed since
        done: object = world.ports
        for service in world.services:
            address = world.addresses.get(key_of(service))
            held = service.metadata.annotations or {}
            wanted = {ENDPOINTS: self._answering(world, service), **({ADDRESS: address} if address else {})}
            numbers = [port.number for port in world.ports[key_of(service)]]
            moved = [f"{each}={world.heard_at(each)}" for each in numbers if address and world.heard_at(each) != each]
            wanted |= {PORTS: ",".join(moved)} if moved else {}
            if all(held.get(name) == text for name, text in wanted.items()) or service.metadata.deletion_timestamp:
                continue
            meta = ObjectMeta(
                name=service.name, namespace=service.namespace, annotations=wanted, uid=service.metadata.uid
            )
            try:
                self._mirror.keep(await self.client.apply(Service(metadata=meta), manager=MANAGER, force=True))
            except StatusError as error:
                if error.code not in (404, 409):
                    raise
                self.wake(Request("", "Service"))
                done = None
        self._annotated = done

    def _answering(self, world: World, service: Service) -> str:
        found = [
            f"{each.address}:{each.port}"
            for port in world.ports[key_of(service)]
            for each in world.endpoints(service, port)
        ]
        return ",".join(found) or "none"

    def _say_unheard(self, world: World, unheard: dict[str, str]) -> None:
        """A Service that nobody listens for, most often because its port is another's on this machine; and one whose
        address another Service has."""
        from trimtab.systems.local.gateway.addresses import denied
        from trimtab.systems.local.gateway.names import listener

        for service in world.services:
            address = world.addresses.get(key_of(service), "")
            if address and (wanted := denied(service, address)):
                note = f"{wanted} is another Service's: this one is reached at {address}; choose another clusterIP"
                self.events.warning(service, "AddressTaken", note)

        for name, text in unheard.items():
            self.log.error("no listener", listener=name, error=text)
        for service in world.services if unheard else ():
            for port in world.ports[key_of(service)]:
                if text := unheard.get(listener(key_of(service), port.number), ""):
                    where = f"{world.addresses.get(key_of(service))}:{world.heard_at(port.number)}"
                    self.events.warning(service, "NoListener", f"Envoy cannot listen at {where}: {text[:500]}")

    async def _publish(self) -> None:
        data = {
            "metrics": self._server.url,
            "ingress": f"127.0.0.1:{self._ports.ingress}",
            "admin": f"unix:{self._folder / 'admin.sock'}",
        }
        if data != self._published:
            meta = ObjectMeta(name=PUBLISHED, namespace=NAMESPACE)
            await self.client.apply(ConfigMap(metadata=meta, data=data), manager=MANAGER, force=True)
            self._published = data

    def _save_ports(self, ingress: int) -> None:
        from trimtab.systems.local.gateway import ports

        self._ports = ports.Ports(ingress, self._server.port)
        ports.save(self._folder / "ports.json", self._ports)
