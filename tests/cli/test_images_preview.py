"""`trimtab images preview`: what a Registry would select, from a real registry that it lists itself."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pty
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Program
from trimtab.lab import registry_images as made
from trimtab.lab.registry import Registry as LabRegistry
from trimtab.testing.ports import free_ports

TAGS = {
    "team/app": ("1.0", "1.1", "2.0-rc1", "latest"),
    "team/web": ("1.0", "nightly"),
    "tools/scan": ("0.9",),
}
FILTERS = [
    {
        "repository": "team/*",
        "matchConditions": [
            {"name": "released", "expression": "tag.matches('^[0-9.]+$') || tag == 'latest'"},
            {"name": "not-latest", "expression": "tag != 'latest'"},
        ],
    },
    {
        "repository": "team/web",
        "matchOperator": "Or",
        "matchConditions": [
            {"name": "two", "expression": "tag.startsWith('2.')"},
            {"name": "three", "expression": "tag.startsWith('3.')"},
        ],
    },
    {
        "repository": "tools/scan",
        "matchConditions": [{"name": "whole", "expression": "int(tag) > 0"}],
    },
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabRegistry]:
    (port,) = free_ports(1)
    with LabRegistry(tmp_path_factory.mktemp("registry"), port) as registry:
        with ThreadPoolExecutor(1) as thread:  # a loop of its own
            thread.submit(asyncio.run, _push(registry)).result()
        yield registry


async def _push(registry: LabRegistry) -> None:
    image = made.image([made.layer({"etc/os-release": b"ID=debian\n"})])
    async with made.Pusher(registry.url) as pusher:
        for repository, tags in TAGS.items():
            for tag in tags:
                await pusher.push(repository, tag, image)


def manifest(lab: LabRegistry, **spec: Any) -> str:
    document = {
        "apiVersion": "images.trimtab.dev/v1alpha1",
        "kind": "Registry",
        "metadata": {"name": "lab"},
        "spec": {"uri": lab.url, "plainHTTP": True, **spec},
    }
    return json.dumps(document)


def test_the_tags_are_counted_by_what_left_them_out(images: Program, lab: LabRegistry) -> None:
    assert images("apply", "-f", "-", stdin=manifest(lab, filters=FILTERS)).code == 0
    ran = images("images", "preview", "lab")
    assert ran.code == 0, ran.err
    assert ran.lines == [
        "REPOSITORY   TAGS   SELECTED   ERRORS   LEFT OUT BY                 SELECTED TAGS",
        "team/app     4      2          0        1 not-latest, 1 released    1.0, 1.1",
        "team/web     2      0          0        1 released, 1 two | three",
        "tools/scan   1      0          1",
        "2 of 7 tags in 3 repositories would be discovered",
        next(line for line in ran.lines if line.startswith("tools/scan:0.9 would be skipped: condition whole: ")),
    ]
    assert "registry/lab: 3 of 3: tags" in ran.err


def test_a_manifest_that_is_not_applied_is_previewed(images: Program, lab: LabRegistry) -> None:
    images.write("registry.yaml", manifest(lab))
    ran = images("images", "preview", "-f", "registry.yaml", "--tags", "1")
    assert ran.code == 0, ran.err
    assert ran.lines[1].split() == ["team/app", "4", "4", "0", "1.0", "and", "3", "more"]
    assert images("get", "registry", "lab").code == 3


def test_a_preview_in_json_names_as_many_tags_as_asked_for(images: Program, lab: LabRegistry) -> None:
    images.write("registry.yaml", manifest(lab, filters=FILTERS, repositories=["team/app"]))
    ran = images("images", "preview", "-f", "registry.yaml", "-o", "json", "--tags", "9")
    document = json.loads(ran.out)
    assert document["repositories"] == [
        {
            "repository": "team/app",
            "tags": 4,
            "selected": 2,
            "leftOut": {"not-latest": 1, "released": 1},
            "failed": 0,
            "firstSelected": ["1.0", "1.1"],
            "filterErrors": [],
            "error": "",
        }
    ]


def test_a_repository_that_is_not_there_is_named_and_hides_no_other(images: Program, lab: LabRegistry) -> None:
    images.write("registry.yaml", manifest(lab, repositories=["team/app", "team/gone"]))
    ran = images("images", "preview", "-f", "registry.yaml")
    assert ran.code == 0
    assert ran.lines[2].split() == ["team/gone", "-", "-", "-"]
    assert any(line.startswith("not read: tags of ") and "team/gone" in line for line in ran.lines)


def test_of_a_catalogue_what_is_named_and_missing_is_said(images: Program, lab: LabRegistry) -> None:
    spec = {"repositories": ["team/app", "team/gone"], "catalogType": "OCIDistribution"}
    images.write("registry.yaml", manifest(lab, **spec))
    ran = images("images", "preview", "-f", "registry.yaml")
    assert ran.code == 0
    assert "team/gone is named and not in the catalogue" in ran.lines


def test_an_expression_that_does_not_compile_is_named_by_its_place(images: Program, lab: LabRegistry) -> None:
    broken = [{"matchConditions": [{"name": "x", "expression": "nobody == 1"}]}]
    images.write("registry.yaml", manifest(lab, filters=broken))
    ran = images("images", "preview", "-f", "registry.yaml")
    assert ran.code == 1
    assert "registry/lab: spec.filters[0].matchConditions[0].expression: " in ran.err


def test_a_registry_that_is_not_there_is_one_line(images: Program, lab: LabRegistry) -> None:
    (port,) = free_ports(1)
    images.write("registry.yaml", manifest(lab, uri=f"http://127.0.0.1:{port}"))
    ran = images("images", "preview", "-f", "registry.yaml")
    assert ran.code == 1
    assert f"error: registry/lab: catalogue of 127.0.0.1:{port}: " in ran.err


def test_a_manifest_without_a_registry_says_what_is_there(images: Program, lab: LabRegistry) -> None:
    images.write("registry.yaml", manifest(lab))
    ran = images("images", "preview", "other", "-f", "registry.yaml")
    assert ran.code == 3
    assert "registry.yaml has no Registry other; there are: lab" in ran.err
    images.write("bad.yaml", manifest(lab).replace('"plainHTTP": true', '"plainHTTP": "yes"'))
    assert "is no valid Registry" in images("images", "preview", "-f", "bad.yaml").err
    assert images("images", "preview").code == 2


def test_a_login_is_read_from_its_secret_and_never_shown(images: Program, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with LabRegistry(tmp_path / "registry", port, logins={"reader": "lab-password"}) as closed:
        images.write("registry.yaml", manifest(closed, authSecret="login", repositories=["team/app"]))
        ran = images("images", "preview", "-f", "registry.yaml")
        assert ran.code == 1
        assert "registry/lab: spec.authSecret: " in ran.err
        login = {"auth": base64.b64encode(b"reader:lab-password").decode()}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "login"},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": json.dumps({"auths": {closed.host: login}})},
        }
        assert images("apply", "-f", "-", stdin=json.dumps(secret)).code == 0
        ran = images("images", "preview", "-f", "registry.yaml")
        assert "tags of" in ran.out + ran.err  # it is let in, and there is no such repository
        assert "lab-password" not in ran.out + ran.err


def test_a_terminal_has_a_bar(images: Program, lab: LabRegistry) -> None:
    images.write("registry.yaml", manifest(lab))
    ours, its = pty.openpty()
    process = images.installed("images", "preview", "-f", "registry.yaml", stderr=its)
    os.close(its)
    out, _ = process.communicate(timeout=30)
    assert "7 of 7 tags" in out
    assert b"registry/lab" in os.read(ours, 65536)
    os.close(ours)
