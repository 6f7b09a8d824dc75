"""A whole operator: every ConfigMap with the label `greet` gets its greeting, and gets it back when someone takes it.

trimtab run examples/operator/greeter.py
"""

from trimtab.client.protocol import Query
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime import Controller, Request


class Greeter(Controller[ConfigMap]):
    query = Query(labels="greet")

    async def reconcile(self, request: Request) -> None:
        found = await self.client.find(ConfigMap, request.name, request.namespace)
        if found is not None:
            greeting = {**(found.data or {}), "greeting": f"Hello, {found.name}!"}
            await self.client.patch(found, found.replace(data=greeting))
