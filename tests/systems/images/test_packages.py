"""Each reader of packages: what it finds, what it passes over, and that damage never ends in anything but a warning."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import random
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packageurl import PackageURL

from tests.needs import needs
from tests.systems.images import binary_kit
from tests.systems.images.layer_kit import DEBIAN, dpkg_stanza, inventory, jar, named, tar
from trimtab.systems.images.layers.layer import read_layer
from trimtab.systems.images.layers.problems import Limits
from trimtab.systems.images.packages import apk, debian_copyright, dpkg, executables, golang, java, node, python, ruby
from trimtab.systems.images.packages.distro import read_os_release
from trimtab.systems.images.packages.formats import recognise
from trimtab.systems.images.packages.package import Distro, Package, purl_of
from trimtab.systems.images.packages.problems import Unreadable
from trimtab.systems.images.packages.purl import purl

STATUS = "var/lib/dpkg/status"
OLD_MODULES = {("example.com/old", "v1.0.0"), ("example.com/dep", "v1.2.3"), ("example.com/fork", "v0.2.0")}


def pairs(packages: tuple[Package, ...]) -> set[tuple[str, str]]:
    return {(each.name, each.version) for each in packages}


# dpkg


def test_this_machines_own_packages_are_those_that_dpkg_lists():
    status = Path("/", STATUS)
    needs(status, "dpkg-query", hint="this is no Debian")
    form = "${db:Status-Status}\t${Package}\t${Version}\t${Architecture}\n"
    told = subprocess.run(["dpkg-query", "-W", "-f", form], capture_output=True, text=True, check=True).stdout
    listed = {
        tuple(line.split("\t")[1:]) for line in told.splitlines() if not line.startswith(("config-files", "not-"))
    }
    assert {(each.name, each.version, each.arch) for each in dpkg.read(STATUS, status.read_bytes())} == listed


def test_a_source_of_another_version_is_kept():
    (found,) = dpkg.read(STATUS, dpkg_stanza("libc6", "2.36-9+b1", Source="glibc (2.36-9)"))
    assert (found.source, found.source_version) == ("glibc", "2.36-9")


def test_a_removed_package_that_left_its_settings_is_passed_over():
    body = dpkg_stanza("gone", "1", Status="deinstall ok config-files") + dpkg_stanza("here", "1")
    assert pairs(dpkg.read(STATUS, body)) == {("here", "1")}


def test_a_description_that_looks_like_fields_is_none():
    body = b"Package: a\nStatus: install ok installed\nVersion: 1\nDescription: x\n Package: b\n Version: 2\n"
    assert pairs(dpkg.read(STATUS, body)) == {("a", "1")}


def test_packages_of_an_image_without_dpkg_are_found():
    raw = tar(
        {
            "var/lib/dpkg/status.d/tzdata": b"Package: tzdata\nVersion: 2024a-0\nArchitecture: all\n",
            "var/lib/dpkg/status.d/tzdata.md5sums": b"00  usr/share/x\n",
        }
    )
    assert named(inventory(raw)) == {("deb", "tzdata", "2024a-0")}
    assert inventory(raw).warnings == ()


DEP5 = b"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
License: GPL-2+ or Expat
 some text

License: LGPL-2.1
License: BSD-3-clause
License: public-domain
"""


@pytest.mark.parametrize(
    ("body", "licenses"),
    [
        (DEP5, ("BSD-3-Clause", "GPL-2.0-or-later OR MIT", "LGPL-2.1-only", "public-domain")),
        (
            b"see /usr/share/common-licenses/GPL-3. Or\n/usr/share/common-licenses/Apache-2.0 too",
            ("Apache-2.0", "GPL-3.0-only"),
        ),
        (b"nothing that is known\n", ()),
        (b"\xff\xfe", ()),
    ],
)
def test_a_copyright_file_names_its_licences(body, licenses):
    assert debian_copyright.read(body) == licenses


def test_a_debian_package_has_the_licences_of_its_copyright_file():
    base = tar({STATUS: dpkg_stanza("bash", "5"), "usr/share/doc/bash/copyright": DEP5})
    (found,) = inventory(base, tar({"usr/share/.wh.doc": b""})).packages
    assert found.licenses == debian_copyright.read(DEP5)


# apk


def test_an_apk_database_gives_origin_and_licence():
    body = b"C:Q1\nP:musl-utils\nV:1.2.4-r2\nA:x86_64\nL:MIT AND BSD-2-Clause\no:musl\nF:bin\nR:ldd\n\n"
    (found,) = apk.read("lib/apk/db/installed", body)
    assert (found.name, found.version, found.source) == ("musl-utils", "1.2.4-r2", "musl")
    assert found.licenses == ("MIT AND BSD-2-Clause",)


# Python


def test_the_distributions_of_this_environment_are_those_that_importlib_lists():
    found = set()
    for place in {Path(path).resolve() for path in sys.path if path.endswith("site-packages")}:
        for metadata in place.glob("*.dist-info/METADATA"):
            path = str(metadata).removeprefix("/")
            assert recognise(path, "METADATA") is not None
            found |= pairs(python.read(path, metadata.read_bytes()))
    listed = {(each.metadata["Name"], each.version) for each in importlib.metadata.distributions()}
    assert listed
    assert listed <= found | {pair for pair in listed if pair[0] is None}


@pytest.mark.parametrize(
    ("header", "licenses"),
    [
        ("License-Expression: MIT OR Apache-2.0\nLicense: x", ("MIT OR Apache-2.0",)),
        ("License: BSD", ("BSD",)),
        ("License: UNKNOWN\nClassifier: License :: OSI Approved :: MIT License", ("MIT License",)),
        ("Summary: nothing", ()),
    ],
)
def test_licences_of_a_distribution_come_from_the_most_exact_field(header, licenses):
    (found,) = python.read("p", f"Name: x\nVersion: 1\n{header}\n\nLicense: in the text".encode())
    assert found.licenses == licenses


@pytest.mark.parametrize(
    "path", ["a/x-1.dist-info/METADATA", "a/x.egg-info/PKG-INFO", "a/x-1.egg-info", "a/x.egg/EGG-INFO/PKG-INFO"]
)
def test_every_place_of_python_metadata_is_known(path):
    assert recognise(path, path.rpartition("/")[2]) is not None


def test_a_source_tree_with_metadata_is_no_distribution():
    assert recognise("src/x/PKG-INFO", "PKG-INFO") is None


# Node


@pytest.mark.parametrize(
    ("path", "installed"),
    [
        ("app/node_modules/left-pad/package.json", True),
        ("node_modules/@babel/core/package.json", True),
        ("a/node_modules/b/node_modules/c/package.json", True),
        ("app/package.json", False),
        ("node_modules/resolve/test/fixture/package.json", False),
        ("node_modules/.package-lock/package.json", False),
        ("node_modules/@babel/package.json", False),
    ],
)
def test_only_installed_node_packages_are_read(path, installed):
    assert node.is_installed(path) is installed


def test_a_scope_is_the_namespace():
    (found,) = node.read("p", b'{"name": "@babel/core", "version": "7.1.0", "licenses": [{"type": "MIT"}, "ISC"]}')
    assert (found.namespace, found.name, found.licenses) == ("@babel", "core", ("MIT", "ISC"))
    assert found.purl == "pkg:npm/%40babel/core@7.1.0"


@pytest.mark.parametrize(
    "body", [b"{}", b'{"name": "x"}', b'{"name": 1, "version": "1"}', b'{"name": "@a/", "version": "1"}']
)
def test_a_manifest_without_name_or_version_is_no_package(body):
    assert node.read("p", body) == ()


@pytest.mark.parametrize("body", [b"", b"[]", b"[" * 100_000, b"\xff"])
def test_a_manifest_that_is_no_object_is_unreadable(body):
    with pytest.raises(Unreadable):
        node.read("p", body)


# Ruby


def test_a_gemspec_is_read():
    body = b"""# stub: rake 13.0.6 ruby lib
Gem::Specification.new do |s|
  s.name = "rake".freeze
  s.version = "13.0.6"
  s.licenses = ["MIT".freeze, "Ruby".freeze]
  s.required_ruby_version = Gem::Requirement.new(">= 2.2".freeze)
end
"""
    (found,) = ruby.read("p", body)
    assert (found.name, found.version, found.licenses) == ("rake", "13.0.6", ("MIT", "Ruby"))


def test_a_gemspec_outside_of_specifications_is_not_read():
    assert recognise("src/x/x.gemspec", "x.gemspec") is None


# Java

POM = b"#Created by Apache Maven\ngroupId=com.acme\nartifactId=%s\nversion=%s\n"
MANIFEST = b"Manifest-Version: 1.0\r\n%s\r\n\r\nName: section\r\nImplementation-Version: 9\r\n"


def test_a_jar_names_itself_what_is_shaded_into_it_and_what_is_nested():
    inner = jar({"META-INF/maven/com.acme/inner/pom.properties": POM % (b"inner", b"0.9")})
    middle = jar({"lib/inner.jar": inner, "META-INF/maven/com.acme/middle/pom.properties": POM % (b"middle", b"2")})
    outer = jar(
        {
            "META-INF/MANIFEST.MF": MANIFEST % b"Implementation-Version: 1.0",
            "META-INF/maven/com.acme/outer/pom.properties": POM % (b"outer", b"1.0"),
            "META-INF/maven/com.acme/shaded/pom.properties": POM % (b"shaded", b"3.0"),
            "BOOT-INF/lib/middle-2.jar": middle,
        },
        zipfile.ZIP_STORED,
    )
    found = java.read("app/outer-1.0.jar", outer)
    assert pairs(found) == {("outer", "1.0"), ("shaded", "3.0"), ("middle", "2"), ("inner", "0.9")}
    assert {each.namespace for each in found} == {"com.acme"}


@pytest.mark.parametrize(
    ("file", "line", "expected"),
    [
        ("plain-2.5.jar", b"Implementation-Vendor-Id: org.plain", ("org.plain", "plain", "2.5")),
        ("plain.jar", b"Implementation-Version: 1.1", ("", "plain", "1.1")),
        ("a-b-1.0-SNAPSHOT.jar", b"X: y", ("", "a-b", "1.0-SNAPSHOT")),
        (
            "z.jar",
            b"Bundle-SymbolicName: org.z\r\n .core;singleton:=true\r\nBundle-Version: 3",
            ("org.z.core", "z", "3"),
        ),
    ],
)
def test_a_jar_without_maven_is_named_by_its_manifest_and_file(file, line, expected):
    (found,) = java.read(f"app/{file}", jar({"META-INF/MANIFEST.MF": MANIFEST % line}))
    assert (found.namespace, found.name, found.version) == expected


def test_archives_inside_archives_end_at_a_depth():
    body = jar({"META-INF/maven/com.acme/core/pom.properties": POM % (b"core", b"1")})
    for _ in range(20):
        body = jar({"x.jar": body})
    assert java.read("deep.jar", body) == ()


def test_a_bomb_in_a_jar_is_unreadable():
    with pytest.raises(Unreadable, match="at most"):
        java.read("a.jar", jar({"META-INF/MANIFEST.MF": bytes(5 << 20)}))


def test_a_member_that_lies_about_its_size_is_unreadable():
    body = bytearray(jar({"META-INF/MANIFEST.MF": bytes(5 << 20)}))
    at = body.rfind(b"PK\x01\x02")
    body[at + 24 : at + 28] = (10).to_bytes(4, "little")
    with pytest.raises(Unreadable, match="claims"):
        java.read("a.jar", bytes(body))


def test_a_damaged_archive_inside_does_not_lose_the_others():
    good = jar({"META-INF/maven/com.acme/good/pom.properties": POM % (b"good", b"1")})
    with pytest.raises(Unreadable, match=r"a\.jar: it is no zip") as caught:
        java.read("outer.war", jar({"a.jar": b"nothing", "z.jar": good}))
    assert pairs(caught.value.packages) == {("good", "1")}


def test_an_archive_of_more_members_than_a_short_number_counts_is_read():
    members = {f"{number}.class": b"" for number in range(66_000)}
    body = jar({**members, "META-INF/maven/com.acme/a/pom.properties": POM % (b"a", b"1")}, zipfile.ZIP_STORED)
    assert pairs(java.read("a.jar", body)) == {("a", "1")}


def test_members_that_share_their_bytes_end_at_a_total():
    large = jar({"x": bytes(20 << 20)}, zipfile.ZIP_STORED)
    whole = bytearray(jar({"000.jar": large}, zipfile.ZIP_STORED))
    at = whole.rfind(b"PK\x01\x02")
    entry = bytes(whole[at : whole.rfind(b"PK\x05\x06")])
    end = bytearray(whole[whole.rfind(b"PK\x05\x06") :])
    end[8:12] = (40).to_bytes(2, "little") * 2
    end[12:16] = (len(entry) * 40).to_bytes(4, "little")
    with pytest.raises(Unreadable, match="more than"):
        java.read("a.jar", bytes(whole[:at]) + entry * 40 + bytes(end))


def test_a_script_before_the_archive_does_not_matter():
    body = b"#!/bin/sh\nexec java -jar $0\n" + jar({"META-INF/maven/com.acme/a/pom.properties": POM % (b"a", b"1")})
    assert pairs(java.read("a.jar", body)) == {("a", "1")}


# Go


@pytest.fixture(scope="module")
def hello(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return binary_kit.go_program(tmp_path_factory.mktemp("go"))


def test_a_real_go_program_names_its_modules_and_the_standard_library(hello):
    found = dict(pairs(golang.read("usr/bin/hello", hello)))
    release = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout.strip()
    assert found.pop("stdlib") == release.removeprefix("go").split()[0]
    assert set(found) == {"example.com/hello", "./dep", "./other"}


def test_a_go_program_too_large_to_hold_is_searched_in_passing(hello):
    raw = tar({"usr/bin/hello": hello})
    whole = read_layer([raw])
    pieces = [raw[at : at + 100_001] for at in range(0, len(raw), 100_001)]
    assert read_layer(pieces, limits=Limits(executable_bytes=1 << 20)).findings == whole.findings
    assert len(hello) > 1 << 20
    assert whole.findings


@pytest.mark.parametrize("cut", [0, 1, 13, 14, 15, 16, 17, 31, 32, 33])
def test_the_mark_is_found_wherever_a_piece_ends(cut):
    body = bytes(4096) + b"x" + binary_kit.MARK + bytes(1) + binary_kit.inline_go()  # the first one is not aligned
    body += bytes(100)
    search = golang.Search()
    search.feed(memoryview(body[: 4112 + cut]))
    search.feed(memoryview(body[4112 + cut :]))
    assert pairs(golang.read("p", search.found)) == OLD_MODULES | {("stdlib", "1.22.1")}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("wide", [True, False])
def test_build_information_by_pointers_is_followed(order, wide):
    found = golang.read("p", binary_kit.old_go(order=order, wide=wide))
    assert pairs(found) == OLD_MODULES | {("stdlib", "1.16.4")}


def test_a_program_without_section_headers_is_searched():
    body = binary_kit.elf({b".data": binary_kit.inline_go()}, headers=False)
    assert pairs(golang.read("p", body)) == OLD_MODULES | {("stdlib", "1.22.1")}


def test_a_main_module_from_a_checkout_has_its_commit_as_version():
    text = "mod\texample.com/a\t(devel)\t\nbuild\tvcs.revision=0123456789abcdef\nbuild\tvcs.time=2024-05-06T07:08:09Z\n"
    found = golang._packages("p", "go1.22", text)
    assert ("example.com/a", "v0.0.0-20240506070809-0123456789ab") in pairs(found)


def test_a_program_that_is_not_of_go_or_rust_names_nothing():
    assert executables.read("usr/bin/python", Path(sys.executable).resolve().read_bytes()) == ()


# Rust


def test_a_program_of_cargo_auditable_names_its_crates():
    audit = {
        "packages": [
            {"name": "serde", "version": "1.0.1", "source": "crates.io"},
            {"name": "cc", "version": "1.0.2", "source": "crates.io", "kind": "build"},
            {"name": "app", "version": "0.1.0", "source": "local", "dependencies": [0], "root": True},
        ]
    }
    body = binary_kit.elf({b".dep-v0": zlib.compress(json.dumps(audit).encode())}) + bytes(4096)
    assert named(inventory(tar({"usr/bin/app": body}))) == {("cargo", "serde", "1.0.1"), ("cargo", "app", "0.1.0")}


def test_audit_data_that_is_a_bomb_is_a_warning():
    body = binary_kit.elf({b".dep-v0": zlib.compress(bytes(16 << 20))})
    found = inventory(tar({"usr/bin/app": body}))
    assert found.packages == ()
    assert "audit data" in found.warnings[0]


# distributions and package URLs


@pytest.mark.parametrize(
    ("body", "distro"),
    [
        (DEBIAN, Distro("debian", "12", "Debian GNU/Linux 12 (bookworm)")),
        (b"# c\nID='alpine'\nVERSION_ID=3.20.1\nNAME=Alpine\n", Distro("alpine", "3.20.1", "Alpine")),
        (b'ID="rhel\nVERSION_ID="9.4"\n', Distro("rhel", "9.4", "")),
        (b"\xff\xfe", Distro()),
    ],
)
def test_os_release_is_read_in_the_shells_quoting(body, distro):
    assert read_os_release(body) == distro


@pytest.mark.parametrize(
    ("package", "distro", "expected"),
    [
        (
            Package(type="deb", name="libc6", version="2.36-9+b1", namespace="debian", arch="amd64", source="glibc"),
            Distro("debian", "12"),
            "pkg:deb/debian/libc6@2.36-9%2Bb1?arch=amd64&distro=debian-12&upstream=glibc",
        ),
        (
            Package(type="golang", name="github.com/a/b/v2", version="v2.0.0"),
            Distro(),
            "pkg:golang/github.com/a/b/v2@v2.0.0",
        ),
        (Package(type="pypi", name="Flask_Login.x", version="1"), Distro("debian", "12"), "pkg:pypi/flask-login-x@1"),
        (Package(type="maven", name="a", version="1", namespace="org.x"), Distro(), "pkg:maven/org.x/a@1"),
        (Package(type="gem", name="", version="1"), Distro(), "pkg:gem/unnamed@1"),
    ],
)
def test_a_package_url_names_what_only_the_image_knows(package, distro, expected):
    assert purl_of(package, distro) == expected


words = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="/"), min_size=1, max_size=12
)


@settings(max_examples=100, deadline=None)
@given(
    kind=st.sampled_from(["deb", "apk", "rpm", "npm", "golang", "maven", "gem", "cargo"]),
    namespace=st.lists(words, max_size=2).map("/".join),
    name=words,
    version=words,
    arch=words,
)
def test_package_urls_are_those_of_packageurl_python(kind, namespace, name, version, arch):
    expected = PackageURL(kind, namespace or None, name, version, {"arch": arch}, None).to_string()
    found = purl(kind, namespace, name, version, {"arch": arch})
    if kind in ("apk", "npm"):  # it turns the letters of escapes to small ones too
        found, expected = found.lower(), expected.lower()
    assert found == expected


# damage


SAMPLES = {
    "var/lib/dpkg/status": dpkg_stanza("a", "1") * 3,
    "lib/apk/db/installed": b"P:a\nV:1\nA:x\n\n",
    "x.dist-info/METADATA": b"Name: a\nVersion: 1\nClassifier: License :: x\n\n",
    "node_modules/a/package.json": b'{"name": "@a/b", "version": "1", "license": [{"type": "x"}]}',
    "specifications/a.gemspec": b's.name = "a"\ns.version = "1"\n',
    "a.jar": jar({"b.jar": jar({"META-INF/MANIFEST.MF": MANIFEST % b"A: b"}), "META-INF/MANIFEST.MF": b"A: b"}),
    "go": binary_kit.old_go(),
    "rust": binary_kit.elf({b".dep-v0": zlib.compress(b'{"packages": [{"name": "a", "version": "1"}]}')}),
}


@settings(max_examples=300, deadline=None)
@given(path=st.sampled_from(sorted(SAMPLES)), seed=st.integers(0, 1 << 32))
def test_a_mutated_file_is_read_or_unreadable(path, seed):
    chance = random.Random(seed)
    mutant = bytearray(SAMPLES[path])
    for _ in range(chance.randint(1, 8)):
        mutant[chance.randrange(len(mutant))] = chance.randrange(256)
    del mutant[chance.randint(len(mutant) // 2, len(mutant)) :]
    form = recognise(path, path.rpartition("/")[2])
    with contextlib.suppress(Unreadable):
        for package in (form.read if form else executables.read)(path, bytes(mutant)):
            assert purl_of(package, Distro()).startswith("pkg:")


BLANKS = b" " * 300_000


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("var/lib/dpkg/status", b"Package: a" + BLANKS + b"b\nVersion: 1\n\n"),
        ("lib/apk/db/installed", b"P:a" + BLANKS + b"b\nV:1\n\n"),
        ("x.dist-info/METADATA", b"Name: a" + BLANKS + b"b\nVersion: 1\n\n"),
        ("specifications/a.gemspec", b"\n" * 250_000 + b"x"),
        ("specifications/a.gemspec", (b"s.name =" + b" " * 100) * 2000),
        ("-1" * 4000 + "!.jar", jar({"META-INF/MANIFEST.MF": b"A: b"})),
        ("usr/share/doc/a/copyright", BLANKS),
    ],
)
def test_no_text_makes_a_reader_slow(path, body):
    form = recognise(path, path.rpartition("/")[2])
    with contextlib.suppress(Unreadable):
        if form is not None:
            form.read(path, body)
        else:
            debian_copyright.read(body)
