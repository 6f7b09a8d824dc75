"""Custom resources in several versions, converted by a webhook. Messages are those of kube-apiserver 1.32."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.server.api import Api
from tests.server.conversion_kit import (
    DEFINITIONS,
    SHAPES,
    V1,
    V2,
    Webhook,
    boxed,
    converting,
    definition,
    flat,
)

FLAT, BOXED = SHAPES.format("v1"), SHAPES.format("v2")
DEFINITION = f"{DEFINITIONS}/shapes.shapes.example.com"


@pytest.fixture
async def webhook(tmp_path: Path) -> AsyncIterator[Webhook]:
    async with converting(tmp_path) as webhook:
        yield webhook


@pytest.fixture
async def shapes(api: Api, webhook: Webhook) -> Api:
    """A server with the kind, stored as v1."""
    await defined(api, definition(webhook.conversion()))
    return api


async def defined(api: Api, document: dict[str, Any]) -> None:
    answer = await api.post(DEFINITIONS, document)
    assert answer.code == 201, answer.doc
    await api.until(BOXED, lambda answer: answer.code == 200)


async def stored_as(api: Api, version: str) -> None:
    """From now on objects are stored in this version."""
    live = (await api.get(DEFINITION)).doc
    for each in live["spec"]["versions"]:
        each["storage"] = each["name"] == version
    assert (await api.put(DEFINITION, live)).code == 200
    path = ("shapes.example.com", version, "shapes")

    def is_served(_: Any) -> bool:
        served = api.server.registry.find(*path)
        return served is not None and served.primary is served

    await api.until(DEFINITION, is_served)


def without_defaults(webhook: Webhook) -> dict[str, Any]:
    """The definition without a field that v2 sets by itself, and v1 cannot hold."""
    document = definition(webhook.conversion())
    del document["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["own"]
    return document


async def test_an_object_is_read_in_each_version(shapes: Api, webhook: Webhook) -> None:
    made = await shapes.post(FLAT, flat("a", size=1))
    assert (made.code, made.doc["spec"], webhook.asked) == (201, {"size": 1, "kept": "by v1"}, [])
    seen = (await shapes.get(f"{BOXED}/a")).doc
    assert (seen["apiVersion"], seen["spec"]) == (V2, {"box": {"size": 1}, "kept": "by v1"})
    kept = {"labels", "annotations", "managedFields"}
    assert {k: v for k, v in seen["metadata"].items() if k not in kept} == {
        k: v for k, v in made.doc["metadata"].items() if k not in kept
    }
    (asked,) = webhook.asked
    assert (asked["desiredAPIVersion"], asked["objects"]) == (V2, [made.doc])


async def test_a_write_is_converted_into_the_version_that_is_stored_and_back(shapes: Api, webhook: Webhook) -> None:
    made = await shapes.post(BOXED, boxed("a", box={"size": 2}))
    assert (made.code, made.doc["spec"]) == (201, {"box": {"size": 2}, "kept": "by v1"})
    assert [asked["desiredAPIVersion"] for asked in webhook.asked] == [V1, V2]
    assert "resourceVersion" not in webhook.asked[0]["objects"][0]["metadata"]
    webhook.asked.clear()
    assert (await shapes.get(f"{FLAT}/a")).doc["spec"] == {"size": 2, "kept": "by v1"}
    assert webhook.asked == []


async def test_updates_patches_and_status_work_in_any_version(shapes: Api) -> None:
    live = (await shapes.post(FLAT, flat("a", size=1))).doc
    patched = await shapes.merge(f"{BOXED}/a", {"spec": {"box": {"size": 5}}})
    assert (patched.code, patched.doc["spec"]["box"], patched.doc["metadata"]["generation"]) == (200, {"size": 5}, 2)
    seen = (await shapes.get(f"{BOXED}/a")).doc
    seen["spec"]["box"]["size"] = 6
    replaced = await shapes.put(f"{BOXED}/a", seen)
    assert (replaced.code, replaced.doc["spec"]["box"]) == (200, {"size": 6})
    status = await shapes.merge(f"{BOXED}/a/status", {"status": {"seen": 1}})
    assert (status.code, status.doc["status"]) == (200, {"seen": 1})
    last = (await shapes.get(f"{FLAT}/a")).doc
    assert (last["spec"]["size"], last["status"], last["metadata"]["uid"]) == (6, {"seen": 1}, live["metadata"]["uid"])
    stale = await shapes.put(f"{BOXED}/a", seen)
    assert (stale.code, stale.doc["reason"]) == (409, "Conflict")


async def test_a_write_that_changes_nothing_keeps_its_revision(api: Api, webhook: Webhook) -> None:
    await defined(api, without_defaults(webhook))
    await api.post(FLAT, flat("a", size=1))
    seen = (await api.get(f"{BOXED}/a")).doc
    again = await api.put(f"{BOXED}/a", seen)
    assert (again.code, again.doc) == (200, seen)


async def test_a_list_asks_once_for_all_and_not_again(shapes: Api, webhook: Webhook) -> None:
    for name in ("a", "b", "c"):
        await shapes.post(FLAT, flat(name, size=1))
    seen = (await shapes.get(BOXED)).doc
    assert [(item["apiVersion"], item["metadata"]["name"]) for item in seen["items"]] == [
        (V2, "a"),
        (V2, "b"),
        (V2, "c"),
    ]
    assert [len(asked["objects"]) for asked in webhook.asked] == [3]
    assert (await shapes.get(BOXED)).doc["items"] == seen["items"]
    assert len(webhook.asked) == 1
    await shapes.merge(f"{FLAT}/b", {"spec": {"size": 2}})
    await shapes.get(BOXED)
    assert [one["metadata"]["name"] for one in webhook.asked[-1]["objects"]] == ["b"]


async def test_selectors_look_at_what_the_version_shows(shapes: Api) -> None:
    await shapes.post(FLAT, flat("a", size=1, colour="red"))
    await shapes.post(FLAT, flat("b", size=2, colour="blue"))
    await shapes.post(FLAT, flat("c", size=2, colour="red"))

    async def names(query: str) -> list[str]:
        return [item["metadata"]["name"] for item in (await shapes.get(f"{BOXED}?{query}")).doc["items"]]

    assert await names("labelSelector=colour%3Dred") == ["a", "c"]
    assert await names("fieldSelector=spec.box.size%3D2") == ["b", "c"]
    assert await names("fieldSelector=metadata.name%3Db") == ["b"]
    page = (await shapes.get(f"{BOXED}?labelSelector=colour%3Dred&limit=1")).doc
    assert [item["metadata"]["name"] for item in page["items"]] == ["a"]
    token = page["metadata"]["continue"]
    rest = (await shapes.get(f"{BOXED}?labelSelector=colour%3Dred&limit=1&continue={token}")).doc
    assert ([item["metadata"]["name"] for item in rest["items"]], rest["metadata"]["continue"]) == (["c"], "")
    assert (await shapes.get(f"{FLAT}?labelSelector=colour%3Dred")).doc["items"] == []


async def test_watchers_of_one_version_share_its_conversions(shapes: Api, webhook: Webhook) -> None:
    async with (
        shapes.watch(f"{BOXED}?watch=1") as first,
        shapes.watch(f"{BOXED}?watch=1&allowWatchBookmarks=1") as other,
    ):
        waiting = [asyncio.ensure_future(first()), asyncio.ensure_future(other())]
        await asyncio.sleep(0)
        await shapes.post(FLAT, flat("a", size=1))
        events = await asyncio.gather(*waiting)
        assert [(event["type"], event["object"]["spec"]["box"]) for event in events] == [("ADDED", {"size": 1})] * 2
        assert len(webhook.asked) == 1
        await shapes.merge(f"{FLAT}/a", {"spec": {"size": 2}})
        changed = await first()
        assert (changed["type"], changed["object"]["spec"]["box"]) == ("MODIFIED", {"size": 2})
        assert (await other())["object"]["spec"] == changed["object"]["spec"]
        assert len(webhook.asked) == 2
        await shapes.delete(f"{FLAT}/a")
        gone = await first()
        assert (gone["type"], gone["object"]["spec"]["box"]) == ("DELETED", {"size": 2})
        assert int(gone["object"]["metadata"]["resourceVersion"]) > int(
            changed["object"]["metadata"]["resourceVersion"]
        )
        assert len(webhook.asked) == 2


async def test_a_conversion_that_fails_ends_a_watch_with_an_error(shapes: Api, webhook: Webhook) -> None:
    async with shapes.watch(f"{BOXED}?watch=1") as events, shapes.watch(f"{FLAT}?watch=1") as stored:
        waiting = asyncio.ensure_future(events())
        await asyncio.sleep(0)
        webhook.failure = "no box is left"
        await shapes.post(FLAT, flat("a", size=1))
        error = await waiting
        assert (error["type"], error["object"]["code"], error["object"]["message"]) == (
            "ERROR",
            500,
            "conversion webhook for shapes.example.com/v1, Kind=Shape failed: no box is left",
        )
        with pytest.raises(StopAsyncIteration):
            await events()
        assert (await stored())["type"] == "ADDED"


async def test_a_webhook_that_fails_fails_what_needs_it_and_nothing_else(shapes: Api, webhook: Webhook) -> None:
    await shapes.post(FLAT, flat("a", size=1))
    webhook.failure = "no box is left"
    why = "conversion webhook for shapes.example.com/v1, Kind=Shape failed: no box is left"
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": why, "code": 500}
    for url in (f"{BOXED}/a", BOXED):
        answer = await shapes.get(url)
        assert (answer.code, answer.doc) == (500, status)
    refused = await shapes.post(BOXED, boxed("b", box={"size": 1}))
    assert (refused.code, refused.doc["message"]) == (500, why.replace("/v1", "/v2"))
    assert (await shapes.get(f"{FLAT}/a")).code == 200
    assert (await shapes.get("/api/v1/namespaces/default/configmaps")).code == 200
    assert (await shapes.delete(f"{FLAT}/a")).code == 200
    assert (await shapes.get(FLAT)).doc["items"] == []


def other(**changes: Any) -> Any:
    """An answer whose objects are changed so."""

    def twist(answer: dict[str, Any]) -> dict[str, Any]:
        for one in answer["response"]["convertedObjects"]:
            for field, value in changes.items():
                place, _, last = field.rpartition("__")
                (one[place] if place else one)[last] = value
        return answer

    return twist


def response(**changes: Any) -> Any:
    return lambda answer: {**answer, "response": {**answer["response"], **changes}}


UID = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize(
    ("twist", "why"),
    [
        (lambda answer: {**answer, "response": None}, "failed: no response provided"),
        (response(convertedObjects=[]), "returned 0 objects, expected 1"),
        (response(result={"status": "Failure"}), "failed: response.result.status was 'Failure', not 'Success'"),
        (response(result={}), "failed: response.result.status was '', not 'Success'"),
        (response(result={"status": "Failure", "message": "so"}), "failed: so"),
        (
            lambda answer: {**answer, "apiVersion": "apiextensions.k8s.io/v1beta1"},
            ("failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion"),
        ),
        (
            other(apiVersion="shapes.example.com/v3"),
            (
                "returned invalid object at index 0: invalid groupVersion "
                "(expected shapes.example.com/v2, received shapes.example.com/v3)"
            ),
        ),
        (other(kind="Form"), "returned invalid object at index 0: invalid kind (expected Shape, received Form)"),
        (other(metadata__name="b"), "returned invalid object: must have the same name: a != b"),
        (other(metadata__namespace="x"), "returned invalid object: must have the same namespace: default != x"),
        (
            other(metadata__labels=[]),
            "returned invalid metadata: invalid metadata.labels of type []interface {} in converted object",
        ),
        (
            other(metadata__labels={"a": 1}),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
        (
            other(metadata__labels={"a b": "c"}),
            (
                'returned invalid metadata: metadata.labels: Invalid value: "a b": name part must consist of alphanumeric '
                "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
                "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            ),
        ),
        (
            lambda answer: web.Response(status=500, text="broken"),
            'failed: an error on the server ("broken") has prevented the request from succeeding',
        ),
        (
            lambda answer: web.Response(text="oh no", content_type="application/json"),
            (
                "failed: couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct "
                '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
            ),
        ),
    ],
)
async def test_an_answer_is_checked_as_on_the_real_server(shapes: Api, webhook: Webhook, twist: Any, why: str) -> None:
    await shapes.post(FLAT, flat("a", size=1))
    webhook.twist = twist
    answer = await shapes.get(f"{BOXED}/a")
    expected = f"conversion webhook for shapes.example.com/v1, Kind=Shape {why}"
    assert (answer.code, answer.doc["message"]) == (500, expected)


async def test_an_answer_must_have_the_uid_of_what_was_asked(shapes: Api, webhook: Webhook) -> None:
    await shapes.post(FLAT, flat("a", size=1))
    webhook.twist = response(uid="other")
    message = (await shapes.get(f"{BOXED}/a")).doc["message"]
    asked = webhook.asked[-1]["uid"]
    assert message.endswith(f'Kind=Shape failed: expected response.uid="{asked}", got "other"')


async def test_of_the_metadata_only_labels_and_annotations_change(shapes: Api, webhook: Webhook) -> None:
    made = (await shapes.post(FLAT, flat("a", size=1))).doc["metadata"]
    webhook.twist = other(
        metadata__generation=7, metadata__finalizers=["x/y"], metadata__labels={"a": "b"}, metadata__annotations=None
    )
    seen = (await shapes.get(f"{BOXED}/a")).doc["metadata"]
    assert seen == {**made, "labels": {"a": "b"}}


async def test_what_the_version_does_not_know_is_pruned(shapes: Api, webhook: Webhook) -> None:
    await shapes.post(FLAT, flat("a", size=1))
    webhook.twist = other(spec__unknown="x")
    assert (await shapes.get(f"{BOXED}/a")).doc["spec"] == {"box": {"size": 1}, "kept": "by v1"}


async def test_an_answer_that_is_nested_too_deeply_fails_what_needs_it(shapes: Api, webhook: Webhook) -> None:
    await shapes.post(FLAT, flat("a", size=1))
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}
    webhook.convert = lambda document, desired: {**document, "apiVersion": desired, "spec": {"box": deep}}
    kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    live = (await shapes.get(DEFINITION)).doc
    live["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["box"] = kept
    del live["spec"]["versions"][1]["selectableFields"]
    assert (await shapes.put(DEFINITION, live)).code == 200
    answer = await shapes.until(f"{BOXED}/a", lambda answer: answer.code != 200)
    why = "returned an object that is nested too deeply to be shown"
    assert (answer.code, answer.doc["message"]) == (500, f"conversion webhook for {V2}, Kind=Shape {why}")


async def test_a_webhook_that_is_slow_keeps_no_other_waiting(shapes: Api, webhook: Webhook) -> None:
    await shapes.post(FLAT, flat("a", size=1))
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    judge = {
        "name": "judge.example.com",
        "clientConfig": webhook.client_config(),
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
    }
    made = await shapes.post(
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        {"metadata": {"name": "judge"}, "webhooks": [judge]},
    )
    assert made.code == 201, made.doc
    webhook.held = asyncio.Event()
    reads = [asyncio.create_task(shapes.get(f"{BOXED}/a")) for _ in range(120)]
    await asyncio.wait(reads, timeout=1.0)
    answer = await shapes.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
    webhook.held.set()
    assert answer.code == 201, answer.doc
    assert {each.code for each in await asyncio.gather(*reads)} == {200}


async def test_nobody_there_is_told_as_go_tells_it(shapes: Api, webhook: Webhook) -> None:
    live = (await shapes.get(DEFINITION)).doc
    live["spec"]["conversion"]["webhook"]["clientConfig"]["url"] = "https://127.0.0.1:1/convert"
    await shapes.post(FLAT, flat("a", size=1))
    assert (await shapes.put(DEFINITION, live)).code == 200
    answer = await shapes.until(f"{BOXED}/a", lambda answer: answer.code == 500)
    assert answer.doc["message"] == (
        'conversion webhook for shapes.example.com/v1, Kind=Shape failed: Post "https://127.0.0.1:1/convert?timeout=30s": '
        "dial tcp 127.0.0.1:1: connect: connection refused"
    )


async def test_a_webhook_may_be_a_service(api: Api, webhook: Webhook) -> None:
    port = {"port": 443, "targetPort": webhook.port}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"}, "spec": {"ports": [port]}}
    await api.post("/api/v1/namespaces/default/services", service)
    subset = {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": webhook.port}]}
    metadata = {"name": "hook", "namespace": "default"}
    endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]}
    served = api.server.registry.find("", "v1", "endpoints")
    assert served is not None
    await api.server.store.commit(served.write(endpoints, 0))  # the API lets nobody name loopback
    conversion = webhook.conversion()
    config = conversion["webhook"]["clientConfig"]
    del config["url"]
    config["service"] = {"namespace": "default", "name": "hook", "path": "/convert"}
    await defined(api, definition(conversion))
    await api.post(FLAT, flat("a", size=3))
    assert (await api.get(f"{BOXED}/a")).doc["spec"]["box"] == {"size": 3}


async def test_what_was_stored_before_the_storage_version_changed_is_converted(shapes: Api, webhook: Webhook) -> None:
    await shapes.post(FLAT, flat("old", size=1))
    await stored_as(shapes, "v2")
    assert (await shapes.get(DEFINITION)).doc["status"]["storedVersions"] == ["v1", "v2"]
    assert (await shapes.get(f"{BOXED}/old")).doc["spec"]["box"] == {"size": 1}
    assert webhook.asked[-1]["desiredAPIVersion"] == V2
    webhook.asked.clear()
    assert (await shapes.get(f"{FLAT}/old")).doc["spec"]["size"] == 1
    assert webhook.asked == []  # it is stored so
    await shapes.post(BOXED, boxed("new", box={"size": 2}))
    assert webhook.asked == []
    seen = (await shapes.get(FLAT)).doc["items"]
    assert [(item["metadata"]["name"], item["spec"]["size"]) for item in seen] == [("new", 2), ("old", 1)]


async def test_an_update_that_changes_nothing_brings_old_bytes_into_the_storage_version(
    api: Api, webhook: Webhook
) -> None:
    await defined(api, without_defaults(webhook))
    await api.post(FLAT, flat("a", size=1))
    await stored_as(api, "v2")
    seen = (await api.get(f"{BOXED}/a")).doc
    moved = await api.put(f"{BOXED}/a", seen)
    assert moved.doc["metadata"]["resourceVersion"] != seen["metadata"]["resourceVersion"]
    webhook.asked.clear()
    assert (await api.get(f"{BOXED}/a")).doc["spec"] == seen["spec"]
    assert webhook.asked == []


async def test_many_objects_are_sent_in_several_reviews(shapes: Api, webhook: Webhook) -> None:
    for index in range(5):
        await shapes.post(FLAT, flat(f"a{index}", size=index, note="x" * 700_000))
    assert len((await shapes.get(BOXED)).doc["items"]) == 5
    assert [len(asked["objects"]) for asked in webhook.asked] == [2, 2, 1]


async def test_a_kind_whose_webhook_has_no_authority_is_not_established(api: Api, webhook: Webhook) -> None:
    document = definition(webhook.conversion())
    document["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = "bm90aGluZw=="
    assert (await api.post(DEFINITIONS, document)).code == 201
    conditions = {each["type"]: each for each in (await api.get(DEFINITION)).doc["status"]["conditions"]}
    established = conditions["Established"]
    assert (established["status"], established["reason"], established["message"]) == (
        "False",
        "InvalidCABundle",
        "The conversion webhook CABundle is invalid",
    )
    live = (await api.get(DEFINITION)).doc
    live["spec"]["conversion"] = webhook.conversion()
    assert (await api.put(DEFINITION, live)).code == 200
    await api.until(FLAT, lambda answer: answer.code == 200)


async def test_a_definition_takes_its_objects_with_it_without_asking(shapes: Api, webhook: Webhook) -> None:
    await shapes.post(FLAT, flat("a", size=1))
    webhook.failure = "no box is left"
    assert (await shapes.delete(DEFINITION)).code == 200
    await shapes.gone(DEFINITION)


async def test_admission_webhooks_of_another_version_see_the_object_in_it(shapes: Api, webhook: Webhook) -> None:
    seen = []
    shown = {
        "operations": ["CREATE"],
        "apiGroups": ["shapes.example.com"],
        "apiVersions": ["v2"],
        "resources": ["shapes"],
    }
    hook = {
        "name": "judge.example.com",
        "clientConfig": {**webhook.client_config(), "url": f"https://localhost:{webhook.port}/judge"},
        "rules": [shown],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    metadata = {"name": "judge"}
    body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}

    def judged(review: dict[str, Any]) -> dict[str, Any]:
        seen.append(review["object"])
        return {"uid": review["uid"], "allowed": False, "status": {"message": "no"}}

    webhook.judge = judged
    assert (await shapes.post(configurations, {**body, "metadata": metadata, "webhooks": [hook]})).code == 201
    async with asyncio.timeout(10):
        while (await shapes.post(FLAT, flat("a", size=1))).code != 400:
            await shapes.delete(f"{FLAT}/a")
            await asyncio.sleep(0.005)  # until the server has read the configuration
    assert (seen[-1]["apiVersion"], seen[-1]["spec"]["box"]) == (V2, {"size": 1})


async def test_owners_in_another_version_are_collected_without_asking(shapes: Api, webhook: Webhook) -> None:
    owner = (await shapes.post(FLAT, flat("owner", size=1))).doc
    reference = {"apiVersion": V2, "kind": "Shape", "name": "owner", "uid": owner["metadata"]["uid"]}
    child = flat("child", size=2)
    child["metadata"]["ownerReferences"] = [reference]
    await shapes.post(FLAT, child)
    webhook.failure = "no box is left"
    await shapes.delete(f"{FLAT}/owner")
    await shapes.gone(f"{FLAT}/child")


def managers(document: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {
        (entry["manager"], entry["apiVersion"].rpartition("/")[2]): entry["fieldsV1"].get("f:spec")
        for entry in document["metadata"]["managedFields"]
    }


async def test_a_manager_keeps_its_fields_in_the_version_in_which_it_wrote(shapes: Api) -> None:
    await shapes.apply(f"{FLAT}/a", flat("a", size=1, colour="red"), "one")
    seen = await shapes.apply(f"{BOXED}/a", boxed("a", note="n"), "two")
    assert managers(seen.doc) == {("one", "v1"): {"f:colour": {}, "f:size": {}}, ("two", "v2"): {"f:note": {}}}
    changed = await shapes.merge(f"{BOXED}/a", {"spec": {"box": {"size": 2}}})
    assert managers(changed.doc)["one", "v1"] == {"f:colour": {}}


async def test_an_apply_conflicts_with_who_wrote_the_field_in_another_version(shapes: Api) -> None:
    await shapes.apply(f"{FLAT}/a", flat("a", size=1), "one")
    same = await shapes.apply(f"{BOXED}/a", boxed("a", box={"size": 1}), "two")
    assert same.code == 200
    other = await shapes.apply(f"{BOXED}/a", boxed("a", box={"size": 2}), "two")
    assert (other.code, other.doc["message"]) == (409, 'Apply failed with 1 conflict: conflict with "one": .spec.size')
    forced = await shapes.apply(f"{BOXED}/a", boxed("a", box={"size": 2}), "two", force=True)
    assert (forced.code, forced.doc["spec"]["box"]) == (200, {"size": 2})
    assert set(managers(forced.doc)) == {("two", "v2")}


async def test_what_an_applier_said_in_another_version_goes_when_it_says_it_no_more(shapes: Api) -> None:
    await shapes.apply(f"{FLAT}/a", flat("a", size=1, note="n"), "one")
    left = await shapes.apply(f"{BOXED}/a", boxed("a", note="n"), "one")
    assert left.code == 200, left.doc
    assert "size" not in (await shapes.get(f"{FLAT}/a")).doc["spec"]
    assert (await shapes.get(f"{FLAT}/a")).doc["spec"]["note"] == "n"
    assert list(managers(left.doc)) == [("one", "v2")]


async def test_what_another_applier_says_in_another_version_stays(shapes: Api) -> None:
    await shapes.apply(f"{FLAT}/a", flat("a", size=1, note="n"), "one")
    await shapes.apply(f"{BOXED}/a", boxed("a", box={"size": 1}), "two")
    left = await shapes.apply(f"{FLAT}/a", flat("a", note="n"), "one")
    assert left.doc["spec"]["size"] == 1


async def test_without_a_webhook_versions_do_not_default_each_other(api: Api) -> None:
    await defined(api, definition(None))
    await api.post(FLAT, flat("a", note="n"))
    assert (await api.get(f"{BOXED}/a")).doc["spec"] == {"note": "n", "kept": "by v1"}


async def test_without_a_webhook_what_is_written_in_another_version_is_defaulted_by_the_stored_one(api: Api) -> None:
    """And pruned: the bytes that are handed out are those of the version that is stored."""
    await defined(api, definition(None))
    made = await api.post(BOXED, boxed("a", note="n", box={"size": 3}))
    assert (await api.get(f"{FLAT}/a")).doc["spec"] == {"note": "n", "kept": "by v1"}
    changed = await api.merge(f"{BOXED}/a", {"spec": {"note": "m", "box": {"size": 4}}})
    assert (await api.get(f"{FLAT}/a")).doc["spec"] == {"note": "m", "kept": "by v1"}
    assert [one.doc["spec"] for one in (made, changed)] == [
        {"note": "n", "kept": "by v1"},
        {"note": "m", "kept": "by v1"},
    ]
