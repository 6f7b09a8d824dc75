"""Versions of each ecosystem sort as their own tools sort them: dpkg, rpm and packaging are asked."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from packaging.version import Version
from univers import versions as univers

from tests.needs import needs
from trimtab.systems.images.vulnerabilities.versions import LONGEST, CannotCompareError, compare, key, scheme_of

MAVEN = Path("/usr/share/java/maven-artifact-3.x.jar")
MAVEN_PACKAGE = "org.apache.maven.artifact.versioning"
ORDERED = {
    "Debian:12": "1.0~~ 1.0~rc1 1.0 1.0-0.1 1.0-1~deb12u1 1.0-1 1.0-1+b1 1.0-1.1 1.0a 1.0+dfsg-1 1.0.1 1.9 1.10 0:2 1:0.1 10:0",
    "Ubuntu:22.04": "3.0.2-0ubuntu1 3.0.2-0ubuntu1.9 3.0.2-0ubuntu1.10 3.0.2-0ubuntu1.10+esm1",
    "Alpine:v3.19": "1.2_alpha 1.2_alpha1 1.2_beta 1.2_pre2 1.2_rc1 1.2_rc1-r1 1.2 1.2-r0 1.2-r9 1.2-r10 1.2_git20240101 1.2_p1 "
    "1.2_p1-r1 1.2a 1.2.0015 1.2.002 1.2.1 1.2.9 1.2.10 1.10 2 10",
    "Red Hat:9": "1.0~rc1-1.el9 1.0 1.0-1.el9 1.0-1.el9_2 1.0-1.el9_10 1.0-2.el9 1.0^git1-1 1.0a-1 1.0.1-1 1.10 2 1:0.5-1",
    "SUSE:15.5": "1.1.1l-150400.7.7.1 1.1.1l-150500.17.6.1 1.1.1l-150500.17.12.1",
    "PyPI": "1.0.dev1 1.0a1 1.0b2 1.0rc1 1.0 1.0+local 1.0.post1 1.1 1.10 1!0.1",
    "npm": "0.9.9 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1 1.10.0",
    "Go": "v0.0.0-20200101000000-abcdef v0.0.0-20210101000000-abcdef v0.1.0 v1.0.0-rc1 v1.0.0+incompatible v1.0.1 v1.10.0",
    "crates.io": "0.1.0 0.1.1-pre 0.1.1 0.2.0 1.0.0",
    "Maven": "1-alpha-1 1-alpha2 1-beta 1-m3 1-rc1 1-cr2 1-SNAPSHOT 1 1-sp 1-jre 1-1 1.1 1.2.9 1.2.10 2.0",
    "RubyGems": "1.0.0.alpha 1.0.0.beta2 1.0.0-rc1 1.0.0.pre 1.0.0 1.0.0.1 1.0.1 1.10",
}
EQUAL = {
    "Debian:12": ("1.0", "0:1.0", "1.0-0", "1.00"),
    "Red Hat:9": ("1.0-1", "0:1.0-1", "1_0-1", "1.00-1", "1.0.-1"),
    "PyPI": ("1", "1.0", "1.0.0", "v1.0"),
    "npm": ("1.0.0", "v1.0.0", "1.0.0+build", "1.0", "1"),
    "Go": ("1.21.0-rc.2", "go1.21rc2", "v1.21.0-rc.2"),
    "Maven": ("1", "1.0", "1.0.0", "1-ga", "1.final", "1.0.0-release", "1.RELEASE"),
    "RubyGems": ("1", "1.0", "1.0.0"),
}
WRONG = {
    "Debian:12": ("", "1 0", "1.0-", "a:1", "1.0\n", "é", "x" * (LONGEST + 1)),
    "Red Hat:9": ("", "1 0", "1-2-3", "1:2:3"),
    "Alpine:v3.19": ("", "v1", "1.0_foo", "1.0-r", "1..0", "latest"),
    "PyPI": ("", "latest", "1.0-unknown", "1..0"),
    "npm": ("", "latest", "1.2.3.4", "*", "^1.0.0", "1.2.x", "file:../x", "1.0.0_1"),
    "Go": ("(devel)", "unknown", "", "go"),
    "Maven": ("", "1 0", "[1,2)", "${project.version}"),
    "RubyGems": ("", "a", "1..0", ">= 1"),
}


@pytest.mark.parametrize("ecosystem", sorted(ORDERED))
def test_versions_of_an_ecosystem_sort_as_it_says(ecosystem: str) -> None:
    versions = ORDERED[ecosystem].split()
    for (i, left), (j, right) in itertools.product(enumerate(versions), repeat=2):
        assert compare(ecosystem, left, right) == (i > j) - (i < j), (left, right)


@pytest.mark.parametrize("ecosystem", sorted(EQUAL))
def test_versions_that_are_written_differently_may_be_the_same(ecosystem: str) -> None:
    for left, right in itertools.product(EQUAL[ecosystem], repeat=2):
        assert compare(ecosystem, left, right) == 0, (left, right)


@pytest.mark.parametrize(("ecosystem", "version"), [(e, v) for e in sorted(WRONG) for v in WRONG[e]])
def test_what_is_no_version_cannot_be_compared(ecosystem: str, version: str) -> None:
    with pytest.raises(CannotCompareError):
        compare(ecosystem, version, "1")


def test_an_ecosystem_that_is_not_known_cannot_be_compared() -> None:
    with pytest.raises(CannotCompareError, match="Hackage"):
        compare("Hackage", "1", "2")


def _text(alphabet: str, most: int) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=1, max_size=most)


SHAPES = {
    "deb": st.builds("{}1{}0".format, st.sampled_from(["", "0:", "1:"]), _text("019ab.~+-", 8)),
    "rpm": st.builds("{}{}-{}".format, st.sampled_from(["", "1:"]), _text("019ab.~^_", 7), _text("01a.~^", 4)),
    "apk": st.builds(
        "{}{}{}{}".format,
        st.lists(st.sampled_from(["0", "1", "01", "9", "10"]), min_size=1, max_size=4).map(".".join),
        st.sampled_from(["", "a", "b"]),
        st.sampled_from(["", "_rc1", "_alpha", "_p2", "_beta_p1", "_git9"]),
        st.sampled_from(["", "-r0", "-r10"]),
    ),
    "semver": st.builds(
        "{}{}".format,
        st.lists(st.sampled_from(["0", "1", "10"]), min_size=1, max_size=3).map(".".join),
        st.sampled_from(["", "-rc1", "-rc.1", "-rc.1.a", "-1", "-0.2020-a", "+x"]),
    ),
    "maven": st.lists(
        st.sampled_from(["0", "1", "10", "a", "rc", "sp", "foo", "final"]), min_size=1, max_size=4
    ).flatmap(lambda parts: st.sampled_from([".", "-", ""]).map(lambda separator: separator.join(parts))),
    "gem": st.lists(st.sampled_from(["0", "1", "10", "a", "pre", "b2"]), max_size=4).map(lambda p: ".".join(["1", *p])),
    "pypi": st.builds(
        "{}{}".format,
        st.lists(st.sampled_from(["0", "1", "10"]), min_size=1, max_size=3).map(".".join),
        st.sampled_from(["", "a1", "rc2", ".dev1", ".post1", "rc1.dev2", "+l.1"]),
    ),
}


@pytest.mark.parametrize("scheme", sorted(SHAPES))
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_order_of_versions_is_total(scheme: str, data: st.DataObject) -> None:
    versions = data.draw(st.lists(SHAPES[scheme], min_size=3, max_size=3))
    try:
        a, b, c = (key(scheme, version) for version in versions)
    except CannotCompareError:
        assume(False)
    assert (a < b) + (a == b) + (b < a) == 1
    assert (a == b) == (b == a)
    if a <= b and b <= c:
        assert a <= c
    if a == b:
        assert (a < c) == (b < c)


@pytest.mark.parametrize("scheme", sorted(SHAPES))
@settings(max_examples=80, deadline=None)
@given(version=st.text(max_size=40) | st.text("0123456789.:~^-+_ arcpx", max_size=30))
def test_any_text_has_a_key_or_cannot_be_compared(scheme: str, version: str) -> None:
    with contextlib.suppress(CannotCompareError):
        key(scheme, version)


def _pairs(make: Callable[[random.Random], str], tails: str, count: int) -> list[tuple[str, str]]:
    """Random pairs, many of which begin alike."""
    rnd = random.Random(20)
    pairs = []
    for _ in range(count):
        left, right = make(rnd), make(rnd)
        if rnd.random() < 0.4:
            right = left + "".join(rnd.choices(tails, k=rnd.randrange(1, 3)))
        pairs.append((left, right))
    return pairs


def _deb(rnd: random.Random) -> str:
    return (
        rnd.choice(("", "0:", "1:")) + rnd.choice("0123") + "".join(rnd.choices("0019ab.~+-", k=rnd.randrange(6))) + "1"
    )


def _rpm(rnd: random.Random) -> str:
    release = rnd.choice(("", "-" + "".join(rnd.choices("012a.~^", k=rnd.randrange(1, 5)))))
    return rnd.choice(("", "0:", "1:")) + rnd.choice("012a") + "".join(rnd.choices("0019ab.~^+_", k=6)) + release


def test_debian_versions_sort_as_dpkg_sorts_them() -> None:
    needs("dpkg")

    def holds(left: str, relation: str, right: str) -> bool:
        return (
            subprocess.run(["dpkg", "--compare-versions", left, relation, right], capture_output=True).returncode == 0
        )

    for left, right in _pairs(_deb, "~0a.", 100):
        want = -1 if holds(left, "lt", right) else 0 if holds(left, "eq", right) else 1
        assert compare("Debian:12", left, right) == want, (left, right)


def test_rpm_versions_sort_as_rpm_sorts_them() -> None:
    needs("rpm")
    pairs = _pairs(_rpm, "~^0a.", 2000)
    for at in range(0, len(pairs), 500):
        some = pairs[at : at + 500]
        program = "".join(f"print(rpm.vercmp('{left}', '{right}') .. ' ')" for left, right in some)
        done = subprocess.run(["rpm", "--eval", f"%{{lua:{program}}}"], capture_output=True, text=True, check=True)
        assert [compare("Red Hat:9", left, right) for left, right in some] == [int(n) for n in done.stdout.split()]


def _maven(rnd: random.Random) -> str:
    words = (
        "||.Final|-SNAPSHOT|.RELEASE|-jre|-android|.RC1|-rc2|-beta-3|-alpha1|.M2|-M2|.v20231009|-b12|.GA|.SP1|-incubating|-1|"
        ".Beta2|-20231009.1|a|b2|.pre1|-cdh5"
    )
    numbers = rnd.choices(("0", "1", "2", "9", "10"), k=rnd.randrange(1, 5))
    return ".".join(numbers) + rnd.choice(words.split("|"))


def test_maven_versions_sort_as_maven_sorts_them() -> None:
    needs("java", MAVEN)
    rnd = random.Random(20)
    versions = [_maven(rnd) for _ in range(2000)]
    command = ["java", "-cp", f"{MAVEN}:{MAVEN.parent}/commons-lang3.jar", f"{MAVEN_PACKAGE}.ComparableVersion"]
    done = subprocess.run([*command, *versions], capture_output=True, text=True, check=True)
    said = re.findall(r"^ +(\S+) (<|==|>) (\S+)$", done.stdout, re.MULTILINE)
    assert len(said) == len(versions) - 1
    for left, sign, right in said:
        assert compare("Maven", left, right) == {"<": -1, "==": 0, ">": 1}[sign], (left, right)


def test_gem_versions_sort_as_ruby_sorts_them() -> None:
    needs("ruby")

    def make(rnd: random.Random) -> str:
        parts = rnd.choices(("0", "1", "10", "a", "pre", "rc1"), k=rnd.randrange(4))
        return rnd.choice((".", "-")).join([rnd.choice("0129"), *parts])

    pairs = _pairs(make, "01", 2000)
    program = "STDIN.each { |l| a, b = l.split; puts(Gem::Version.new(a) <=> Gem::Version.new(b)) }"
    text = "".join(f"{left} {right}\n" for left, right in pairs)
    done = subprocess.run(["ruby", "-e", program], input=text, capture_output=True, text=True, check=True)
    assert [compare("RubyGems", left, right) for left, right in pairs] == [int(n) for n in done.stdout.split()]


@settings(max_examples=80, deadline=None)
@given(SHAPES["pypi"], SHAPES["pypi"])
def test_python_versions_sort_as_packaging_sorts_them(left: str, right: str) -> None:
    one, other = Version(left), Version(right)
    assert compare("PyPI", left, right) == (one > other) - (one < other)


UNIVERS = {
    "Debian": ("deb", univers.DebianVersion),
    "Red Hat": ("rpm", univers.RpmVersion),
    "RubyGems": ("gem", univers.RubygemsVersion),
}


@pytest.mark.parametrize("ecosystem", sorted(UNIVERS))
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_versions_sort_as_univers_sorts_them(ecosystem: str, data: st.DataObject) -> None:
    scheme, version_class = UNIVERS[ecosystem]
    assert scheme_of(ecosystem) == scheme
    left, right = data.draw(SHAPES[scheme]), data.draw(SHAPES[scheme])
    try:
        ours = compare(ecosystem, left, right)
        one, other = version_class(left), version_class(right)
    except (CannotCompareError, univers.InvalidVersion):
        assume(False)
    assert ours == (one > other) - (one < other), (left, right)
