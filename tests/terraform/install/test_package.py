"""The package: what is in it, that its hash is stable, and what it needs of a machine."""

from __future__ import annotations

import base64
import io
import os
import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trimtab.cli.systems import load
from trimtab.terraform.install import contents
from trimtab.terraform.install.contents import imports
from trimtab.terraform.install.hashing import h1_of
from trimtab.terraform.install.mirror import archive
from trimtab.terraform.install.package import Package, package, put
from trimtab.terraform.install.prepared import interpreter, prepare
from trimtab.terraform.kinds.marking import hints_of
from trimtab.terraform.shipped import shipped_hints


@pytest.fixture(scope="module")
def made() -> Package:
    return package("1.2.3")


def test_two_packages_of_one_release_have_one_hash(made: Package, tmp_path: Path) -> None:
    again = package("1.2.3")
    assert again.h1 == made.h1
    assert archive(again) == archive(made)
    for name in ("a", "b"):
        assert put(made, tmp_path / name)
    assert h1_of(tmp_path / "a") == h1_of(tmp_path / "b") == made.h1
    assert not put(made, tmp_path / "a")


def test_another_file_is_another_hash(made: Package) -> None:
    assert package("1.2.3", {"more": b""}).h1 != made.h1
    assert package("1.2.3", {"more": b""}).digest != made.digest


def test_the_hash_is_one_that_anyone_can_check(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("two")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "c").write_text("one")
    command = "sha256sum a/c b | sha256sum | cut -d' ' -f1"
    said = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert h1_of(tmp_path) == f"h1:{base64.b64encode(bytes.fromhex(said)).decode()}"


def test_nothing_of_this_machine_is_in_it(made: Package) -> None:
    mine = [os.fsencode(path) for path in (Path.home(), Path(__file__).parents[3]) if str(path) != "/"]
    assert not [name for name, data in made.files.items() if any(path in data for path in mine)]
    assert not [name for name in made.files if name.endswith((".pyc", ".so"))]


def test_it_holds_what_the_provider_imports_and_licences_of_others(made: Package) -> None:
    code = set(made.code)
    assert {
        "trimtab/__init__.py",
        "trimtab/terraform/main.py",
        "trimtab/terraform/certificate.py",
        "h2/__init__.py",
    } <= code
    assert "trimtab/model/health.py" in code
    assert not [
        name for name in code if name.startswith(("trimtab/server", "trimtab/cli", "trimtab/terraform/install"))
    ]
    assert {name.split("/")[1] for name in code if name.startswith("licences/")} >= {
        "h2",
        "hpack",
        "hyperframe",
        "msgpack",
    }


def test_a_module_that_the_provider_cannot_carry_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "LIBRARIES", {})
    with pytest.raises(contents.PackageError, match=r"imports (h2|msgpack)[.\\w]* in line"):
        contents.contents()


def test_imports_are_found_wherever_they_are() -> None:
    source = """
import os.path
if TYPE_CHECKING:
    import never
def late():
    from trimtab.terraform import main
    from . import sibling
"""
    found = {name for name, _ in imports(source, "trimtab.terraform.x")}
    assert found == {"os.path", "trimtab.terraform", "trimtab.terraform.main"}


def test_the_archive_has_a_program_that_may_be_executed(made: Package) -> None:
    with zipfile.ZipFile(io.BytesIO(archive(made))) as opened:
        modes = {each.filename: each.external_attr >> 16 & 0o777 for each in opened.infolist()}
    assert modes.pop(made.program) == 0o755
    assert set(modes.values()) == {0o644}


def test_a_machine_is_prepared_once_a_release(made: Package, tmp_path: Path) -> None:
    folder = prepare(made, tmp_path)
    assert (tmp_path / "python").readlink() == interpreter()
    first = folder.stat().st_ino
    assert prepare(made, tmp_path).stat().st_ino == first
    assert list(folder.rglob("msgpack/_cmsgpack*.so")), "msgpack in C, where there is one"
    older = [prepare(package("1.2.3", {"n": bytes([n])}), tmp_path) for n in range(6)]
    assert older[-1].is_dir()
    assert len(list((tmp_path / "code").iterdir())) == 4, "old releases do not pile up"


def test_it_runs_by_hand_and_says_what_it_is(made: Package, tmp_path: Path) -> None:
    put(made, tmp_path / "package")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        [tmp_path / "package" / made.program], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "Terraform starts it" in done.stderr
    assert h1_of(tmp_path / "package") == made.h1


def test_what_is_said_of_the_kinds_that_ship_is_what_their_classes_say() -> None:
    systems = load("all")
    classes = [cls for system in systems for cls in system.kinds] + [kind.cls for each in systems for kind in each.hub]
    told = {key: dict(hints.marks) for key, hints in hints_of(classes).items() if hints.marks}
    assert {key: dict(hints.marks) for key, hints in shipped_hints().items()} == told


def test_several_who_install_at_once_leave_one_whole_package(made: Package, tmp_path: Path) -> None:
    others = [made, *(package("1.2.3", {"n": bytes([n])}) for n in range(3))]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda each: put(each, tmp_path / "package"), others * 4))
    assert h1_of(tmp_path / "package") in {each.h1 for each in others}
    assert [path.name for path in tmp_path.iterdir()] == ["package"]
