"""Standard input and output taken for the protocol, before anything that might print is imported."""

import os
import sys
from io import TextIOWrapper


def reserve_stdout() -> TextIOWrapper:
    """Take standard output for the protocol: the stream returned is the only way to it from now on.

    Descriptor 1 and everything that prints to it, here or in a child, leads to stderr until the process ends; a banner
    or a library's print would otherwise be read as a broken message.
    """
    sys.stdout.flush()
    wire = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return TextIOWrapper(wire, encoding="utf-8", newline="\n")


def reserve_stdin() -> TextIOWrapper:
    """Take standard input for the protocol; who else reads it, here or in a child, finds it empty."""
    wire = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # Bytes that are no UTF-8 become replacement characters, which no rule of ours lets through.
    return TextIOWrapper(wire, encoding="utf-8", errors="replace")
