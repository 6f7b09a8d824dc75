"""Licences as packages declare them, told apart: expressions of SPDX, and any other words.

Only identifiers that are in the table count as SPDX's; it has those that packages in images use. A word that is not
there becomes a reference with the declared text, which is always true, if less exact.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping

_MAX_EXPRESSION = 1000
_TOKEN = re.compile(r"\s*([()]|[A-Za-z0-9.+-]+)")

_IDS = frozenset(
    """
    0BSD AFL-2.0 AFL-2.1 AFL-3.0 AGPL-3.0 AGPL-3.0-only AGPL-3.0-or-later Apache-1.0 Apache-1.1 Apache-2.0 APSL-2.0
    Artistic-1.0 Artistic-1.0-Perl Artistic-2.0 Beerware BlueOak-1.0.0 BSD-1-Clause BSD-2-Clause BSD-2-Clause-Patent
    BSD-3-Clause BSD-3-Clause-Clear BSD-4-Clause BSD-4-Clause-UC BSL-1.0 bzip2-1.0.6 CC-BY-3.0 CC-BY-4.0
    CC-BY-SA-3.0 CC-BY-SA-4.0 CC0-1.0 CDDL-1.0 CDDL-1.1 CECILL-2.1 CPL-1.0 curl EPL-1.0 EPL-2.0 EUPL-1.1 EUPL-1.2
    FSFAP FSFUL FSFULLR FTL GFDL-1.1-or-later GFDL-1.2-only GFDL-1.2-or-later GFDL-1.3-only GFDL-1.3-or-later
    GPL-1.0-only GPL-1.0-or-later GPL-1.0+ GPL-2.0 GPL-2.0+ GPL-2.0-only GPL-2.0-or-later GPL-3.0 GPL-3.0+
    GPL-3.0-only GPL-3.0-or-later HPND HPND-sell-variant ICU IJG ImageMagick Info-ZIP IPL-1.0 ISC JSON LGPL-2.0
    LGPL-2.0+ LGPL-2.0-only LGPL-2.0-or-later LGPL-2.1 LGPL-2.1+ LGPL-2.1-only LGPL-2.1-or-later LGPL-3.0 LGPL-3.0+
    LGPL-3.0-only LGPL-3.0-or-later Libpng libpng-2.0 libtiff MIT MIT-0 MIT-CMU MirOS MPL-1.0 MPL-1.1 MPL-2.0 MS-PL
    MS-RL NCSA NTP OFL-1.1 OLDAP-2.8 OpenSSL OSL-3.0 PHP-3.0 PHP-3.01 PostgreSQL PSF-2.0 Python-2.0 Python-2.0.1
    Qhull Ruby SGI-B-2.0 Sleepycat SMLNJ SSH-OpenSSH SSH-short TCL Unicode-3.0 Unicode-DFS-2015 Unicode-DFS-2016
    Unlicense UPL-1.0 Vim W3C WTFPL X11 XFree86-1.1 Zlib zlib-acknowledgement ZPL-2.0 ZPL-2.1
    """.split()  # noqa: SIM905 - a table
)
_EXCEPTIONS = frozenset(
    """
    Autoconf-exception-2.0 Autoconf-exception-3.0 Bison-exception-2.2 Bootloader-exception Classpath-exception-2.0
    Font-exception-2.0 GCC-exception-2.0 GCC-exception-3.1 Libtool-exception Linux-syscall-note LLVM-exception
    OpenJDK-assembly-exception-1.0 openvpn-openssl-exception
    """.split()  # noqa: SIM905 - a table
)


def is_expression(text: str) -> bool:
    """Whether the text is an SPDX licence expression of known identifiers."""
    if not text or len(text) > _MAX_EXPRESSION:
        return False
    depth = at = 0
    state = "operand"
    for match in _TOKEN.finditer(text):
        if match.start() != at:
            return False
        at, word = match.end(), match[1]
        if word == "(" and state == "operand":
            depth += 1
        elif word == ")" and state in ("operator", "plain") and depth:
            depth -= 1
            state = "plain"
        elif word in ("AND", "OR") and state in ("operator", "plain"):
            state = "operand"
        elif word == "WITH" and state == "operator":
            state = "exception"
        elif (state == "operand" and word in _IDS) or (state == "exception" and word in _EXCEPTIONS):
            state = "operator" if state == "operand" else "plain"
        else:
            return False
    return state in ("operator", "plain") and depth == 0 and not text[at:].strip()


def is_id(text: str) -> bool:
    """Whether the text is one identifier."""
    return text in _IDS


def license_ref(text: str) -> str:
    """The identifier of a licence that SPDX does not list."""
    word = re.sub(r"[^A-Za-z0-9.-]+", "-", text)[:40].strip("-.") or "unnamed"
    return f"LicenseRef-{word}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"


@functools.lru_cache(maxsize=4096)
def declared(licenses: tuple[str, ...]) -> tuple[str, Mapping[str, str]]:
    """One expression for all of them, and the texts of the references in it. `NOASSERTION` when there is none."""
    parts = []
    texts: dict[str, str] = {}
    for text in dict.fromkeys(each.strip() for each in licenses):
        if not text:
            continue
        if is_expression(text):
            parts.append(text)
        else:
            ref = license_ref(text)
            texts[ref] = text
            parts.append(ref)
    if not parts:
        return "NOASSERTION", {}
    if len(parts) == 1:
        return parts[0], texts
    return " AND ".join(f"({part})" if " " in part else part for part in parts), texts
