"""What the emulator was asked since this was last run: a line for each request, with its guard and its body."""

import json
import re
from http.client import HTTPConnection
from typing import Any


def order(method: str, path: str) -> Any:
    lab = HTTPConnection("127.0.0.1", 7490, timeout=10)
    lab.request(method, f"/_lab/{path}")
    return json.loads(lab.getresponse().read())


asked = order("GET", "requests")
order("POST", "clear")
for each in asked:
    _, there, below = each["path"].rpartition("/providers/")
    path = below.partition("/")[2] if there else each["path"].rpartition("/resourceGroups/")[2]
    guards = [f"{name}: {value}" for name, value in each["headers"].items() if name.lower().startswith("if-")]
    body = [json.dumps(each["body"])] if each["body"] else []
    line = "  ".join([f"{each['method']:<5} {each['status']} {path}", *guards, *body])
    print(re.sub(r"(?<=[0-9a-f]{8})(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "…", line))
