"""The test server of AutoRest as an independent check: each of its long-running operations, pages and failures."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.needs import needs
from tests.systems.rest.calling_kit import VERBS, Cookies, followed, freely, model
from trimtab.lab.autorest import AutorestServer, package, swagger
from trimtab.systems.rest.calling.contract import CallError, ErrorClass, Request
from trimtab.systems.rest.calling.operations import Done, Failed
from trimtab.systems.rest.calling.pages import pages
from trimtab.systems.rest.calling.service import Service
from trimtab.systems.rest.model import Call
from trimtab.testing.ports import free_ports

# How each operation of lro.json ends, reviewed against what its description says: "done"; "failed" with the class of the
# error; "refused", where the first answer is an error already. Behind it how it was followed: the styles of the polls.
ENDS = {
    "LROs_put200Succeeded": "done",
    "LROs_put201Succeeded": "done",
    "LROs_put200SucceededNoState": "done",
    "LROs_patch200SucceededIgnoreHeaders": "done",  # the header leads elsewhere and is not followed
    "LROs_patch201RetryWithAsyncHeader": "done status status",
    "LROs_patch202RetryWithAsyncAndLocationHeader": "done status status",
    "LROs_post202List": "done status result",
    "LROs_put202Retry200": "done location",
    "LROs_put201CreatingSucceeded200": "done resource",
    "LROs_put200UpdatingSucceeded204": "done resource",
    "LROs_put201CreatingFailed200": "failed unknown resource",
    "LROs_put200Acceptedcanceled200": "failed conflict resource",
    "LROs_putNoHeaderInRetry": "done location location",
    "LROs_putAsyncRetrySucceeded": "done status status",
    "LROs_putAsyncNoRetrySucceeded": "done status status",
    "LROs_putAsyncRetryFailed": "failed unknown status status",
    "LROs_putAsyncNoRetrycanceled": "failed conflict status status",
    "LROs_putAsyncNoHeaderInRetry": "done status status",
    "LROs_putNonResource": "done location location",
    "LROs_putAsyncNonResource": "done status status",
    "LROs_putSubResource": "done location location",
    "LROs_putAsyncSubResource": "done status status",
    "LROs_deleteProvisioning202Accepted200Succeeded": "done location",
    "LROs_deleteProvisioning202DeletingFailed200": "failed dependency location",
    "LROs_deleteProvisioning202Deletingcanceled200": "failed conflict location",
    "LROs_delete204Succeeded": "done",
    "LROs_delete202Retry200": "done location",
    "LROs_delete202NoRetry204": "done location",
    "LROs_deleteNoHeaderInRetry": "done location location",
    "LROs_deleteAsyncNoHeaderInRetry": "done status status",
    "LROs_deleteAsyncRetrySucceeded": "done status status",
    "LROs_deleteAsyncNoRetrySucceeded": "done status status",
    "LROs_deleteAsyncRetryFailed": "failed dependency status status",
    "LROs_deleteAsyncRetrycanceled": "failed conflict status status",
    "LROs_post200WithPayload": "done location",
    "LROs_post202Retry200": "done location location",
    "LROs_post202NoRetry204": "done location location",
    "LROs_postDoubleHeadersFinalLocationGet": "done status result",
    # Its Location must not be asked, which only the document says (final-state-via). It answers 400, and that the
    # operation succeeded stays true.
    "LROs_postDoubleHeadersFinalAzureHeaderGet": "done status result",
    "LROs_postDoubleHeadersFinalAzureHeaderGetDefault": "done status result",
    "LROs_postAsyncRetrySucceeded": "done status status result",
    "LROs_postAsyncNoRetrySucceeded": "done status status result",
    "LROs_postAsyncRetryFailed": "failed transient status status",  # its error has the code 500
    "LROs_postAsyncRetrycanceled": "failed conflict status status",
    # A 500 to the write is the caller's to try again; a 500 to a poll says nothing of the operation.
    "LRORetrys_put201CreatingSucceeded200": "done resource resource",
    "LRORetrys_putAsyncRelativeRetrySucceeded": "done status status",
    "LRORetrys_deleteProvisioning202Accepted200Succeeded": "done location location",
    "LRORetrys_delete202Retry200": "done location location",
    "LRORetrys_deleteAsyncRelativeRetrySucceeded": "done status status",
    "LRORetrys_post202Retry200": "done location location",
    "LRORetrys_postAsyncRelativeRetrySucceeded": "done status status result result",
    "LROSADs_putNonRetry400": "refused unknown",
    "LROSADs_deleteNonRetry400": "refused dependency",
    "LROSADs_postNonRetry400": "refused unknown",
    # A 400 where the status is asked for is a failure to tell, which is believed after some of them.
    "LROSADs_putNonRetry201Creating400": "failed unknown" + 5 * " resource",
    "LROSADs_putNonRetry201Creating400InvalidJson": "failed unknown" + 5 * " resource",
    "LROSADs_putAsyncRelativeRetry400": "failed unknown" + 5 * " status",
    "LROSADs_deleteAsyncRelativeRetry400": "failed unknown" + 5 * " status",
    "LROSADs_postAsyncRelativeRetry400": "failed unknown" + 5 * " status",
    # A 400 at the Location is the operation's own answer.
    "LROSADs_delete202NonRetry400": "failed unknown location",
    "LROSADs_post202NonRetry400": "failed unknown location",
    # An empty 201 is a success; what it made is read afterwards.
    "LROSADs_putError201NoProvisioningStatePayload": "done",
    "LROSADs_delete204Succeeded": "done",
    "LROSADs_put200InvalidJson": "refused transient",
    "LROSADs_putAsyncRelativeRetryNoStatus": "failed transient" + 5 * " status",
    "LROSADs_putAsyncRelativeRetryNoStatusPayload": "failed transient" + 5 * " status",
    "LROSADs_deleteAsyncRelativeRetryNoStatus": "failed transient" + 5 * " status",
    "LROSADs_postAsyncRelativeRetryNoPayload": "failed transient" + 5 * " status",
    "LROSADs_putAsyncRelativeRetryInvalidJsonPolling": "failed transient" + 5 * " status",
    "LROSADs_deleteAsyncRelativeRetryInvalidJsonPolling": "failed transient" + 5 * " status",
    "LROSADs_postAsyncRelativeRetryInvalidJsonPolling": "failed transient" + 5 * " status",
    # Nobody serves the resource of this one either: a page of HTML is no word of the service.
    "LROSADs_post202NoLocation": "failed unknown" + 5 * " resource",
    "LROSADs_putAsyncRelativeRetryInvalidHeader": "failed unknown" + 5 * " status",
    "LROSADs_deleteAsyncRelativeRetryInvalidHeader": "failed unknown" + 5 * " status",
    "LROSADs_postAsyncRelativeRetryInvalidHeader": "failed unknown" + 5 * " status",
    "LROSADs_delete202RetryInvalidHeader": "failed unknown" + 5 * " location",
    "LROSADs_post202RetryInvalidHeader": "failed unknown" + 5 * " location",
    "LROsCustomHeader_putAsyncRetrySucceeded": "done status status",
    "LROsCustomHeader_put201CreatingSucceeded200": "done resource",
    "LROsCustomHeader_post202Retry200": "done location location",
    "LROsCustomHeader_postAsyncRetrySucceeded": "done status status",
}

REQUEST_ID = {"x-ms-client-request-id": "9C4D50EE-2D56-4CD3-8152-34347DC9F2B0"}  # the custom header of four of them


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AutorestServer]:
    needs("node", package(), hint="scripts/packages.sh installs it")
    (port,) = free_ports(1)
    with AutorestServer(tmp_path_factory.mktemp("autorest"), port) as running:
        yield running


@pytest.fixture
async def service(server: AutorestServer) -> AsyncIterator[Service]:
    async with Service(server.url, headers=REQUEST_ID, throttle=freely()) as made:
        yield made


def operations(document: str) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Each operation's ID, method, path and itself."""
    for path, item in json.loads(swagger(document).read_text("utf-8-sig"))["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield operation["operationId"], method.upper(), path, operation


def test_the_table_has_every_long_running_operation_of_the_document() -> None:
    needs(package(), hint="scripts/packages.sh installs it")
    there = {name for name, *_, one in operations("lro.json") if one.get("x-ms-long-running-operation")}
    assert there == set(ENDS)


@pytest.mark.parametrize("name", ENDS)
async def test_an_operation_ends_as_its_description_says(service: Service, name: str) -> None:
    ((method, path),) = [(method, path) for there, method, path, _ in operations("lro.json") if there == name]
    caller = Cookies(service)
    body = None if method == "DELETE" else {}
    write = Request(verb=VERBS[method], method=method, url=path, body=body)
    if ENDS[name].startswith("refused"):
        with pytest.raises(CallError) as raised:
            await caller.call(write)
        assert f"refused {raised.value.kind.value}" == ENDS[name]
        return
    if name.startswith("LRORetrys"):  # a 500 to a write: whoever sent it decides
        with pytest.raises(CallError) as raised:
            await caller.call(write)
        assert (raised.value.kind, raised.value.uncertain) == (ErrorClass.TRANSIENT, True)
    answer = await caller.call(write)
    end, styles = await followed(caller, model(path), answer, method=method, resource=path)
    said = f"failed {end.error.kind.value}" if isinstance(end, Failed) else "done"
    assert " ".join((said, *styles)) == ENDS[name]


async def test_what_a_post_made_is_in_its_end(service: Service) -> None:
    path = "/lro/LROPostDoubleHeadersFinalLocationGet"
    caller = Cookies(service)
    answer = await caller.call(Request(verb="create", method="POST", url=path))
    end, _ = await followed(caller, model(path), answer, method="POST", resource=path)
    assert isinstance(end, Done)
    assert end.answer is not None
    assert end.answer.body == {"id": "100", "name": "foo"}


PAGES = {
    "/paging/noitemname": ("value", "nextLink", 1),
    "/paging/nullnextlink": ("values", "", 1),  # it has one all the same, which the document says not to follow
    "/paging/emptynextlink": ("value", "nextLink", 1),
    "/paging/single": ("values", "nextLink", 1),
    "/paging/multiple": ("values", "nextLink", 10),
    "/paging/multiple/odata": ("values", "odata.nextLink", 10),
    "/paging/multiple/withpath/5": ("values", "nextLink", 10),
    "/paging/multiple/duplicateParams/1?%24filter=foo": ("values", "nextLink", 2),
    "/paging/firstResponseEmpty/1": ("value", "nextLink", 2),
}


@pytest.mark.parametrize("path", PAGES)
async def test_a_list_is_read_to_its_end(service: Service, path: str) -> None:
    items, link, expected = PAGES[path]
    call = Call(method="GET", path=path, items=items, next_link=link)
    read = [page async for page in pages(service, model(), call, path)]
    assert len(read) == expected
    assert all(isinstance(item, dict) for page in read for item in page)


@pytest.mark.parametrize("path", ["/paging/multiple/retryfirst", "/paging/multiple/retrysecond"])
async def test_a_list_that_met_a_500_is_read_anew(service: Service, path: str) -> None:
    call = Call(method="GET", path=path, items="values", next_link="nextLink")
    caller = Cookies(service)
    with pytest.raises(CallError) as raised:
        [page async for page in pages(caller, model(), call, path)]
    assert raised.value.kind is ErrorClass.TRANSIENT
    assert len([page async for page in pages(caller, model(), call, path)]) == 10


async def test_a_first_page_without_items_is_not_the_end(service: Service) -> None:
    call = Call(method="GET", path="/paging/firstResponseEmpty/1", items="value", next_link="nextLink")
    read = [page async for page in pages(service, model(), call, call.path)]
    assert [len(page) for page in read] == [0, 1]


@pytest.mark.parametrize("path", ["/paging/single/failure", "/paging/multiple/failure"])
async def test_a_list_that_fails_half_way_raises(service: Service, path: str) -> None:
    call = Call(method="GET", path=path, items="values", next_link="nextLink")
    with pytest.raises(CallError) as raised:
        [page async for page in pages(service, model(), call, path)]
    assert (raised.value.kind, raised.value.status) == (ErrorClass.UNKNOWN, 400)


async def test_a_next_page_that_is_no_url_raises(service: Service) -> None:
    call = Call(method="GET", path="/paging/multiple/failureuri", items="values", next_link="nextLink")
    with pytest.raises(CallError):
        [page async for page in pages(service, model(), call, call.path)]


FAILURES = {
    "/http/failure/client/400": ErrorClass.UNKNOWN,
    "/http/failure/client/401": ErrorClass.AUTH,
    "/http/failure/client/402": ErrorClass.UNKNOWN,
    "/http/failure/client/403": ErrorClass.AUTH,
    "/http/failure/client/404": ErrorClass.GONE,
    "/http/failure/client/405": ErrorClass.TERMINAL,
    "/http/failure/client/406": ErrorClass.UNKNOWN,
    "/http/failure/client/407": ErrorClass.AUTH,
    "/http/failure/client/409": ErrorClass.CONFLICT,
    "/http/failure/client/410": ErrorClass.GONE,
    "/http/failure/client/411": ErrorClass.UNKNOWN,
    "/http/failure/client/412": ErrorClass.PRECONDITION,
    "/http/failure/client/413": ErrorClass.TERMINAL,
    "/http/failure/client/414": ErrorClass.TERMINAL,
    "/http/failure/client/415": ErrorClass.TERMINAL,
    "/http/failure/client/416": ErrorClass.UNKNOWN,
    "/http/failure/client/417": ErrorClass.UNKNOWN,
    "/http/failure/client/429": ErrorClass.THROTTLED,
    "/http/failure/server/501": ErrorClass.TERMINAL,
    "/http/failure/server/505": ErrorClass.TRANSIENT,
}


def test_the_table_has_every_failure_of_the_document() -> None:
    needs(package(), hint="scripts/packages.sh installs it")
    there = {path for *_, path, _ in operations("httpInfrastructure.json") if "failure/client" in path}
    assert there == {path for path in FAILURES if "client" in path}


@pytest.mark.parametrize("path", FAILURES)
async def test_a_failure_has_its_meaning(service: Service, path: str) -> None:
    methods = [method for _, method, there, _ in operations("httpInfrastructure.json") if there == path]
    for method in methods:
        verb = VERBS.get(method, "read")
        with pytest.raises(CallError) as raised:
            await service.call(Request(verb=verb, method=method, url=path, body={} if verb != "read" else None))
        expected = FAILURES[path]
        if (path[-3:], verb) in (("404", "create"), ("400", "delete")):  # the parent is missing; children are there
            expected = ErrorClass.DEPENDENCY
        assert raised.value.kind is expected
