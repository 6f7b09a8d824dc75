"""Keys: equal questions have equal ones, wherever they were asked; others have others."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.hub.cache.keys import key_of, owner
from trimtab.hub.contract import ApplyOptions, GetOptions, ListOptions, Options

TEXT = st.sampled_from(["", "default", "a", "b"])
LISTS = st.builds(
    ListOptions,
    organization=TEXT,
    project=TEXT,
    include_lineage=st.booleans(),
    all_projects=st.booleans(),
    labels=TEXT,
    limit=st.sampled_from([0, 1, 500]),
    after=st.none() | st.tuples(TEXT, TEXT),
)


class Longer(ListOptions, frozen=True, kw_only=True):
    """Options as somebody may add them: their defaults are no singletons."""

    limit: int = 1000
    share: float = 0.5
    order: str = "by name"


def wired(options: Options) -> Options:
    """As another process has it: every field written out, so that every string and number is a new one."""
    plain = {name: getattr(options, name) for name in options.__struct_fields__}
    named = dict(zip(options.__struct_encode_fields__, plain.values(), strict=True))
    return msgspec.json.decode(msgspec.json.encode(named), type=type(options))


@pytest.mark.parametrize("options", [GetOptions(project="p"), ListOptions(), ApplyOptions(user="u"), Longer()])
def test_a_default_that_came_over_a_wire_is_the_default(options: Options) -> None:
    assert wired(options) == options
    assert wired(options).key() == options.key()
    assert msgspec.json.decode(options.key(), type=type(options)) == options


@given(LISTS, LISTS)
def test_options_have_one_key_just_when_they_are_equal(one: ListOptions, other: ListOptions) -> None:
    assert (wired(one).key() == other.key()) == (one == other)


@given(LISTS, LISTS, TEXT, TEXT)
def test_questions_have_one_key_just_when_they_are_equal_but_for_lineage(
    one: ListOptions, other: ListOptions, name: str, another: str
) -> None:
    plain = [msgspec.structs.replace(each, include_lineage=False) for each in (one, other)]
    same = plain[0] == plain[1] and name == another
    assert (key_of("t", name, wired(one)) == key_of("t", another, other)) == same
    assert key_of("t", name, one) != key_of("u", name, one)


def test_who_owns_a_key_does_not_depend_on_the_order_of_replicas() -> None:
    assert owner(b"key", ["a", "b", "c"]) == owner(b"key", ["c", "a", "b"])
    assert owner(b"key", []) == ""
    assert {owner(f"{number}".encode(), ["a", "b", "c"]) for number in range(50)} == {"a", "b", "c"}
