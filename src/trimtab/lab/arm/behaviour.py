"""How the emulator behaves: every switch, as data. One Behaviour holds for all types, others for one type each.

The shapes of long-running operations are written as they are counted in real traffic: a code, the headers, the body.

    shape("201+AAO nonterminal")    shape("202+LOC empty", polls=3)    shape("200+AAO terminal", outcome="Failed")
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Shown = Literal["nonterminal", "terminal", "no-state", "empty"]
Outcome = Literal["Succeeded", "Failed", "Canceled"]


class Lro(msgspec.Struct, frozen=True, kw_only=True):
    """How one verb answers. Without a header and with a state that is final, it is done at once."""

    code: int
    async_operation: bool = False  # the header Azure-AsyncOperation
    location: bool = False  # the header Location
    body: Shown = "nonterminal"
    polls: int | None = None
    """How many looks see it running. Without a header the looks are reads of the resource. None: as the Behaviour says."""
    lasting: float = 0.0  # seconds that it takes at least
    retry_after: int | str | None = None
    outcome: Outcome = "Succeeded"
    error_code: str = "InternalExecutionError"
    error_message: str = "The operation failed."
    monitor_errors: int = 0  # how many looks at the operation get 500 first
    monitor_gone: bool = False  # a look at the operation gets 404; the resource goes on
    rotating: bool = False  # each look says another URL for the next
    host: str = ""  # of the headers' URLs, another than ours: "http://127.0.0.2:9"; with "/" they have none
    polls_resource: bool = False  # Location is the resource's own URL with asyncId, as API Management has it
    lower_case: bool = False  # "succeeded"

    @property
    def running(self) -> bool:
        return self.async_operation or self.location or self.body == "nonterminal" or self.code == 202


def shape(text: str, **more: Any) -> Lro:
    """`text` is "<code>[+AAO][+LOC] [nonterminal|terminal|no-state|empty|body]"."""
    front, _, body = text.partition(" ")
    code, *headers = front.split("+")
    if set(headers) - {"AAO", "LOC"}:
        raise ValueError(f"no such header in {text!r}: AAO or LOC")
    shown: Any = {"": "empty" if code == "202" else "no-state", "body": "nonterminal"}.get(body, body)
    given = {
        "code": int(code),
        "async_operation": "AAO" in headers,
        "location": "LOC" in headers,
        "body": shown,
        **more,
    }
    return msgspec.convert(given, Lro)


OBSERVED_PUT = {
    "201+AAO nonterminal": 579,
    "201 terminal": 460,
    "200 no-state": 435,
    "202+AAO+LOC body": 397,
    "201 no-state": 184,
    "200 terminal": 180,
    "202+LOC empty": 85,
    "202+AAO+LOC empty": 83,
    "201+LOC no-state": 77,
    "201+AAO+LOC nonterminal": 74,
    "200+AAO nonterminal": 46,
    "202+AAO+LOC nonterminal": 32,
    "200+AAO terminal": 29,
    "200 nonterminal": 21,
    "201+AAO terminal": 21,
    "200+AAO+LOC terminal": 18,
    "201+AAO+LOC no-state": 12,
    "201 nonterminal": 12,
}
"""How often each shape of a PUT that succeeded was met in real traffic."""
OBSERVED_DELETE = {"202+LOC": 451, "202+AAO+LOC": 217, "200": 204, "204": 30, "202+AAO": 8}


class Normalise(msgspec.Struct, frozen=True, kw_only=True):
    """How a read shows other values than were written."""

    region: Literal["", "name", "display"] = ""  # "westus" or "West US", whichever was written
    enums: Literal["", "document", "lower", "upper"] = ""
    ids: Literal["", "upper", "lower"] = ""  # the resource group's name in every ID
    nulls: Literal["drop", "empty", "keep"] = "drop"  # of what was written as null: left out, {} or [], null
    empties: Literal["keep", "fill", "drop"] = "keep"  # lists that are not there are []; or [] and {} are not there
    slashes: bool = False  # "/a/" is "a"
    sku: bool = False  # the tier is filled in, the name has a capital letter
    secrets: Literal["omit", "mask", "empty", "show"] = "omit"
    child_names: bool = False  # a child's name is "parent/child"
    hidden: tuple[str, ...] = ()  # dotted paths that a read never shows
    uppercase_type: bool = False  # "MICROSOFT.NETWORK/…" in the field `type`


class Late(msgspec.Struct, frozen=True, kw_only=True):
    """A value that the service adds by itself, some reads after the last write."""

    path: str  # dotted
    value: Any
    reads: int = 1


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket of calls per subscription and kind of call (reads, writes, deletes). Empty is 429."""

    calls: int
    per_second: float = 0.0  # refilled so fast
    retry_after: int = 5


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    put: Literal["replace", "merge", "keep-collections"] = "replace"
    """What becomes of fields that a PUT leaves out: gone; kept; or gone, but for lists and maps, which are kept."""
    null_keeps: bool = False  # null in a PUT is as if left out, and left out is kept
    read_only: Literal["reject", "ignore"] = "reject"  # of another value than the one that is there
    create_only: Literal["reject", "ignore"] = "reject"
    unknown: Literal["reject", "drop", "keep"] = "reject"
    patch_unknown: Literal["reject", "ignore"] = "reject"  # of what the document of the PATCH does not name
    asynchronous: bool = True  # False: every operation is done when it is answered
    operations: dict[str, Lro] = {}
    """By create, update, patch, delete, post; for others it is as the document has it."""
    polls: int = 1
    retry_after: int | str | None = 1
    concurrent: Literal["refuse", "accept"] = "refuse"  # a write during an operation: 409, or it takes over
    relatives: Literal["refuse", "accept"] = "accept"  # a write while one of the parent or of a sibling is under way
    etags: bool = True
    etag_mismatch: Literal[412, 409] = 412
    missing_reads: int = 0  # so many reads after a creation get 404
    stale_reads: int = 0  # so many reads after a change get what was before
    renames: bool = False  # an update gives the resource another name
    delete_missing: Literal[204, 404] = 204
    page_size: int = 100
    empty_page: bool = False  # a list begins with a page that has no items
    brief_lists: bool = False  # the items of a list have no properties
    normalise: Normalise = Normalise()
    late: tuple[Late, ...] = ()
    limits: dict[str, Limit] = {}  # by reads, writes, deletes; only of the Behaviour of all
    strict_versions: bool = True  # another api-version than the documents' is refused


USUAL = Behaviour()
INSTANT = Behaviour(asynchronous=False)
