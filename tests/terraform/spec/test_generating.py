"""Generated code is what a type checker calls correct, and holds the schema that it was made from."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings

from tests.terraform.spec.documents import fleet, mks
from tests.terraform.spec.schemas import schemas
from trimtab.terraform.framework.resource import Resource
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.values import UNKNOWN
from trimtab.terraform.spec.generating import generate
from trimtab.terraform.spec.identifiers import class_names, field_names
from trimtab.terraform.spec.reading import Spec, read
from trimtab.terraform.spec.typed import dump, load
from trimtab.terraform.spec.writing import schema_code


def written(spec: Spec, folder: Path) -> Path:
    for name, text in generate(spec).items():
        (folder / name).write_text(text)
    return folder


def imported(path: Path) -> ModuleType:
    name = f"generated_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


def checked(*paths: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--cache-dir",
        str(paths[0].parent / ".cache"),
    ]
    return subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, check=False)


USE = """
from generated.ship import Ship, ShipResource
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.values import Unknown

class Own(ShipResource):
    def on_create(self, config: Ship.Config, plan: Ship.Plan, context: Context) -> Ship.State:
        masts = plan.masts if not isinstance(plan.masts, Unknown) and plan.masts else []
        heights = [mast.height for mast in masts if not isinstance(mast, Unknown)]
        return Ship.State(name="a", spec=Ship.State.Spec(spec=Ship.State.Spec.Spec(spec="b")), class_="brig", length=len(heights))

    def on_read(self, state: Ship.State, context: Context) -> Ship.State | None:
        return state if state.boats and state.boats[0].name == "jolly" else None

    def on_update(self, config: Ship.Config, plan: Ship.Plan, state: Ship.State, context: Context) -> Ship.State:
        return state

    def on_delete(self, state: Ship.State, context: Context) -> None:
        WRONG
"""


@pytest.mark.row(66)
def test_generated_code_and_its_use_pass_a_strict_type_checker(tmp_path: Path) -> None:
    folder = tmp_path / "generated"
    folder.mkdir()
    written(read(fleet()), folder)
    written(read(mks()), folder)
    use = tmp_path / "use.py"
    use.write_text(USE.replace("WRONG", "return None"))
    done = checked(use, *folder.glob("*.py"))
    assert done.stdout == ""


@pytest.mark.row(56)
def test_what_an_operation_does_not_have_does_not_pass_the_type_checker(tmp_path: Path) -> None:
    folder = tmp_path / "generated"
    folder.mkdir()
    written(read(fleet()), folder)
    use = tmp_path / "use.py"
    use.write_text(USE.replace("WRONG", "self.on_update(state, state, state, context)"))
    done = checked(use, *folder.glob("*.py"))
    assert 'incompatible type "State"; expected "Config"' in done.stdout
    assert 'incompatible type "State"; expected "Plan"' in done.stdout


@pytest.mark.parametrize("document", [fleet, mks])
def test_the_schema_in_the_code_is_the_one_that_was_read(tmp_path: Path, document: Any) -> None:
    spec = read(document())
    written(spec, tmp_path)
    for name, schema in spec.resources.items():
        assert schema_code(imported(tmp_path / f"{name}.py").SCHEMA) == schema_code(schema)


@settings(max_examples=25, deadline=None)
@given(schemas())
def test_any_schema_becomes_code_that_runs(schema: Schema) -> None:
    (code,) = (
        text for name, text in generate(Spec("own", Schema({}), {"thing": schema}, {})).items() if name == "thing.py"
    )
    module: dict[str, Any] = {"__name__": "generated_thing"}
    sys.modules["generated_thing"] = ModuleType("generated_thing")
    try:
        exec(compile(code, "thing.py", "exec"), module)
    finally:
        del sys.modules["generated_thing"]
    assert schema_code(module["SCHEMA"]) == schema_code(schema)


def test_values_become_objects_and_come_back(tmp_path: Path) -> None:
    ship = imported(written(read(fleet()), tmp_path) / "ship.py").Ship
    values = {
        "name": "a",
        "class": "brig",
        "crew": UNKNOWN,
        "spec": {"spec": {"spec": "deep"}, "from": None},
        "masts": [{"height": 3, "sails": UNKNOWN}],
        "boats": UNKNOWN,
        "officers": {"mate": {"rank": "first"}},
        "voyage": [{"port": "x", "stop": {"days": 3}}],
    }
    plan = load(ship.Plan, values)
    assert (plan.class_, plan.spec.spec.spec, plan.officers["mate"].rank) == ("brig", "deep", "first")
    assert (plan.crew, plan.boats, plan.masts[0].sails) == (UNKNOWN, UNKNOWN, UNKNOWN)
    assert {name: value for name, value in dump(plan).items() if value is not None} == values


def test_names_in_code_never_meet() -> None:
    assert field_names(["class", "class_"]) == {"class": "class_2", "class_": "class_"}
    assert class_names(["a_b", "a__b", "ab"]) == {"a__b": "AB", "a_b": "AB2", "ab": "Ab"}
    assert class_names(["none", "_1"]) == {"_1": "Of1", "none": "OfNone"}


def attribute(name: str) -> dict[str, Any]:
    return {"name": name, "string": {"computed_optional_required": "optional"}}


def document(*names: str, resource: str = "thing", data_sources: tuple[str, ...] = ()) -> dict[str, Any]:
    schema = {"attributes": [attribute(name) for name in names]}
    return {
        "version": "0.1",
        "provider": {"name": "odd"},
        "resources": [{"name": resource, "schema": schema}],
        "datasources": [{"name": name, "schema": schema} for name in data_sources],
    }


@pytest.mark.parametrize("name", ["plain", "one", "many", "mapped", "str", "dict", "self", "dataclass"])
def test_an_attribute_may_have_a_name_that_the_code_uses(tmp_path: Path, name: str) -> None:
    written(read(document("aaa", name, "zzz")), tmp_path)
    plan = load(imported(tmp_path / "thing.py").Thing.Plan, {name: "1", "zzz": "2"})
    assert {key: value for key, value in dump(plan).items() if value} == {name: "1", "zzz": "2"}


@pytest.mark.parametrize("name", ["resource", "schema", "read", "attribute", "context", "data_source"])
def test_a_resource_may_have_a_name_that_the_module_uses(tmp_path: Path, name: str) -> None:
    written(read(document("a", resource=name, data_sources=(name,))), tmp_path)
    (base,) = {each for each in imported(tmp_path / f"{name}.py").__all__ if each.endswith("Resource")}
    made = getattr(imported(tmp_path / f"{name}.py"), base)
    assert issubclass(made, Resource)
    assert made is not Resource
    imported(tmp_path / f"{name}_data.py")


def test_each_resource_and_data_source_has_a_file_that_can_be_imported() -> None:
    assert sorted(generate(read(document("a", resource="r_data", data_sources=("r",))))) == [
        "__init__.py",
        "r_data.py",
        "r_data2.py",
    ]
    assert "class_.py" in generate(read(document("a", resource="class")))
    files = generate(read(document("a", resource="__init__")))
    assert len(files) == 2
    assert "Resource" not in files["__init__.py"]
