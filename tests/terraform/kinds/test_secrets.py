"""Secrets that are only written: what others do to them is seen, though Terraform never reads them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.terraform.binary import can
from tests.terraform.kinds.others import changed
from tests.terraform.kinds.terraforming import Terraform
from trimtab.terraform.kinds.api import Api


def secret(data: dict[str, str] | None = None, **words: str) -> dict[str, Any]:
    whole: dict[str, Any] = {"metadata": {"name": "it"}, "string_data": words}
    return {"trimtab_core_secret": {"it": whole if data is None else {**whole, "data": data}}}


@pytest.mark.row(68)
def test_a_secret_that_somebody_changed_is_seen_and_written_again(tf: Terraform, api: Api, project: str) -> None:
    can("write-only attributes")
    path = f"/api/v1/namespaces/{project}/secrets/it"
    tf.apply(secret(word="xyzzy", other="plugh"))
    changed(api, path, {"metadata": {"labels": {"theirs": "x"}}, "data": {"theirs": "eA=="}})
    tf.unchanged()
    changed(api, path, {"data": {"word": "c3RvbGVu"}})
    told = tf.plan()
    assert "will be updated in-place" in told
    assert f'Somebody else changed string_data["word"] of Secret {project}/it' in told
    tf.apply()
    assert api.get(path)["data"] == {"word": "eHl6enk=", "other": "cGx1Z2g=", "theirs": "eA=="}
    tf.unchanged()
    changed(api, path, {"data": {"word": None}})
    assert "will be updated in-place" in tf.plan()
    tf.apply()
    assert api.get(path)["data"]["word"] == "eHl6enk="
    tf.unchanged()
    for file in tf.folder.glob("terraform.tfstate*"):
        text = file.read_text()
        assert not [word for word in ("xyzzy", "eHl6enk", "plugh", "cGx1Z2g", "c3RvbGVu") if word in text]


def test_a_key_that_leaves_a_secret_leaves_the_object(tf: Terraform, api: Api, project: str) -> None:
    can("write-only attributes")
    path = f"/api/v1/namespaces/{project}/secrets/it"
    tf.apply(secret({"shown": "eA=="}, word="xyzzy", other="plugh"))
    tf.unchanged()
    assert tf.state("trimtab_core_secret.it")["data"] == {"shown": "eA=="}
    tf.apply(secret({"shown": "eA=="}, word="xyzzy"))
    assert api.get(path)["data"] == {"shown": "eA==", "word": "eHl6enk="}
    tf.unchanged()


def test_a_key_is_not_given_both_plain_and_encoded(tf: Terraform) -> None:
    can("write-only attributes")
    tf.write(secret({"word": "eA==", "shown": "eA=="}, word="xyzzy", other="plugh"))
    told = tf.run("validate", fails=True)
    assert 'string_data["word"] is in data too, and a Secret has one value for a key.' in told
    assert told.count("is in data too") == 1
    tf.write(secret({"shown": "eA=="}, word="xyzzy"))
    tf.run("validate")
