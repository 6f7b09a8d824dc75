"""From the files of a revision to its documents: strict, bounded, with the place of everything."""

from __future__ import annotations

import gc
import time

import pytest

from trimtab.systems.gitops.parsing import (
    Identity,
    Ignore,
    Limits,
    SelectionError,
    confine,
    gather,
    is_read,
    parse,
    parse_file,
    selection,
)

TWO = b"""\
# the shop
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: shop}
---
---
# a hub kind
apiVersion: infra.trimtab.dev/v3
kind: Blueprint
metadata:
  name: b
  project: shop
"""


def config(name: str, **more: str) -> bytes:
    words = ", ".join(f"{key}: {value}" for key, value in {"name": name, **more}.items())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{{words}}}\n".encode()


@pytest.mark.row(26)
@pytest.mark.row(48)
def test_documents_come_with_their_places_and_both_shapes_of_metadata_are_one() -> None:
    parsed = parse({"shop/all.yaml": TWO})
    assert not parsed.problems
    assert [(d.path, d.index, d.line, d.identity) for d in parsed.documents] == [
        ("shop/all.yaml", 0, 2, Identity("", "ConfigMap", "shop", "a")),
        ("shop/all.yaml", 2, 8, Identity("infra.trimtab.dev", "Blueprint", "shop", "b")),
    ]


def test_a_digest_is_of_what_is_said() -> None:
    one = parse_file(b"apiVersion: v1\nkind: X\nmetadata: {name: a}\nspec: {a: 1, b: [x]}\n").documents[0]
    same = parse_file(b"# c\nkind: X\nspec:\n  b:\n  - 'x'\n  a: 1\nmetadata: {name: a}\napiVersion: v1\n").documents[0]
    other = parse_file(b"apiVersion: v1\nkind: X\nmetadata: {name: a}\nspec: {a: 2, b: [x]}\n").documents[0]
    assert one.digest == same.digest != other.digest


def test_json_is_read_too() -> None:
    data = b'{"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}}'
    assert parse({"a.json": data}).documents[0].document == parse({"a.yaml": data}).documents[0].document


def test_lists_are_unfolded() -> None:
    data = b"""\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: s}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}
---
apiVersion: v1
kind: ConfigMapList
items:
- metadata: {name: c}
"""
    parsed = parse({"l.yaml": data})
    assert not parsed.problems
    assert [(d.identity.kind, d.index, d.item) for d in parsed.documents] == [
        ("Secret", 0, 0),
        ("Deployment", 0, 1),
        ("ConfigMap", 1, 0),
    ]
    assert parsed.documents[2].document["kind"] == "ConfigMap"


@pytest.mark.row(26)
@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"a: 1\na: 2\n", 2, 'found duplicate key "a"'),
        (b"apiVersion: v1\nkind: X\nmetadata: {name: [}\n", 3, "is not YAML"),
        (b"apiVersion: v1\nkind: X\n", 1, "metadata: needs a mapping with a name"),
        (b"apiVersion: v1\nkind: X\nmetadata: {generateName: a-}\n", 1, "generateName cannot be synced"),
        (b"apiVersion: v1\nkind: X\nmetadata: {name: 7}\n", 1, "metadata.name: 7 is no name"),
        (b"apiVersion: v1\nkind: X\nmetadata: {name: ../a}\n", 1, "is no name"),
        (b"apiVersion: 1\nkind: X\nmetadata: {name: a}\n", 1, "apiVersion: 1 is not a version"),
        (b"apiVersion: a/b/c\nkind: X\nmetadata: {name: a}\n", 1, "write `v1` or `group/v1`"),
        (b"apiVersion: v1\nkind: ../X\nmetadata: {name: a}\n", 1, "is not the name of a kind"),
        (b"apiVersion: v1\nkind: X\nmetadata: {name: a, namespace: b, project: c}\n", 1, "give one of them"),
        (b"apiVersion: v1\nkind: X\nmetadata: {name: a}\nspec: {1: a}\n", 1, "spec: the key 1 is not text"),
        (b"apiVersion: v1\nkind: X\nmetadata: {name: a}\nspec: [.inf]\n", 1, "spec[0]: inf is not a number"),
        (b"apiVersion: v1\nkind: X\nmetadata: {name: a}\nspec: !!set {a}\n", 1, "cannot be said in JSON"),
        (b"apiVersion: v1\nkind: X\nmetadata: {name: a}\nspec: !!python/none x\n", 4, "is not YAML"),
        (b"\xff\xfe\x00", 0, "is not UTF-8"),
        (b"apiVersion: v1\nkind: List\nitems: [{a: 1}]\n", 1, "items[0]: needs apiVersion and kind"),
        (b"kustomize: yes\n", 1, "is no document"),
        (b"- a\n- b\n", 1, "is no document"),
        (b"just text", 1, "is no document"),
    ],
)
def test_what_is_no_document_is_a_problem_with_its_line(data: bytes, line: int, message: str) -> None:
    parsed = parse({"a.yaml": data})
    assert [problem.line for problem in parsed.problems] == [line]
    assert message in str(parsed.problems[0])
    assert str(parsed.problems[0]).startswith("a.yaml:")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1, "a": 2}', 'found duplicate key "a"'),
        (b'{"a": ', "is not JSON"),
        (b'{"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "x": "\\ud800"}}', "cannot be written as JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "spec": NaN}', "not a number"),
    ],
)
def test_bad_json_is_a_problem(data: bytes, message: str) -> None:
    assert message in parse({"a.json": data}).problems[0].message


def test_good_documents_of_a_file_with_a_bad_one_are_known() -> None:
    parsed = parse({"a.yaml": config("good") + b"---\napiVersion: v1\nkind: X\n---\n" + config("other")})
    assert [d.identity.name for d in parsed.documents] == ["good", "other"]
    assert len(parsed.problems) == 1


def test_two_documents_of_one_identity_name_both_places() -> None:
    parsed = parse({"a.yaml": config("x", namespace="shop"), "b.yaml": b"\n" + config("x", project="shop")})
    assert [str(p) for p in parsed.problems] == ["b.yaml:2: ConfigMap shop/x is in a.yaml:1 too: keep one of them"]


def test_a_version_of_the_kind_makes_no_other_document() -> None:
    one = b"apiVersion: autoscaling/v1\nkind: X\nmetadata: {name: a}\n"
    assert len(parse({"a.yaml": one, "b.yaml": one.replace(b"v1", b"v2")}).problems) == 1


def test_a_namespace_that_is_not_said_is_the_syncs_own() -> None:
    parsed = parse(
        {"a.yaml": config("x") + b"---\n" + config("x", namespace="shop")},
        namespace="shop",
        namespaced=lambda group, kind: kind == "ConfigMap",
    )
    assert {d.identity.namespace for d in parsed.documents} == {"shop"}
    assert "keep one of them" in parsed.problems[0].message


def test_a_kind_of_the_cluster_has_no_namespace() -> None:
    data = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: x, namespace: shop}\n"
    assert parse({"a.yaml": data}, namespaced=lambda group, kind: False).documents[0].identity.namespace == ""


def test_a_sync_is_confined_to_its_project() -> None:
    parsed = parse(
        {"a.yaml": config("x", namespace="shop"), "b.yaml": config("x", namespace="bank"), "c.yaml": config("x")}
    )
    problems = confine(parsed.documents, "shop")
    assert [p.path for p in problems] == ["b.yaml", "c.yaml"]
    assert 'is in "bank": this sync writes in "shop" only' in problems[0].message


def bomb(levels: int) -> bytes:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, levels)]
    return ("apiVersion: v1\nkind: X\nmetadata: {name: a}\n" + "\n".join(lines) + "\n").encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bomb(9), "unfolds to more than 200000 nodes"),
        (b"a: &a [*a]\n", "an alias stands for what contains it"),
        (b"[" * 5000 + b"]" * 5000, "nested deeper than 250"),
        (b"- " * 5000 + b"x\n", "nested deeper than 250"),
        (b"".join(b" " * n + b"a:\n" for n in range(1000)), "nested deeper than 250"),
        (b"a: 1\n" * 1_000_000, "is larger than 4096 KiB"),
    ],
)
def test_bombs_do_not_go_off(data: bytes, message: str) -> None:
    begun = time.process_time()
    parsed = parse({"a.yaml": data})
    assert message in parsed.problems[0].message
    assert time.process_time() - begun < 2


def test_aliases_within_reason_are_read() -> None:
    assert parse({"a.yaml": bomb(3)}).documents[0].document["l2"][0][0] == ["x"] * 9


def test_documents_are_counted() -> None:
    data = b"---\n".join(config(f"c{n}") for n in range(12))
    assert "more than 10 documents" in parse({"a.yaml": data}, limits=Limits(documents=10)).problems[0].message


def test_artifacts_are_no_documents_whatever_they_look_like() -> None:
    files = {
        "shop/web.yaml": b"apiVersion: apps.trimtab.dev/v3\nkind: Workload\nmetadata: {name: web}\nfile: web/pods.yaml\n",
        "shop/web/pods.yaml": config("x") + b"file: values.yaml\n---\nnot: a document\n",
        "shop/web/values.yaml": b"a: 1\n",
    }
    parsed = parse(files, artifacts=lambda d: [d["file"]] if "file" in d else [])
    assert [d.path for d in parsed.documents] == ["shop/web.yaml"]
    assert parsed.artifacts == ("shop/web/pods.yaml",)
    assert [p.path for p in parsed.problems] == ["shop/web/values.yaml"]  # an artifact names nothing
    assert parsed.files == 3


def named(files: dict[str, str]) -> tuple[str, ...]:
    """Which of these files are artifacts, where each names another one."""
    text = {
        name: f"apiVersion: v1\nkind: X\nmetadata: {{name: a{number}}}\nfile: {other}\n".encode()
        for number, (name, other) in enumerate(files.items())
    }
    return parse(text, artifacts=lambda d: [d["file"]]).artifacts


def test_a_long_chain_of_files_that_name_each_other_has_an_artifact_in_every_second_place() -> None:
    found = named({f"{number:05}.yaml": f"{number + 1:05}.yaml" for number in range(5000)})
    assert found == tuple(f"{number:05}.yaml" for number in range(1, 5001, 2))


def test_of_files_that_name_each_other_in_a_circle_the_first_is_a_document() -> None:
    assert named({"a.yaml": "b.yaml", "b.yaml": "a.yaml"}) == ("b.yaml",)
    assert named({"b.yaml": "c.yaml", "c.yaml": "b.yaml", "a.yaml": "a.yaml"}) == ("c.yaml",)


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("a.yaml", True),
        ("x/a.yml", True),
        ("a.json", True),
        ("README.md", False),
        (".github/workflows/ci.yaml", False),
        ("x/.hidden.yaml", False),
        ("x/kustomization.yaml", False),
        ("values.yaml", False),
        ("deep/values.yaml", False),
        ("charts/web/a.yaml", False),
        ("deep/charts/web/a.yaml", True),
        ("test/a.yaml", False),
        ("x/test/b.yaml", False),
        ("x/y/old/a.yaml", False),
        ("x/y/old/keep.yaml", False),  # what is in a folder that is left out is not taken back
        ("a1.yaml", False),
    ],
)
def test_which_files_are_read(path: str, read: bool) -> None:
    ignore = Ignore.of("# other tools\nvalues.yaml\n/charts\ntest/\n\nx/**/old\n!keep.yaml\na?.yaml\n")
    assert is_read(path, ignore) is read


@pytest.mark.parametrize(
    ("line", "path", "ignored"),
    [
        ("a/**", "a.yaml", False),
        ("a/**", "a/b.yaml", True),
        ("**/", "a.yaml", False),
        ("**/", "x/a.yaml", True),
        ("a*c*.yaml", "x/abcd.yaml", True),
        ("a*c*.yaml", "acb/d.yaml", False),
        ("*a" * 40 + "*b", "a" * 250 + ".yaml", False),
        ("**/" * 60 + "x", "a/" * 60 + "a.yaml", False),
    ],
)
def test_no_pattern_takes_long(line: str, path: str, ignored: bool) -> None:
    """Whoever may push writes the list: one line that is tried in all ways would hold up every sync."""
    start = time.process_time()
    assert Ignore.of(line).ignores(path) is ignored
    assert time.process_time() - start < 1


@pytest.mark.row(50)
@pytest.mark.parametrize(
    ("included", "excluded", "selected"),
    [
        ([], [], "abcd"),
        (["*"], ["Secret"], "acd"),
        (["ConfigMap"], [], "a"),
        (["infra.trimtab.dev/*"], [], "cd"),
        (["infra.trimtab.dev/Blueprint/web-*"], [], "c"),
        (["core/*"], [], "ab"),
        (["*"], ["Blueprint/web-*", "core/ConfigMap"], "bd"),
        (["*/*/d*"], [], "d"),
    ],
)
def test_kinds_and_names_are_included_and_excluded(included: list[str], excluded: list[str], selected: str) -> None:
    things = {
        "a": Identity("", "ConfigMap", "shop", "a"),
        "b": Identity("", "Secret", "shop", "b"),
        "c": Identity("infra.trimtab.dev", "Blueprint", "shop", "web-1"),
        "d": Identity("infra.trimtab.dev", "Blueprint", "shop", "db"),
    }
    chosen = selection(included, excluded)
    assert "".join(key for key, identity in things.items() if chosen.selects(identity)) == selected
    kinds = {(identity.group, identity.kind) for identity in things.values()}
    assert {(things[key].group, things[key].kind) for key in selected} <= set(chosen.kinds(sorted(kinds)))


@pytest.mark.row(50)
def test_one_entry_in_both_lists_is_an_error_that_names_it() -> None:
    with pytest.raises(
        SelectionError, match=r'excludedResources\[1\]: "infra/Blueprint" is in spec.includedResources too'
    ):
        selection(["Addon", "infra/Blueprint"], ["Secret", "infra/Blueprint"])
    with pytest.raises(SelectionError, match=r"keep it in one"):
        selection([], ["*"])
    with pytest.raises(SelectionError, match=r'includedResources\[0\]: "a//b" is no entry: write'):
        selection(["a//b"], [])


def test_five_thousand_documents_are_read_in_a_second() -> None:
    files = {
        f"shop/{n}.yaml": f"""\
apiVersion: v1
kind: ConfigMap
metadata:
  name: config-{n}
  namespace: shop
  labels:
    app: web
    number: "{n}"
data:
  one: value
  two: "{n}"
  three: |
    several
    lines
""".encode()
        for n in range(5000)
    }
    gc.collect()
    begun = time.process_time()
    read = {path: parse_file(data) for path, data in files.items()}
    took = time.process_time() - begun
    begun = time.process_time()
    parsed = gather(read)
    again = time.process_time() - begun
    assert len(parsed.documents) == 5000
    print(f"5,000 documents: {took:.2f} s to parse, {again:.3f} s to gather")
    assert took < 3.0  # well below one second when nothing else runs
    assert again < 0.3


def test_an_own_key_covers_one_that_comes_by_a_merge() -> None:
    data = b"apiVersion: v1\nkind: X\nmetadata: {name: a}\nbase: &b {k: 1, j: 2}\nspec: {<<: *b, k: 3}\n"
    assert parse({"a.yaml": data}).documents[0].document["spec"] == {"k": 3, "j": 2}
    assert "duplicate key" in parse({"a.yaml": data.replace(b"k: 3", b"k: 3, k: 4")}).problems[0].message


@pytest.mark.parametrize("number", ["18446744073709551616", "-9223372036854775809", "1" * 40])
def test_a_number_that_no_server_takes_is_a_problem(number: str) -> None:
    document = f"apiVersion: v1\nkind: Thing\nmetadata:\n  name: a\nspec:\n  x: {number}\n".encode()
    [problem] = parse({"a.yaml": document}).problems
    assert problem.message.startswith("spec.x: the number is larger than 64 bits can say")
    assert not parse({"a.yaml": document.replace(number.encode(), b"-9223372036854775808")}).problems


def test_a_name_that_leaves_the_folder_of_its_document_claims_no_file() -> None:
    files = {
        "a/one.yaml": b"apiVersion: v1\nkind: X\nmetadata: {name: one}\nfile: ../prod/db.yaml\n",
        "prod/db.yaml": config("db"),
    }
    parsed = parse(files, artifacts=lambda d: [d["file"]] if "file" in d else [])
    assert [d.path for d in parsed.documents] == ["a/one.yaml", "prod/db.yaml"]


@pytest.mark.parametrize("value", ["!!bool x", "!!timestamp x", '!!int ""', '!!float ""'])
def test_a_tag_that_its_value_cannot_bear_is_a_problem_of_its_file(value: str) -> None:
    (problem,) = parse({"bad/b.yaml": config("b") + f"x: {value}\n".encode(), "a.yaml": config("a")}).problems
    assert (problem.path, problem.line > 1, problem.message[:13]) == ("bad/b.yaml", True, "is not YAML: ")
