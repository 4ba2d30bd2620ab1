"""A renderer: a process that calls functions for its worker, within limits of memory and time, and ends with it.

`python -m retainer.server.renderer FD` is started by `renderers.py`, with its end of a pair of sockets.
"""

import os
import resource
import signal
import sys
import time
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

MAX_BYTES = 1 << 30
"""Address space: of fonts, libraries and the document."""
KEPT_BYTES = 160 << 20
"""Memory above which a renderer ends after its job, because typst's cache only grows."""
MAX_JOBS = 50
NICENESS = 5
"""Requests come first when all processors are busy."""
ENDING = (signal.SIGPROF, signal.SIGALRM)
"""What ends a renderer whose job takes too much processor time, or too long should its worker have been killed."""


def serve(connection: Connection) -> None:
    """Answer each call with its result, its error, its processor time, and whether it was the last one."""
    for job in range(1, MAX_JOBS + 1):
        try:
            function, arguments, seconds, clock_seconds = connection.recv()
        except EOFError:
            return
        began = time.process_time()
        signal.alarm(clock_seconds)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        result: object = None
        error: Exception | None = None
        try:
            result = function(*arguments)
        except (ValueError, MemoryError) as refused:
            error = refused
        except Exception:  # noqa: BLE001  # the worker logs it
            error = RuntimeError(traceback.format_exc())
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        took = time.process_time() - began
        connection.send((result, error, took, job == MAX_JOBS or resident_bytes() > KEPT_BYTES))


def resident_bytes() -> int:
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    return 0


def main(descriptor: int) -> None:
    """Serve the worker at the other end of a socket. Signals to the whole process group are for the worker."""
    for received in (signal.SIGINT, signal.SIGTERM):
        signal.signal(received, signal.SIG_IGN)
    for ending in ENDING:  # a process inherits what its parent ignores and blocks
        signal.signal(ending, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    os.nice(NICENESS)
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    with Connection(descriptor) as connection:
        serve(connection)


if __name__ == "__main__":
    main(int(sys.argv[1]))
