"""Jobs, CronJobs, DaemonSets and ReplicationControllers: what is filled in, who owns it, what may change, and how they go."""

from typing import Any

from ..exchange import Request
from ..kinds import (
    CONFIGMAPS,
    CONTROLLERS,
    CRON_JOBS,
    DAEMON_SETS,
    JOBS,
    configmap,
    controller,
    cron_job,
    daemon_set,
    job,
)
from ..verbs import METADATA, TABLE, apply, delete, get, json_patch, merge, post, put, strategic, watch

KINDS: dict[str, tuple[str, Any]] = {
    "daemon set": (DAEMON_SETS, daemon_set),
    "job": (JOBS, job),
    "cron job": (CRON_JOBS, cron_job),
    "replication controller": (CONTROLLERS, controller),
}
QUOTAS = "/api/v1/namespaces/$ns/resourcequotas"
J, D, C, R = (f"{path}/a" for path in (JOBS, DAEMON_SETS, CRON_JOBS, CONTROLLERS))
_JOB, _DAEMON_SET = post(JOBS, job()), post(DAEMON_SETS, daemon_set())
_CRON_JOB, _CONTROLLER = post(CRON_JOBS, cron_job()), post(CONTROLLERS, controller())


def _all(path: str, make: Any) -> dict[str, list[Request]]:
    """What every kind is asked."""
    one = f"{path}/a"
    return {
        "is created, read and listed": [post(path, make()), get(one), get(path), get(one, accept=METADATA)],
        "is shown": [post(path, make()), get(path, accept=TABLE), get(one, accept=TABLE)],
        "is created dry": [post(f"{path}?dryRun=All", make()), get(one)],
        "gets a name": [post(path, make(None, metadata={"generateName": "a-"}))],
        "has an odd name": [post(path, make("a.b")), post(path, make("A"))],
        "has unknown fields": [post(f"{path}?fieldValidation=Strict", make(spec={"ships": 1, "template2": {}}))],
        "has fields of wrong types": [post(path, make(spec={"template": 1})), post(path, make() | {"spec": 1})],
        "has nothing": [post(path, make() | {"spec": {}}), post(path, {k: v for k, v in make().items() if k != "spec"})],
        "is replaced": [post(path, make()), put(one, make(image="app:2")), get(one)],
        "is labeled": [post(path, make()), merge(one, {"metadata": {"labels": {"x": "y"}}}), get(one)],
        "is annotated": [post(path, make()), strategic(one, {"metadata": {"annotations": {"x": "y"}}})],
        "is applied": [apply(one, make()), apply(one, make()), get(one)],
        "is applied by two": [apply(one, make()), apply(one, make(image="app:2"), manager="two")],
        "is applied after a create": [post(path, make()), apply(one, make()), get(one)],
        "has its status written": [post(path, make()), merge(f"{one}/status", {"status": {"conditions": [
            {"type": "A", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}), get(one)],
        "has its status applied": [post(path, make()), apply(f"{one}/status", {
            "apiVersion": make()["apiVersion"], "kind": make()["kind"], "metadata": {"name": "a"},
            "status": {"conditions": [{"type": "A", "status": "True"}]}}), get(one)],
        "is deleted": [post(path, make()), delete(one), get(one, until="NotFound")],
        "is deleted in the background": [post(path, make()), delete(f"{one}?propagationPolicy=Background"), get(one)],
        "is deleted with many": [post(path, make()), post(path, make("b")), delete(path), get(path, until='"items": []')],
        "is watched": [post(path, make()), merge(one, {"metadata": {"labels": {"x": "y"}}}), watch(path, 1)],
    }  # fmt: skip


def _owner(kind: str, version: str) -> Request:
    owner = {"apiVersion": version, "kind": kind, "name": "a", "uid": "$uid:0"}
    return post(CONFIGMAPS, configmap("child", metadata={"ownerReferences": [owner]}))


def _quota(resource: str) -> Request:
    return post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {resource: "1"}}})


SCENARIOS: dict[str, list[Request]] = {
    **{f"a {name} {case}": steps for name, kind in KINDS.items() for case, steps in _all(*kind).items()},
    "a job leaves what it owns": [_JOB, _owner("Job", "batch/v1"), delete(J), get(J, until="NotFound"),
                                  get(f"{CONFIGMAPS}/child", until='"uid"')],
    "a job takes what it owns along": [_JOB, _owner("Job", "batch/v1"), delete(f"{J}?propagationPolicy=Background"),
                                       get(f"{CONFIGMAPS}/child", until="NotFound")],
    "a job is orphaned by the old word": [_JOB, delete(f"{J}?orphanDependents=true"), get(J, until="NotFound")],
    "a replication controller leaves what it owns": [
        _CONTROLLER, _owner("ReplicationController", "v1"), delete(R), get(R, until="NotFound"),
        get(f"{CONFIGMAPS}/child", until='"uid"')],
    "a daemon set takes what it owns along": [_DAEMON_SET, _owner("DaemonSet", "apps/v1"), delete(D),
                                              get(f"{CONFIGMAPS}/child", until="NotFound")],
    "a job is selected by its success": [
        _JOB, get(f"{JOBS}?fieldSelector=status.successful=0"), get(f"{JOBS}?fieldSelector=status.successful!=0"),
        get(f"{JOBS}?fieldSelector=status.failed=0")],
    "a replication controller is selected by its replicas": [
        _CONTROLLER, get(f"{CONTROLLERS}?fieldSelector=status.replicas=0"),
        get(f"{CONTROLLERS}?fieldSelector=status.replicas=1")],
    "a cron job is not selected": [get(f"{CRON_JOBS}?fieldSelector=spec.schedule=x")],
    "a daemon set is not selected": [get(f"{DAEMON_SETS}?fieldSelector=status.numberReady=0")],
    "a job is suspended": [_JOB, merge(J, {"spec": {"suspend": True}}), strategic(J, {"spec": {"parallelism": 0}})],
    "a job changes its completions": [_JOB, merge(J, {"spec": {"completions": 2}}),
                                      json_patch(J, {"op": "remove", "path": "/spec/completions"})],
    "a job loses its labels": [_JOB, merge(J, {"metadata": {"labels": None}}), get(J)],
    "a job loses the labels of its pods": [
        post(JOBS, job(spec={"suspend": True})), merge(J, {"spec": {"template": {"metadata": {"labels": None}}}})],
    "a suspended job is placed": [
        post(JOBS, job(spec={"suspend": True})),
        strategic(J, {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}), get(J)],
    "a job with warnings": [post(JOBS, job(
        spec={"completionMode": "Indexed", "completions": 100001, "parallelism": 10001}))],
    "a job ends": [
        _JOB,
        merge(f"{J}/status", {"status": {"startTime": "2026-01-02T03:04:05Z", "active": 1}}),
        merge(f"{J}/status", {"status": {"startTime": None}}),
        merge(f"{J}/status", {"status": {"active": 0, "succeeded": 1, "completionTime": "2026-01-02T03:05:05Z",
                                         "conditions": [{"type": "SuccessCriteriaMet", "status": "True"},
                                                        {"type": "Complete", "status": "True"}]}}),
        merge(f"{J}/status", {"status": {"succeeded": 0}}),
        merge(f"{J}/status", {"status": {"completionTime": "2026-01-02T03:06:05Z"}}),
        merge(f"{J}/status", {"status": {"conditions": []}}),
        get(J, accept=TABLE),
        get(f"{JOBS}?fieldSelector=status.successful=1"),
    ],
    "a job has no scale": [_JOB, get(f"{J}/scale"), get(f"{D}/scale"), get(f"{C}/scale")],
    "a replication controller is scaled": [
        _CONTROLLER, get(f"{R}/scale"), merge(f"{R}/scale", {"spec": {"replicas": 3}}), get(R),
        put(f"{R}/scale", {"metadata": {"name": "a"}, "spec": {"replicas": 2}}), get(f"{R}/scale", accept=TABLE)],
    "a replication controller takes the labels of its pods": [
        post(CONTROLLERS, controller(metadata={"labels": {"x": "y"}})),
        strategic(R, {"spec": {"template": {"metadata": {"labels": {"b": "c"}}}}}),
        merge(R, {"metadata": {"labels": None}}), merge(R, {"spec": {"selector": None}})],
    "a daemon set counts its templates": [
        _DAEMON_SET, merge(D, {"spec": {"minReadySeconds": 3}}),
        strategic(D, {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}}),
        merge(D, {"metadata": {"annotations": None}}),
        merge(D, {"metadata": {"annotations": {"deprecated.daemonset.template.generation": "9"}}}), get(D)],
    "a daemon set is applied without its count": [
        apply(D, daemon_set(metadata={"annotations": {"x": "y"}})), apply(D, daemon_set()), get(D)],
    "a cron job keeps its zone": [
        post(CRON_JOBS, cron_job(spec={"timeZone": "Europe/Berlin"})), merge(C, {"spec": {"timeZone": "Mars"}}),
        merge(C, {"spec": {"schedule": "TZ=UTC * * * * *"}}), strategic(C, {"spec": {"timeZone": None}})],
    "a cron job changes a container": [
        _CRON_JOB,
        strategic(C, {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [
            {"name": "side", "image": "side:1"}]}}}}}})],
    "a container is added to a daemon set": [
        _DAEMON_SET,
        strategic(D, {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}})],
    **{
        f"a quota counts {resource}": [_quota(resource), get(f"{QUOTAS}/q", until='"used"'), post(path, make()),
                                       post(path, make("b"))]
        for resource, (path, make) in (
            ("count/jobs.batch", KINDS["job"]), ("count/cronjobs.batch", KINDS["cron job"]),
            ("count/daemonsets.apps", KINDS["daemon set"]),
            ("replicationcontrollers", KINDS["replication controller"]),
            ("count/replicationcontrollers", KINDS["replication controller"]))
    },
    "discovery of batch": [get("/apis/batch"), get("/apis/batch/v1")],
}  # fmt: skip
