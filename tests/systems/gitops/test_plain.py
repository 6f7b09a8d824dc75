"""The quick reader of YAML: what it reads, it reads as the reader of all YAML does; the rest it leaves to that one."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.yaml import dump, load_each
from trimtab.systems.gitops.parsing import parse_file, parse_quickly
from trimtab.systems.gitops.parsing.plain import NotPlain, documents

USUAL = """\
# a comment
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels:
    app.kubernetes.io/name: 'a'
    tier: "front: end # not a comment"
  annotations: {}
  finalizers: []
data:
  port: '80'
  url: http://127.0.0.1:80/x?y=1,2#z
  empty:
  script: |
    #!/bin/sh
      echo "a: b"

    exit 0
  last: |-
    one
# between
---
apiVersion: apps/v1
kind: Deployment
metadata: {}
spec:
  replicas: 3
  paused: false
  template:
    spec:
      containers:
      - name: main
        args:
        - --port=80
        - serve
        ports:
          - containerPort: 80
            name: web
      - name: side
"""

VALUES = (
    *(
        "a",
        "b c",
        "1",
        "0",
        "01",
        "-1",
        "1.5",
        "true",
        "True",
        "yes",
        "y",
        "null",
        "~",
        "''",
        "'a b'",
        "'it''s'",
        '"x"',
    ),
    *(
        '"a\\nb"',
        "{}",
        "[]",
        "[a]",
        "{a: b}",
        "|",
        "|-",
        "|+",
        "|2",
        ">",
        "a: b",
        "a:",
        "a#b",
        "a #b",
        "# c",
        "&x",
        "*x",
    ),
    *(
        "!t v",
        "%x",
        "@x",
        "`x",
        "-",
        "- a",
        "-a",
        "--",
        "---",
        "...",
        "..",
        ".5",
        ".inf",
        "-.inf",
        "0x1F",
        "0o7",
        "0b1",
    ),
    *(
        "1e3",
        "1_000",
        "12:30",
        "http://x/y",
        "a, b",
        "a]",
        "$(x)",
        "?",
        "? a",
        ":a",
        "<<",
        "=",
        "'a",
        '"a',
        "a'b",
        'a"b',
    ),
    *("x\\y", "-  a", "+1", "2001-01-01", "a  b", "a ", "0b12", "0o9", "0x", "1.", "1e+5", "-0", ".NaN", "NULL", "oN"),
    *("''''", '""', "key: 'v'", "é", "\t"),
)
KEYS = ("a", "b", "c", "metadata", "on", "no", "a.b/c", "a-b", "_x", "1", "'q'", '"q"', "null", "a b", "<<", "?", "x:y")

keys, values = st.sampled_from(KEYS), st.sampled_from(VALUES)
lines = st.builds(
    lambda indent, words: " " * indent + words,
    st.sampled_from((0, 0, 0, 1, 2, 2, 2, 3, 4, 4, 6)),
    st.one_of(
        st.builds("{}: {}".format, keys, values),
        st.builds("{}: {}".format, keys, values),
        st.builds("{}:".format, keys),
        st.builds("- {}".format, values),
        st.builds("- {}: {}".format, keys, values),
        st.builds("{}:{}".format, keys, values),
        values,
        st.sampled_from(("", "# comment", "-", "---", "...", "--- a")),
    ),
)
plain_text = st.text("abcxyz019 .:#'\"-_/{}[]|&*!\n", max_size=12)
trees: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2000) | plain_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain_text, inner, max_size=3),
    max_leaves=12,
)


def read(text: str) -> list[tuple[int, Any]] | None:
    try:
        return documents(text)
    except NotPlain:
        return None


def test_what_people_write_is_plain_and_read_as_it_is_meant() -> None:
    found = documents(USUAL)
    assert repr(found) == repr(list(load_each(USUAL, nodes=1000)))
    assert [line for line, _ in found] == [3, 25]
    assert found[0][1]["data"]["script"] == '#!/bin/sh\n  echo "a: b"\n\nexit 0\n'


@settings(max_examples=300, deadline=None)
@given(st.lists(lines, max_size=7), st.sampled_from(("\n", "", "\n\n")))
def test_whatever_is_written_both_readers_agree_or_it_is_not_plain(written: list[str], end: str) -> None:
    text = "\n".join(written) + end
    found = read(text)
    assert found is None or repr(found) == repr(list(load_each(text, nodes=1000)))


@settings(max_examples=300, deadline=None)
@given(trees, st.booleans())
def test_what_was_dumped_is_read_as_it_was(value: Any, sort: bool) -> None:
    text = dump({"a": value}, sort=sort)
    found = read(text)
    assert found is None or repr(found) == repr(list(load_each(text, nodes=10_000)))


@pytest.mark.parametrize(
    "text",
    [
        "a: yes\n", "a: 0755\n", "a: 1e3\n", "a: ~\n", "a: &x b\n", "a: *x\n", "a: !t b\n", "a: b # c\n", "a: 'it''s'\n",
        'a: "\\n"\n', "a: [b]\n", "a: {b: c}\n", "a: >\n  b\n", "a: b\n  c\n", "a: b\na: c\n", "a:\tb\n", "a: é\n",
        "? a\n", "---\n", "a: b\n---\n", "a: b\n...\n", "on: b\n", "- - a\n", "a: |\n  b", "<<: b\n", " a: b\nc: d\n",
    ],
)  # fmt: skip
def test_what_means_more_than_it_looks_is_left_to_the_other_reader(text: str) -> None:
    assert read(text) is None


def test_a_line_of_blanks_does_not_end_a_literal() -> None:
    text = "data:\n  run.sh: |\n    echo a\n  \n    # vim: ft=sh\n  b: c\n"
    found = read(text)
    assert found is None or found == list(load_each(text, nodes=100))
    assert parse_file(f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n{text}".encode()).documents[0].document[
        "data"
    ] == {"run.sh": "echo a\n\n# vim: ft=sh\n", "b": "c"}


def test_many_literals_cost_what_they_are_long() -> None:
    text = "".join(f"a{number}: |\n x\n" for number in range(12_000))
    started = time.process_time()
    assert len(documents(text)[0][1]) == 12_000
    assert time.process_time() - started < 1.5  # some hundredths, and several seconds were each to look at all lines


def test_a_file_is_the_same_whichever_reads_it() -> None:
    quick = parse_quickly(USUAL.encode())
    assert quick is not None
    assert parse_file(b"# \xc3\xa9\n" + USUAL.encode()).documents[0].digest == quick.documents[0].digest
    assert parse_quickly(b"# \xc3\xa9\n" + USUAL.encode()) is None
    assert parse_quickly(b"a: " + b"x" * 100_000) is None
