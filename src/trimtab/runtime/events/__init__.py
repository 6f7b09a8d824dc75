"""Events: `recorder` writes them, `series` counts and thins them out."""

from trimtab.runtime.events.recorder import Recorder

__all__ = ["Recorder"]
