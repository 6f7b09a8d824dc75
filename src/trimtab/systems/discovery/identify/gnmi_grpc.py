"""gRPC, loaded as it must be; import it from here.

With its fork handlers, which are on by default, a child that is forked while calls are under way comes to life with
gRPC's threads, and aborts when its files are closed before it becomes another program. Measured: one child of five.
Without them the child is left alone. gRPC reads the variable when it is first used.
"""

from __future__ import annotations

import os

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc
import grpc.aio

__all__ = ["grpc"]
