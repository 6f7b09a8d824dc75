"""Bodies and headers that are not as they should be, and what fieldValidation makes of them."""

import json

from ..exchange import PROTOBUF, Request
from ..kinds import CONFIGMAPS, DEPLOYMENTS, GROUP, WIDGETS, configmap, deployment, widget
from ..verbs import APPLY, JSON, MERGE, METADATA, STRATEGIC, TABLE, YAML, get, patch, post, put

A = f"{CONFIGMAPS}/a"
W = f"{WIDGETS}/a"
HEAD = '"apiVersion":"v1","kind":"ConfigMap"'
MODES = ("Strict", "Warn", "Ignore", "Odd")
_RAW: dict[str, str] = {
    "nothing": "",
    "blank": "   ",
    "not JSON": "hello",
    "cut short": '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"',
    "a list": "[]",
    "a number": "5",
    "null": "null",
    "a string": '"x"',
    "an empty object": "{}",
    "two documents": f'{{{HEAD},"metadata":{{"name":"a"}}}} {{}}',
    "a trailing comma": f'{{{HEAD},"metadata":{{"name":"a"}},}}',
    "no kind": '{"apiVersion":"v1","metadata":{"name":"a"}}',
    "no apiVersion": '{"kind":"ConfigMap","metadata":{"name":"a"}}',
    "another kind": '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}',
    "another version": '{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"a"}}',
    "another group": '{"apiVersion":"apps/v1","kind":"ConfigMap","metadata":{"name":"a"}}',
    "a version with two slashes": '{"apiVersion":"a/b/c","kind":"ConfigMap","metadata":{"name":"a"}}',
    "a kind that is a number": '{"apiVersion":"v1","kind":5,"metadata":{"name":"a"}}',
    "metadata that is text": f'{{{HEAD},"metadata":"x"}}',
    "metadata that is null": f'{{{HEAD},"metadata":null}}',
    "a name that is a number": f'{{{HEAD},"metadata":{{"name":5}}}}',
    "labels that are a list": f'{{{HEAD},"metadata":{{"name":"a","labels":[]}}}}',
    "a label that is a number": f'{{{HEAD},"metadata":{{"name":"a","labels":{{"a":1}}}}}}',
    "data that are numbers": f'{{{HEAD},"metadata":{{"name":"a"}},"data":{{"a":1}}}}',
    "data that are a list": f'{{{HEAD},"metadata":{{"name":"a"}},"data":[1]}}',
    "data that are null": f'{{{HEAD},"metadata":{{"name":"a"}},"data":null}}',
    "a value that is null": f'{{{HEAD},"metadata":{{"name":"a"}},"data":{{"a":null}}}}',
    "immutable that is text": f'{{{HEAD},"metadata":{{"name":"a"}},"immutable":"yes"}}',
    "creationTimestamp null": f'{{{HEAD},"metadata":{{"name":"a","creationTimestamp":null}}}}',
    "a creationTimestamp that is no time": f'{{{HEAD},"metadata":{{"name":"a","creationTimestamp":"now"}}}}',
    "a generation that is text": f'{{{HEAD},"metadata":{{"name":"a","generation":"1"}}}}',
    "names in another case": '{"APIVersion":"v1","Kind":"ConfigMap","Metadata":{"Name":"a"},"Data":{"k":"v"}}',
    "fields in another case": f'{{{HEAD},"metadata":{{"name":"a"}},"Data":{{"k":"v"}}}}',
    "unicode": f'{{{HEAD},"metadata":{{"name":"a"}},"data":{{"k":"ä€😀\\u0000<>&\\u2028"}}}}',
    "deep nesting": f'{{{HEAD},"metadata":{{"name":"a"}},"x":' + "[" * 200 + "]" * 200 + "}",
}
_WIDGET_RAW = {
    "metadata that is text": '"metadata":"x"',
    "metadata that is missing": '"spec":{}',
    "a name that is a number": '"metadata":{"name":5}',
    "labels that are a list": '"metadata":{"name":"a","labels":[]}',
    "a label that is a number": '"metadata":{"name":"a","labels":{"x":1}}',
    "unknown metadata": '"metadata":{"name":"a","colour":"red"}',
    "an unknown field at the top": '"metadata":{"name":"a"},"other":1',
    "spec that is a list": '"metadata":{"name":"a"},"spec":[]',
    "spec that is null": '"metadata":{"name":"a"},"spec":null',
    "a number out of int64": '"metadata":{"name":"a"},"spec":{"replicas":99999999999999999999}',
    "a number with an exponent": '"metadata":{"name":"a"},"spec":{"replicas":1e1}',
    "a whole number written with a point": '"metadata":{"name":"a"},"spec":{"replicas":2.0}',
    "a number with a long fraction": '"metadata":{"name":"a"},"spec":{"ratio":0.12345678901234567890}',
}
_FIELDS = {
    "unknown": f'{{{HEAD},"metadata":{{"name":"a"}},"nothing":1,"metadataa":2}}',
    "twice": f'{{{HEAD},"metadata":{{"name":"a","name":"b"}},"data":{{"k":"v","k":"w"}}}}',
    "nested": f'{{{HEAD},"metadata":{{"name":"a","nothing":{{}},"labels":{{"x":"1","x":"2"}}}}}}',
}
_WIDGET_FIELDS = {
    "unknown": '"spec":{"nothing":1,"tuning":{"odd":2},"entries":[{"name":"e","odd":3}],"extra":{"odd":4}},"top":5',
    "twice": '"spec":{"size":"small","size":"large","settings":{"k":"1","k":"2"}}',
    "in metadata": '"metadata":{"name":"a","name":"b","odd":1}',
    "in embedded metadata": '"spec":{"template":{"apiVersion":"v1","kind":"P","metadata":{"odd":1},"odd":2}}',
}
_TYPES = (
    "text/plain",
    "application/xml",
    "application/json; charset=utf-8",
    "application/json;charset=latin1",
    "",
    "nonsense",
    MERGE,
    "APPLICATION/JSON",
    "application/cbor",
)
_ACCEPTS = (
    "*/*",
    "text/html",
    "application/yaml",
    "application/json;q=0.5, application/yaml",
    "application/xml",
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
    "application/json;as=Table;v=v2;g=meta.k8s.io",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=Nothing;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=Nothing;v=v1;g=meta.k8s.io",
    "application/json;pretty=1",
    "application/json;stream=watch",
    "application/*",
    "application/cbor",
    "application/cbor, application/json",
    "",
    "garbage",
)


def _widget(rest: str) -> str:
    name = "" if '"metadata"' in rest else '"metadata":{"name":"a"},'
    return f'{{"apiVersion":"{GROUP}/v1","kind":"Widget",{name}{rest}}}'


SCENARIOS: dict[str, list[Request]] = {
    **{f"create from {name}": [post(CONFIGMAPS, body), get(A)] for name, body in _RAW.items()},
    **{
        f"create strictly from {name}": [post(f"{CONFIGMAPS}?fieldValidation=Strict", body)]
        for name, body in _RAW.items()
    },
    **{
        f"create a widget from {name}": [
            post(WIDGETS, body.replace('"v1","kind":"ConfigMap"', f'"{GROUP}/v1","kind":"Widget"'))
        ]
        for name, body in _RAW.items()
        if "data" not in name and "immutable" not in name
    },
    **{f"create a widget from {name}": [post(WIDGETS, _widget(rest)), get(W)] for name, rest in _WIDGET_RAW.items()},
    **{
        f"fields {name} with fieldValidation {mode}": [post(f"{CONFIGMAPS}?fieldValidation={mode}", body)]
        for name, body in _FIELDS.items()
        for mode in MODES
    },
    **{
        f"fields of a widget {name} with fieldValidation {mode}": [
            post(f"{WIDGETS}?fieldValidation={mode}", _widget(rest))
        ]
        for name, rest in _WIDGET_FIELDS.items()
        for mode in MODES
    },
    **{
        f"an unknown field in a {kind} with fieldValidation {mode}": [
            post(CONFIGMAPS, configmap()),
            patch(f"{A}?fieldValidation={mode}&fieldManager=x", body, kind),
        ]
        for kind, body in (
            (MERGE, '{"nothing":1,"data":{"k":"v","k":"w"}}'),
            (STRATEGIC, '{"nothing":1,"data":{"k":"v","k":"w"}}'),
            ("application/json-patch+json", '[{"op":"add","path":"/nothing","value":1,"odd":2}]'),
            (APPLY, f'{{{HEAD},"nothing":1,"data":{{"k":"v"}}}}'),
        )
        for mode in MODES
    },
    **{
        f"an unknown field in a widget's {kind} with fieldValidation {mode}": [
            post(WIDGETS, widget()),
            patch(f"{W}?fieldValidation={mode}&fieldManager=x", body, kind),
        ]
        for kind, body in (
            (MERGE, '{"spec":{"nothing":1,"color":"red","color":"blue"}}'),
            ("application/json-patch+json", '[{"op":"add","path":"/spec/nothing","value":1}]'),
            (APPLY, json.dumps(widget(spec={"nothing": 1, "color": "red"}))),
        )
        for mode in MODES
    },
    "an unknown field in a deployment, strictly": [
        post(f"{DEPLOYMENTS}?fieldValidation=Strict", deployment(nothing=1)),
        post(
            f"{DEPLOYMENTS}?fieldValidation=Strict",
            json.dumps(deployment()).replace('"name": "main"', '"name": "m", "nam": "x"'),
        ),
        post(f"{DEPLOYMENTS}?fieldValidation=Strict", deployment()),
        put(f"{DEPLOYMENTS}/a?fieldValidation=Strict", deployment(nothing=1)),
    ],
    "wrong types in a deployment": [
        post(DEPLOYMENTS, deployment(replicas="three")),
        post(DEPLOYMENTS, deployment(replicas=1.5)),
        post(DEPLOYMENTS, deployment(template="x")),
        post(DEPLOYMENTS, deployment(template={"spec": {"containers": {}}})),
        post(DEPLOYMENTS, deployment(selector=[])),
        post(DEPLOYMENTS, deployment(minReadySeconds=99999999999)),
        post(DEPLOYMENTS, deployment(paused="no")),
    ],
    **{f"content type {content!r}": [post(CONFIGMAPS, configmap(), content=content)] for content in _TYPES},
    **{f"content type {content!r} for a widget": [post(WIDGETS, widget(), content=content)] for content in _TYPES},
    **{
        f"content type {content!r} for a patch": [
            post(CONFIGMAPS, configmap()),
            patch(A, {"data": {"a": "b"}}, content),
        ]
        for content in (
            JSON,
            YAML,
            "text/plain",
            "",
            f"{MERGE}; charset=utf-8",
            "application/apply-patch",
            "application/apply-patch+cbor",
        )
    },
    "YAML": [
        post(
            CONFIGMAPS,
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: v\n  # why\n  n: '1'\n",
            content=YAML,
        ),
        get(A),
    ],
    "YAML with a number for text": [
        post(CONFIGMAPS, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: 1}\n", content=YAML)
    ],
    "YAML that is broken": [post(CONFIGMAPS, "apiVersion: v1\nkind: [", content=YAML)],
    "YAML with a key twice": [
        post(
            f"{CONFIGMAPS}?fieldValidation={mode}",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v, k: w}\n",
            content=YAML,
        )
        for mode in ("Strict", "Warn")
    ],
    "YAML with an alias": [
        post(CONFIGMAPS, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: &x v, l: *x}\n", content=YAML)
    ],
    "YAML for a widget": [
        post(
            WIDGETS,
            f"apiVersion: {GROUP}/v1\nkind: Widget\nmetadata: {{name: a}}\nspec: {{size: small, on: yes}}\n",
            content=YAML,
        ),
        post(
            WIDGETS,
            f"apiVersion: {GROUP}/v1\nkind: Widget\nmetadata: {{name: b}}\nspec: {{size: small, on: true}}\n",
            content=YAML,
        ),
    ],
    "protobuf that is not": [
        post(CONFIGMAPS, "k8s-nonsense", content=PROTOBUF),
        post(WIDGETS, b"k8s\0\n", content=PROTOBUF),
    ],
    **{
        f"accept {accept!r}": [
            post(CONFIGMAPS, configmap(data={"k": "v"})),
            get(A, accept=accept),
            get(CONFIGMAPS, accept=accept),
        ]
        for accept in _ACCEPTS
    },
    **{
        f"accept {accept!r} for a widget": [post(WIDGETS, widget()), get(W, accept=accept), get(WIDGETS, accept=accept)]
        for accept in _ACCEPTS
    },
    "tables and metadata of a created object": [
        post(CONFIGMAPS, configmap(data={"k": "v"}), accept=TABLE),
        get(A, accept=METADATA),
        get(f"{A}?includeObject=Object", accept=TABLE),
        get(f"{A}?includeObject=None", accept=TABLE),
        get(f"{A}?includeObject=Odd", accept=TABLE),
    ],
    "an error in another form": [get(A, accept=TABLE), get(A, accept=METADATA), get(A, accept=YAML)],
    "pretty": [post(CONFIGMAPS, configmap()), get(f"{A}?pretty=true"), get(f"{A}?pretty=1")],
    "a body of 3 MiB and a byte": [post(CONFIGMAPS, b" " * (3 * 1024 * 1024 + 1))],
    "an object of 2 MiB": [post(WIDGETS, widget(spec={"anything": "x" * (2 * 1024 * 1024)}))],
    "a patch of 3 MiB and a byte": [post(CONFIGMAPS, configmap()), patch(A, b" " * (3 * 1024 * 1024 + 1), MERGE)],
}
