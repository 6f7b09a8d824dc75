"""Scores of CVSS vectors are those that FIRST publishes; labels come from the source that is named."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.images.vulnerabilities import cvss3, cvss4, severity
from trimtab.systems.images.vulnerabilities.advisory import read
from trimtab.systems.images.vulnerabilities.severity import Severity, of_score, of_vectors

# From the examples that FIRST publishes with the specification.
V3 = [
    ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", 9.8),
    ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H", 10.0),
    ("CVSS:3.0/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N", 6.1),
    ("CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:C/C:L/I:L/A:N", 6.4),
    ("CVSS:3.0/AV:N/AC:H/PR:N/UI:R/S:U/C:L/I:N/A:N", 3.1),
    ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N", 7.5),
    ("CVSS:3.1/AV:L/AC:L/PR:L/UI:N/S:U/C:H/I:H/A:H", 7.8),
    ("CVSS:3.1/AV:P/AC:L/PR:N/UI:N/S:U/C:N/I:H/A:N", 4.6),
    ("CVSS:3.1/AV:N/AC:L/PR:H/UI:N/S:C/C:H/I:H/A:H", 9.1),
    ("CVSS:3.1/AV:N/AC:H/PR:N/UI:N/S:U/C:H/I:H/A:N", 7.4),
    ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N", 0.0),
    ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H/E:P/RL:O/RC:C", 9.8),
]
V4 = [
    ("CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:H/SI:H/SA:H", 10.0),
    ("CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N", 9.3),
    ("CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:L/VI:L/VA:L/SC:N/SI:N/SA:N", 6.9),
    ("CVSS:4.0/AV:L/AC:L/AT:P/PR:L/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N", 7.3),
    ("CVSS:4.0/AV:N/AC:L/AT:P/PR:N/UI:P/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N", 7.7),
    ("CVSS:4.0/AV:N/AC:L/AT:P/PR:N/UI:N/VC:H/VI:L/VA:L/SC:N/SI:N/SA:N", 8.3),
    ("CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:A/VC:N/VI:N/VA:N/SC:L/SI:L/SA:N", 5.1),
    ("CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:N/VI:N/VA:N/SC:N/SI:N/SA:N", 0.0),
]


@pytest.mark.parametrize(("vector", "score"), V3)
def test_the_base_score_of_version_3(vector: str, score: float) -> None:
    assert cvss3.base_score(vector) == score


@pytest.mark.parametrize(("vector", "score"), V4)
def test_the_base_score_of_version_4(vector: str, score: float) -> None:
    assert cvss4.base_score(vector) == score


def test_a_worse_metric_never_lowers_a_score_of_version_4() -> None:
    metrics = {
        "AV": "PLAN",
        "AC": "HL",
        "AT": "PN",
        "PR": "HLN",
        "UI": "APN",
        "VC": "NLH",
        "VI": "NLH",
        "VA": "NLH",
        "SC": "NLH",
    }
    scores = {
        values: cvss4.base_score(
            "CVSS:4.0/" + "/".join(f"{m}:{v}" for m, v in zip(metrics, values, strict=True)) + "/SI:N/SA:N"
        )
        for values in itertools.product(*metrics.values())
    }
    orders = list(metrics.values())
    for values, score in scores.items():
        for at, value in enumerate(values):
            place = orders[at].index(value)
            if place + 1 < len(orders[at]):
                worse = (*values[:at], orders[at][place + 1], *values[at + 1 :])
                assert scores[worse] >= score, (values, worse)


@pytest.mark.parametrize(
    "vector",
    ["", "9.8", "CVSS:3.1/AV:N", "CVSS:4.0/AV:N", "CVSS:3.1/" + "AV:N/" * 50, "CVSS:2.0/AV:N/AC:L/Au:N/C:P/I:P/A:P"],
)
def test_a_vector_that_is_not_whole_has_no_score(vector: str) -> None:
    for score in (cvss3.base_score, cvss4.base_score):
        with pytest.raises(ValueError, match="CVSS"):
            score(vector)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(["CVSS:3.1/", "CVSS:4.0/", ""]), st.text("AVCNLHPRUISX:/", max_size=60))
def test_no_text_breaks_the_scores(prefix: str, text: str) -> None:
    made = of_vectors([("CVSS_V3", prefix + text), ("CVSS_V4", prefix + text)])
    assert made is None or made.label in severity.LABELS


@pytest.mark.parametrize(
    ("score", "label"), [(0.0, "Low"), (3.9, "Low"), (4.0, "Medium"), (6.9, "Medium"), (7.0, "High"), (9.0, "Critical")]
)
def test_the_label_of_a_score(score: float, label: str) -> None:
    assert of_score(score) == label


def _severities(**more: Any) -> tuple[Severity, Severity | None]:
    affected = {"package": {"ecosystem": more.pop("ecosystem", "npm"), "name": "x"}, "versions": ["1"]}
    affected |= more.pop("affected", {})
    document = {"id": "A-1", "modified": "2024-01-01T00:00:00Z", "affected": [affected]} | more
    made = read(json.dumps(document).encode())
    assert made.advisory is not None
    ((one,),) = made.affected.values()
    return made.advisory.severity, one.severity


V3_VECTOR = {"type": "CVSS_V3", "score": V3[0][0]}
V4_VECTOR = {"type": "CVSS_V4", "score": V4[2][0]}


@pytest.mark.parametrize(
    ("document", "want"),
    [
        ({"severity": [V3_VECTOR]}, Severity("Critical", "CVSS_V3", 9.8, V3[0][0])),
        ({"severity": [V3_VECTOR, V4_VECTOR]}, Severity("Medium", "CVSS_V4", 6.9, V4[2][0])),
        ({"severity": [V4_VECTOR, V3_VECTOR]}, Severity("Medium", "CVSS_V4", 6.9, V4[2][0])),
        (
            {"severity": [V3_VECTOR], "database_specific": {"severity": "LOW"}},
            Severity("Critical", "CVSS_V3", 9.8, V3[0][0]),
        ),
        (
            {"severity": [{"type": "CVSS_V3", "score": "rubbish"}], "database_specific": {"severity": "MODERATE"}},
            Severity("Medium", "database_specific.severity"),
        ),
        ({"database_specific": {"severity": ["HIGH"]}}, Severity()),
        ({"database_specific": ["HIGH"]}, Severity()),
        (
            {"ecosystem": "AlmaLinux:9", "summary": "Important: bash security update"},
            Severity("High", "title of the advisory"),
        ),
        ({"ecosystem": "npm", "summary": "Critical: of all packages"}, Severity()),
        ({"severity": [{"type": "Ubuntu", "score": "negligible"}]}, Severity("Low", "Ubuntu priority")),
        ({}, Severity()),
    ],
)
def test_the_severity_of_an_advisory_names_its_source(document: dict[str, Any], want: Severity) -> None:
    assert _severities(**document)[0] == want


@pytest.mark.parametrize(
    ("affected", "want"),
    [
        ({"ecosystem_specific": {"urgency": "unimportant"}}, Severity("Low", "Debian urgency")),
        ({"ecosystem_specific": {"urgency": "high**"}}, Severity("High", "Debian urgency")),
        ({"ecosystem_specific": {"urgency": "not yet assigned"}}, None),
        ({"database_specific": {"severity": "Important"}}, Severity("High", "database_specific.severity")),
        ({"severity": [{"type": "Ubuntu", "score": "medium"}]}, Severity("Medium", "Ubuntu priority")),
        ({"severity": [V3_VECTOR]}, Severity("Critical", "CVSS_V3", 9.8, V3[0][0])),
    ],
)
def test_a_distribution_has_its_own_word_for_its_package(affected: dict[str, Any], want: Severity | None) -> None:
    assert _severities(ecosystem="Debian:12", affected=affected)[1] == want


def test_labels_sort_with_the_worst_first() -> None:
    assert sorted(["Low", "Unknown", "Critical", "Medium", "High"], key=severity.rank) == list(severity.LABELS)
