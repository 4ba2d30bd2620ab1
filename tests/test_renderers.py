"""Renderers: limits of memory and time that end one job and nothing else, and turns that accounts share."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from testing.process import children, until

from retainer.documents.logo_files import read_logo
from retainer.errors import Refusal
from retainer.server import renderer
from retainer.server.renderers import COUNT, RendererEnded, Renderers
from tests.documents.test_logo_files import png

NORTH, SOUTH = 1, 2


@pytest.fixture
def renderers():
    found = Renderers(job_seconds=60, wait_seconds=60)
    yield found
    found.close()


def test_a_result_comes_from_another_process_which_is_used_again(renderers):
    first, second = (renderers.run(NORTH, os.getpid) for _ in range(2))
    assert first == second != os.getpid()
    assert renderers.run(NORTH, bytes.lower, b"X" * 1_000_000) == b"x" * 1_000_000
    with pytest.raises(ValueError, match="invalid literal"):
        renderers.run(NORTH, int, "x")
    assert renderers.run(NORTH, os.getpid) == first


def test_an_unexpected_error_is_told_with_its_place(renderers):
    with pytest.raises(RuntimeError, match=r"in serve(.|\n)*TypeError: object of type 'int' has no len"):
        renderers.run(NORTH, len, 1)


def test_a_job_that_takes_too_long_is_ended_alone():
    renderers = Renderers(job_seconds=1)
    with pytest.raises(Refusal, match="more than 1 second") as refused:
        renderers.run(NORTH, signal.pause)
    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "5"})
    assert renderers.run(NORTH, abs, -1) == 1
    renderers.close()


def test_a_logo_that_takes_too_long_is_refused_with_what_to_do():
    renderers = Renderers(job_seconds=0)
    with pytest.raises(Refusal, match=r"memory to draw. Simplify it, or export") as refused:
        read_logo(NORTH, png(), renderers.run)
    assert [*refused.value.members["errors"]] == ["logo"]
    renderers.close()


def test_a_job_that_takes_too_much_memory_is_ended_alone(renderers):
    with pytest.raises(Refusal, match="too much memory"):
        renderers.run(NORTH, bytes, 2 * renderer.MAX_BYTES)
    assert renderers.run(NORTH, abs, -1) == 1


@pytest.mark.parametrize("end", [os.abort, os._exit])
def test_a_renderer_that_ends_fails_its_own_job_only(renderers, end):
    arguments = () if end is os.abort else (0,)
    began, ends = threading.Event(), []

    def other():
        began.set()
        ends.append(renderers.run(SOUTH, sum, range(10_000_000)))

    thread = threading.Thread(target=other)
    thread.start()
    began.wait()
    with pytest.raises(RendererEnded):
        renderers.run(NORTH, end, *arguments)
    thread.join()
    assert ends == [49_999_995_000_000]
    assert renderers.run(NORTH, abs, -1) == 1


def test_errors_of_a_renderer_are_told_with_its_end_and_written_nowhere_else(renderers, capfd):
    for _ in range(3):
        with contextlib.suppress(RuntimeError):  # more than a pipe holds delays nothing
            renderers.run(NORTH, os.write, 2, b"broken\n" * 10_000)
    with pytest.raises(RendererEnded, match=r"(?s)with status -6\. broken\nbroken"):
        renderers.run(NORTH, os.abort)
    assert capfd.readouterr() == ("", "")


def test_a_renderer_that_is_idle_ends_and_is_replaced():
    renderers = Renderers(idle_seconds=1)
    pid = renderers.run(NORTH, os.getpid)
    until(lambda: not is_running(pid), "it ends")
    assert renderers.run(NORTH, os.getpid) != pid
    renderers.close()


def test_a_renderer_is_renewed_after_some_jobs_and_after_a_big_one(renderers):
    pids = [renderers.run(NORTH, os.getpid) for _ in range(renderer.MAX_JOBS + 1)]
    assert len(set(pids[:-1])) == 1
    assert pids[-1] != pids[0]
    renderers.run(NORTH, eval, f"setattr(__builtins__, 'kept', 'x' * {renderer.KEPT_BYTES})")
    assert renderers.run(NORTH, os.getpid) != pids[-1]


def test_renderers_end_with_their_worker_even_if_that_is_killed():
    code = "import os, signal; from retainer.server.renderers import Renderers; r = Renderers(); r.run(1, os.getpid)"
    worker = subprocess.Popen(
        [sys.executable, "-c", f"{code}; print(flush=True); signal.pause()"], stdout=subprocess.PIPE
    )
    worker.stdout.readline()
    (pid,) = children(worker.pid)
    worker.kill()
    worker.wait()
    worker.stdout.close()
    until(lambda: not is_running(pid), "the renderer ends")


def is_running(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    return False


def test_an_account_has_one_renderer_and_waits_for_it_only_so_long(renderers):
    renderers.wait_seconds = 0
    with ThreadPoolExecutor(2) as pool:
        held = pool.submit(renderers.run, NORTH, time.sleep, 2)
        until(lambda: renderers.turns.free == COUNT - 1, "it runs")
        with pytest.raises(Refusal, match="at once"):
            renderers.run(NORTH, abs, -1)
        assert renderers.run(SOUTH, abs, -1) == 1
        assert not held.done()
    assert renderers.run(NORTH, abs, -1) == 1
