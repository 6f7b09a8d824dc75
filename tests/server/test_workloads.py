"""Jobs and their like on a running server: what is theirs, and what becomes of it."""

from typing import Any

import pytest

from tests.server.api import Api, config_map
from trimtab.server.builtin.job_indexes import WrongIndexes, count_indexes, overlap

MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CONTROLLERS = "/api/v1/namespaces/default/replicationcontrollers"
POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}]}
LABELED = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": POD["containers"]}}


def job(**spec: Any) -> dict[str, Any]:
    filled = {"template": {"spec": POD}, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": filled}


def controller() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": "r"},
        "spec": {"template": LABELED},
    }


async def test_a_job_knows_its_pods_by_its_uid(api: Api) -> None:
    made = (await api.post(JOBS, job())).doc
    uid = made["metadata"]["uid"]
    labels = {"controller-uid": uid, "job-name": "j"}
    labels |= {f"batch.kubernetes.io/{name}": value for name, value in labels.items()}
    assert made["spec"]["template"]["metadata"]["labels"] == made["metadata"]["labels"] == labels
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


async def test_what_the_server_adds_to_a_job_is_nobodys(api: Api) -> None:
    made = (await api.post(JOBS, job())).doc
    (owned,) = (entry["fieldsV1"] for entry in made["metadata"]["managedFields"])
    assert "f:selector" not in owned["f:spec"]
    assert "f:metadata" not in owned


@pytest.mark.parametrize(("path", "made"), [(JOBS, job()), (CONTROLLERS, controller())])
async def test_deleted_without_a_policy_it_leaves_what_it_owns(api: Api, path: str, made: dict[str, Any]) -> None:
    owner = (await api.post(path, made)).doc
    await api.post(MAPS, config_map("child", (owner,)))
    one = f"{path}/{made['metadata']['name']}"
    deleted = await api.delete(one)
    assert deleted.doc["metadata"]["finalizers"] == ["orphan"]
    await api.gone(one)
    assert "ownerReferences" not in (await api.get(f"{MAPS}/child")).doc["metadata"]


async def test_deleted_in_the_background_a_job_takes_along_what_it_owns(api: Api) -> None:
    owner = (await api.post(JOBS, job())).doc
    await api.post(MAPS, config_map("child", (owner,)))
    await api.delete(f"{JOBS}/j", {"propagationPolicy": "Background"})
    await api.gone(f"{MAPS}/child")


async def test_who_names_no_policy_is_told_that_pods_stay(api: Api) -> None:
    await api.post(JOBS, job())
    assert "child pods are preserved" in (await api.delete(f"{JOBS}/j?dryRun=All")).warnings[0]
    assert (await api.delete(f"{JOBS}/j", {"propagationPolicy": "Orphan"})).warnings == []


async def test_a_job_goes_with_its_namespace(api: Api) -> None:
    await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foo"}})
    await api.post("/apis/batch/v1/namespaces/foo/jobs", job())
    await api.delete("/api/v1/namespaces/foo")
    await api.gone("/api/v1/namespaces/foo")


async def test_the_template_of_a_job_never_changes(api: Api) -> None:
    await api.post(JOBS, job())
    changed = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 5}}}}
    answer = await api.merge(f"{JOBS}/j", changed)
    assert (answer.code, [c["field"] for c in answer.doc["details"]["causes"]]) == (422, ["spec.template"])


async def test_the_scale_of_a_replication_controller_has_its_labels_as_a_selector(api: Api) -> None:
    await api.post(CONTROLLERS, controller())
    await api.merge(f"{CONTROLLERS}/r/scale", {"spec": {"replicas": 4}})
    shown = (await api.get(f"{CONTROLLERS}/r/scale")).doc
    assert (shown["spec"], shown["status"]) == ({"replicas": 4}, {"replicas": 0, "selector": "app=a"})


@pytest.mark.parametrize(("text", "count"), [("", 0), ("3", 1), ("0,2-4", 4)])
def test_indexes_are_counted(text: str, count: int) -> None:
    assert count_indexes(text, 5) == count


@pytest.mark.parametrize("text", ["5", "1,1", "2-1", "1-2-3", "a", "-1", "1,,2", "0-5"])
def test_indexes_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(WrongIndexes):
        count_indexes(text, 5)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [("", "1", None), ("0-1", "2", None), ("0,4", "1-3", None), ("0-3", "2,3", 2), ("5-7", "0,6", 6), ("x,3", "3", 3)],
)
def test_two_lists_of_indexes_share_the_first_that_is_in_both(one: str, other: str, shared: int | None) -> None:
    assert overlap(one, other, 10) == overlap(other, one, 10) == shared


@pytest.mark.parametrize("time", ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "2024-01-01T00:00:00+99:99"])
async def test_a_time_that_cannot_be_reckoned_with_is_refused(api: Api, time: str) -> None:
    """Who reads it later could not show the object, nor any list that it is in."""
    assert (await api.post(JOBS, job())).code == 201
    answer = await api.merge(f"{JOBS}/j/status", {"status": {"startTime": time}})
    assert 400 <= answer.code < 500, answer.doc
    assert f'parsing time "{time}"' in answer.doc["message"]
    table = await api.get(JOBS, accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    assert table.code == 200, table.doc
