"""A provider as a program, as an install would start it. It speaks protocol 6, or 5 when it is told so."""

import os
import sys

from trimtab.terraform.plugin.boot import serve


def make():
    print("a stray print, which must not be taken for the line")
    os.write(1, b"a stray write, as of a child or a library in C\n")
    from tests.terraform.plugin.small import Small

    class Telling(Small):
        def stop(self):
            print("told to stop")
            super().stop()

    return Telling()


def make5():
    from tests.terraform.protocol.old import Old

    return Old("small")


if __name__ == "__main__":
    if sys.argv[1:] == ["5"]:
        serve(make5, protocol=5)
    serve(make)
