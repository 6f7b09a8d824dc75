"""gNMI paths: reading them, sending them, and finding what was answered."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.discovery.identify import gnmi_messages as messages
from trimtab.systems.discovery.identify.gnmi_paths import Element, Path, decode, find, parse, to_message

E = Element


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("platform/chassis/type", Path((E("platform"), E("chassis"), E("type")))),
        ("/platform/chassis/", Path((E("platform"), E("chassis")))),
        ("", Path(())),
        ("/", Path(())),
        ("control[slot=A]/x", Path((E("control", (("slot", "A"),)), E("x")))),
        ("if[name=MgmtEth0/RP0/CPU0/0]/x", Path((E("if", (("name", "MgmtEth0/RP0/CPU0/0"),)), E("x")))),
        ("a[b=1][c=2]", Path((E("a", (("b", "1"), ("c", "2"))),))),
        ("a[b=x=y]", Path((E("a", (("b", "x=y"),)),))),
        ("a[b=]", Path((E("a", (("b", ""),)),))),
        (r"a[b=[x\]]", Path((E("a", (("b", "[x]"),)),))),
        (r"a[b=\\]", Path((E("a", (("b", "\\"),)),))),
        (r"a\/b/c", Path((E("a/b"), E("c")))),
        ("openconfig-system:system/state", Path((E("openconfig-system:system"), E("state")))),
        ("openconfig:/system/state", Path((E("system"), E("state")), "openconfig")),
        ("component[name=Rack 0]", Path((E("component", (("name", "Rack 0"),)),))),
    ],
)
def test_a_path_is_read(text: str, path: Path) -> None:
    assert parse(text) == path


@pytest.mark.parametrize("text", ["a//b", "a[b", "a[b]", "a]b", "[a=b]", "a[b=c]d", "a[=c]", "a\\", "/" * 3])
def test_what_is_no_path_says_so(text: str) -> None:
    with pytest.raises(ValueError, match="is not a gNMI path"):
        parse(text)


def test_a_path_of_too_many_elements_is_none() -> None:
    with pytest.raises(ValueError, match="more than 64"):
        parse("a/" * 65)


names = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=8)
elements = st.builds(Element, names, st.lists(st.tuples(names, st.text(max_size=8)), max_size=3).map(tuple))


def written(path: Path) -> str:
    """With every character that has a meaning escaped."""

    def safe(text: str) -> str:
        return "".join("\\" + each if each in "\\/[]=" else each for each in text)

    steps = [
        safe(each.name) + "".join(f"[{safe(key)}={safe(value)}]" for key, value in each.keys) for each in path.elements
    ]
    return "/" + "/".join(steps)


@settings(max_examples=200, deadline=None)
@given(st.lists(elements, max_size=5).map(tuple).map(Path))
def test_a_path_that_is_written_is_read_again(path: Path) -> None:
    assert parse(written(path)) == path


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab/[]=\\:", max_size=24))
def test_any_text_is_a_path_or_is_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse(text)


def test_names_of_modules_are_sent_or_not() -> None:
    path = parse("openconfig:/oc:system[oc:name=a:b]/state")
    kept, stripped = to_message(path, modules=True), to_message(path, modules=False)
    assert (kept.origin, [each.name for each in kept.elem]) == ("openconfig", ["oc:system", "state"])
    assert [each.name for each in stripped.elem] == ["system", "state"]
    assert dict(stripped.elem[0].key) == {"oc:name": "a:b"}


def answer(*updates: tuple[str, Any], prefix: str = "") -> list[Any]:
    """A notification with values in JSON."""
    notification = messages.Notification(prefix=to_message(parse(prefix), modules=True))
    for path, value in updates:
        data = messages.TypedValue(json_ietf_val=json.dumps(value).encode())
        notification.update.add(path=to_message(parse(path), modules=True), val=data)
    return [notification]


@pytest.mark.parametrize(
    "answered",
    [
        answer(("system/state/hostname", "r1")),
        answer(("oc-sys:system/state/hostname", "r1")),
        answer(("hostname", "r1"), prefix="system/state"),
        answer(("state/oc-sys:hostname", "r1"), prefix="oc-sys:system"),
        answer(("system/state", {"hostname": "r1", "uptime": 4})),
        answer(("system", {"oc-sys:state": {"oc-sys:hostname": "r1"}})),
        answer(("", {"oc-sys:system": {"state": {"hostname": "r1"}}})),
        answer(("system/state/hostname", {"oc-sys:hostname": "r1"})),
        answer(("system", {"oc-sys:system": {"state": {"hostname": "r1"}}})),
        answer(("system/state/hostname", "")) + answer(("system/state/hostname", "r1")),
    ],
    ids=[
        "as asked",
        "with modules",
        "with a prefix",
        "with both",
        "as a container",
        "as a deep container",
        "from the root",
        "a leaf in its name",
        "a container in its name",
        "after an empty one",
    ],
)
def test_a_leaf_is_found_however_the_device_answers(answered: list[Any]) -> None:
    assert find(answered, [parse("system/state/hostname")]) == ["r1"]


@pytest.mark.parametrize(
    "answered",
    [
        answer(("system/state/domain", "r1")),
        answer(("system/config/hostname", "r1")),
        answer(("system/state/hostname/deeper", "r1")),
        answer(("system/state/hostname", {"other": "r1"})),
        answer(("system/state/hostname", None)),
        answer(),
        [],
    ],
)
def test_what_was_not_asked_is_not_taken(answered: list[Any]) -> None:
    assert find(answered, [parse("system/state/hostname")]) == [""]


COMPONENTS = [
    {"name": "Fan1", "state": {"serial-no": "F1"}},
    {"name": "Rack 0", "state": {"serial-no": "R0"}},
    {"name": "Empty", "state": {}},
]


@pytest.mark.parametrize(
    "answered",
    [
        answer(
            ("components/component[name=Fan1]/state/serial-no", "F1"),
            ("components/component[name=Rack 0]/state/serial-no", "R0"),
        ),
        answer(("components", {"component": COMPONENTS})),
        answer(("components/component", COMPONENTS)),
        answer(("components/component[name=Rack 0]", COMPONENTS[1])),
        answer(("components/component/state/serial-no", "R0")),
    ],
    ids=["leaves", "a list inside", "a list", "an entry", "without its key"],
)
def test_an_entry_is_found_by_its_key(answered: list[Any]) -> None:
    assert find(answered, [parse("components/component[name=Rack 0]/state/serial-no")]) == ["R0"]


def serials(*names: str) -> list[tuple[str, Any]]:
    return [(f"components/component[name={name}]/state/serial-no", f"of {name}") for name in names]


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (("PSU1", "Chassis", "Aaa"), "of Chassis"),
        (("Slot10", "Slot9"), "of Slot9"),
        (("b", "a"), "of a"),
    ],
    ids=["the chassis", "by number", "by name"],
)
def test_of_several_entries_always_the_same_is_taken(names: tuple[str, ...], chosen: str) -> None:
    wanted = [parse("components/component/state/serial-no")]
    assert find(answer(*serials(*names)), wanted) == [chosen]
    assert find(answer(*serials(*reversed(names))), wanted) == [chosen]


def test_a_wildcard_matches_any_entry() -> None:
    assert find(answer(*serials("b", "a")), [parse("components/component[name=*]/state/serial-no")]) == ["of a"]


def test_each_path_has_its_own_answer() -> None:
    answered = answer(("system", {"name": "r1", "uptime": 25.10, "up": True, "dns": ["a", "b"]}))
    paths = [parse(f"system/{leaf}") for leaf in ("up", "name", "uptime", "dns", "none")]
    assert find(answered, paths) == ["true", "r1", "25.1", "a,b", ""]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"string_val": "x"}, "x"),
        ({"ascii_val": "x"}, "x"),
        ({"int_val": -3}, "-3"),
        ({"uint_val": 2**64 - 1}, "18446744073709551615"),
        ({"bool_val": True}, "true"),
        ({"bool_val": False}, "false"),
        ({"float_val": 0.1}, "0.1"),
        ({"double_val": 0.1}, "0.1"),
        ({"decimal_val": {"digits": 2510, "precision": 2}}, "25.10"),
        ({"decimal_val": {"digits": -5, "precision": 3}}, "-0.005"),
        ({"decimal_val": {"digits": 1, "precision": 4_000_000_000}}, None),
        ({"json_val": b"25.10"}, "25.10"),
        ({"json_ietf_val": b'"25.10"'}, "25.10"),
        ({"json_ietf_val": b"true"}, "true"),
        ({"json_ietf_val": b"not json"}, "not json"),
        ({"json_val": b"[" * 100_000}, None),
        ({"bytes_val": b"text"}, "text"),
        ({"bytes_val": b"\xff\x00"}, "ff00"),
        ({"proto_bytes": b"\x08\x01"}, None),
        ({}, None),
    ],
)
def test_a_value_is_read_as_text(value: dict[str, Any], text: str | None) -> None:
    assert decode(messages.TypedValue(**value)) == text


def test_a_leaf_list_is_one_text() -> None:
    value = messages.TypedValue(leaflist_val={"element": [{"string_val": "a"}, {"int_val": 1}]})
    notification = messages.Notification()
    notification.update.add(path=to_message(parse("a"), modules=True), val=value)
    assert find([notification], [parse("a")]) == ["a,1"]


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "m:a", "b", "name"]), inner),
        max_leaves=12,
    ),
    st.binary(max_size=40),
)
def test_whatever_a_device_sends_a_text_comes_out(value: Any, junk: bytes) -> None:
    for data in (json.dumps(value).encode(), junk):
        notification = messages.Notification()
        notification.update.add(path=to_message(parse("a"), modules=True), val=messages.TypedValue(json_val=data))
        found = find([notification], [parse("a"), parse("a/b"), parse("a/a[name=x]/b")])
        assert all(isinstance(each, str) for each in found)
