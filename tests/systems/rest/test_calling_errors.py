"""What errors mean, how they read, and when it is tried again."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.redacted import Redacted
from trimtab.systems.rest.calling.contract import ErrorClass, Request
from trimtab.systems.rest.calling.errors import (
    Problem,
    classify,
    described,
    error_inside,
    error_of,
    problem_of,
    retry_delay,
    scrubbed,
)

TERMINAL, IMMUTABLE, DEPENDENCY = ErrorClass.TERMINAL, ErrorClass.IMMUTABLE, ErrorClass.DEPENDENCY
CONFLICT, PRECONDITION, THROTTLED = ErrorClass.CONFLICT, ErrorClass.PRECONDITION, ErrorClass.THROTTLED
AUTH, TRANSIENT, UNKNOWN = ErrorClass.AUTH, ErrorClass.TRANSIENT, ErrorClass.UNKNOWN
GONE, EXISTS = ErrorClass.GONE, ErrorClass.EXISTS


@pytest.mark.parametrize(
    ("verb", "status", "code", "message", "kind"),
    [
        # a 400 that means "not yet"
        ("create", 400, "ManagedEnvironmentNotProvisioned", "", DEPENDENCY),
        ("update", 400, "PrincipalNotFound", "", DEPENDENCY),
        ("create", 400, "FailedIdentityOperation", "", DEPENDENCY),
        ("patch", 400, "StorageProvisioningStateNotSucceeded", "", DEPENDENCY),
        ("create", 409, "StorageAccountIsNotProvisioned", "", DEPENDENCY),
        ("create", 400, "", "The workspace is not yet ready", DEPENDENCY),
        ("create", 404, "ResourceGroupNotFound", "", DEPENDENCY),
        ("update", 404, "ParentResourceNotFound", "", DEPENDENCY),
        ("create", 404, "", "", DEPENDENCY),
        # gone
        ("delete", 404, "ResourceGroupNotFound", "", GONE),
        ("read", 404, "ParentResourceNotFound", "", GONE),
        ("read", 404, "ResourceNotFound", "", GONE),
        ("patch", 404, "ResourceNotFound", "", GONE),
        ("update", 404, "", "", GONE),
        ("delete", 410, "", "", GONE),
        ("delete", 400, "BadRequest", "Cannot delete 'a' since it has linked servers.", DEPENDENCY),
        ("delete", 409, "", "volume is in use by a container", DEPENDENCY),
        ("delete", 400, "", "whatever", DEPENDENCY),
        ("update", 400, "DeploymentFailed", "failed due to an intermittent error. Please try again.", TRANSIENT),
        # someone else
        ("update", 409, "AnotherOperationInProgress", "", CONFLICT),
        ("update", 409, "Conflict", "", CONFLICT),
        ("update", 409, "EtagMismatch", "", PRECONDITION),
        ("update", 409, "Conflict", "the etag does not match", PRECONDITION),
        ("update", 412, "", "", PRECONDITION),
        ("update", 429, "RetryableError", "", DEPENDENCY),
        ("read", 429, "RetryableError", "", TRANSIENT),
        ("update", 429, "TooManyRequests", "", THROTTLED),
        ("update", 429, "", "", THROTTLED),
        ("read", 403, "", "API rate limit exceeded for you", THROTTLED),
        ("create", 409, "", "a profile named web already exists", EXISTS),
        ("create", 400, "", 'The profile "web" already exists', EXISTS),
        ("create", 409, "Conflict", "Zone 'x.org.' already exists", EXISTS),
        ("update", 409, "", "a profile named web already exists", CONFLICT),
        # what cannot be
        ("patch", 409, "PropertyChangeNotAllowed", "", IMMUTABLE),
        ("patch", 400, "", "Changing property 'osDisk.name' is not allowed.", IMMUTABLE),
        ("update", 422, "", "field is immutable", IMMUTABLE),
        ("update", 409, "Conflict", "The zone cannot be changed after creation", IMMUTABLE),
        ("create", 400, "InvalidParameter", "", TERMINAL),
        ("update", 405, "", "", TERMINAL),
        ("update", 415, "", "", TERMINAL),
        ("update", 403, "RequestDisallowedByPolicy", "", UNKNOWN),
        ("update", 409, "ScopeLocked", "", UNKNOWN),
        ("update", 400, "", "whatever", UNKNOWN),
        ("update", 400, "SomethingNew", "", UNKNOWN),
        ("read", 401, "", "", AUTH),
        ("read", 403, "AuthorizationFailed", "", AUTH),
        ("update", 500, "", "", TRANSIENT),
        ("update", 503, "", "", TRANSIENT),
        ("update", 409, "AllocationFailed", "", TRANSIENT),
        ("update", 408, "", "", TRANSIENT),
    ],
)
def test_what_an_error_means(verb: str, status: int, code: str, message: str, kind: ErrorClass) -> None:
    assert classify(status, Problem(message, (code,) if code else ()), verb=verb) is kind


def test_the_innermost_code_that_is_known_decides() -> None:
    body = {"error": {"code": "BadRequest", "message": "no", "details": [{"code": "PrincipalNotFound"}]}}
    assert classify(400, problem_of(body), verb="create") is DEPENDENCY


def test_the_overlay_is_asked_first_and_its_rules_in_their_order() -> None:
    rules = (
        {"code": "RequestDisallowedByPolicy", "message": "(?i)quota", "class": "dependency"},
        {"code": "requestdisallowedbypolicy", "class": "terminal"},
        {"status": "404", "class": "transient"},
    )
    policy = ("RequestDisallowedByPolicy",)
    assert classify(403, Problem("over QUOTA", policy), verb="create", rules=rules) is DEPENDENCY
    assert classify(403, Problem("never", policy), verb="create", rules=rules) is TERMINAL
    assert classify(404, Problem(), verb="read", rules=rules) is TRANSIENT
    assert classify(409, Problem(), verb="read", rules=rules) is CONFLICT


def test_a_rule_with_a_bad_expression_says_so() -> None:
    with pytest.raises(ValueError, match=r"'\(' *.*no regular expression"):
        classify(400, Problem("x"), verb="read", rules=({"message": "(", "class": "gone"},))


def test_a_rule_cannot_make_a_reconcile_hang() -> None:
    rules = ({"message": "(a+)+$", "class": "gone"},)
    assert classify(400, Problem("a" * 290 + "b"), verb="read", rules=rules) is UNKNOWN


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"error": {"code": "A", "message": "why"}}, "A", "why"),  # ARM
        ({"code": "A", "message": "why"}, "A", "why"),
        ({"odata.error": {"code": "A", "message": {"lang": "en", "value": "why"}}}, "A", "why"),  # OData 3
        ({"type": "https://x.example/probs/out-of-credit", "title": "T", "detail": "why"}, "out-of-credit", "why"),
        ({"type": "about:blank", "title": "why", "status": 403}, "", "why"),  # RFC 7807
        ({"type": "error", "error": "why", "error_code": 404}, "", "why"),  # LXD
        ({"error": "why", "errors": ["name is wrong"]}, "", "why: name is wrong"),  # PowerDNS
        ({"message": "why"}, "", "why"),  # Docker
        ({"cause": "image not known", "message": "why", "response": 404}, "", "why"),  # Podman
        ({"code": 602, "message": "why"}, "602", "why"),  # Alertmanager
        ("why", "", "why"),
        ({"errors": [{"code": "A", "message": "why"}]}, "A", "why"),
        ({"Code": "A", "Message": "why"}, "A", "why"),  # App Service
        (None, "", "the text"),
        (7, "", "the text"),
        ({}, "", "the text"),
    ],
)
def test_errors_are_found_in_what_services_write(body: Any, code: str, message: str) -> None:
    found = problem_of(body, "the text")
    assert (found.code, found.message) == (code, message)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["error", "errors", "code", "message", "details", "innererror", "type", "x", "detail"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(body=json, status=st.integers(200, 599), verb=st.sampled_from(["create", "read", "patch", "delete", "poll"]))
def test_whatever_a_service_writes_becomes_one_short_line(body: Any, status: int, verb: str) -> None:
    error = error_of(Request(verb=verb, method="GET", url="/x"), status, body)
    assert len(str(error)) <= 300
    assert str(error).isprintable()
    assert error_inside(body) in (True, False)


@given(secret=st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Zs"]), min_size=6, max_size=40))
def test_a_secret_that_is_echoed_is_scrubbed(secret: str) -> None:
    if secret in "POST /things: said [redacted]":
        return
    request = Request(verb="create", method="POST", url="/things", secrets=(Redacted(secret),))
    assert secret not in described(request, f"said {secret} and {secret}")


def test_what_looks_like_a_token_is_scrubbed_even_when_nobody_knows_it() -> None:
    assert scrubbed("Authorization: Bearer eyJhbGciOi.abc123", ()) == "Authorization: Bearer [redacted]"
    assert scrubbed("the bearer token is missing", ()) == "the bearer token is missing"


@pytest.mark.parametrize(
    ("method", "status", "uncertain"),
    [("PUT", 500, True), ("POST", 504, True), ("POST", 408, True), ("POST", 400, False), ("GET", 500, False)],
)
def test_a_write_that_met_a_server_error_may_have_taken_effect(method: str, status: int, uncertain: bool) -> None:
    assert error_of(Request(verb="update", method=method, url="/x"), status, None).uncertain is uncertain


@pytest.mark.parametrize("kind", list(ErrorClass))
def test_each_class_is_tried_again_within_its_bounds(kind: ErrorClass) -> None:
    chance = random.Random(1)
    delays = [retry_delay(kind, attempt, None, chance) for attempt in range(40)]
    assert all(delay > 0 for delay in delays)
    if kind is TRANSIENT:
        assert delays[0] <= 1
        assert max(delays) <= 30
    if kind is UNKNOWN:
        assert all(30 * 60 <= delay <= 60 * 60 for delay in delays)
        assert len(set(delays)) > 30


@given(attempt=st.integers(0, 10**6), after=st.none() | st.floats(0, 10**9), kind=st.sampled_from(list(ErrorClass)))
def test_what_the_service_asks_for_is_kept_within_reason(attempt: int, after: float | None, kind: ErrorClass) -> None:
    delay = retry_delay(kind, attempt, after, random.Random(2))
    assert 0 <= delay <= 3600 * 1.25
    if after is not None:
        assert delay >= min(after, 3600)
