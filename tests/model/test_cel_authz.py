"""The authorizer of an expression: what it is asked, and what the answer costs."""

import pytest

from trimtab.model import cel
from trimtab.model.cel.authz import Attributes, Decision, authorizer

ASKED = {"authorizer": cel.AUTHORIZER}


def evaluate(source, decide, budget=None):
    program = cel.compile(source, ASKED, result=None)
    return program.evaluate({"authorizer": authorizer(decide)}, budget or cel.Budget())


@pytest.mark.parametrize(
    ("source", "verb", "attributes"),
    [
        ("authorizer.path('/healthz').check('get').allowed()", "get", Attributes(path="/healthz")),
        (
            "authorizer.group('apps').resource('deployments').namespace('x').name('y').check('create').allowed()",
            "create",
            Attributes(group="apps", resource="deployments", namespace="x", name="y"),
        ),
        (
            "authorizer.serviceAccount('ns', 'bot').group('').resource('pods').subresource('log').check('get').allowed()",
            "get",
            Attributes(resource="pods", subresource="log", account=("ns", "bot")),
        ),
        (
            "authorizer.group('').resource('pods').labelSelector('a=b').fieldSelector('c=d').check('list').allowed()",
            "list",
            Attributes(resource="pods", label_selector="a=b", field_selector="c=d"),
        ),
    ],
)
def test_an_authorizer_is_asked_what_the_expression_says(source, verb, attributes):
    asked = []

    def decide(verb, attributes):
        asked.append((verb, attributes))
        return Decision(True)

    assert evaluate(source, decide) is True
    assert asked == [(verb, attributes)]


def test_a_decision_carries_its_reason_and_its_error():
    check = "authorizer.group('').resource('pods').check('get')"
    assert evaluate(f"{check}.reason()", lambda *_: Decision(False, "because")) == "because"
    assert evaluate(f"{check}.errored() && {check}.error() == 'broken'", lambda *_: Decision(False, error="broken"))


def test_two_checks_are_affordable_and_three_are_not():
    check = "authorizer.path('/').check('get').allowed()"
    assert evaluate(f"{check} && {check}", lambda *_: Decision(True)) is True
    with pytest.raises(cel.CostExceeded):
        evaluate(f"{check} && {check} && {check}", lambda *_: Decision(True))


def test_an_empty_path_cannot_be_asked_for():
    with pytest.raises(cel.EvaluationError, match="path must not be empty"):
        evaluate("authorizer.path(' ').check('get').allowed()", lambda *_: Decision(True))


def test_without_an_authorizer_the_name_is_unknown():
    with pytest.raises(cel.CelError) as raised:
        cel.compile("authorizer.path('/a').check('get').allowed()", {})
    assert [issue.message for issue in raised.value.issues] == [
        "undeclared reference to 'authorizer' (in container '')"
    ]
