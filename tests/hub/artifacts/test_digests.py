"""Files in specs are found wherever the class has them, and their digests survive writes that know nothing of them."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hub.artifacts.papers import Paper
from trimtab.hub.artifacts.digests import digests, file_paths, files_in, keep_digests, set_digest

FILES = file_paths(Paper)
NAMES = st.sampled_from(["a", "b/c", "d.yaml", "e"])
DIGESTS = st.sampled_from([f"sha256:{char * 64}" for char in "0123"])


@st.composite
def file(draw: st.DrawFn) -> dict[str, Any]:
    made: dict[str, Any] = {"name": draw(NAMES)}
    if draw(st.booleans()):
        made["digest"] = draw(DIGESTS)
    if draw(st.booleans()):
        made["sensitive"] = True
    return made


@st.composite
def papers(draw: st.DrawFn) -> dict[str, Any]:
    """Documents in which a name has one digest, as the endpoint keeps it."""
    spec: dict[str, Any] = {"note": "n"}
    if draw(st.booleans()):
        spec["cover"] = draw(file())
    spec["files"] = draw(st.lists(file(), max_size=3))
    spec["byLanguage"] = draw(st.dictionaries(st.sampled_from(["en", "de"]), file()))
    spec["chapters"] = [{"title": "t", "textFile": each} for each in draw(st.lists(file(), max_size=2))]
    document = {"metadata": {"name": "x"}, "spec": spec}
    known = digests(document, FILES)
    for each in files_in(document, FILES):
        if each["name"] in known:
            each["digest"] = known[each["name"]]
    return document


def test_every_place_of_a_file_is_found_by_its_name_on_the_wire() -> None:
    assert set(FILES.places) == {
        ("spec", "cover"),
        ("spec", "files", "*"),
        ("spec", "byLanguage", "*"),
        ("spec", "chapters", "*", "textFile"),
    }


@given(papers(), papers())
def test_a_write_neither_loses_nor_invents_a_digest(new: dict[str, Any], old: dict[str, Any]) -> None:
    known = digests(old, FILES)
    before = copy.deepcopy(old)
    keep_digests(new, old, FILES)
    assert old == before
    for each in files_in(new, FILES):
        assert each.get("digest") == known.get(each["name"])
    again = copy.deepcopy(new)
    keep_digests(again, old, FILES)
    assert again == new


@given(papers())
def test_a_new_object_has_no_digests_whatever_it_says(new: dict[str, Any]) -> None:
    keep_digests(new, None, FILES)
    assert digests(new, FILES) == {}


@given(papers(), NAMES, DIGESTS)
def test_a_digest_is_set_wherever_the_name_is_and_nowhere_else(
    document: dict[str, Any], name: str, digest: str
) -> None:
    before = digests(document, FILES)
    named = name in {each["name"] for each in files_in(document, FILES)}
    assert set_digest(document, FILES, name, digest) is named
    assert digests(document, FILES) == ({**before, name: digest} if named else before)
    assert set_digest(document, FILES, name, None) is named
    assert name not in digests(document, FILES)


@pytest.mark.parametrize("spec", [None, [], "x", {"files": {"a": 1}}, {"files": [1, None, {"name": 3}]}])
def test_documents_of_another_shape_have_no_files(spec: Any) -> None:
    assert files_in({"spec": spec}, FILES) == []
