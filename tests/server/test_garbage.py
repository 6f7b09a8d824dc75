"""Owners and what becomes of their dependents."""

from tests.server.api import Api, config_map
from tests.server.test_definitions import BOATS, DEFINITIONS, boat, definition

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_dependent_goes_with_its_owner(api: Api) -> None:
    owner = (await api.post(MAPS, config_map("owner"))).doc
    await api.post(MAPS, config_map("child", (owner,)))
    await api.delete(f"{MAPS}/owner")
    await api.gone(f"{MAPS}/child")


async def test_a_grandchild_goes_too(api: Api) -> None:
    owner = (await api.post(MAPS, config_map("owner"))).doc
    child = (await api.post(MAPS, config_map("child", (owner,)))).doc
    await api.post(MAPS, config_map("grandchild", (child,)))
    await api.delete(f"{MAPS}/owner")
    await api.gone(f"{MAPS}/grandchild")


async def test_a_dependent_with_another_owner_stays_and_loses_the_reference(api: Api) -> None:
    first = (await api.post(MAPS, config_map("first"))).doc
    second = (await api.post(MAPS, config_map("second"))).doc
    await api.post(MAPS, config_map("child", (first, second)))
    await api.delete(f"{MAPS}/first")
    child = await api.until(f"{MAPS}/child", lambda a: len(a.doc["metadata"]["ownerReferences"]) == 1)
    assert child.doc["metadata"]["ownerReferences"][0]["name"] == "second"


async def test_a_foreground_deletion_waits_for_dependents_that_block_it(api: Api) -> None:
    owner = (await api.post(MAPS, config_map("owner"))).doc
    await api.post(MAPS, config_map("child", (owner,), block=True, finalizers=["example.com/hold"]))
    deleted = await api.delete(f"{MAPS}/owner", {"propagationPolicy": "Foreground"})
    assert deleted.doc["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.until(f"{MAPS}/child", lambda a: "deletionTimestamp" in a.doc["metadata"])
    assert (await api.get(f"{MAPS}/owner")).code == 200
    await api.merge(f"{MAPS}/child", {"metadata": {"finalizers": None}})
    await api.gone(f"{MAPS}/owner")


async def test_orphaned_dependents_stay_without_the_reference(api: Api) -> None:
    owner = (await api.post(MAPS, config_map("owner"))).doc
    await api.post(MAPS, config_map("child", (owner,)))
    await api.delete(f"{MAPS}/owner", {"propagationPolicy": "Orphan"})
    await api.gone(f"{MAPS}/owner")
    child = await api.get(f"{MAPS}/child")
    assert child.code == 200
    assert "ownerReferences" not in child.doc["metadata"]


async def test_a_dependent_of_an_owner_that_never_was_goes(api: Api) -> None:
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "no-such-uid"}}
    await api.post(MAPS, config_map("child", (ghost,)))
    await api.gone(f"{MAPS}/child")


async def test_an_owner_made_anew_under_the_same_name_is_another_owner(api: Api) -> None:
    first = (await api.post(MAPS, config_map("owner"))).doc
    await api.post(MAPS, config_map("stays", (first,)))
    earlier = {**first, "metadata": {**first["metadata"], "uid": "of-an-owner-before"}}
    await api.post(MAPS, config_map("child", (earlier,)))
    await api.gone(f"{MAPS}/child")
    assert (await api.get(f"{MAPS}/stays")).code == 200


async def test_a_reference_to_a_kind_that_is_not_served_is_left_alone(api: Api) -> None:
    stranger = {"apiVersion": "example.com/v1", "kind": "Stranger", "metadata": {"name": "x", "uid": "u"}}
    owner = (await api.post(MAPS, config_map("owner"))).doc
    await api.post(MAPS, config_map("stays", (stranger,)))
    await api.post(MAPS, config_map("goes", (owner,)))
    await api.delete(f"{MAPS}/owner")
    await api.gone(f"{MAPS}/goes")
    assert (await api.get(f"{MAPS}/stays")).code == 200


async def test_a_circle_ends_in_the_foreground(api: Api) -> None:
    first = (await api.post(MAPS, config_map("first"))).doc
    second = (await api.post(MAPS, config_map("second", (first,), block=True))).doc
    back = config_map("first", (second,), block=True)["metadata"]["ownerReferences"]
    await api.merge(f"{MAPS}/first", {"metadata": {"ownerReferences": back}})
    await api.delete(f"{MAPS}/first", {"propagationPolicy": "Foreground"})
    await api.gone(f"{MAPS}/first")
    await api.gone(f"{MAPS}/second")


async def test_dependents_of_custom_objects_go_when_their_definition_does(api: Api) -> None:
    await api.post(DEFINITIONS, definition())
    await api.until(BOATS, lambda answer: answer.code == 200)
    for number in range(5):
        owner = (await api.post(BOATS, boat(f"boat{number}"))).doc
        await api.post(MAPS, config_map(f"child{number}", (owner,)))
    await api.delete(f"{DEFINITIONS}/boats.sea.example.com")
    for number in range(5):
        await api.gone(f"{MAPS}/child{number}")
