"""Get and list: selectors, chunks, revisions, and the forms of an answer."""

from tests.server.api import Api, config_map

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


async def fill(api: Api, count: int) -> None:
    for index in range(count):
        parity = "even" if index % 2 == 0 else "odd"
        await api.post(MAPS, config_map(f"m{index}", labels={"parity": parity}))


async def test_an_absent_object_is_a_404_with_details(api: Api) -> None:
    answer = await api.get(f"{MAPS}/absent")
    assert answer.doc == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "absent" not found',
        "reason": "NotFound",
        "details": {"name": "absent", "kind": "configmaps"},
        "code": 404,
    }


async def test_a_list_is_sorted_and_has_a_revision(api: Api) -> None:
    await fill(api, 3)
    answer = (await api.get(MAPS)).doc
    assert [item["metadata"]["name"] for item in answer["items"]] == ["m0", "m1", "m2"]
    assert answer["kind"] == "ConfigMapList"
    assert int(answer["metadata"]["resourceVersion"]) >= int(answer["items"][-1]["metadata"]["resourceVersion"])


async def test_items_of_built_in_lists_carry_no_kind(api: Api) -> None:
    await fill(api, 1)
    assert "kind" not in (await api.get(MAPS)).doc["items"][0]


async def test_label_selectors_choose(api: Api) -> None:
    await fill(api, 4)
    answer = (await api.get(f"{MAPS}?labelSelector=parity%20in%20(odd)")).doc
    assert [item["metadata"]["name"] for item in answer["items"]] == ["m1", "m3"]


async def test_field_selectors_choose_by_name(api: Api) -> None:
    await fill(api, 2)
    answer = (await api.get(f"{MAPS}?fieldSelector=metadata.name=m1")).doc
    assert [item["metadata"]["name"] for item in answer["items"]] == ["m1"]


async def test_an_unknown_field_selector_is_refused(api: Api) -> None:
    answer = await api.get(f"{MAPS}?fieldSelector=spec.x=1")
    assert (answer.code, answer.doc["reason"]) == (400, "BadRequest")


async def test_chunks_are_of_one_revision(api: Api) -> None:
    await fill(api, 4)
    first = (await api.get(f"{MAPS}?limit=2")).doc
    assert first["metadata"]["remainingItemCount"] == 2
    await api.post(MAPS, config_map("m9"))
    await api.delete(f"{MAPS}/m3")
    rest = (await api.get(f"{MAPS}?limit=5&continue={first['metadata']['continue']}")).doc
    assert [item["metadata"]["name"] for item in rest["items"]] == ["m2", "m3"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_token_that_was_compacted_away_says_how_to_go_on(api: Api) -> None:
    await fill(api, 3)
    first = (await api.get(f"{MAPS}?limit=1")).doc
    await api.post(MAPS, config_map("m9"))
    await api.server.store.compact(api.server.store.revision)
    gone = await api.get(f"{MAPS}?limit=1&continue={first['metadata']['continue']}")
    assert (gone.code, gone.doc["reason"]) == (410, "Expired")
    rest = (await api.get(f"{MAPS}?continue={gone.doc['metadata']['continue']}")).doc
    assert [item["metadata"]["name"] for item in rest["items"]] == ["m1", "m2", "m9"]


async def test_an_exact_revision_shows_the_past(api: Api) -> None:
    await fill(api, 1)
    revision = (await api.get(MAPS)).doc["metadata"]["resourceVersion"]
    await fill(api, 2)
    past = (await api.get(f"{MAPS}?resourceVersion={revision}&resourceVersionMatch=Exact")).doc
    assert [item["metadata"]["name"] for item in past["items"]] == ["m0"]


async def test_a_revision_of_the_future_times_out(api: Api) -> None:
    answer = await api.get(f"{MAPS}?resourceVersion=999999")
    assert (answer.code, answer.doc["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")


async def test_a_table_has_columns_and_partial_objects(api: Api) -> None:
    await fill(api, 1)
    table = (await api.get(MAPS, accept=TABLE)).doc
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["rows"][0]["cells"][:2] == ["m0", 0]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_metadata_alone_can_be_asked_for(api: Api) -> None:
    await fill(api, 1)
    partial = (await api.get(f"{MAPS}/m0", accept=PARTIAL)).doc
    assert sorted(partial) == ["apiVersion", "kind", "metadata"]
    assert (partial["kind"], partial["metadata"]["name"]) == ("PartialObjectMetadata", "m0")


async def test_a_form_that_cannot_be_served_is_a_406(api: Api) -> None:
    answer = await api.get(MAPS, accept="text/html")
    assert (answer.code, answer.doc["reason"]) == (406, "NotAcceptable")


async def test_a_406_names_what_answers_are_written_in(api: Api) -> None:
    answer = await api.get(MAPS, accept="application/vnd.kubernetes.protobuf")
    assert answer.code == 406
    assert answer.doc["message"] == "only the following media types are accepted: application/json, application/yaml"


async def test_an_unknown_path_is_a_404(api: Api) -> None:
    assert (await api.get("/apis/nowhere.example.com/v1/things")).raw == b"404 page not found\n"
    answer = await api.get("/apis/apps/v1/things")
    assert answer.doc["message"] == "the server could not find the requested resource"
