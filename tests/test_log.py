"""The log: it gets every request, and no request waits for its reader."""

import fcntl
import io
import json
import os
import select
import threading
from pathlib import Path

import pytest
from sqlalchemy import text

from retainer.server.monitoring import log as logs
from retainer.server.monitoring.log import Log
from tests.databases import any_database
from tests.factories import ApiClient

SECONDS = 20
PIPE_BYTES = 4096


class Terminal:
    """The reading end of a small pipe; and a log that writes to it."""

    def __init__(self, api: ApiClient) -> None:
        self.end, writing = os.pipe()
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.stream = os.fdopen(writing, "wb", buffering=0)
        self.log = Log(self.stream, api.store.engine)
        self.read_so_far = b""

    def read(self, lines: int) -> list[dict]:
        """Read until there are this many lines; return those read since the last call."""
        while self.read_so_far.count(b"\n") < lines:
            assert select.select([self.end], [], [], SECONDS)[0], "nothing is written"
            self.read_so_far += os.read(self.end, 65536)
        *read, self.read_so_far = self.read_so_far.split(b"\n")
        return [json.loads(line) for line in read]

    def close(self) -> None:
        os.close(self.end)  # what waits to be written is refused from now on
        self.log.writer.wait(SECONDS)
        self.stream.close()


@pytest.fixture
def terminal(api):
    opened = Terminal(api)
    yield opened
    opened.close()


def messages(lines):
    return [line["message"] for line in lines]


def test_lines_are_written_by_a_thread_that_ends_with_them(api):
    log = Log(io.BytesIO(), api.store.engine)
    for number in range(50):
        log.warning(str(number))
    log.drain()
    assert messages(map(json.loads, log.writer.stream.getvalue().splitlines())) == [str(n) for n in range(50)]
    assert "log" not in {thread.name for thread in threading.enumerate()}


@any_database
def test_nobody_waits_for_a_stopped_reader_of_the_log(terminal):
    for number in range(500):
        terminal.log.warning(str(number))
        terminal.log.flush()
    assert messages(terminal.read(500)) == [str(number) for number in range(500)]


@any_database
def test_lines_for_a_stopped_reader_are_bounded_and_the_rest_counted(terminal, monkeypatch):
    monkeypatch.setattr(logs, "MAX_LINES", 1000)
    log = terminal.log
    for number in range(5000):
        log.warning(str(number))
        log.flush()
    taken = 5000 - log.writer.dropped
    *lines, missing = messages(terminal.read(taken + 1))
    assert lines == [str(number) for number in range(taken)]
    assert 1000 <= taken < 1000 + PIPE_BYTES // 50, "what waits, and what the pipe holds"
    assert missing.startswith(f"{5000 - taken} log lines are missing here")
    log.writer.wait(SECONDS)
    log.warning("after")
    log.flush()
    assert messages(terminal.read(1)) == ["after"], "it is said once"


@any_database
def test_lines_that_nobody_flushes_are_bounded_and_the_request_log_has_all_requests(api, monkeypatch):
    monkeypatch.setattr(logs, "MAX_LINES", 10)
    for _ in range(14):
        api.get("/me")
    log = api.app.log
    log.drain()
    lines = [json.loads(line) for line in log.writer.stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["request"] * 10 + ["warning"]
    assert lines[-1]["message"].startswith("4 log lines are missing here")
    log.recorder.write(api.store)
    with api.store.unscoped() as tx:
        assert tx.value(text("SELECT count(*) FROM requests")) == 14


@any_database
def test_what_a_full_disk_refuses_is_written_when_there_is_room(api):
    with Path("/dev/full").open("wb", buffering=0) as full:
        log = Log(full, api.store.engine)
        for number in range(30):
            log.warning(str(number))
            log.drain()
    log.writer.stream = io.BytesIO()
    log.drain()
    assert messages(map(json.loads, log.writer.stream.getvalue().splitlines())) == [str(n) for n in range(30)]


@any_database
def test_what_a_stream_takes_in_part_is_written_whole(terminal):
    os.set_blocking(terminal.stream.fileno(), False)
    for _ in range(3):
        terminal.log.warning("x" * 6000)
        terminal.log.drain()
    first = os.read(terminal.end, 65536)
    assert len(first) == PIPE_BYTES
    os.set_blocking(terminal.stream.fileno(), True)
    terminal.read_so_far = first
    terminal.log.flush()
    assert messages(terminal.read(3)) == ["x" * 6000] * 3


@any_database
def test_a_line_that_is_no_unicode_takes_no_other_with_it(api):
    log = Log(io.BytesIO(), api.store.engine)
    log.warning("before")
    log.backup(Path(os.fsdecode(b"/backups/\xff.db")), 1)
    log.warning("after")
    log.drain()
    before, backup, after = map(json.loads, log.writer.stream.getvalue().splitlines())
    assert (before["message"], backup["file"], after["message"]) == ("before", "/backups/\udcff.db", "after")
