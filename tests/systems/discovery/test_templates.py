from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.systems.discovery.kinds import DiscoveryInfo
from trimtab.systems.discovery.targets.templates import MAX_OUTPUT, RuleNames, TemplateFailed, check, render

INFO = DiscoveryInfo(
    protocol="snmp",
    provider="srl",
    hostname="Leaf1.example.com",
    serial_number="NS123456",
    supported_encodings=("JSON", "ASCII"),
)
RULE = RuleNames("north", "lab", {"site": "fra1", "team.example.com/name": "core"})


def rendered(template: str, info: DiscoveryInfo = INFO) -> str:
    assert check(template) is None
    return render(template, info, "10.1.0.5", RULE)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("", ""),
        ("plain", "plain"),
        ("{{ discoveryInfo.hostname }}", "Leaf1.example.com"),
        ("{{ discoveryInfo['serialNumber'] | lower }}", "ns123456"),
        ("{{ rule.labels.site }}-{{ discoveryInfo.hostname | split('.') | first }}", "fra1-Leaf1"),
        ("{{ rule.labels['team.example.com/name'] }}", "core"),
        ("{{ rule.name }}.{{ rule.namespace }}.{{ address }}", "north.lab.10.1.0.5"),
        ("{{ discoveryInfo.hostname[:4] ~ '-' ~ discoveryInfo.serialNumber[-4:] }}", "Leaf-3456"),
        ("{{ discoveryInfo.platform | default(discoveryInfo.provider) | upper }}", "SRL"),
        ("{{ discoveryInfo.hostname | replace('.', '-') }}", "Leaf1-example-com"),
        ("{{ discoveryInfo.supportedEncodings | join('+') }}", "JSON+ASCII"),
        ("{% if discoveryInfo.provider in ['srl', 'eos'] %}known{% else %}other{% endif %}", "known"),
        ("{{ 'v6' if ':' in address else 'v4' }}", "v4"),
        ("{{ address | split('.') | last }}", "5"),
        ("{{ discoveryInfo.protocol }}", "snmp"),
        ("{# nothing #}{% raw %}{{ }}{% endraw %}", "{{ }}"),
    ],
)
def test_templates_say_what_users_mean(template: str, text: str) -> None:
    assert rendered(template) == text


@pytest.mark.parametrize(
    "template",
    [
        "{{ discoveryInfo.hostname }}",
        "{{ discoveryInfo.hostname | split('.') | first }}",
        "{{ discoveryInfo.supportedEncodings | last }}",
        "{{ discoveryInfo.supportedEncodings[3] }}",
        "{{ rule.labels.unknown }}",
        "{{ 'x' if discoveryInfo.hostname }}",
        "{{ 'x' if discoveryInfo.hostname is defined }}",
    ],
)
def test_what_a_device_did_not_say_is_empty(template: str) -> None:
    assert rendered(template, DiscoveryInfo()) == ""


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{{", "is no template"),
        ("{{ discoveryInfo.hostName }}", "discoveryInfo has protocol, provider, platform"),
        ("{{ discoveryInfo['hostName'] }}", "discoveryInfo has protocol, provider, platform"),
        ("{{ rule.uid }}", "rule has name, namespace, labels"),
        ("{{ hostname }}", "hostname is not known: there are discoveryInfo, address, rule"),
        ("{{ address | title }}", "there is no filter title: there are default, first"),
        ("{{ address is odd }}", "there is no test odd"),
        ("{{ address | replace('a') }}", "cannot be rendered"),
        ("{{ discoveryInfo.supportedEncodings }}", "a list is no text: use first, last or join"),
        ("{{ rule }}", "a dict is no text: name one of its fields"),
        ("{{ address < 'b' }}", "compared by ==, != and in"),
        ("{{ 1 in 5 }}", "cannot be rendered"),
        ("{{ 'a'[::0] }}", "cannot be rendered"),
        ("x" * 1025, "at most 1024 characters"),
        ("{{ discoveryInfo.hostname.split('.') }}", "a call (for x.split('.') write x | split('.'))"),
        ("{% set a = 'x' %}", "{% set %} cannot be used"),
        ("{{ 'a' + 'b' }}", "put texts together by ~"),
        ("{% for c in address %}{% endfor %}", "a loop cannot be used"),
        ("{% include 'x' %}", "include cannot be used"),
        ("{% import 'x' as y %}", "import cannot be used"),
        ("{% extends 'x' %}", "extends cannot be used"),
        ("{% macro f() %}{% endmacro %}", "macro cannot be used"),
        ("{% block b %}{% endblock %}", "block cannot be used"),
    ],
)
def test_a_refusal_says_what_is_wrong(template: str, says: str) -> None:
    assert says in str(check(template))
    with pytest.raises(TemplateFailed):
        render(template, INFO, "10.1.0.5", RULE)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'x' * 10**9 }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ 'x' | center(10**9) }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '{:>999999999}'.format(1) }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{{ range(10**9) | list }}",
        "{{ lipsum(10**6) }}",
        "{{ " + "(" * 500 + "1" + ")" * 500 + " }}",
        "{{ " + "not " * 240 + "1 }}",
        "{{ address" + "|lower" * 160 + " }}",
        "{{ address" + "|replace('','abcdefghi')" * 20 + " }}",
        "{{ address|replace('','a')|split('')|join('" + "x" * 900 + "') }}",
        "{% if 1 %}" * 60 + "{% endif %}" * 30,
    ],
)
def test_what_would_run_long_or_grow_is_refused_at_once(template: str) -> None:
    began = time.process_time()
    refused = check(template)
    assert refused or len(rendered(template)) <= MAX_OUTPUT
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "expression",
    [
        "''.__class__.__mro__",
        "''['__class__']",
        "address.__class__",
        "rule.labels.__class__.__init__",
        "rule.__class__",
        "discoveryInfo['__class__']",
        "self._TemplateReference__context",
        "cycler.__init__.__globals__",
        "namespace",
        "(address | lower).__class__",
        "[].__class__",
        "address | attr('__class__')",
        "address | map('upper')",
    ],
)
def test_no_object_of_python_can_be_reached(expression: str) -> None:
    template = "{{ " + expression + " }}"
    assert check(template) is not None or rendered(template) == ""


def test_a_rendering_that_is_too_long_is_refused() -> None:
    template = "{{ discoveryInfo.hostname }}" * 36
    assert check(template) is None
    with pytest.raises(TemplateFailed, match="more than 4096 characters"):
        render(template, DiscoveryInfo(hostname="x" * 512), "10.1.0.5", RULE)


def test_what_a_device_says_is_no_template() -> None:
    assert rendered("{{ discoveryInfo.hostname }}", DiscoveryInfo(hostname="{{ 7 * 7 }}<b>")) == "{{ 7 * 7 }}<b>"


tokens = (
    *("{{", "}}", "{%", "%}", " if ", " endif ", " for ", " in ", " is ", "address", "discoveryInfo", ".", "hostname"),
    *("|", "split", "join", "replace", "first", "('", "')", "(", ")", "[", "]", ":", "1", "~", "*", "'", ","),
)
grammar = st.lists(st.sampled_from(tokens), max_size=25).map("".join)


@given(grammar | st.text(max_size=40))
def test_any_text_is_refused_or_rendered_within_bounds(template: str) -> None:
    if check(template) is None:
        assert len(rendered(template)) <= MAX_OUTPUT
