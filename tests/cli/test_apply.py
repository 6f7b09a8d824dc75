"""`trimtab apply` and `trimtab delete`: files become objects, and go again."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Program, config_map

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.cli.example.com}
spec:
  group: cli.example.com
  scope: Namespaced
  names: {plural: PLURAL, kind: KIND}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {teeth: {type: integer}}}}}}
"""


def defined(kind: str) -> str:
    return DEFINITION.replace("PLURAL", f"{kind.lower()}s").replace("KIND", kind)


def test_it_says_what_became_of_each_object(trimtab: Program) -> None:
    trimtab.write("a.yaml", config_map("one") + config_map("two"))
    assert trimtab("apply", "-f", "a.yaml").lines == ["configmap/one created", "configmap/two created"]
    trimtab.write("a.yaml", config_map("one") + config_map("two", "{a: '1'}"))
    assert trimtab("apply", "-f", "a.yaml").lines == ["configmap/one unchanged", "configmap/two configured"]
    trimtab.write("a.yaml", config_map("one") + config_map("two"))
    assert trimtab("apply", "-f", "a.yaml").lines == ["configmap/one unchanged", "configmap/two configured"]
    assert trimtab("get", "cm", "two", "-o", "jsonpath={.data}").out == "", "what is no longer in the file is gone"


def test_a_dry_run_says_what_would_be(trimtab: Program) -> None:
    trimtab("apply", "-f", "-", stdin=config_map("one"))
    ran = trimtab("apply", "--dry-run", "-f", "-", stdin=config_map("one") + config_map("two"))
    assert ran.lines == ["configmap/one unchanged (dry run)", "configmap/two created (dry run)"]
    assert trimtab("get", "cm", "two").code == 3


def test_folders_json_and_lists_are_read(trimtab: Program) -> None:
    trimtab.write("all/b.yaml", config_map("b"))
    trimtab.write(
        "all/a.json",
        '{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]}',
    )
    trimtab.write("all/readme.txt", "not for us")
    trimtab.write("all/deep/c.yml", config_map("c"))
    assert trimtab("apply", "-f", "all").lines == ["configmap/a created", "configmap/b created"]
    assert trimtab("apply", "-R", "-f", "all").lines[-1] == "configmap/c created"


def test_definitions_go_first_and_are_waited_for(trimtab: Program) -> None:
    gear = "apiVersion: cli.example.com/v1\nkind: Gear\nmetadata: {name: one}\nspec: {teeth: 12}\n"
    ran = trimtab("apply", "-f", "-", stdin=f"{gear}---{defined('Gear')}")
    assert (ran.code, ran.lines) == (
        0,
        [
            "customresourcedefinition.apiextensions.k8s.io/gears.cli.example.com created",
            "gear.cli.example.com/one created",
        ],
    )


def test_a_bad_definition_stops_no_other(trimtab: Program) -> None:
    bad = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: bad}\nspec: {}\n"
    ran = trimtab("apply", "-f", "-", stdin=f"{bad}---{defined('Wheel')}" + config_map("one"))
    assert ran.code == 1
    assert ran.lines[-1] == "configmap/one created"
    assert ran.err.startswith("error: -:1: ")
    assert ran.err.count("\n") == 1


def test_bad_documents_are_told_by_file_and_line_and_stop_no_other(trimtab: Program) -> None:
    text = "# a comment\n\nkind: ConfigMap\n" + config_map("one") + "---\na: [\n---\napiVersion: v1\nkind: Gadget\n"
    trimtab.write("bad.yaml", text + "metadata: {name: x}\n---\n- a list\n---\n# nothing\n" + config_map("UPPER"))
    ran = trimtab("apply", "-f", "bad.yaml")
    assert (ran.code, ran.lines) == (1, ["configmap/one created"])
    told = ran.err.splitlines()
    assert told[0] == "error: bad.yaml:3: apiVersion is missing"
    assert told[1].startswith("error: bad.yaml:10: is no YAML: line 11: ")
    assert told[2] == "error: bad.yaml:16: is no object"
    assert told[3].startswith('error: bad.yaml:12: no matches for kind "Gadget" in version "v1"; v1 has ')
    assert told[4].startswith('error: bad.yaml:20: ConfigMap "UPPER" is invalid: metadata.name: ')


@pytest.mark.row(2)
@pytest.mark.parametrize("trimtab", ["trimtab_server"], indirect=True)
@pytest.mark.parametrize(("version", "kind"), [("v3", "Adon"), ("v9", "Addon")])
def test_an_unknown_kind_is_refused_with_those_of_its_group(trimtab: Program, version: str, kind: str) -> None:
    ran = trimtab(
        "apply", "-f", "-", stdin=f"{{apiVersion: infra.trimtab.dev/{version}, kind: {kind}, metadata: {{name: x}}}}"
    )
    told = f'no matches for kind "{kind}" in version "infra.trimtab.dev/{version}"'
    assert ran.err == f"error: -:1: {told}; infra.trimtab.dev/v3 has Addon, Blueprint, Cluster\n"


def test_a_conflict_is_told_with_its_own_exit_code_until_forced(trimtab: Program) -> None:
    assert trimtab("apply", "-f", "-", "--field-manager", "theirs", stdin=config_map("one", "{a: '1'}")).code == 0
    ran = trimtab("apply", "-f", "-", stdin=config_map("one", "{a: '2'}"))
    assert ran.code == 4
    assert 'conflict with "theirs"' in ran.err
    forced = trimtab("apply", "-f", "-", "--force-conflicts", stdin=config_map("one", "{a: '2'}"))
    assert forced.out == "configmap/one configured\n"


def test_an_unknown_field_is_refused(trimtab: Program) -> None:
    ran = trimtab("apply", "-f", "-", stdin=config_map("one") + "datum: {}\n")
    assert ran.code == 1
    assert "datum" in ran.err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 2, "name a file"),
        (("-f", "nowhere"), 1, "nowhere does not exist"),
        (("-f", "."), 1, "holds no file that ends in"),
        (("-f", "-"), 1, "there is no object in -"),
    ],
)
def test_nothing_to_apply_is_told(bare: Program, words: tuple[str, ...], code: int, told: str) -> None:
    ran = bare("apply", *words)
    assert ran.code == code
    assert told in ran.err


# delete


def test_named_objects_are_deleted(trimtab: Program) -> None:
    trimtab("apply", "-f", "-", stdin=config_map("one") + config_map("two") + config_map("three"))
    ran = trimtab("delete", "cm", "one", "none", "two")
    assert ran.lines == ['configmap "one" deleted', 'configmap "two" deleted']
    assert (ran.code, ran.err) == (3, 'error: configmaps "none" not found\n')
    assert trimtab("delete", "cm/three", "cm/none", "--ignore-not-found").code == 0
    assert trimtab("get", "cm", "-o", "name").lines == ["configmap/kube-root-ca.crt"]


def test_files_say_what_to_delete_last_first(trimtab: Program) -> None:
    trimtab.write("a.yaml", config_map("one") + config_map("two"))
    trimtab("apply", "-f", "a.yaml")
    assert trimtab("delete", "-f", "a.yaml").lines == ['configmap "two" deleted', 'configmap "one" deleted']


def test_selectors_and_all_choose(trimtab: Program) -> None:
    trimtab("apply", "-f", "-", stdin=config_map("one", labels="{a: b}") + config_map("two") + config_map("three"))
    assert trimtab("delete", "cm", "-l", "a=b").lines == ['configmap "one" deleted']
    assert trimtab("delete", "cm", "--all", "--dry-run").lines[-1] == 'configmap "two" deleted (dry run)'
    assert len(trimtab("get", "cm", "-o", "name").lines) == 3
    assert trimtab("delete", "secrets", "--all").lines == ["nothing to delete"]


def test_an_object_that_is_held_is_waited_for_only_so_long(trimtab: Program) -> None:
    trimtab("apply", "-f", "-", stdin=config_map("held", finalizers="[example.com/hold]"))
    ran = trimtab("delete", "cm", "held", "--timeout", "300ms")
    assert (ran.code, ran.out) == (124, 'configmap "held" deleted\n')
    assert "is still there after 0.3 s" in ran.err
    assert trimtab("delete", "cm", "held", "--no-wait").code == 0
    trimtab("apply", "-f", "-", stdin=config_map("held"))
    assert trimtab("get", "cm", "held").code == 3


@pytest.mark.parametrize(
    "words", [("cm",), (), ("cm", "a", "--all"), ("cm", "a", "--cascade", "none"), ("cm", "a", "-f", "b")]
)
def test_a_deletion_must_be_meant(trimtab: Program, words: tuple[str, ...]) -> None:
    assert trimtab("delete", *words).code == 2


def test_a_key_that_yaml_takes_for_a_word_is_the_one_that_kubectl_makes_of_it(trimtab: Program) -> None:
    assert trimtab("apply", "-f", "-", stdin=config_map("axes", "{y: up, 3: far}")).lines == ["configmap/axes created"]
    assert trimtab("get", "cm", "axes", "-o", "jsonpath={.data}").out == '{"3":"far","true":"up"}'
