"""What a schema refuses, fills in and prunes, one spec of a widget a scenario."""

from typing import Any

from ..exchange import Request
from ..kinds import WIDGETS, widget
from ..verbs import get, merge, post, put

W = f"{WIDGETS}/a"
_SPECS: dict[str, Any] = {
    "nothing": {},
    "unknown fields": {"nothing": 1, "tuning": {"odd": 1}, "entries": [{"name": "a", "odd": 1}]},
    "an enum": {"size": "huge"},
    "an enum of another type": {"size": 5},
    "null for a default": {"size": None, "replicas": None},
    "null that is allowed": {"note": None},
    "null that is allowed, with a default": {"noteOrDefault": None},
    "null that is not allowed": {"color": None},
    "null for an object": {"tuning": None},
    "null for a list": {"tags": None},
    "null in a list": {"tags": [None]},
    "null in a map": {"settings": {"k": None}},
    "text too long": {"color": "x" * 9},
    "text too short": {"color": "x"},
    "text of eight wide characters": {"color": "ä€😀ä€😀ä€"},
    "a pattern": {"code": "abcd-1"},
    "a good pattern": {"code": "abc-1"},
    "a number too big": {"replicas": 11},
    "a number too small": {"replicas": -1},
    "a fraction for an integer": {"replicas": 1.5},
    "a whole fraction for an integer": {"replicas": 2.0},
    "text for an integer": {"replicas": "1"},
    "an integer over int32": {"count32": 2**31},
    "an exclusive minimum": {"ratio": 0},
    "an integer for a number": {"ratio": 1},
    "a number over its maximum": {"ratio": 1.01},
    "a multiple": {"even": 4},
    "no multiple": {"even": 3},
    "text for a boolean": {"on": "true"},
    "a number for a boolean": {"on": 1},
    "a port by number": {"port": 80},
    "a port by name": {"port": "http"},
    "a port by fraction": {"port": 1.5},
    "a port that is true": {"port": True},
    "a percentage": {"percent": "50%"},
    "a bad percentage": {"percent": "half"},
    "a percentage as a number": {"percent": 50},
    "a set": {"tags": ["a", "b"]},
    "a set with duplicates": {"tags": ["a", "b", "a"]},
    "a set that is too long": {"tags": list("abcde")},
    "a set of other things": {"tags": ["a", 1, {}]},
    "a keyed list": {"entries": [{"name": "a"}, {"name": "a", "protocol": "UDP"}]},
    "a keyed list with duplicates": {"entries": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
    "a keyed list without the key": {"entries": [{"port": 5}]},
    "a keyed list of other things": {"entries": ["a", 5]},
    "values out of range in a list": {"entries": [{"name": "a", "port": 0}, {"name": "b", "port": 70000}]},
    "an empty list that needs an item": {"steps": []},
    "a map": {"settings": {"a": "1", "b": "2"}},
    "a map with too many": {"settings": {"a": "1", "b": "2", "c": "3", "d": "4"}},
    "a map with other values": {"settings": {"a": 1, "b": []}},
    "a map for text": {"color": {}},
    "a list for a map": {"settings": []},
    "limits": {"limits": {"cpu": "100m", "memory": 5}},
    "what is preserved": {"extra": {"known": 1, "more": {"a": [1, {"b": None}]}}},
    "what is preserved, of a wrong type": {"extra": {"known": "x"}},
    "anything: a list": {"anything": [1, "a", None, {"x": {}}]},
    "anything: a number": {"anything": 1.5},
    "anything: null": {"anything": None},
    "a reference": {"reference": {"name": "x"}},
    "a reference without a name": {"reference": {}},
    "an embedded resource": {
        "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"a": 1}}
    },
    "an embedded resource without kind": {"template": {"metadata": {"name": "x"}}},
    "an embedded resource with bad metadata": {
        "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "Not Ok", "labels": {"x": 1}}}
    },
    "an embedded resource with unknown metadata": {
        "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"odd": 1, "name": "x"}}
    },
    **{
        f"format {field} of {value!r}": {field: value}
        for field, values in {
            "when": (
                "2020-01-01T00:00:00Z",
                "2020-01-01T00:00:00.5+02:00",
                "2020-01-01",
                "yesterday",
                "2020-13-01T00:00:00Z",
            ),
            "day": ("2020-02-29", "2021-02-29", "2020-1-1"),
            "address": ("10.0.0.1", "10.0.0.256", "::1", "010.0.0.1"),
            "mail": ("a@b.c", "a b@c", "x"),
            "data": ("aGk=", "!!", "aGk"),
            "period": ("1h30m", "5", "1x", "3 days"),
            "key": ("123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000", "x"),
            "link": ("https://example.com/x", "not a link", "/x"),
        }.items()
        for value in values
    },
    "a choice": {"choice": {"left": 1}},
    "no choice": {"choice": {}},
    "both choices": {"choice": {"left": 1, "right": 2}},
    "a rule that holds": {"bounded": {"low": 1, "high": 2}},
    "a rule that fails": {"bounded": {"low": 3, "high": 2}},
    "too few properties": {"bounded": {}},
    "a rule with a field path": {"color": "mauve"},
    "a rule with its own message": {"told": 150},
    "a rule without a message": {"names": ["n-1", "x"]},
    "a rule beside a type error": {"told": "x", "bounded": {"low": 3, "high": 2}},
    "many errors at once": {"size": "huge", "replicas": 99, "tags": ["a", "a"], "color": "x", "settings": {"a": 1}},
    "spec of a wrong type": "text",
}
_TRANSITIONS: dict[str, tuple[Any, Any]] = {
    "an immutable field is kept": ({"fixed": "a"}, {"fixed": "a", "color": "red"}),
    "an immutable field changes": ({"fixed": "a"}, {"fixed": "b"}),
    "an immutable field is removed": ({"fixed": "a"}, {}),
    "an immutable field is set later": ({}, {"fixed": "a"}),
    "a field may not be removed": ({"on": True}, {}),
    "a field becomes wrong": ({"replicas": 1}, {"replicas": 11}),
    "a rule becomes false": ({"bounded": {"low": 1}}, {"bounded": {"low": 3, "high": 2}}),
    "nothing changes": ({"color": "red"}, {"color": "red"}),
    "a default is written out": (
        {},
        {"size": "medium", "replicas": 1, "tuning": {"level": 3}, "noteOrDefault": "none"},
    ),
}

SCENARIOS: dict[str, list[Request]] = {
    **{name: [post(WIDGETS, widget(spec=spec)), get(W)] for name, spec in _SPECS.items()},
    **{
        f"an update in which {name}": [
            post(WIDGETS, widget(spec=before)),
            put(W, widget(spec=after, metadata={"resourceVersion": "$rv:0"})),
            get(W),
        ]
        for name, (before, after) in _TRANSITIONS.items()
    },
    **{
        f"a merge patch in which {name}": [
            post(WIDGETS, widget(spec=before)),
            merge(W, {"spec": dict.fromkeys(before) | after}),
        ]
        for name, (before, after) in _TRANSITIONS.items()
    },
    "status is dropped at creation": [post(WIDGETS, widget(status={"phase": "Running"}))],
    "a bad status is dropped too": [post(WIDGETS, widget(status={"phase": "Odd"}))],
    "status is not checked at the main door": [
        post(WIDGETS, widget()),
        put(W, widget(status={"phase": "Odd"}, metadata={"resourceVersion": "$rv:0"})),
    ],
    "spec is not changed at the door of status": [
        post(WIDGETS, widget()),
        put(
            f"{W}/status",
            widget(
                spec={"size": "huge"},
                status={"phase": "Running"},
                metadata={"resourceVersion": "$rv:0", "labels": {"a": "b"}},
            ),
        ),
        put(f"{W}/status", widget(status={"phase": "Odd"}, metadata={"resourceVersion": "$rv:1"})),
        put(f"{W}/status", widget(status={"unknown": "Odd"}, metadata={"resourceVersion": "$rv:1"})),
        put(f"{W}/status", widget(status={"conditions": [{"type": "A"}]}, metadata={"resourceVersion": "$rv:3"})),
        get(f"{W}/status"),
    ],
}
