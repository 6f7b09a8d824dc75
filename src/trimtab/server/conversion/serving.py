"""The versions of a definition whose objects are converted, ready to be served."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.server.backend import Backend
from trimtab.server.conversion.backend import ConvertingBackend
from trimtab.server.conversion.converters import Converter
from trimtab.server.conversion.versions import Versions
from trimtab.server.registry import Served
from trimtab.server.strategy import Strategy


def converting(strategies: Sequence[tuple[Strategy, bool]], store: Backend, converter: Converter) -> list[Served]:
    """Each version over a backend that shows objects in it. The flag is set for the one that is stored."""
    forms = {strategy.kind.api_version: Served(strategy, store) for strategy, _ in strategies}
    storage = next(strategy.kind.api_version for strategy, is_stored in strategies if is_stored)
    versions = Versions(forms, forms[storage], converter)
    served = [
        Served(
            strategy,
            ConvertingBackend(store, forms[strategy.kind.api_version], versions),
            source=store,
            versions=versions,
        )
        for strategy, _ in strategies
    ]
    primary = next(one for one in served if one.kind.api_version == storage)
    for one in served:
        one.primary = primary
    return served
