"""Documents are valid by the rules of their formats, say all that the inventory says, and are the same for the same input."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from hypothesis import given, settings
from hypothesis import strategies as st
from license_expression import get_spdx_licensing
from spdx_tools.spdx.parser.jsonlikedict.json_like_dict_parser import JsonLikeDictParser
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from tests.systems.images.layer_kit import DEBIAN, dpkg_stanza, inventory, tar
from trimtab.systems.images.layers.image import Inventory
from trimtab.systems.images.packages.package import Distro, Package
from trimtab.systems.images.sbom import cyclonedx, licenses, spdx
from trimtab.systems.images.sbom.contents import contents_of
from trimtab.systems.images.sbom.subject import Subject, moment

SUBJECT = Subject(
    repository="registry.example/team/App", tag="1.0", digest="sha256:" + "ab" * 32, platform="linux/arm64/v8"
)
CREATED = datetime(2026, 11, 16, 12, 0, 0, 500, tzinfo=UTC)
NAMESPACE = "https://sbom.example/sha256-abab"
ODD = Inventory(
    distro=Distro("debian", "12", "Debian"),
    packages=(
        Package(
            type="deb", name="bash", version="1:5.2-1", namespace="debian", arch="amd64", path="p", layer="sha256:x"
        ),
        Package(type="npm", name="core", version="7", namespace="@babel", licenses=("MIT OR Apache-2.0",), path="a"),
        Package(type="npm", name="core", version="7", namespace="@babel", licenses=("MIT",), path="b"),
        Package(type="pypi", name="Ünï_códe", version="", licenses=("BSD, or so", "MIT"), path="weird\u2028path"),
        Package(type="rpm", name="glib/../x y", version="2:1-1", licenses=("MIT and GPLv2+",), path="r"),
        Package(type="gem", name="a", version="1", licenses=("GPL-2.0-only WITH Classpath-exception-2.0", "")),
    ),
)


def written(found: Inventory) -> tuple[dict, dict]:
    arguments = {"created": CREATED, "namespace": NAMESPACE, "version": "0.1.0"}
    contents = contents_of(found)
    spdx_document, cyclonedx_document = (form.write(SUBJECT, contents, **arguments) for form in (spdx, cyclonedx))
    return json.loads(spdx_document), json.loads(cyclonedx_document)


def spdx_problems(document: dict) -> list[str]:
    parsed = JsonLikeDictParser().parse(document)
    return [problem.validation_message for problem in validate_full_spdx_document(parsed)]


def cyclonedx_problem(document: dict) -> object:
    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document))


def test_a_document_of_spdx_is_valid_by_spdx_tools():
    assert spdx_problems(written(ODD)[0]) == []


def test_a_document_of_cyclonedx_is_valid_by_its_library():
    assert cyclonedx_problem(written(ODD)[1]) is None


def test_documents_of_an_empty_image_are_valid():
    first, second = written(Inventory())
    assert spdx_problems(first) == []
    assert cyclonedx_problem(second) is None


def test_documents_of_this_machines_packages_are_valid():
    status = Path("/var/lib/dpkg/status")
    body = b"\n\n".join(status.read_bytes().split(b"\n\n")[:60]) + b"\n" if status.exists() else dpkg_stanza("a", "1")
    first, second = written(inventory(tar({"var/lib/dpkg/status": body, "etc/os-release": DEBIAN})))
    assert spdx_problems(first) == []
    assert cyclonedx_problem(second) is None


def test_the_document_describes_the_image_and_the_image_contains_each_package():
    document = written(ODD)[0]
    told = [(r["spdxElementId"], r["relationshipType"], r["relatedSpdxElement"]) for r in document["relationships"]]
    assert told[0] == ("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Image")
    identifiers = [package["SPDXID"] for package in document["packages"]]
    assert told[1:] == [("SPDXRef-Image", "CONTAINS", each) for each in identifiers[1:]]
    assert len(set(identifiers)) == 7


def test_both_documents_name_the_same_packages():
    first, second = written(ODD)
    purls = [package["externalRefs"][0]["referenceLocator"] for package in first["packages"][1:]]
    assert [component["purl"] for component in second["components"] if "purl" in component] == purls
    assert purls[0] == "pkg:deb/debian/bash@1:5.2-1?arch=amd64&distro=debian-12"


def test_the_image_is_named_by_digest_tag_and_architecture():
    second = written(ODD)[1]
    assert second["metadata"]["component"]["purl"] == (
        f"pkg:oci/app@sha256:{'ab' * 32}?arch=arm64&repository_url=registry.example%2Fteam%2FApp&tag=1.0"
    )


def test_a_package_says_where_it_was_found():
    first, second = written(ODD)
    assert first["packages"][1]["sourceInfo"] == "named by /p in layer sha256:x"
    assert second["components"][0]["properties"] == [
        {"name": "trimtab:path", "value": "/p"},
        {"name": "trimtab:layer", "value": "sha256:x"},
    ]


def test_the_same_input_gives_the_same_bytes():
    arguments = {"created": CREATED, "namespace": NAMESPACE}
    for form in (spdx, cyclonedx):
        assert form.write(SUBJECT, contents_of(ODD), **arguments) == form.write(SUBJECT, contents_of(ODD), **arguments)


def test_the_moment_is_written_in_utc_with_seconds():
    first, second = written(ODD)
    assert first["creationInfo"]["created"] == second["metadata"]["timestamp"] == "2026-11-16T12:00:00Z"


@pytest.mark.parametrize(
    ("declared", "expression"),
    [
        ((), "NOASSERTION"),
        (("",), "NOASSERTION"),
        (("MIT",), "MIT"),
        (("MIT", "MIT"), "MIT"),
        (("MIT OR GPL-2.0-only", "ISC"), "(MIT OR GPL-2.0-only) AND ISC"),
        (("GPL-2.0+",), "GPL-2.0+"),
        (("(MIT)",), "(MIT)"),
    ],
)
def test_declared_expressions_stay_as_they_are(declared, expression):
    assert licenses.declared(declared) == (expression, {})


@pytest.mark.parametrize(
    "text",
    ["BSD", "MIT and ISC", "MIT OR", "(MIT", "MIT)", "MIT ISC", "MIT WITH ISC", "NOASSERTION", "AND", "()", "M!T"],
)
def test_words_that_are_no_expression_become_a_reference_with_their_text(text):
    expression, texts = licenses.declared((text,))
    assert re.fullmatch(r"LicenseRef-[A-Za-z0-9.-]+", expression)
    assert texts == {expression: text}


def test_every_identifier_in_the_table_is_known_to_spdx():
    known = get_spdx_licensing()
    unknown = [each for each in licenses._IDS if known.validate(each).errors]
    unknown += [each for each in licenses._EXCEPTIONS if known.validate(f"MIT WITH {each}").errors]
    assert unknown == []


texts = st.text(max_size=20)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.builds(
            Package,
            type=st.sampled_from(["deb", "npm", "maven", "golang"]),
            name=st.text(min_size=1, max_size=20),
            version=texts,
            namespace=texts,
            licenses=st.lists(texts, max_size=2).map(tuple),
            path=texts,
        ),
        max_size=3,
        unique_by=lambda each: (each.type, each.namespace, each.name, each.version, each.path),
    )
)
def test_whatever_packages_say_the_documents_are_valid(packages):
    first, second = written(Inventory(packages=tuple(packages)))
    assert spdx_problems(first) == []
    assert cyclonedx_problem(second) is None


def test_the_year_of_a_moment_has_four_digits():
    assert moment(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00Z"
