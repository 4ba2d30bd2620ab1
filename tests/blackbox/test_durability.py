"""Responses to concurrent writers, compared with the order of system calls of the server."""

import contextlib
import http.client
import itertools
import os
import re
import signal
import threading

from testing import process
from testing.process import COMMAND, PATIENCE, at_once, children, query, running, statuses, with_database

from tests.length import length, only_full
from tests.skips import find_program

WRITERS = 16


def flushes(lines):
    """Return the first and last line of each flush of the write-ahead log."""
    begun, found = {}, []
    for number, line in enumerate(lines):
        thread = line.split()[0]
        if re.search(r" (fsync|fdatasync)\(\d+<[^>]*-wal>", line):
            begun[thread] = number
        if re.search(r"(fsync|fdatasync)(\(| resumed).*= 0", line) and thread in begun:
            found.append((begun.pop(thread), number))
    return found


def first(lines, *parts):
    """Return the first line with all these parts."""
    return next(number for number, line in enumerate(lines) if all(part in line for part in parts))


@only_full
def test_a_write_is_acknowledged_only_after_a_flush_that_began_when_it_was_sent(tmp_path, monkeypatch):
    find_program("strace")
    trace = tmp_path / "trace.txt"
    calls = ("-e", "trace=fsync,fdatasync,recvfrom,read,readv,sendto,write,writev")
    slow = ("-e", "inject=fsync,fdatasync:delay_exit=20000")
    monkeypatch.setattr(process, "PRELOADED", None)
    monkeypatch.setattr(process, "COMMAND", ["strace", "-f", "-y", "-s", "4096", "-o", trace, *calls, *slow, *COMMAND])
    with running(with_database(tmp_path), "--no-monitor") as server:
        agency = server.agency("North", "enterprise")

        def write(number):
            with server.client(agency["key"]) as client:
                return [client.post("/tags", {"name": f"Tag {number}.{turn}."}) for turn in range(4)]

        found = [answer for answers in at_once(WRITERS, write) for answer in answers]
        os.kill(children(server.process.pid)[0], signal.SIGTERM)  # strace ends with what it watches
        server.process.wait(timeout=PATIENCE)
    assert statuses(found) == {201: 4 * WRITERS}
    lines = trace.read_text(encoding="utf-8", errors="replace").splitlines()
    flushed = flushes(lines)
    for answer in found:
        name = answer.data["name"]
        sent = first(lines, name)
        acknowledged = first(lines, name, "201 Created")
        assert [1 for begun, ended in flushed if sent < begun <= ended < acknowledged], name


def test_what_was_acknowledged_is_there_after_kills_in_the_middle_of_groups(tmp_path):
    folder, acknowledged, names = with_database(tmp_path), set(), itertools.count()
    key = ""
    for _ in range(length(30)):
        with running(folder, "--no-monitor") as server:
            key = key or server.agency("Killed", "enterprise")["key"]

            def write(_, server=server, key=key):
                with contextlib.suppress(OSError, http.client.HTTPException), server.client(key) as client:
                    while True:
                        name = f"Tag {next(names)}"
                        if client.post("/tags", {"name": name}).status == 201:
                            acknowledged.add(name)

            killer = threading.Timer(0.5, server.kill)
            killer.start()
            at_once(WRITERS, write)
            killer.join()
    with running(folder, "--no-monitor") as server:
        kept = {name for (name,) in query(server.database, "SELECT name FROM tags")}
    assert acknowledged, "some were"
    assert acknowledged - kept == set()
