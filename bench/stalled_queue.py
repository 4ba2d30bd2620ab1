"""Provoke a race of Granian's thread pool on a real server: python -m bench.stalled_queue [--first N] [--last N].

A thread that has just taken a request still counts as idle for a few instructions. A request that arrives then starts
no thread; if the first request waits for its body, the second waits behind it. The benchmark stops the thread that
takes an unfinished body after N instructions (ptrace), sends a read of another account, continues the thread, and
checks whether the read gets a response. It tries each N on a server without the spare thread (decision 15), then with
it. Exit status 1 if a read stalls with it; 2 if none stalls without it, because then the race did not happen.
"""

import argparse
import contextlib
import ctypes
import os
import select
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.servers import RETAINER, Server, request, start, stop, wait
from bench.slow_senders import open_account
from retainer.schema.migrations import migrate
from retainer.store.engines import Sqlite
from retainer.store.tx import Store

WITHOUT = """import sys
from retainer.cli import main
from retainer.server.http.spare_thread import SpareThread
SpareThread.start = lambda self: None
main()"""
COMMANDS = {"without": [sys.executable, "-c", WITHOUT, *RETAINER[3:]], "with": RETAINER}
SEIZE, INTERRUPT, STEP, DETACH = 0x4206, 0x4207, 9, 17
ANY_THREAD = 0x40000000  # __WALL: threads are waited for, too
FUTEX = "202"  # the system call on x86-64
HELD_SECONDS = 0.03  # for which the thread stands still, so that the server takes the read meanwhile
STALL_SECONDS = 2.0
TRIES = 40  # on one server: each leaves a body that a thread waits for
UNFINISHED = b"{" + b" " * 999

libc = ctypes.CDLL(None, use_errno=True)


class Lost(Exception):
    """The request was taken by a thread other than the one that was watched: the try says nothing."""


def ptrace(what: int, thread: int) -> None:
    """Tell the kernel to do something with a thread. Raises OSError."""
    if libc.ptrace(what, thread, None, None):
        raise OSError(ctypes.get_errno(), f"ptrace {what:#x}")


def wait_for_stop(thread: int) -> None:
    """Wait until a thread stands still. Raises Lost if it sleeps on."""
    end = time.monotonic() + STALL_SECONDS
    while not os.waitpid(thread, ANY_THREAD | os.WNOHANG)[0]:
        if time.monotonic() > end:
            raise Lost


@contextlib.contextmanager
def held(thread: int, instructions: int, link: socket.socket, sent: bytes) -> Iterator[None]:
    """A block in which a thread stands still, a number of instructions after a request has woken it."""
    ptrace(SEIZE, thread)
    ptrace(INTERRUPT, thread)
    wait_for_stop(thread)
    ptrace(STEP, thread)  # it sleeps on; the step ends when it is woken
    link.sendall(sent)
    wait_for_stop(thread)
    for _ in range(instructions):
        ptrace(STEP, thread)
        wait_for_stop(thread)
    yield
    ptrace(DETACH, thread)


def threads(server: Server) -> set[int]:
    """The threads of the worker, the only child of the main process."""
    main = server.process.pid
    (worker,) = Path(f"/proc/{main}/task/{main}/children").read_text().split()
    return {int(entry.name) for entry in Path(f"/proc/{worker}/task").iterdir()}


def is_idle(thread: int) -> bool:
    """Whether a thread of the pool waits for a request: with a time limit, unlike one that waits for a body."""
    call = Path(f"/proc/{thread}/syscall").read_text().split()
    return call[0] == FUTEX and int(call[4], 16) != 0


def is_answered(link: socket.socket, seconds: float) -> bool:
    """Whether an answer comes within some seconds."""
    return bool(select.select([link], [], [], seconds)[0]) and link.recv(65536).startswith(b"HTTP/1.1 200")


def attempt(command: list[str], places: list[int]) -> list[int]:
    """Start a server and take places from the list until one stalls; return that one."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        database = Path(folder) / "retainer.db"
        engine = Sqlite(database)
        migrate(engine)
        slow, other = (open_account(Store(engine), name, 1)[0] for name in ("slow", "other"))
        engine.close()
        server = start("Retainer", command, database, None)
        stack.callback(stop, server)
        wait(server)
        body = request("POST", "/tags", slow, UNFINISHED)[:-999]
        read = request("GET", "/tags", other)

        def connect() -> socket.socket:
            return stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))

        healthy = connect()
        time.sleep(1)
        others = threads(server)
        connect().sendall(body)  # the pool's first thread, which has been there, waits for this one
        time.sleep(0.3)
        healthy.sendall(read)
        is_answered(healthy, 5)
        for _ in range(min(TRIES, len(places))):
            time.sleep(0.05)
            idle = [thread for thread in threads(server) - others if is_idle(thread)]
            if len(idle) != 1:
                return []
            link = connect()
            with held(idle[0], places[0], link, body):
                healthy.sendall(read)
                comes = is_answered(healthy, HELD_SECONDS)
            place = places.pop(0)
            if not comes and not is_answered(healthy, STALL_SECONDS):
                return [place]
    return []


def stalls(command: list[str], places: list[int]) -> list[int]:
    """Return the places at which a read stalls."""
    found = []
    for _ in range(3 * len(places)):
        if not places:
            break
        with contextlib.suppress(Lost):
            found += attempt(command, places)
    if places:
        raise SystemExit(f"The thread that takes a request was not found. These places were not tried: {places}")
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--first", type=int, default=60, help="the first place: instructions after the thread is woken"
    )
    options.add_argument("--last", type=int, default=140, help="the last place")
    options.add_argument("--stride", type=int, default=4, help="how many instructions lie between two places")
    given = options.parse_args()
    places = range(given.first, given.last + 1, given.stride)
    found = {name: stalls(command, list(places)) for name, command in COMMANDS.items()}
    for name, at in found.items():
        print(f"{name + ' the spare thread':<26}{len(at)} of {len(places)} reads stalled {at or ''}")
    raise SystemExit(1 if found["with"] else 0 if found["without"] else 2)


if __name__ == "__main__":
    main()
