"""Admission functions that the server calls in the request."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from tests.runtime.webhooks_gadgets import ADMISSION, Gadget, gadget
from tests.server.api import Api, running
from trimtab.model.admission import (
    Admission,
    AdmissionRequest,
    Allowed,
    Denied,
    Function,
    Operation,
    Reader,
    ask,
    repeat,
)
from trimtab.model.crd import crd
from trimtab.model.kubernetes import ConfigMap, Deployment
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme, Untyped
from trimtab.server.admission.functions import BackendReader

GADGETS = "/apis/hooks.trimtab.dev/v1/namespaces/default/gadgets"
MAPS = "/api/v1/namespaces/default/configmaps"


@contextlib.asynccontextmanager
async def serving(*admission: Admission, versions: int = 1) -> AsyncIterator[Api]:
    scheme = Scheme()
    scheme.register(Gadget)
    async with running(admission=admission, scheme=scheme) as api:
        definition = crd(Gadget, scheme=scheme)
        first = definition["spec"]["versions"][0]
        definition["spec"]["versions"] += [first | {"name": f"v{n + 1}", "storage": False} for n in range(1, versions)]
        await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        await api.until(GADGETS, lambda answer: answer.code == 200)
        yield api


@pytest.fixture
async def gadgets() -> AsyncIterator[Api]:
    async with serving(*ADMISSION) as api:
        yield api


def watching(function: Function, **changes: Any) -> Admission:
    given = {"name": "watching", "kinds": (ConfigMap,), "function": function}
    return Admission(**(given | changes))


async def test_a_denial_with_field_errors_is_an_invalid_status_with_causes(gadgets: Api) -> None:
    answer = await gadgets.post(GADGETS, gadget("big", size=11, config="none"))
    message = (
        'Gadget.hooks.trimtab.dev "big" is invalid: '
        '[spec.size: Invalid value: 11: must be at most 10, spec.config: Not found: "none"]'
    )
    assert (answer.code, answer.doc["reason"], answer.doc["message"]) == (422, "Invalid", message)
    assert answer.doc["details"] == {
        "name": "big",
        "group": "hooks.trimtab.dev",
        "kind": "Gadget",
        "causes": [
            {"reason": "FieldValueInvalid", "message": "Invalid value: 11: must be at most 10", "field": "spec.size"},
            {"reason": "FieldValueNotFound", "message": 'Not found: "none"', "field": "spec.config"},
        ],
    }


async def test_a_function_reads_other_objects(gadgets: Api) -> None:
    await gadgets.post(MAPS, {"metadata": {"name": "there"}})
    assert (await gadgets.post(GADGETS, gadget("small", config="there"))).code == 201


async def test_an_update_is_judged_too(gadgets: Api) -> None:
    await gadgets.post(GADGETS, gadget("grows"))
    assert (await gadgets.merge(f"{GADGETS}/grows", {"spec": {"size": 12}})).code == 422


async def test_warnings_reach_the_client(gadgets: Api) -> None:
    answer = await gadgets.post(GADGETS, gadget("slow", size=6))
    assert answer.warnings == ["a gadget of this size is slow"]


async def test_a_mutating_function_changes_the_object_and_loses_nothing(gadgets: Api) -> None:
    document = gadget("mine") | {"metadata": {"name": "mine", "annotations": {"kept": "yes"}}}
    answer = await gadgets.post(GADGETS, document)
    assert answer.doc["spec"] == {"size": 1, "owner": "admin"}
    metadata = answer.doc["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"hooks.dev/by": "owned"}, {"kept": "yes"})
    assert metadata["uid"]


class Part(Resource, group="", version="v1", kind="ConfigMap", plural="configmaps"):
    """A ConfigMap of which only this is known."""

    data: dict[str, str] | UnsetType = UNSET


async def test_what_a_class_does_not_know_survives_a_change() -> None:
    async def renew(request: AdmissionRequest[Part], reader: Reader) -> Allowed | Denied:
        assert isinstance(request.object, Part)
        return Allowed(object=Part(data={"new": "yes"}))

    async with running(admission=(watching(renew, kinds=(Part,), mutating=True),)) as api:
        answer = await api.post(MAPS, {"metadata": {"name": "a"}, "data": {"old": "yes"}, "binaryData": {"k": "AA=="}})
        assert (answer.doc["data"], answer.doc["binaryData"]) == ({"new": "yes"}, {"k": "AA=="})


async def test_of_a_scale_functions_see_the_scale() -> None:
    async def small(request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
        assert (request.kind.kind, request.object.kind) == ("Deployment", "Scale")
        return Denied(message="too many") if request.object.raw["spec"]["replicas"] > 5 else Allowed()

    admission = Admission(name="small", kinds=(Deployment,), function=small, subresources=("scale",))
    async with running(admission=(admission,)) as api:
        path = "/apis/apps/v1/namespaces/default/deployments"
        labels = {"app": "a"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
        spec = {"replicas": 9, "selector": {"matchLabels": labels}, "template": template}
        assert (await api.post(path, {"metadata": {"name": "a"}, "spec": spec})).code == 201
        assert (await api.merge(f"{path}/a/scale", {"spec": {"replicas": 6}})).code == 403
        assert (await api.merge(f"{path}/a/scale", {"spec": {"replicas": 5}})).code == 200


async def test_a_message_is_a_403(gadgets: Api) -> None:
    await gadgets.post(GADGETS, gadget("only"))
    answer = await gadgets.delete(f"{GADGETS}/only")
    message = 'gadgets.hooks.trimtab.dev "only" is forbidden: the last gadget stays'
    assert (answer.code, answer.doc["reason"], answer.doc["message"]) == (403, "Forbidden", message)


async def test_a_deletion_that_is_allowed_takes_place(gadgets: Api) -> None:
    await gadgets.post(GADGETS, gadget("one"))
    await gadgets.post(GADGETS, gadget("two"))
    assert (await gadgets.delete(f"{GADGETS}/one")).code == 200


async def test_a_terminating_object_may_let_go_of_its_finalizers() -> None:
    strict = False

    async def refuse(request: AdmissionRequest[Gadget], reader: Reader) -> Allowed | Denied:
        return Denied(message="no") if strict else Allowed()

    admission = Admission(name="strict", kinds=(Gadget,), function=refuse)
    async with serving(admission) as api:
        await api.post(GADGETS, gadget("held") | {"metadata": {"name": "held", "finalizers": ["a.b/c"]}})
        await api.delete(f"{GADGETS}/held")
        strict = True
        assert (await api.merge(f"{GADGETS}/held", {"spec": {"size": 2}})).code == 403
        assert (await api.merge(f"{GADGETS}/held", {"metadata": {"finalizers": None}})).code == 200
        assert (await api.get(f"{GADGETS}/held")).code == 404


async def test_every_served_version_is_judged_in_the_declared_one() -> None:
    seen: list[str] = []

    async def look(request: AdmissionRequest[Gadget], reader: Reader) -> Allowed | Denied:
        assert isinstance(request.object, Gadget)
        seen.append(request.object.api_version)
        return Allowed()

    async with serving(ADMISSION[0], Admission(name="look", kinds=(Gadget,), function=look), versions=2) as api:
        document = gadget("second") | {"apiVersion": "hooks.trimtab.dev/v2"}
        answer = await api.post(GADGETS.replace("v1", "v2"), document)
        assert (answer.code, answer.doc["apiVersion"]) == (201, "hooks.trimtab.dev/v2")
        assert answer.doc["spec"]["owner"] == "admin"
        assert seen == ["hooks.trimtab.dev/v1"]


async def test_an_object_of_another_shape_is_refused_before_a_function_sees_it() -> None:
    strange = Admission(name="strange", kinds=(Gadget,), function=ADMISSION[0].function, mutating=True)
    async with serving(strange) as api:
        answer = await api.post(GADGETS, gadget("odd", size="two"))
        assert answer.code == 422
        assert "spec.size: Forbidden: Expected int, got str" in answer.doc["message"]


async def test_a_function_that_takes_too_long_refuses_the_write() -> None:
    async def hang(request: AdmissionRequest[ConfigMap], reader: Reader) -> Allowed | Denied:
        await asyncio.Event().wait()
        return Allowed()

    async with running(admission=(watching(hang, timeout=0.01),)) as api:
        answer = await api.post(MAPS, {"metadata": {"name": "a"}})
        message = 'Internal error occurred: admission function "watching" failed: no answer within 0.01 s'
        assert (answer.code, answer.doc["message"]) == (500, message)
        assert (await api.get(f"{MAPS}/a")).code == 404


@pytest.mark.parametrize(
    ("answered", "why"),
    [
        (ValueError("password: hunter2"), "it raised ValueError"),
        (TimeoutError(), "it raised TimeoutError"),
        (SystemExit(1), "it raised SystemExit"),
        (KeyboardInterrupt(), "it raised KeyboardInterrupt"),
        (asyncio.CancelledError(), "it raised CancelledError"),
        (True, "it answered with bool"),
        (Allowed(object=Untyped({})), "it may not change the object"),
    ],
)
async def test_a_function_that_fails_refuses_the_write_and_tells_no_secrets(answered: Any, why: str) -> None:
    async def fail(request: AdmissionRequest[ConfigMap], reader: Reader) -> Any:
        if isinstance(answered, BaseException):
            raise answered
        return answered

    async with running(admission=(watching(fail),)) as api:
        answer = await api.post(MAPS, {"metadata": {"name": "a"}})
        message = f'Internal error occurred: admission function "watching" failed: {why}'
        assert (answer.code, answer.doc["message"]) == (500, message)


async def test_a_mutating_function_that_wants_to_end_the_process_ends_only_the_write() -> None:
    async def leave(request: AdmissionRequest[ConfigMap], reader: Reader) -> Allowed | Denied:
        sys.exit("bye")

    async with running(admission=(watching(leave, mutating=True),)) as api:
        answer = await api.post(MAPS, {"metadata": {"name": "a"}})
        message = 'Internal error occurred: admission function "watching" failed: it raised SystemExit'
        assert (answer.code, answer.doc["message"]) == (500, message)
        assert (await api.get(MAPS)).code == 200


async def test_who_stops_asking_is_not_told_that_the_function_failed() -> None:
    asked = asyncio.Event()

    async def hang(request: AdmissionRequest[ConfigMap], reader: Reader) -> Allowed | Denied:
        asked.set()
        await asyncio.Event().wait()
        return Allowed()

    scheme = Scheme()
    document = Untyped({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    request = AdmissionRequest(operation=Operation.CREATE, kind=scheme.kind_of(ConfigMap), object=document)
    asking = asyncio.create_task(ask(watching(hang), request, cast("Reader", None), scheme))
    await asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_function_cannot_change_the_object_by_accident() -> None:
    async def meddle(request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
        request.object.raw["data"] = {"changed": "yes"}
        return Allowed()

    scheme = Scheme()
    kind = scheme.kind_of(ConfigMap)
    async with running(admission=(watching(meddle, kinds=(kind,)),), scheme=scheme) as api:
        answer = await api.post(MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
        assert answer.doc["data"] == {"k": "v"}


async def test_a_function_cannot_make_it_another_object() -> None:
    async def rename(request: AdmissionRequest[ConfigMap], reader: Reader) -> Allowed | Denied:
        assert request.object is not None
        metadata = msgspec.structs.replace(request.object.metadata, name="other", namespace="kube-system", uid="1")
        return Allowed(object=request.object.replace(metadata=metadata, data={"k": "v"}))

    async with running(admission=(watching(rename, mutating=True),)) as api:
        answer = await api.post(MAPS, {"metadata": {"name": "a"}})
        metadata = answer.doc["metadata"]
        assert (metadata["name"], metadata["namespace"], answer.doc["data"]) == ("a", "default", {"k": "v"})
        assert metadata["uid"] != "1"


async def test_only_declared_operations_and_subresources_are_asked_about() -> None:
    async def refuse(request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
        return Denied(message="asked", code=409)

    async with running(admission=(watching(refuse, operations=(Operation.UPDATE,)),)) as api:
        assert (await api.post(MAPS, {"metadata": {"name": "a"}})).code == 201
        answer = await api.merge(f"{MAPS}/a", {"data": {"k": "v"}})
        assert (answer.code, answer.doc["reason"], answer.doc["message"]) == (409, "Conflict", "asked")


async def test_a_function_learns_who_asks_and_whether_it_is_in_earnest() -> None:
    asked: list[AdmissionRequest[ConfigMap]] = []

    async def note(request: AdmissionRequest[ConfigMap], reader: Reader) -> Allowed | Denied:
        asked.append(request)
        return Allowed()

    async with running(admission=(watching(note),)) as api:
        await api.post(f"{MAPS}?dryRun=All", {"metadata": {"name": "a"}})
        [request] = asked
        assert (request.dry_run, request.namespace, request.name) == (True, "default", "a")
        assert request.user.username == "admin"
        assert "system:masters" in request.user.groups


async def test_all_functions_are_asked_so_that_all_can_warn() -> None:
    async def refuse(request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
        return Denied(message="first")

    async def warn(request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
        return Denied(message="second", warnings=("careful",))

    async with running(admission=(watching(refuse), watching(warn))) as api:
        answer = await api.post(MAPS, {"metadata": {"name": "a"}})
        assert answer.doc["message"] == 'configmaps "a" is forbidden: first'
        assert answer.warnings == ["careful"]


async def test_a_reconcile_repeats_what_admission_says(gadgets: Api) -> None:
    scheme = Scheme()
    reader = BackendReader(gadgets.server.registry, scheme)
    error = await repeat(ADMISSION, Untyped(gadget("big", size=11)), reader, scheme)
    assert error is not None
    assert "must be at most 10" in error.message
    assert await repeat(ADMISSION, Untyped(gadget("small")), reader, scheme) is None


def test_a_denial_says_why() -> None:
    with pytest.raises(ValueError, match="either field errors or a message"):
        Denied()
