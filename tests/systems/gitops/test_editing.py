"""What the system says is written into the files of people: everything else in them stays as they wrote it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from trimtab.model import yaml
from trimtab.systems.gitops.editing import EditError, apply_edits, delete_document, edit_document, new_file
from trimtab.systems.gitops.merging import normal
from trimtab.systems.gitops.parsing import Identity
from trimtab.systems.gitops.planning import FileEdit

FILE = """\
# The shop's front.
---
# web server
apiVersion: apps/v1
kind: Deployment   # of the front
metadata:
  name: web
  labels: {app: web, "tier": front}   # flow
  annotations:
    # why
    note: 'it''s'

spec:
    replicas: 3 # three
    # containers below
    template:
        containers:
            # main
            - name: web
              image: "nginx:1.25"   # pinned
              args:
                - a
                # about b
                - b
                - c
              env:
                - name: MODE
                  value: "1"
                - name: TEXT
                  value: |
                    several
                    lines
            # side
            - name: side
              image: envoy
    paused:
    strategy: Recreate
---
apiVersion: v1
kind: ConfigMap
metadata: {name: words, namespace: shop}
data:
    answer: yes please
...
---
# nothing here
---
apiVersion: v1
kind: ConfigMap
metadata: {name: last}
"""


def edited(change: Callable[[Any], None], text: str = FILE, index: int = 0, path: str = "a.yaml") -> str:
    """The text with a change made in one of its documents."""
    before = normal(list(yaml.load_all(text))[index])
    after = copy.deepcopy(before)
    change(after)
    found = edit_document(text.encode(), path, index, before, after).decode()
    assert normal(list(yaml.load_all(found))[index]) == after
    return found


def changes(old: str, new: str) -> tuple[list[str], list[str]]:
    """The lines that went, and those that came."""
    was, now = old.splitlines(), new.splitlines()
    return [line for line in was if line not in now], [line for line in now if line not in was]


@pytest.mark.row(49)
def test_a_changed_value_changes_its_line_alone() -> None:
    def change(document: Any) -> None:
        document["spec"]["replicas"] = 5
        document["spec"]["template"]["containers"][0]["image"] = "nginx:1.26"

    gone, new = changes(FILE, edited(change))
    assert gone == ["    replicas: 3 # three", '              image: "nginx:1.25"   # pinned']
    assert new == ["    replicas: 5 # three", '              image: "nginx:1.26"   # pinned']


def test_a_file_that_is_not_changed_keeps_its_bytes() -> None:
    assert edited(lambda document: None) == FILE


def test_words_that_yaml_would_read_otherwise_are_quoted() -> None:
    for word in ("yes", "n", "1e3", "0x1f", "~", "null", "1_000", "12:30", "2026-11-16", "- a", "a: b", "#x", "", " a"):

        def change(document: Any, word: str = word) -> None:
            document["spec"]["strategy"] = word

        edited(change)  # reads back what it wrote


def test_quotes_stay_what_they_were() -> None:
    def change(document: Any) -> None:
        document["metadata"]["annotations"]["note"] = "that's it"
        document["spec"]["template"]["containers"][0]["env"][0]["value"] = "2"

    _, new = changes(FILE, edited(change))
    assert new == ["    note: 'that''s it'", '                  value: "2"']


def test_an_item_comes_and_goes_with_its_lines_only() -> None:
    def change(document: Any) -> None:
        containers = document["spec"]["template"]["containers"]
        containers[0]["args"] = ["a", "c", "d"]
        containers[0]["env"].insert(1, {"name": "NEW", "value": "x"})
        del containers[1]

    gone, new = changes(FILE, edited(change))
    assert gone == ["                - b", "            - name: side", "              image: envoy"]
    assert new == ["                - d", "                - name: NEW", "                  value: x"]


def test_new_keys_are_written_as_the_document_is() -> None:
    def change(document: Any) -> None:
        document["spec"]["extra"] = {"list": [1, {"name": "one", "deep": {"a": "b"}}]}
        document["metadata"]["labels"]["new"] = "1"

    gone, new = changes(FILE, edited(change))
    assert gone == ['  labels: {app: web, "tier": front}   # flow']
    assert new[0] == "  labels: {app: web, \"tier\": front, new: '1'}   # flow"
    assert new[1:] == [
        "    extra:",
        "        list:",
        "          - 1",
        "          - name: one",
        "            deep:",
        "                a: b",
    ]


def test_keys_go_and_comments_around_them_stay() -> None:
    def change(document: Any) -> None:
        del document["spec"]["replicas"]
        del document["spec"]["strategy"]

    gone, new = changes(FILE, edited(change))
    assert gone == ["    replicas: 3 # three", "    strategy: Recreate"]
    assert new == []


def test_a_value_becomes_another_thing() -> None:
    def change(document: Any) -> None:
        document["spec"]["replicas"] = {"min": 1}
        document["spec"]["paused"] = True
        document["spec"]["template"] = "none"
        document["metadata"]["labels"] = {}

    text = edited(change)
    assert (
        "    replicas: # three\n        min: 1\n    # containers below\n    template: none\n    paused: true\n" in text
    )
    assert "  labels: {}   # flow\n" in text


def test_a_text_of_several_lines_is_a_block() -> None:
    def change(document: Any) -> None:
        document["spec"]["template"]["containers"][0]["env"][1]["value"] = "others\n\nhere\n"
        document["spec"]["strategy"] = "one\ntwo"

    text = edited(change)
    assert "value: |\n                    others\n\n                    here\n            # side\n" in text
    assert "    strategy: |-\n        one\n        two\n---\n" in text


@pytest.mark.parametrize("value", ["one\ntwo\n", "one\ntwo", "one\ntwo\n\n", {"inner": "one\ntwo\n"}])
@pytest.mark.parametrize("key", ["last", "new"])
def test_a_text_of_several_lines_at_the_end_of_a_file_without_a_newline_leaves_the_comments(
    key: str, value: Any
) -> None:
    text = "# kept\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n# and this\ndata:\n  last: one # nor this"

    def change(document: Any) -> None:
        document["data"][key] = value

    found = edited(change, text)
    assert found.startswith(text[: text.index("  last")])
    assert "# nor this\n" in found


def test_the_first_key_of_an_item_may_go() -> None:
    text = "a:\n- p: 1\n  q: 2\n- z: 3\n"

    def change(document: Any) -> None:
        del document["a"][0]["p"]

    assert edited(change, text) == "a:\n- q: 2\n- z: 3\n"


@pytest.mark.parametrize(
    "text",
    [
        "a: &x {k: 1}\nb: *x\nc: 1\n",
        "a: &x\n  k: 1\nb:\n  <<: *x\n  j: 2\n",
        "? a\n: {k: 1}\nb: 2\n",
        "a:\n- - k\n  - l\n- - m\n",
        "{a: {k: 1},\n b: [1,\n 2]}\n",
        "a:\n  k: 1",
        "a: !!map\n  k: 1\n",
        '"a":\n    "k" : 1\n',
        "a:   # c\n  - k\n\n  # d\n  -   k: 1\n      l: 2\n",
        "a: >-\n  folded\n  text\n\nb: |+\n  kept\n\n",
        "a:\n  k: 1\n# end\n...\n",
        "--- {a: {k: 1}}\n",
        "a: [ ]\nb: { }\nc: ''\n",
    ],
)
def test_whatever_the_layout_the_change_is_what_was_meant(text: str) -> None:
    def first(document: Any) -> None:
        document["a"] = {"k": 2, "new": ["x"]}

    def second(document: Any) -> None:
        document["z"] = {"deep": [1]}

    def third(document: Any) -> None:
        if isinstance(document["a"], dict):
            document["a"]["k"] = "changed"
        if isinstance(document["a"], list):
            document["a"].append("more")

    def fourth(document: Any) -> None:
        document["z"] = 1
        del document["a"]

    for change in (first, second, third, fourth):
        edited(change, text)


def test_an_alias_that_is_changed_leaves_the_others() -> None:
    text = "# top\na: &x {k: 1}\nb: *x\n"

    def change(document: Any) -> None:
        document["b"] = {"k": 2}

    assert edited(change, text) == "# top\na: &x {k: 1}\nb:\n  k: 2\n"


def test_ends_of_lines_and_the_byte_order_mark_stay() -> None:
    data = ("\ufeff" + FILE.replace("\n", "\r\n")).encode()
    before = normal(list(yaml.load_all(FILE))[1])
    after = {**before, "data": {"answer": "no", "more": "x"}}
    found = edit_document(data, "a.yaml", 1, before, after)
    assert found.decode().startswith("\ufeff# The shop's")
    assert b"    answer: 'no'\r\n    more: x\r\n...\r\n" in found
    assert b"\n" not in found.replace(b"\r\n", b"")


def test_what_git_says_and_the_merge_does_not_see_stays() -> None:
    text = "apiVersion: v1\nkind: X\nmetadata:\n  project: shop\n  name: a\n  uid: null\nspec:\n  a: null\n  b: 1\nstatus: {}\n"

    def change(document: Any) -> None:
        document["spec"]["b"] = 2

    assert edited(change, text) == text.replace("b: 1", "b: 2")

    def null_is_set(document: Any) -> None:
        document["spec"]["a"] = 3

    assert edited(null_is_set, text) == text.replace("a: null", "a: 3")


@pytest.mark.row(49)
def test_a_document_is_taken_out_of_a_file_of_several() -> None:
    documents = list(yaml.load_all(FILE))
    for index in (0, 1, 3):
        found = delete_document(FILE.encode(), "a.yaml", index)
        assert found is not None
        assert list(yaml.load_all(found.decode())) == documents[:index] + documents[index + 1 :]
        assert set(changes(FILE, found.decode())[1]) == set()
    found = delete_document(FILE.encode(), "a.yaml", 0)
    assert found is not None
    assert found.decode().startswith("# The shop's front.\n---\napiVersion: v1\n")


def test_a_file_goes_with_its_last_document() -> None:
    assert delete_document(b"# head\na: 1\n---\n# nothing\n", "a.yaml", 0) is None


def test_the_first_document_without_dashes_goes() -> None:
    assert delete_document(b"# head\na: 1\n---\nb: 2\n", "a.yaml", 0) == b"# head\n---\nb: 2\n"


def test_items_of_a_list_are_documents() -> None:
    text = b"""\
apiVersion: v1
kind: List
items:
# first
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: b}
  data: {k: v}   # b's
"""
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "v"}}
    changed = edit_document(text, "l.yaml", 0, item, {**item, "data": {"k": "w"}}, item=1)
    assert changed == text.replace(b"{k: v}", b"{k: w}")
    assert delete_document(text, "l.yaml", 0, item=0) == b"apiVersion: v1\nkind: List\nitems:\n# first\n" + text[98:]
    one = delete_document(text, "l.yaml", 0, item=1)
    assert one == text[:98]
    assert delete_document(one, "l.yaml", 0, item=0) is None


@pytest.mark.parametrize("indent", [None, 2, 4, "\t"])
def test_json_keeps_its_indentation_and_its_order(indent: Any) -> None:
    document = {"kind": "X", "apiVersion": "v1", "spec": {"z": 1, "a": ["é"]}, "metadata": {"name": "x"}}
    data = (json.dumps(document, indent=indent, ensure_ascii=False) + "\n").encode()
    before = normal(document)
    after = copy.deepcopy(before)
    after["spec"]["z"] = 2
    assert edit_document(data, "x.json", 0, before, after) == data.replace(b'"z": 1', b'"z": 2')


@pytest.mark.row(49)
def test_a_new_file_is_always_the_same_text() -> None:
    document = {
        "spec": {"b": "yes", "a": "1e3", "text": "one\ntwo\n", "list": [{"v": 1, "name": "x"}], "none": {}},
        "metadata": {"labels": {"z": "1", "a": "2"}, "description": "d", "project": "shop", "name": "web"},
        "kind": "Blueprint",
        "apiVersion": "infra.trimtab.dev/v3",
    }
    text = """\
apiVersion: infra.trimtab.dev/v3
kind: Blueprint
metadata:
  name: web
  project: shop
  description: d
  labels:
    a: '2'
    z: '1'
spec:
  a: '1e3'
  b: 'yes'
  list:
  - name: x
    v: 1
  none: {}
  text: |
    one
    two
"""
    assert new_file(document).decode() == text
    assert new_file(dict(reversed(document.items()))).decode() == text
    assert yaml.load(text) == document
    assert json.loads(new_file(document, "a.json")) == document


def test_all_edits_of_a_file_are_of_the_file_as_it_was() -> None:
    identity = Identity("", "ConfigMap", "", "x")
    documents = [normal(d) if d else {} for d in yaml.load_all(FILE)]
    last = {**documents[3], "data": {"k": "v"}}
    found = apply_edits(
        {"a.yaml": FILE.encode(), "b.yaml": b"a: 1\n"},
        [
            FileEdit(identity, "delete", "a.yaml", 0),
            FileEdit(identity, "update", "a.yaml", 3, before=documents[3], document=last),
            FileEdit(identity, "delete", "a.yaml", 1),
            FileEdit(identity, "delete", "b.yaml", 0),
            FileEdit(identity, "create", "c.yaml", document={"a": 1}),
        ],
    )
    assert found["b.yaml"] is None
    assert found["c.yaml"] == b"a: 1\n"
    assert found["a.yaml"] is not None
    assert [d for d in yaml.load_all(found["a.yaml"].decode()) if d] == [last]


def test_a_file_that_is_not_what_was_read_is_refused() -> None:
    identity = Identity("", "ConfigMap", "", "x")
    with pytest.raises(EditError, match=r"a.yaml: has no document 7"):
        apply_edits({"a.yaml": b"a: 1\n"}, [FileEdit(identity, "update", "a.yaml", 7, before={}, document={"a": 2})])
    with pytest.raises(EditError, match=r"a.yaml: exists"):
        apply_edits({"a.yaml": b"a: 1\n"}, [FileEdit(identity, "create", "a.yaml", document={"a": 2})])
    with pytest.raises(EditError, match=r"b.yaml: does not exist"):
        apply_edits({}, [FileEdit(identity, "delete", "b.yaml")])


def test_what_came_by_a_merge_is_covered_by_an_own_key() -> None:
    text = "# top\nbase: &b\n  k: 1  # kept\n  j: 2\nspec:\n  <<: *b\n  own: 1 # mine\n"

    def change(document: Any) -> None:
        document["spec"]["k"] = 5

    assert edited(change, text) == text + "  k: 5\n"


def test_an_anchor_that_others_use_is_changed_and_they_say_what_they_said() -> None:
    text = "# top\nbase: &b {k: 1}\nspec: *b\n"

    def change(document: Any) -> None:
        document["base"]["k"] = 5

    assert edited(change, text) == "# top\nbase: &b {k: 5}\nspec:\n  k: 1\n"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"k" * 1100: 1}, "is not YAML"),
        (nested(300), "nested deeper than 250 levels"),
        ("\x7f" * (1 << 20), "is larger than 4096 KiB"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(value: Any, why: str) -> None:
    """Nothing of a revision with such a file would be applied, whoever else writes documents."""
    before = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}}
    identity, after = Identity("", "Thing", "", "a"), {**before, "x": value}
    with pytest.raises(EditError, match=rf"^a.yaml: what would be written cannot be read again: .*{why}"):
        apply_edits({}, [FileEdit(identity, "create", "a.yaml", document=after)])
    edit = FileEdit(identity, "update", "a.yaml", before=before, document=after)
    with pytest.raises(EditError, match=r"^a.yaml: "):
        apply_edits({"a.yaml": new_file(before)}, [edit])


@pytest.mark.parametrize("word", ["0o", "0x_", "1" * 70 + "e5", "-" + "7" * 5000])
def test_a_text_that_looks_like_a_number_is_written_as_text(word: str) -> None:
    document = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, "x": word}
    assert yaml.load(new_file(document).decode()) == document


def put(name: str, value: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        document["data"][name] = value

    return change


@pytest.mark.parametrize(
    ("text", "change", "after"),
    [
        ("data:\n  a: | # why\n    b\n  # c\n", put("a", "p\nq\n"), "data:\n  a: | # why\n    p\n    q\n  # c\n"),
        ("data:\n  a: >- # why\n    b\n  # c\n", put("a", "p q"), "data:\n  a: p q # why\n  # c\n"),
        (
            "data:\n  # one\n  a: &x b # two\n  c: *x # three\n",
            put("a", "q"),
            "data:\n  # one\n  a: &x q # two\n  c: b # three\n",
        ),
        (
            "data:\n  # one\n  a: &x b # two\n  c: *x # three\n",
            lambda document: document["data"].update(a="q", c="q"),
            "data:\n  # one\n  a: &x q # two\n  c: *x # three\n",
        ),
        (
            "data:\n  a: &l # L\n    app: x # one\n  c: *l # two\n  z: 1 # three\n",
            put("a", {"app": "web"}),
            "data:\n  a: &l # L\n    app: web # one\n  c: # two\n    app: x\n  z: 1 # three\n",
        ),
        (
            "data: {\n  # one\n  a: b, # two\n  c: d, # three\n}\n",
            lambda document: document["data"].pop("a"),
            "data: {\n  # one\n  c: d, # three\n}\n",
        ),
        (
            "data: {\n  a: b, # two\n  c: d # three\n}\n",
            put("e", "f"),
            "data: {\n  a: b, # two\n  c: d, # three\n  e: f\n}\n",
        ),
        (
            "data: {\n  a: [\n    x, # one\n    z, # two\n  ] # three\n}\n",
            put("a", ["x", "y", "z"]),
            "data: {\n  a: [\n    x, # one\n    'y',\n    z, # two\n  ] # three\n}\n",
        ),
        (
            "data: [\n  a, # one\n  b # two\n]\n",
            lambda document: document["data"].__setitem__(slice(None), ["b", "c"]),
            "data: [\n  b, # two\n  c\n]\n",
        ),
        (
            "data:\n- name: a # one\n  v: 1\n- name: b # two\n  v: 2\n",
            lambda document: document["data"].reverse(),
            "data:\n- name: b # two\n  v: 2\n- name: a # one\n  v: 1\n",
        ),
    ],
)
def test_comments_stay_where_something_else_in_the_same_value_changes(
    text: str, change: Callable[[Any], None], after: str
) -> None:
    assert edited(change, text) == after


def test_json_keeps_its_layout_and_its_words_where_a_value_changes_or_a_key_comes() -> None:
    text = '{\n  "apiVersion": "v1", "kind": "X",\n  "metadata": {"name": "a"},\n  "n": [1.10, 1E3],\n  "data": {"a": "b"}\n}\n'
    before = normal(json.loads(text))
    after = copy.deepcopy(before)
    after["data"] = {"a": "c", "d": "e"}
    after["spec"] = {"x": [1]}
    found = edit_document(text.encode(), "x.json", 0, before, after).decode()
    assert found == text.replace('{"a": "b"}', '{"a": "c", "d": "e"},\n  "spec": {"x": [1]}')
