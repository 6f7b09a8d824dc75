"""Every function that Kubernetes 1.32 offers to a new expression, and its overloads.

A line is a function, the id of an overload (its cost hangs on it) and its signature; `x.(y)` is called on `x`.
Capitals are type parameters. Read at first use. The order of overloads is the order of cel-go: it decides the type of
a dynamic call.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import NamedTuple

from trimtab.model.cel import types as t


class Overload(NamedTuple):
    id: str
    member: bool
    args: tuple[t.Type, ...]  # the receiver first
    result: t.Type
    params: tuple[str, ...]


@functools.cache
def functions() -> dict[str, tuple[Overload, ...]]:
    """All overloads by the name of their function."""
    found: dict[str, list[Overload]] = {}
    for line in _TABLE.splitlines():
        if line.strip():
            name, identity, text = line.split(None, 2)
            found.setdefault(name, []).append(_overload(identity, text))
    return {name: tuple(overloads) for name, overloads in found.items()}


@functools.cache
def type_names() -> dict[str, t.Type]:
    """The names that denote types."""
    a, b = t.DYN, t.DYN
    return {
        "bool": t.BOOL, "bytes": t.BYTES, "double": t.DOUBLE, "int": t.INT, "uint": t.UINT, "string": t.STRING,
        "null_type": t.NULL, "list": t.list_of(a), "map": t.map_of(a, b), "type": t.type_of(a),
        "google.protobuf.Timestamp": t.TIMESTAMP, "google.protobuf.Duration": t.DURATION,
        "optional_type": t.optional_of(a), "net.IP": t.IP, "net.CIDR": t.CIDR,
    }  # fmt: skip


def runtime_name(kind: t.Type) -> str:
    """What `type()` calls a value of this type."""
    return _RUNTIME.get(kind.name, kind.name)


_RUNTIME = {"null": "null_type", "timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}
_SIMPLE = {
    kind.name: kind for kind in (t.DYN, t.BOOL, t.INT, t.UINT, t.DOUBLE, t.STRING, t.BYTES, t.TIMESTAMP, t.DURATION)
} | {
    "quantity": t.QUANTITY,
    "url": t.URL,
    "ip": t.IP,
    "cidr": t.CIDR,
    "format": t.NAMED_FORMAT,
    "authorizer": t.AUTHORIZER,
    "pathcheck": t.PATH_CHECK,
    "groupcheck": t.GROUP_CHECK,
    "resourcecheck": t.RESOURCE_CHECK,
    "decision": t.DECISION,
}
_MAKERS: dict[str, Callable[..., t.Type]] = {
    "list": t.list_of,
    "map": t.map_of,
    "optional": t.optional_of,
    "type": t.type_of,
}
_WORD = re.compile(r"\w+|[(),]")


def _overload(identity: str, text: str) -> Overload:
    arguments, result = text.split(" -> ")
    receiver, _, rest = arguments.partition("(") if ".(" not in arguments else arguments.partition(".(")
    member = ".(" in arguments
    listed = _types(rest[:-1])
    args = (*_types(receiver), *listed) if member else listed
    return Overload(
        identity, member, tuple(args), _types(result)[0], tuple(sorted(set(re.findall(r"\b[A-Z]\b", text))))
    )


def _types(text: str) -> list[t.Type]:
    words = _WORD.findall(text)
    at = 0

    def one() -> t.Type:
        nonlocal at
        word = words[at]
        at += 1
        if at < len(words) and words[at] == "(":
            at += 1
            params = many()
            at += 1
            return _MAKERS[word](*params)
        return _SIMPLE.get(word) or t.param(word)

    def many() -> list[t.Type]:
        nonlocal at
        found = []
        while at < len(words) and words[at] != ")":
            found.append(one())
            if at < len(words) and words[at] == ",":
                at += 1
        return found

    return many()


_COMPARED = ("bool", "int64", "int64_double", "int64_uint64", "uint64", "uint64_double", "uint64_int64", "double",
             "double_int64", "double_uint64", "string", "bytes", "timestamp", "duration")  # fmt: skip
_LISTED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_PARTS = ("getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek", "getHours",
          "getMinutes", "getSeconds", "getMilliseconds")  # fmt: skip
_FORMATS = ("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix",
            "dns1123SubdomainPrefix", "dns1035LabelPrefix", "labelValue", "uri", "uuid", "byte", "date",
            "datetime")  # fmt: skip


def _comparisons() -> str:
    lines = []
    for operator, word in (("_<_", "less"), ("_<=_", "less_equals"), ("_>_", "greater"), ("_>=_", "greater_equals")):
        for pair in _COMPARED:
            left, _, right = pair.replace("64", "").partition("_")
            lines.append(f"{operator} {word}_{pair} ({left}, {right or left}) -> bool")
    return "\n".join(lines)


def _lists() -> str:
    lines = [f"isSorted list_{kind}_is_sorted_bool list({kind}).() -> bool" for kind in _LISTED]
    lines += [
        f"{name} list_{kind}_{name}_{kind} list({kind}).() -> {kind}" for name in ("max", "min") for kind in _LISTED
    ]
    lines += [f"sum list_{kind}_sum_{kind} list({kind}).() -> {kind}" for kind in ("int", "uint", "double", "duration")]
    return "\n".join(lines)


def _parts() -> str:
    lines = [f"{name} timestamp_{name} timestamp.() -> int" for name in _PARTS]
    lines += [f"{name} timestamp_{name}_zone timestamp.(string) -> int" for name in _PARTS]
    return "\n".join(lines + [f"{name} duration_{name} duration.() -> int" for name in _PARTS[6:]])


_TABLE = f"""
!_ logical_not (bool) -> bool
-_ negate_double (double) -> double
-_ negate_int64 (int) -> int
_==_ equals (A, A) -> bool
_!=_ not_equals (A, A) -> bool
_+_ add_bytes (bytes, bytes) -> bytes
_+_ add_double (double, double) -> double
_+_ add_duration_duration (duration, duration) -> duration
_+_ add_duration_timestamp (duration, timestamp) -> timestamp
_+_ add_timestamp_duration (timestamp, duration) -> timestamp
_+_ add_int64 (int, int) -> int
_+_ add_list (list(A), list(A)) -> list(A)
_+_ add_string (string, string) -> string
_+_ add_uint64 (uint, uint) -> uint
_-_ subtract_double (double, double) -> double
_-_ subtract_duration_duration (duration, duration) -> duration
_-_ subtract_int64 (int, int) -> int
_-_ subtract_timestamp_duration (timestamp, duration) -> timestamp
_-_ subtract_timestamp_timestamp (timestamp, timestamp) -> duration
_-_ subtract_uint64 (uint, uint) -> uint
_*_ multiply_double (double, double) -> double
_*_ multiply_int64 (int, int) -> int
_*_ multiply_uint64 (uint, uint) -> uint
_/_ divide_double (double, double) -> double
_/_ divide_int64 (int, int) -> int
_/_ divide_uint64 (uint, uint) -> uint
_%_ modulo_int64 (int, int) -> int
_%_ modulo_uint64 (uint, uint) -> uint
{_comparisons()}
_[_] index_list (list(A), int) -> A
_[_] index_map (map(A, B), A) -> B
_[_] optional_list_index_int (optional(list(V)), int) -> optional(V)
_[_] optional_map_index_value (optional(map(K, V)), K) -> optional(V)
_[?_] list_optindex_optional_int (list(V), int) -> optional(V)
_[?_] optional_list_optindex_optional_int (optional(list(V)), int) -> optional(V)
_[?_] map_optindex_optional_value (map(K, V), K) -> optional(V)
_[?_] optional_map_optindex_optional_value (optional(map(K, V)), K) -> optional(V)
@in in_list (A, list(A)) -> bool
@in in_map (A, map(A, B)) -> bool
size size_bytes (bytes) -> int
size bytes_size bytes.() -> int
size size_list (list(A)) -> int
size list_size list(A).() -> int
size size_map (map(A, B)) -> int
size map_size map(A, B).() -> int
size size_string (string) -> int
size string_size string.() -> int
type type (A) -> type(A)
bool bool_to_bool (bool) -> bool
bool string_to_bool (string) -> bool
bytes bytes_to_bytes (bytes) -> bytes
bytes string_to_bytes (string) -> bytes
double double_to_double (double) -> double
double int64_to_double (int) -> double
double string_to_double (string) -> double
double uint64_to_double (uint) -> double
duration duration_to_duration (duration) -> duration
duration int64_to_duration (int) -> duration
duration string_to_duration (string) -> duration
dyn to_dyn (A) -> dyn
int int64_to_int64 (int) -> int
int double_to_int64 (double) -> int
int duration_to_int64 (duration) -> int
int string_to_int64 (string) -> int
int timestamp_to_int64 (timestamp) -> int
int uint64_to_int64 (uint) -> int
string string_to_string (string) -> string
string bool_to_string (bool) -> string
string bytes_to_string (bytes) -> string
string double_to_string (double) -> string
string duration_to_string (duration) -> string
string int64_to_string (int) -> string
string timestamp_to_string (timestamp) -> string
string uint64_to_string (uint) -> string
string ip_to_string (ip) -> string
string cidr_to_string (cidr) -> string
timestamp timestamp_to_timestamp (timestamp) -> timestamp
timestamp int64_to_timestamp (int) -> timestamp
timestamp string_to_timestamp (string) -> timestamp
uint uint64_to_uint64 (uint) -> uint
uint double_to_uint64 (double) -> uint
uint int64_to_uint64 (int) -> uint
uint string_to_uint64 (string) -> uint
contains contains_string string.(string) -> bool
endsWith ends_with_string string.(string) -> bool
startsWith starts_with_string string.(string) -> bool
matches matches (string, string) -> bool
matches matches_string string.(string) -> bool
{_parts()}
optional.of optional_of (V) -> optional(V)
optional.ofNonZeroValue optional_ofNonZeroValue (V) -> optional(V)
optional.none optional_none () -> optional(V)
value optional_value optional(V).() -> V
hasValue optional_hasValue optional(V).() -> bool
or optional_or_optional optional(V).(optional(V)) -> optional(V)
orValue optional_orValue_value optional(V).(V) -> V
charAt string_char_at_int string.(int) -> string
indexOf list_a_index_of_int list(A).(A) -> int
indexOf string_index_of_string string.(string) -> int
indexOf string_index_of_string_int string.(string, int) -> int
lastIndexOf list_a_last_index_of_int list(A).(A) -> int
lastIndexOf string_last_index_of_string string.(string) -> int
lastIndexOf string_last_index_of_string_int string.(string, int) -> int
lowerAscii string_lower_ascii string.() -> string
replace string_replace_string_string string.(string, string) -> string
replace string_replace_string_string_int string.(string, string, int) -> string
split string_split_string string.(string) -> list(string)
split string_split_string_int string.(string, int) -> list(string)
substring string_substring_int string.(int) -> string
substring string_substring_int_int string.(int, int) -> string
trim string_trim string.() -> string
upperAscii string_upper_ascii string.() -> string
format string_format string.(list(dyn)) -> string
strings.quote strings_quote (string) -> string
join list_join list(string).() -> string
join list_join_string list(string).(string) -> string
{_lists()}
sets.contains list_sets_contains_list (list(T), list(T)) -> bool
sets.equivalent list_sets_equivalent_list (list(T), list(T)) -> bool
sets.intersects list_sets_intersects_list (list(T), list(T)) -> bool
find string_find_string string.(string) -> string
findAll string_find_all_string string.(string) -> list(string)
findAll string_find_all_string_int string.(string, int) -> list(string)
url string_to_url (string) -> url
isURL is_url_string (string) -> bool
getScheme url_get_scheme url.() -> string
getHost url_get_host url.() -> string
getHostname url_get_hostname url.() -> string
getPort url_get_port url.() -> string
getEscapedPath url_get_escaped_path url.() -> string
getQuery url_get_query url.() -> map(string, list(string))
quantity string_to_quantity (string) -> quantity
isQuantity is_quantity_string (string) -> bool
sign quantity_sign (quantity) -> int
isGreaterThan quantity_is_greater_than quantity.(quantity) -> bool
isLessThan quantity_is_less_than quantity.(quantity) -> bool
compareTo quantity_compare_to quantity.(quantity) -> int
asApproximateFloat quantity_get_float quantity.() -> double
asInteger quantity_get_int quantity.() -> int
isInteger quantity_is_integer quantity.() -> bool
add quantity_add quantity.(quantity) -> quantity
add quantity_add_int quantity.(int) -> quantity
sub quantity_sub quantity.(quantity) -> quantity
sub quantity_sub_int quantity.(int) -> quantity
ip string_to_ip (string) -> ip
ip cidr_ip cidr.() -> ip
isIP is_ip (string) -> bool
ip.isCanonical ip_is_canonical (string) -> bool
family ip_family ip.() -> int
isUnspecified ip_is_unspecified ip.() -> bool
isLoopback ip_is_loopback ip.() -> bool
isLinkLocalMulticast ip_is_link_local_multicast ip.() -> bool
isLinkLocalUnicast ip_is_link_local_unicast ip.() -> bool
isGlobalUnicast ip_is_global_unicast ip.() -> bool
cidr string_to_cidr (string) -> cidr
isCIDR is_cidr (string) -> bool
containsIP cidr_contains_ip_string cidr.(string) -> bool
containsIP cidr_contains_ip_ip cidr.(ip) -> bool
containsCIDR cidr_contains_cidr_string cidr.(string) -> bool
containsCIDR cidr_contains_cidr cidr.(cidr) -> bool
prefixLength cidr_prefix_length cidr.() -> int
masked cidr_masked cidr.() -> cidr
path authorizer_path authorizer.(string) -> pathcheck
group authorizer_group authorizer.(string) -> groupcheck
serviceAccount authorizer_serviceaccount authorizer.(string, string) -> authorizer
resource groupcheck_resource groupcheck.(string) -> resourcecheck
subresource resourcecheck_subresource resourcecheck.(string) -> resourcecheck
namespace resourcecheck_namespace resourcecheck.(string) -> resourcecheck
name resourcecheck_name resourcecheck.(string) -> resourcecheck
fieldSelector authorizer_fieldselector resourcecheck.(string) -> resourcecheck
labelSelector authorizer_labelselector resourcecheck.(string) -> resourcecheck
check pathcheck_check pathcheck.(string) -> decision
check resourcecheck_check resourcecheck.(string) -> decision
allowed decision_allowed decision.() -> bool
reason decision_reason decision.() -> string
errored decision_errored decision.() -> bool
error decision_error decision.() -> string
format.named format-named (string) -> optional(format)
validate format-validate format.(string) -> optional(list(string))
""" + "\n".join(f"format.{name} format.{name} () -> format" for name in _FORMATS)
