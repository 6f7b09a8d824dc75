"""Where to look a package up in OSV data: the ecosystem's name with its release, and the name that advisories use.

Distributions name source packages (Debian, Ubuntu, Alpine's origin), binary packages (AlmaLinux, Red Hat) or both; so an
RPM is looked up by both. `stored` brings the names of ecosystems that advisories use to the short form that `lookups`
asks for: advisories of Ubuntu, Red Hat and SUSE name products, of which many share a release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from trimtab.systems.images.packages.package import OS_TYPES, Distro, Package


class Lookup(NamedTuple):
    """One question to a database."""

    ecosystem: str
    name: str
    version: str


class NoEcosystemError(Exception):
    """OSV data cannot have this package; the text says why."""


def lookups(package: Package, distro: Distro) -> tuple[Lookup, ...]:
    """What to ask for a package. NoEcosystemError for a kind of package or a distribution that OSV data does not cover."""
    if package.type not in OS_TYPES:
        return (Lookup(_language(package.type), language_name(package), package.version),)
    ecosystem = distribution(package, distro)
    source, source_version = _source(package)
    if package.type == "rpm" and source != package.name:
        return (
            Lookup(ecosystem, package.name, package.version),
            Lookup(ecosystem, source, source_version),
        )
    return (Lookup(ecosystem, source, source_version),)


def places(packages: Iterable[Package], distro: Distro) -> frozenset[tuple[str, str]]:
    """All (ecosystem, name) that a scan asks for, and each ecosystem with an empty name: a scan may give another report
    when one of them is in `database.changed_packages`."""
    found: set[tuple[str, str]] = set()
    for package in packages:
        try:
            asked = lookups(package, distro)
        except NoEcosystemError:
            continue
        for ecosystem, name, _ in asked:
            found.add((ecosystem, name))
            found.add((ecosystem, ""))
    return frozenset(found)


def language_name(package: Package) -> str:
    """The name that a language's advisories use."""
    name, namespace = package.name, package.namespace
    if package.type == "pypi":
        return normalized_python(name)
    if package.type == "maven":
        return f"{namespace}:{name}" if namespace and ":" not in name else name
    if package.type == "golang" and name in ("stdlib", "std", "go"):
        return "stdlib"
    if namespace and package.type in ("npm", "golang") and not name.startswith(namespace):
        return f"{namespace}/{name}"
    return name


def normalized_python(name: str) -> str:
    """As PEP 503 compares names of projects."""
    return _DASHES.sub("-", name).lower()


def distribution(package: Package, distro: Distro) -> str:
    """`Debian:12`, `Ubuntu:22.04`, `Alpine:v3.19`, `Rocky Linux:9` …, in the stored form. NoEcosystemError."""
    name = distro.id.lower()
    major = distro.version.partition(".")[0]
    minor = ".".join(distro.version.split(".")[:2])
    if name in ("wolfi", "chainguard"):
        return name.capitalize()
    if not distro.version and name != "opensuse-tumbleweed":
        raise NoEcosystemError(f"the image does not say which release of {distro.id or 'its distribution'} it is")
    if name == "ubuntu":
        return f"Ubuntu:Pro:{minor}" if "esm" in package.version else f"Ubuntu:{minor}"
    if name == "alpine":
        match = _NUMBERS.match(minor)
        return f"Alpine:v{match[0]}" if match else "Alpine:edge"
    if name in _BY_MAJOR:
        return f"{_BY_MAJOR[name]}:{major}"
    if name in ("sles", "sled", "sle_hpc", "sles_sap", "suse"):
        return f"SUSE:{minor}"
    if name in ("opensuse-leap", "opensuse"):
        return f"openSUSE:{minor}"
    if name == "opensuse-tumbleweed":
        return "openSUSE:Tumbleweed"
    raise NoEcosystemError(f"OSV has no data for the distribution {distro.id or 'unknown'}")


def stored(ecosystem: str) -> str:
    """The name under which an advisory's ecosystem is kept: without products that share a release."""
    if ecosystem.startswith("Ubuntu:"):
        return ecosystem.removesuffix(":LTS")
    if ecosystem.startswith("Red Hat:"):
        match = _RED_HAT.match(ecosystem)
        return f"Red Hat:{match[1]}" if match else ecosystem
    if ecosystem.startswith("SUSE:"):
        match = _SUSE.search(ecosystem)
        return f"SUSE:{match[1]}.{match[2] or 0}" if match else ecosystem
    if ecosystem.startswith("openSUSE:Leap "):
        return f"openSUSE:{ecosystem[14:]}"
    if ecosystem.startswith(("Rocky Linux:", "AlmaLinux:")):
        return ecosystem.partition(".")[0]
    if ecosystem.startswith(("Maven:", "Go:", "PyPI:", "npm:")):
        return ecosystem.partition(":")[0]  # a mirror of the same names
    return ecosystem


def _language(kind: str) -> str:
    try:
        return _LANGUAGES[kind]
    except KeyError:
        raise NoEcosystemError(f"packages of type {kind} are not looked up") from None


def _source(package: Package) -> tuple[str, str]:
    """Name and version of the source package; an RPM may name its file, `bash-5.1.8-6.el9.src.rpm`."""
    if not package.source:
        return package.name, package.version
    match = _SOURCE_RPM.fullmatch(package.source)
    if match is None:
        return package.source, package.source_version or package.version
    epoch, colon, _ = package.version.partition(":")
    return match[1], f"{epoch}{colon}{match[2]}" if colon else match[2]


_LANGUAGES = {
    "pypi": "PyPI",
    "npm": "npm",
    "golang": "Go",
    "maven": "Maven",
    "gem": "RubyGems",
    "cargo": "crates.io",
}
_BY_MAJOR = {
    "debian": "Debian",
    "rocky": "Rocky Linux",
    "almalinux": "AlmaLinux",
    "rhel": "Red Hat",
    "redhat": "Red Hat",
    "centos": "Red Hat",
    "mageia": "Mageia",
}
_DASHES = re.compile(r"[-_.]+")
_NUMBERS = re.compile(r"[0-9]+\.[0-9]+")
_RED_HAT = re.compile(r"Red Hat:(?:enterprise_linux|rhel):([0-9]+)(?:\.[0-9]+)?(?::|$)")
_SUSE = re.compile(r" ([0-9]{1,3})(?: SP([0-9]{1,2}))?(?:-[A-Z]+)?$")
_SOURCE_RPM = re.compile(r"(.+)-([^-]+-[^-]+)\.(?:no)?src\.rpm")
