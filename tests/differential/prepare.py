"""Two servers made ready for scenarios: our kinds are installed and served."""

import contextlib
from collections.abc import Iterator

from trimtab.testing.peer import ApiServer

from .compare import Pair
from .exchange import Exchange, Request
from .kinds import DEFINITIONS, GAUGE, GAUGES, GROUP, WIDGET


@contextlib.contextmanager
def prepared(real: ApiServer, ours: ApiServer) -> Iterator[Pair]:
    with contextlib.ExitStack() as stack:
        sides = [stack.enter_context(contextlib.closing(Exchange(server))) for server in (real, ours)]
        for side in sides:
            for definition in (WIDGET, GAUGE):
                answer = side.send(Request(method="POST", path=DEFINITIONS, body=definition), [], {})
                if answer.status not in (201, 409):
                    raise RuntimeError(f"the definition is refused: {answer.body}")
            for path, text in (
                (f"/apis/{GROUP}/v1/widgets", "WidgetList"),
                (GAUGES, "GaugeList"),
                (f"/apis/{GROUP}", "v1beta1"),
            ):
                side.send(Request(method="GET", path=path, until=text), [], {})
        yield Pair(*sides)
