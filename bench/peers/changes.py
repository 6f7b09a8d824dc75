"""Changes at a steady rate, each stamped with the time at which it was sent."""

from __future__ import annotations

import http
import http.client
import json
import threading
import time
from urllib.parse import urlsplit

from trimtab.testing.peer import Access

THREADS = 8


def change(access: Access, paths: list[str], per_second: float) -> list[float]:
    """Change each Gadget once. When the server falls behind, so do we: every thread waits for its answers. Returns how
    many milliseconds each answer took: a disk that stalls holds up every operator, and is told apart by that."""
    begin = time.monotonic() + 0.1
    answered: list[float] = []
    failures: list[str] = []

    def send(first: int) -> None:
        connection = http.client.HTTPSConnection(urlsplit(access.url).netloc, context=access.tls())
        headers = {"Content-Type": "application/merge-patch+json"}
        if access.token:
            headers["Authorization"] = f"Bearer {access.token}"
        for turn in range(first, len(paths), THREADS):
            time.sleep(max(0.0, begin + turn / per_second - time.monotonic()))
            sent = time.time_ns()
            body = json.dumps({"spec": {"sequence": str(sent)}})
            connection.request("PATCH", paths[turn], body.encode(), headers)
            answer = connection.getresponse()
            text = answer.read()
            answered.append((time.time_ns() - sent) / 1e6)
            if answer.status != http.HTTPStatus.OK:
                failures.append(text.decode())
                return
        connection.close()

    threads = [threading.Thread(target=send, args=(first,)) for first in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise RuntimeError(f"a change was refused: {failures[0]}")
    return answered
