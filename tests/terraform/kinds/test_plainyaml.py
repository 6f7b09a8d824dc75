import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trimtab.terraform.kinds.plainyaml import PlainYamlError, load

KEYS = st.sampled_from(["name", "server", "current-context", "client-key-data", "a.b/c", "user@host"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text("abcXYZ019+/= :-_.#'\"{}[],&*!|>%@`~\n\\é", max_size=12)
)
DOCUMENTS = st.dictionaries(
    KEYS,
    st.recursive(
        LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
    ),
    max_size=4,
)


@given(DOCUMENTS)
def test_what_a_yaml_library_writes_is_read_alike_or_refused(document: dict[str, Any]) -> None:
    text = yaml.safe_dump(document, default_flow_style=False, width=10**6)
    try:
        read = load(text)
    except PlainYamlError:
        return
    assert read == document


@given(DOCUMENTS)
def test_json_is_read_alike(document: dict[str, Any]) -> None:
    assert load(json.dumps(document)) == document


def test_a_kubeconfig_is_read() -> None:
    text = """
    apiVersion: v1
    clusters:
    - cluster:
        certificate-authority-data: QUJD+/=
        server: "https://127.0.0.1:7443"   # here
      name: one
    users:
      -
        name: 'it''s'
        user: {}
    contexts: []
    current-context: one
    preferences:
    """
    read = load("\n".join(line[4:] for line in text.splitlines()))
    assert read == {
        "apiVersion": "v1",
        "clusters": [
            {
                "cluster": {"certificate-authority-data": "QUJD+/=", "server": "https://127.0.0.1:7443"},
                "name": "one",
            }
        ],
        "users": [{"name": "it's", "user": {}}],
        "contexts": [],
        "current-context": "one",
        "preferences": None,
    }


@pytest.mark.parametrize(
    "text", ["a: &x 1", "a: !!str 1", "a: |\n  text", "a: {b: 1}", "a: 1\na: 2", 'a: "b', "a:\n\tb: 1"]
)
def test_what_it_does_not_know_it_refuses(text: str) -> None:
    with pytest.raises(PlainYamlError):
        load(text)
