"""Run a command and say what it used: `{"cpu": seconds, "peak": bytes}`, into a file.

    python bench/peers/used.py FILE COMMAND ...

The kernel counts what a process was before it became another program into its peak memory. So the command is started from
this small process, and not from a large benchmark.
"""

import json
import os
import sys


def main(file: str, *command: str) -> int:
    _, status, used = os.wait4(os.posix_spawnp(command[0], command, os.environ), 0)
    with open(file, "w") as told:
        json.dump({"cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss * 1024}, told)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
