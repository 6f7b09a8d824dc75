"""What an execution knows after some of it failed: the objects that it made are its own, whatever others do to them."""

from __future__ import annotations

import pytest

from tests.systems.platform.stage import Site, served
from trimtab.client.protocol import Named
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.inventory import Inventory, InventoryFailed
from trimtab.runtime.inventory.keeper import Failure
from trimtab.runtime.inventory.plan import LABEL, Entry

MANAGER = "tests.trimtab.dev"


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


async def test_what_was_made_before_a_failure_is_known_by_its_uid() -> None:
    client, close = await served()
    site = Site("one", client, close)
    owner = await client.create(Untyped(config_map("owner")))
    inventory = Inventory(site.dialled(), SystemClock(), manager=MANAGER)
    site.wire.refuse = lambda call: (
        StatusError(403, "Forbidden", "no") if call.path.endswith("/b") and not call.safe else None
    )
    with pytest.raises(InventoryFailed, match="ConfigMap default/b"):
        await inventory.apply(owner, [config_map("a"), config_map("b")])
    site.wire.refuse = lambda call: None
    live = await client.get(Named("v1", "ConfigMap"), "a", "default")
    assert live.raw["metadata"]["labels"][LABEL]
    await client.patch(live, Untyped({**live.raw, "metadata": {**live.raw["metadata"], "labels": {}}}))
    plan = await inventory.plan(owner, [config_map("a"), config_map("b")])
    assert plan.refused == ()
    assert [step.entry.name for step in plan.change] == ["a"]
    await close()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (StatusError(422, "Invalid", "data: hush"), "Secret default/s: Invalid"),
        (
            StatusError(500, "", "hush"),
            "Secret default/s: the server refused it with status 500; its words are not shown",
        ),
    ],
)
def test_why_a_secret_could_not_be_applied_is_told_without_what_is_in_it(error: StatusError, says: str) -> None:
    entry = Entry(api_version="v1", kind="Secret", name="s", namespace="default")
    told = str(Failure(entry, error))
    assert told.startswith(says)
    assert "hush" not in told
