"""What an expression may cost: an estimate of the worst case from its types.

It follows cel-go and Kubernetes' library to the unit, because an API server refuses schemas and stops evaluations by
them. An estimate is a pair, least and most; it saturates at 2^64-1. Macros cost what their expansion into a loop
would cost.
"""

from __future__ import annotations

import math

from trimtab.model.cel import types as t
from trimtab.model.cel.syntax import (
    Call,
    Conditional,
    Fold,
    Ident,
    ListNode,
    Literal,
    Logic,
    MapNode,
    Node,
    Select,
)
from trimtab.model.cel.values import size

Range = tuple[int, int]
MAX = t.UNBOUNDED
TRAVERSAL = 0.1  # of a string, for each character
REGEX = 0.25  # of a pattern, for each character
NEW_LIST, NEW_MAP, NEW_STRUCT = 10, 30, 40
CHECK = 350_000  # of an authorization: allows two for an expression
_NOTHING, _ONE, _ANY = (0, 0), (1, 1), (0, MAX)
_ONE_UNIT = frozenset({
    "masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast",
    "isGlobalUnicast", "sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan",
    "compareTo", "add", "sub", "getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery",
    "format.named",
})  # fmt: skip
_TRAVERSED = frozenset({"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})
_PARSED = frozenset({"url", "cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity"})
_COPIED = frozenset({"lowerAscii", "upperAscii", "substring", "trim"})
_COMPARISONS = frozenset(
    f"{word}_{kind}" for word in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")
) | {"equals", "not_equals"}


def _sum(*ranges: Range) -> Range:
    return min(sum(r[0] for r in ranges), MAX), min(sum(r[1] for r in ranges), MAX)


def _times(a: Range, b: Range) -> Range:
    return min(a[0] * b[0], MAX), min(a[1] * b[1], MAX)


def _scaled(a: Range, factor: float) -> Range:
    return _scale(a[0], factor), _scale(a[1], factor)


def _scale(value: int, factor: float) -> int:
    product = math.ceil(float(value) * factor)
    return MAX if product >= 1 << 64 else product


def _union(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), max(a[1], b[1])


class Estimator:
    """Walks a checked tree. `root` is the type of `self`, from which paths are followed."""

    def __init__(self, root: t.Type | None) -> None:
        self._root = root
        self._ranges: dict[str, list[Node]] = {}

    def estimate(self, node: Node) -> Range:
        if isinstance(node, Literal):
            return _NOTHING
        if isinstance(node, Ident):
            return self._ident(node)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Logic):
            terms = [self.estimate(term) for term in node.terms]
            return terms[0][0], _sum(*terms)[1]
        if isinstance(node, Conditional):
            test, then, otherwise = (self.estimate(part) for part in (node.test, node.then, node.otherwise))
            node.size = _union(self._size(node.then), self._size(node.otherwise))
            return _sum(test, _union(then, otherwise))
        if isinstance(node, ListNode):
            return _sum(*(self.estimate(item) for item in node.items), (NEW_LIST, NEW_LIST))
        if isinstance(node, MapNode):
            return _sum(*(self.estimate(part) for entry in node.entries for part in entry), (NEW_MAP, NEW_MAP))
        if isinstance(node, Fold):
            return self._fold(node)
        return _NOTHING

    def _ident(self, node: Ident) -> Range:
        ranges = self._ranges.get(node.name)
        if ranges and node.constant is None:
            source = ranges[-1]
            if source.type.kind in (t.LIST, t.MAP):
                node.path = (*(source.path or ()), "@items" if source.type.kind == t.LIST else "@keys")
        else:
            node.path = (node.name,)
        return _ONE

    def _select(self, node: Select) -> Range:
        if node.constant is not None:
            node.path = (node.constant.name,)
            return _ONE
        cost = self.estimate(node.operand)
        if node.test:
            return cost
        if node.optional:
            return _sum(cost, _ONE)
        node.path = (*(node.operand.path or ()), node.field)
        return _sum(cost, _ONE) if node.operand.type.kind in (t.MAP, t.STRUCT, t.PARAM) else cost

    def _fold(self, node: Fold) -> Range:
        source = self.estimate(node.range)
        if node.macro in ("optMap", "optFlatMap"):
            return self._optional_map(node, source)
        self._ranges.setdefault(node.variable, []).append(node.range)
        condition = _NOTHING if node.filter is None else self.estimate(node.filter)
        body = self.estimate(node.body)
        self._ranges[node.variable].pop()
        node.size = count = self._size(node.range)
        before: Range = (1, 1)  # reads the result
        match node.macro:
            case "all":
                step = 3, body[1] + 3
            case "exists":
                step = 4, body[1] + 4
            case "exists_one":
                step = _sum(body, (1, 2))
                before = (2, 2)
            case "filter":
                step = _sum(body, (1, 13))
                before = (11, 11)
            case _:
                step = _sum(body, (12, 12))
                before = (11, 11)
                if node.filter is not None:
                    step = _sum(condition, _union(step, _ONE))
        return _sum(source, before, _times(count, (min(step[0], MAX), min(step[1], MAX))))

    def _optional_map(self, node: Fold, source: Range) -> Range:
        body = self.estimate(node.body)
        then = _sum(source, body, (NEW_LIST + 1, NEW_LIST + 1))
        if node.macro == "optMap":
            then = _sum(then, _ONE)
        return _sum(source, _ONE, _union(then, _ONE))

    def _computed(self, node: Node) -> Range | None:
        if node.size is not None:
            return node.size
        if isinstance(node, Literal):
            length = size(node.value)
            return length, length
        if isinstance(node, ListNode):
            return len(node.items), len(node.items)
        if isinstance(node, MapNode):
            return len(node.entries), len(node.entries)
        return None

    def _declared(self, path: tuple[str, ...] | None) -> Range | None:
        """The bound that the schema sets at a path."""
        kind = self._root
        if not path or kind is None:
            return None
        for name in path[1:]:
            if name in ("@items", "@values"):
                if kind.kind not in (t.LIST, t.MAP):
                    return None
                kind = kind.params[-1]
            elif name == "@keys":
                if kind.kind != t.MAP:
                    return None
                kind = kind.params[0]
            else:
                field = kind.fields.get(name)
                if field is None:
                    return None
                kind = field.type
        return 0, kind.max_size

    def _library_size(self, node: Node) -> Range:
        return self._computed(node) or self._declared(node.path) or _ANY

    def _size(self, node: Node) -> Range:
        found = self._computed(node) or self._declared(node.path)
        if found is not None:
            return found
        return _ONE if node.type.name in t.FIXED_SIZE else _ANY

    def _call(self, node: Call) -> Range:
        args = [self.estimate(arg) for arg in node.args]
        target = _NOTHING if node.target is None else self.estimate(node.target)
        cost: Range = (MAX, 0)
        sized: Range | None = None
        for overload in node.overloads:
            price, result = self._price(node, overload)
            cost = _union(cost, price)
            if result is not None:
                sized = result if sized is None else _union(sized, result)
            if overload in ("index_list", "index_map"):
                node.path = (*(node.args[0].path or ()), "@items" if overload == "index_list" else "@values")
        node.size = sized
        return _sum(target, cost, *args)

    def _price(self, node: Call, overload: str) -> tuple[Range, Range | None]:
        """The cost of the call itself, and the size of what it makes."""
        function, args = node.function, node.args
        found = self._library_price(node, overload)
        if found is not None:
            return found
        if overload == "string_format":
            return _scaled(self._size(node.operands[0]), TRAVERSAL), None
        if overload == "string_to_bytes":
            length = self._size(args[0])
            return _scaled(length, TRAVERSAL), (length[0], length[1] * 4 & MAX)
        if overload == "bytes_to_string":
            length = self._size(args[0])
            return _scaled(length, TRAVERSAL), (length[0] // 4, length[1])
        if overload == "strings_quote":
            length = self._size(args[0])
            return _scaled(length, TRAVERSAL), (length[0] + 2, length[1] * 2 + 2 & MAX)
        if function in ("startsWith", "endsWith"):
            return _scaled(self._size(args[0]), TRAVERSAL), None
        if overload == "in_list":
            return self._size(args[1]), None
        if overload == "matches_string":
            return self._match_price(self._size(node.operands[0]), self._size(args[0])), None
        if overload == "contains_string":
            text, part = (_scaled(self._size(side), TRAVERSAL) for side in node.operands)
            return _times(text, part), None
        if overload in ("add_string", "add_bytes", "add_list"):
            total = _sum(self._size(args[0]), self._size(args[1]))
            return (_ONE if overload == "add_list" else _scaled(total, TRAVERSAL)), total
        if overload in _COMPARISONS:
            smaller = min(self._size(args[0])[1], self._size(args[1])[1])
            return _scaled((1 if smaller > 0 else 0, smaller), TRAVERSAL), None
        return _ONE, None

    def _library_price(self, node: Call, overload: str) -> tuple[Range, Range | None] | None:
        function, args, operands = node.function, node.args, node.operands
        if function in _ONE_UNIT or overload == "cidr_ip":
            return _ONE, None
        if function == "check":
            return (CHECK, CHECK), None
        if function in ("fieldSelector", "labelSelector"):
            length = self._library_size(args[0])
            requirements = _scaled(_scaled(length, 0.5), NEW_LIST + NEW_STRUCT)
            return _sum((NEW_LIST, NEW_LIST), _scaled(length, TRAVERSAL), requirements), None
        if function in _TRAVERSED:
            return self._list_price(operands[0]), None
        if function in _PARSED:
            length = self._library_size(args[0])
            return _scaled(length, TRAVERSAL), length if function == "url" else None
        if function in _COPIED:
            length = self._library_size(operands[0])
            return _scaled(length, TRAVERSAL), length
        if function == "replace":
            return self._replace_price(operands)
        if function == "split":
            length = self._library_size(operands[0])
            most = length[1]
            if len(args) > 1 and isinstance(args[1], Literal) and type(args[1].value) is int:
                most = args[1].value & MAX
            return _scaled(length, 2 * TRAVERSAL), (0, most)
        if function == "join":
            return self._join_price(operands)
        if function in ("find", "findAll"):
            length = self._library_size(operands[0])
            return self._match_price(length, self._library_size(args[0])), (0, length[1])
        if function == "ip.isCanonical":
            return _scaled(self._library_size(args[0]), 2 * TRAVERSAL), None
        if function in ("containsIP", "containsCIDR"):
            cost = _scaled((8, 32), TRAVERSAL)
            if function == "containsCIDR":
                cost = _sum(cost, _scaled((4, 16), TRAVERSAL), _ONE)
            if overload.endswith("_string"):
                cost = _sum(cost, _scaled(self._library_size(args[0]), TRAVERSAL))
            return cost, None
        if function == "validate":
            return _scaled(_scaled(self._library_size(args[0]), TRAVERSAL), 128 * REGEX), None
        if function.startswith("sets."):
            product = _times(self._library_size(args[0]), self._library_size(args[1]))
            return _sum(_scaled(product, 2 if function == "sets.equivalent" else 1), _ONE), None
        if function == "_==_" and args[0].type == args[1].type:
            name = args[0].type.name
            if name in ("net.IP", "net.CIDR", "kubernetes.Quantity"):
                return _ONE, None
            if name == "kubernetes.NamedFormat":
                return _scaled((1, 64), TRAVERSAL), None
            if name == "kubernetes.URL":
                length = self._computed(args[1]) or _ONE
                return _scaled((1, length[1]), TRAVERSAL), None
        return None

    def _match_price(self, text: Range, pattern: Range) -> Range:
        return _times(_scaled(_sum(text, _ONE), TRAVERSAL), _scaled(pattern, REGEX))

    def _list_price(self, source: Node) -> Range:
        if not source.type.params:
            return _scaled(self._library_size(source), TRAVERSAL)
        item = source.type.params[0]
        each: Range = _ONE
        if item.name in ("string", "bytes"):
            each = _sum(each, _scaled(self._item_size(source), TRAVERSAL))
        return _times(self._library_size(source), each)

    def _item_size(self, source: Node) -> Range:
        path = None if source.path is None else (*source.path, "@items")
        return self._declared(path) or _ANY

    def _join_price(self, operands: list[Node]) -> tuple[Range, Range | None]:
        count = self._library_size(operands[0])
        total: Range = _NOTHING
        if operands[0].type.params:
            total = _times(count, self._item_size(operands[0]))
        if len(operands) > 1:
            gaps = (max(count[0] - 1, 0), max(count[1] - 1, 0))
            total = _sum(total, _times(self._library_size(operands[1]), gaps))
        return _scaled(total, TRAVERSAL), total

    def _replace_price(self, operands: list[Node]) -> tuple[Range, Range | None]:
        text, old, new = (self._library_size(node) for node in operands[:3])
        # The longest result: every character gets a replacement, or the shortest pieces get the longest one.
        most, kept_most = 0, 0
        if old[0] == 0:
            most, kept_most = min(text[1] + 1, MAX), text[1]
        elif new[1] <= old[0]:
            kept_most = text[1]
        else:
            most = math.ceil(float(text[1]) / old[0])
        least, kept_least = 0, 0
        if old[1] == 0:
            least, kept_least = min(text[0] + 1, MAX), text[0]
        elif old[1] <= new[0]:
            kept_least = text[0]
        else:
            least = math.ceil(float(text[0]) / old[1])
        made = _sum(_times((least, most), new), (kept_least, kept_most))
        return _scaled(text, 2 * TRAVERSAL), made
