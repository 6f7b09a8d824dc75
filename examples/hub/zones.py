"""DNS zones of a PowerDNS as a hub kind: `trimtab up --operator zones.py`, with the API in PDNS_URL and its key in PDNS_KEY.

PowerDNS holds the data, in its own shape and with its own IDs. People, Git and Terraform see a Zone.
"""

from __future__ import annotations

import os
from typing import Annotated, Any

import aiohttp
import msgspec
from msgspec import Meta

from trimtab.hub import contract
from trimtab.model.hub import HubKind, HubResource
from trimtab.model.markers import Immutable, Keyed
from trimtab.model.resource import Spec
from trimtab.runtime import System


class Record(Spec):
    name: Annotated[str, Meta(min_length=1, description="Relative to the zone; @ is the zone itself.")]
    type: Annotated[str, Meta(pattern="^[A-Z]+$", description="As in DNS: A, AAAA, TXT, …")] = "A"
    ttl: Annotated[int, Meta(ge=1, le=86400, description="In seconds.")] = 300
    values: Annotated[tuple[str, ...], Meta(min_length=1, description="Each as a zone file has it.")]


class ZoneSpec(Spec):
    domain: Annotated[str, Immutable(), Meta(pattern=r"^([a-z0-9-]+\.)+[a-z]+$", description="With no dot at its end.")]
    records: Annotated[tuple[Record, ...], Keyed("name", "type"), Meta(description="All but SOA and NS.")] = ()


class Zone(HubResource, group="dns", version="v1", plural="zones"):
    spec: ZoneSpec


def in_order(zone: dict[str, Any]) -> None:
    """The defaulter. Order means nothing to PowerDNS, so we have one: what is applied again is no change."""
    records = zone["spec"].get("records") or []
    for record in records:
        record["values"] = sorted(record["values"])
    records.sort(key=lambda record: (record["name"], record.get("type", "A")))


class Spoke(msgspec.Struct):
    """A zone as PowerDNS has it."""

    name: str
    account: str  # we keep project/name here: PowerDNS knows no projects
    rrsets: list[dict[str, Any]]
    kind: str = "Native"
    id: str = ""


class Convertor:
    """Between a Zone and PowerDNS's zone. PowerDNS adds SOA and NS records: they are its own affair."""

    def convert_to(self, spoke: Spoke) -> dict[str, Any]:
        project, _, name = spoke.account.partition("/")
        origin = spoke.name
        records = [
            {
                "name": "@" if each["name"] == origin else each["name"].removesuffix("." + origin),
                "type": each["type"],
                "ttl": each["ttl"],
                "values": [record["content"] for record in each["records"]],
            }
            for each in spoke.rrsets
            if each["type"] not in ("SOA", "NS")
        ]
        spec = {"domain": origin.rstrip("."), "records": records}
        in_order({"spec": spec})
        return {"metadata": {"name": name, "project": project}, "spec": spec}

    def convert_from(self, hub: dict[str, Any]) -> Spoke:
        origin = hub["spec"]["domain"] + "."
        rrsets = [
            {
                "name": origin if each["name"] == "@" else f"{each['name']}.{origin}",
                "type": each.get("type", "A"),
                "ttl": each.get("ttl", 300),
                "records": [{"content": value, "disabled": False} for value in each["values"]],
            }
            for each in hub["spec"].get("records") or ()
        ]
        return Spoke(origin, f"{hub['metadata']['project']}/{hub['metadata']['name']}", rrsets)


class Zones:
    """The accessor: all that talks to PowerDNS."""

    convertor = Convertor()

    async def get(self, name: str, options: contract.GetOptions) -> dict[str, Any]:
        found = await self._ask("GET", await self._id(f"{options.project}/{name}"))
        return self.convertor.convert_to(msgspec.convert(found, Spoke))

    async def list(self, options: contract.ListOptions) -> contract.HubList:
        mine = "" if options.all_projects else f"{options.project}/"
        ours = [
            zone["id"] for zone in await self._ask("GET") if "/" in zone["account"] and zone["account"].startswith(mine)
        ]
        spokes = [msgspec.convert(await self._ask("GET", one), Spoke) for one in ours]
        return contract.HubList(items=[self.convertor.convert_to(spoke) for spoke in spokes])

    async def apply(self, hub: dict[str, Any], options: contract.ApplyOptions) -> dict[str, Any]:
        wanted = self.convertor.convert_from(hub)
        owner = next((zone["account"] for zone in await self._ask("GET") if zone["name"] == wanted.name), None)
        if owner is None:
            await self._ask("POST", json={**msgspec.to_builtins(wanted), "nameservers": []})
        elif owner != wanted.account:
            raise contract.Refused([("spec.domain", f"the zone is {owner or 'nobody'}'s: delete it there first")])
        else:
            now = msgspec.convert(await self._ask("GET", wanted.name), Spoke)
            kept = {(each["name"], each["type"]) for each in wanted.rrsets}
            gone = [e for e in now.rrsets if (e["name"], e["type"]) not in kept and e["type"] not in ("SOA", "NS")]
            changes = [{**each, "changetype": "REPLACE"} for each in wanted.rrsets]
            changes += [{"name": each["name"], "type": each["type"], "changetype": "DELETE"} for each in gone]
            await self._ask("PATCH", wanted.name, json={"rrsets": changes})
        return await self.get(hub["metadata"]["name"], contract.GetOptions(project=options.project))

    async def delete(self, name: str, options: contract.DeleteOptions) -> None:
        await self._ask("DELETE", await self._id(f"{options.project}/{name}"))

    async def status(self, name: str, options: contract.StatusOptions) -> dict[str, Any]:
        return {}

    async def _id(self, account: str) -> str:
        for zone in await self._ask("GET"):
            if zone["account"] == account:
                return str(zone["id"])
        raise contract.Missing(f"PowerDNS has no zone for {account}")

    async def _ask(self, method: str, zone: str = "", **body: Any) -> Any:
        try:
            url = f"{os.environ['PDNS_URL']}/servers/localhost/zones" + (f"/{zone}" if zone else "")
            async with aiohttp.request(method, url, headers={"X-API-Key": os.environ["PDNS_KEY"]}, **body) as answer:
                if answer.status == 422:
                    raise contract.Refused([("spec", (await answer.json())["error"])])
                answer.raise_for_status()
                return None if answer.status == 204 else await answer.json()
        except aiohttp.ClientError as error:
            raise contract.Down(f"PowerDNS: {error}") from None
        except KeyError as missing:
            raise contract.Down(f"PowerDNS: {missing} is not set in the environment") from None


SYSTEM = System(name="zones", hub=(HubKind(cls=Zone, accessor=Zones, defaulter=in_order),))
