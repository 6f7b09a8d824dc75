"""The life of namespaces."""

from tests.server.api import Api, config_map, running

FOO = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foo"}}


async def test_a_namespace_is_furnished() -> None:
    async with running(ca="-----BEGIN CERTIFICATE-----") as api:
        await api.post("/api/v1/namespaces", FOO)
        await api.until("/api/v1/namespaces/foo/serviceaccounts/default", lambda a: a.code == 200)
        bundle = await api.until("/api/v1/namespaces/foo/configmaps/kube-root-ca.crt", lambda a: a.code == 200)
        assert bundle.doc["data"] == {"ca.crt": "-----BEGIN CERTIFICATE-----"}


async def test_what_every_namespace_has_is_made_anew_when_it_is_deleted() -> None:
    async with running(ca="-----BEGIN CERTIFICATE-----") as api:
        for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            made = await api.until(f"/api/v1/namespaces/default/{path}", lambda a: a.code == 200)
            await api.delete(f"/api/v1/namespaces/default/{path}")
            uid = made.doc["metadata"]["uid"]
            await api.until(
                f"/api/v1/namespaces/default/{path}",
                lambda a, uid=uid: a.code == 200 and a.doc["metadata"]["uid"] != uid,
            )


async def test_nothing_is_created_in_a_namespace_that_is_not_there(api: Api) -> None:
    answer = await api.post("/api/v1/namespaces/absent/configmaps", config_map("a"))
    assert (answer.code, answer.doc["message"]) == (404, 'namespaces "absent" not found')


async def test_a_deleted_namespace_takes_its_content_along(api: Api) -> None:
    await api.post("/api/v1/namespaces", FOO)
    await api.post("/api/v1/namespaces/foo/configmaps", config_map("a"))
    answer = await api.delete("/api/v1/namespaces/foo")
    assert answer.doc["status"]["phase"] == "Terminating"
    await api.gone("/api/v1/namespaces/foo")
    assert (await api.get("/api/v1/namespaces/foo/configmaps/a")).code == 404


async def test_a_namespace_waits_for_finalizers_in_it_and_says_so(api: Api) -> None:
    await api.post("/api/v1/namespaces", FOO)
    await api.post("/api/v1/namespaces/foo/configmaps", config_map("held", finalizers=["example.com/hold"]))
    await api.delete("/api/v1/namespaces/foo")
    said = await api.until("/api/v1/namespaces/foo", lambda a: bool(a.doc["status"].get("conditions")))
    messages = {condition["type"]: condition["message"] for condition in said.doc["status"]["conditions"]}
    assert "configmaps has 1 resource instances" in messages["NamespaceContentRemaining"]
    assert "example.com/hold in 1 resource instances" in messages["NamespaceFinalizersRemaining"]
    refused = await api.post("/api/v1/namespaces/foo/configmaps", config_map("late"))
    assert (refused.code, refused.doc["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    await api.merge("/api/v1/namespaces/foo/configmaps/held", {"metadata": {"finalizers": None}})
    await api.gone("/api/v1/namespaces/foo")


async def test_the_default_namespace_cannot_be_deleted(api: Api) -> None:
    answer = await api.delete("/api/v1/namespaces/default")
    assert answer.doc["message"] == 'namespaces "default" is forbidden: this namespace may not be deleted'
