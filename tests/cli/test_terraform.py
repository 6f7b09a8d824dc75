"""`trimtab terraform`: help, specifications, code and pages; installs are tested with the real terraform elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Program
from tests.terraform.spec.documents import FLEET
from trimtab.terraform.docs.pages import Subject, page
from trimtab.terraform.framework.attributes import Attribute
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.types import STRING
from trimtab.terraform.kinds.access import Settings, access
from trimtab.terraform.kinds.api import Api
from trimtab.terraform.kinds.precomputing import taken
from trimtab.terraform.kinds.snapshot import write_snapshot
from trimtab.terraform.spec.checking import problems
from trimtab.terraform.spec.emitting import emit
from trimtab.terraform.spec.reading import read
from trimtab.testing.embedded import TrimtabServer

COMMANDS = ["install", "check", "spec", "generate", "compare", "docs"]


@pytest.fixture(scope="session")
def kinds(trimtab_server: TrimtabServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    api = Api(access(Settings(kubeconfig=str(trimtab_server.kubeconfig)), {}))
    path = tmp_path_factory.mktemp("terraform") / "kinds"
    try:
        write_snapshot(path, taken(api.get))
    finally:
        api.close()
    return path


@pytest.fixture
def program(bare: Program, tmp_path: Path) -> Program:
    bare.env["TRIMTAB_TERRAFORM_HOME"] = str(tmp_path / "data")
    return bare


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_with_an_example(program: Program, command: str) -> None:
    ran = program("terraform", command, "--help")
    assert ran.code == 0
    assert f"Example:  trimtab terraform {command}" in ran.out


@pytest.mark.parametrize("command", ["spec", "docs"])
def test_without_kinds_it_says_how_to_get_them(program: Program, command: str) -> None:
    ran = program("terraform", command)
    assert ran.code == 3
    assert "`trimtab terraform install` makes it" in ran.err


def test_check_without_kinds_says_how_to_get_them(program: Program) -> None:
    ran = program("terraform", "check")
    assert ran.code == 1
    assert "`trimtab terraform install` takes them" in ran.err


def test_a_file_that_is_no_snapshot_is_refused(program: Program) -> None:
    ran = program("terraform", "spec", "--kinds", program.write("kinds", "something else"))
    assert ran.code == 1
    assert "run `trimtab terraform install` again" in ran.err


@pytest.mark.row(66)
def test_all_kinds_of_a_server_are_a_good_specification_that_reads_back_the_same(program: Program, kinds: Path) -> None:
    ran = program("terraform", "spec", "--kinds", str(kinds))
    assert ran.code == 0
    document = json.loads(ran.out)
    assert problems(document) == []
    assert len(document["resources"]) > 40
    spec = read(document)
    again = emit(spec.name, spec.provider, spec.resources, spec.data_sources)
    assert again.document == document
    assert spec.notes == ()
    assert "write-only" in ran.err or "of one meaning" in ran.err, "losses are told"


def test_one_type_alone_may_be_asked_for(program: Program, kinds: Path) -> None:
    ran = program("terraform", "spec", "--kinds", str(kinds), "--only", "trimtab_infra_blueprint", "-o", "one.json")
    assert (ran.code, ran.out) == (0, "")
    document = json.loads((program.folder / "one.json").read_text())
    assert [each["name"] for each in document["resources"]] == ["infra_blueprint"]
    ran = program("terraform", "spec", "--kinds", str(kinds), "--only", "trimtab_infra_nothing")
    assert ran.code == 3
    assert "there is no type trimtab_infra_nothing" in ran.err


def test_code_is_generated_of_a_specification(program: Program) -> None:
    ran = program("terraform", "generate", str(FLEET), "-o", "code")
    assert ran.code == 0
    assert ran.lines == ["code/__init__.py", "code/ship.py", "code/ship_data.py"]
    assert "class ShipResource(Resource):" in (program.folder / "code" / "ship.py").read_text()


def test_a_specification_with_faults_is_refused_with_all_of_them(program: Program) -> None:
    ran = program("terraform", "generate", program.write("spec.json", '{"version": "7", "provider": {"name": "A"}}'))
    assert ran.code == 1
    assert "version: '7' is not known" in ran.err
    assert "provider.name: 'A' is no name" in ran.err
    assert program("terraform", "generate", "nothing.json").code == 1


@pytest.mark.row(69)
def test_a_page_is_written_for_each_resource_and_data_source(program: Program, kinds: Path) -> None:
    ran = program("terraform", "docs", "--kinds", str(kinds), "-o", "pages")
    assert ran.code == 0
    pages = program.folder / "pages"
    resources = {path.stem for path in (pages / "resources").iterdir()}
    data_sources = {path.stem for path in (pages / "data-sources").iterdir()}
    assert "infra_blueprint" in resources & data_sources
    assert "infra_blueprints" in data_sources
    blueprint = (pages / "resources" / "infra_blueprint.md").read_text()
    assert "In the API: Blueprint of infra.trimtab.dev/v3." in blueprint
    assert "- `name` (String) The name, unique in its place." in blueprint
    assert "terraform import trimtab_infra_blueprint.example project/name" in blueprint
    for anchor in {part.split(")")[0] for part in blueprint.split("](#")[1:]}:
        assert f'<a id="{anchor}"></a>' in blueprint
    assert "`trimtab_infra_blueprint`" in (pages / "types.md").read_text()


def test_pages_do_not_go_among_files_of_others_unless_the_folder_is_named(program: Program, kinds: Path) -> None:
    program.write("docs/index.md", "# Mine\n")
    ran = program("terraform", "docs", "--kinds", str(kinds))
    assert ran.code == 1
    assert f"{program.folder / 'docs'} has files of others" in ran.err
    assert [path.name for path in (program.folder / "docs").iterdir()] == ["index.md"]
    assert (program.folder / "docs" / "index.md").read_text() == "# Mine\n"

    for words in (("-o", "docs"), ()):  # and now they are ours
        ran = program("terraform", "docs", "--kinds", str(kinds), *words)
        assert ran.code == 0, ran.err
        assert f"pages in {program.folder / 'docs'}" in ran.out


@pytest.mark.row(71)
def test_a_change_of_schemas_is_judged_by_what_it_does_to_users(program: Program) -> None:
    document = json.loads(FLEET.read_text())
    same = program("terraform", "compare", str(FLEET), str(FLEET))
    assert (same.code, same.out) == (0, "nothing changed\n")

    attributes = document["resources"][0]["schema"]["attributes"]
    attributes.append({"name": "motto", "string": {"computed_optional_required": "optional"}})
    ran = program("terraform", "compare", str(FLEET), program.write("minor.json", json.dumps(document)))
    assert ran.lines == ["minor  fleet_ship.motto: the attribute is new", "this is a minor change"]
    assert ran.code == 0

    attributes[:] = [each for each in attributes if each["name"] != "labels"]
    ran = program("terraform", "compare", str(FLEET), program.write("major.json", json.dumps(document)))
    assert "major  fleet_ship.labels: the attribute is gone, and was not deprecated before" in ran.out
    assert ran.code == 1
    assert "1 change breaks what works now" in ran.err
    assert "deprecate first" in ran.err


def test_what_a_kind_says_of_itself_is_no_markup_of_its_page() -> None:
    evil = "a \x1b[31mred\x07 <script>x</script> `<name>`\n# \u202ehead ``<b>` \\`<i>\\` `<u>"
    text = page(
        Subject(
            "trimtab_it",
            "Resource",
            Schema({"it": Attribute(STRING, optional=True, description=evil)}, description=evil),
        )
    )
    assert "a [31mred &lt;script>x&lt;/script> `<name>` # head ``&lt;b>` \\`&lt;i>\\` `&lt;u>" in text
    assert [line for line in text.splitlines() if line.startswith("# ")] == ["# trimtab_it (Resource)"]
    assert not {character for character in text if not character.isprintable()} - {"\n"}
