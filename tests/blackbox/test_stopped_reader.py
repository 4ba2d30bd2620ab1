"""Standard error is not read, as after Ctrl-S: requests, tasks and the main process continue."""

import contextlib
import fcntl
import json
import os
import signal

import pytest
from testing.process import answers, children, query, running, until, with_database

from tests.length import only_full

REQUESTS = 100


class Reader:
    """The reader of a server's standard error, which has not begun; the pipe takes some ten lines without it."""

    def __init__(self, folder):
        os.mkfifo(folder / "err.txt")
        self.end = os.open(folder / "err.txt", os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(self.end, fcntl.F_SETPIPE_SZ, 4096)
        self.read = b""

    def lines(self, event):
        """The lines of an event that were read so far; reads what is there."""
        with contextlib.suppress(BlockingIOError):  # there is nothing now
            self.read += os.read(self.end, 65536)
        whole = self.read.rpartition(b"\n")[0].splitlines()
        return [line for line in map(json.loads, whole) if line["event"] == event]


@pytest.fixture
def reader(tmp_path):
    reading = Reader(with_database(tmp_path))
    yield reading
    os.close(reading.end)


def test_all_goes_on_without_a_reader_and_nothing_was_lost_when_it_is_back(tmp_path, reader):
    with running(tmp_path, "--no-monitor") as server:
        agency = server.agency("North", "enterprise")
        with server.client(agency["key"]) as client:
            for number in range(REQUESTS):
                client.get("/clients", X_Request_Id=f"sent-{number}")
        recorded = "SELECT coalesce(sum(requests), 0) FROM request_hours"
        until(lambda: query(server.database, recorded) == [(REQUESTS,)], "the request log is written")
        noted = "SELECT count(*) FROM api_keys WHERE last_used_at IS NOT NULL"
        until(lambda: query(server.database, noted) == [(1,)], "the use of the key is noted")
        (worker,) = children(server.process.pid)
        until(
            lambda: len([line for line in reader.lines("request") if line["request_id"][:4] == "sent"]) == REQUESTS,
            "all is read",
        )
        assert reader.lines("failure") == []
        os.kill(worker, signal.SIGKILL)
        until(lambda: set(children(server.process.pid)) - {worker}, "another takes its place")


@only_full
def test_the_main_process_replaces_a_worker_and_ends_without_a_reader(tmp_path, reader):
    with running(tmp_path, "--no-monitor") as server:
        fill(reader, tmp_path)
        for _ in range(2):
            (worker,) = children(server.process.pid)
            os.kill(worker, signal.SIGKILL)
            until(
                lambda worker=worker: worker not in children(server.process.pid) and answers(server), "another is there"
            )
        assert server.stop() == 0


def fill(reader, folder):
    """Let others of the pipe's writers leave no room in it."""
    writing = os.open(folder / "err.txt", os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while os.write(writing, b"x"):
            pass
    os.close(writing)
