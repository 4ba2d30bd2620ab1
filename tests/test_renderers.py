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

from retainer.documents import logo_files, pdf
from retainer.documents.logo_files import read_logo
from retainer.documents.pdf import render
from retainer.errors import Refusal
from retainer.kernel.representations import JobFailed
from retainer.server import renderer
from retainer.server.renderers import COUNT, LONG_SECONDS, PricedTurns, RendererEnded, Renderers
from tests.documents.made import document
from tests.documents.test_logo_files import SHAPE, svg

NORTH, SOUTH, EAST, WEST, VICTIM = range(1, 6)
SECONDS = 60
"""Processor time of jobs whose limit does not matter."""
BLURS = '<feGaussianBlur stdDeviation="30"/>' * 4000
BLURRED = svg(f'<filter id="f">{BLURS}</filter><g filter="url(#f)">{SHAPE}</g>')
"""A logo of 140 KB that takes minutes to draw."""


@pytest.fixture
def renderers():
    found = Renderers(wait_seconds=60, clock_seconds=60)
    yield found
    found.close()


def burning(seconds):
    """Return a job that takes processor time."""
    return exec, f"import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass"


def lasting(path):
    """Return a job that goes on while a file exists."""
    return exec, f"import os, time\nwhile os.path.exists({str(path)!r}): time.sleep(0.01)"


def test_a_result_comes_from_another_process_which_is_used_again(renderers):
    first, second = (renderers.run(NORTH, SECONDS, os.getpid) for _ in range(2))
    assert first == second != os.getpid()
    assert renderers.run(NORTH, SECONDS, bytes.lower, b"X" * 1_000_000) == b"x" * 1_000_000
    with pytest.raises(ValueError, match="invalid literal"):
        renderers.run(NORTH, SECONDS, int, "x")
    assert renderers.run(NORTH, SECONDS, os.getpid) == first


def test_an_unexpected_error_is_told_with_its_place(renderers):
    with pytest.raises(RuntimeError, match=r"in serve(.|\n)*TypeError: object of type 'int' has no len"):
        renderers.run(NORTH, SECONDS, len, 1)


def test_a_job_that_takes_too_much_processor_time_is_ended_alone(renderers):
    with pytest.raises(JobFailed) as failed:
        renderers.run(NORTH, 0.2, *burning(SECONDS))
    assert failed.value.reason == "time"
    assert renderers.run(NORTH, SECONDS, abs, -1) == 1


def test_time_in_which_a_job_does_not_run_does_not_count(renderers):
    renderers.run(NORTH, 0.2, time.sleep, 1)
    assert renderers.turns.pause_of(NORTH) < 0


def test_a_job_that_gets_no_processor_time_is_the_fault_of_the_server():
    renderers = Renderers(clock_seconds=1)
    with pytest.raises(Refusal, match=r"too busy to make this document now\. Try again in 5 seconds") as refused:
        renderers.run(NORTH, SECONDS, signal.pause)
    renderers.clock_seconds = SECONDS
    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "5"})
    assert renderers.run(NORTH, SECONDS, abs, -1) == 1
    renderers.close()


def test_a_logo_that_takes_too_long_is_refused_with_what_to_do(renderers):
    with pytest.raises(Refusal, match=r"memory to draw. Simplify it, or export") as refused:
        read_logo(NORTH, BLURRED, renderers.run)
    assert [*refused.value.members["errors"]] == ["logo"]


def test_a_job_that_takes_too_much_memory_is_ended_alone(renderers):
    with pytest.raises(JobFailed) as failed:
        renderers.run(NORTH, SECONDS, bytes, 2 * renderer.MAX_BYTES)
    assert failed.value.reason == "memory"
    assert renderers.run(NORTH, SECONDS, abs, -1) == 1


@pytest.mark.parametrize("end", [os.abort, os._exit])
def test_a_renderer_that_ends_fails_its_own_job_only(renderers, end):
    arguments = () if end is os.abort else (0,)
    began, ends = threading.Event(), []

    def other():
        began.set()
        ends.append(renderers.run(SOUTH, SECONDS, sum, range(10_000_000)))

    thread = threading.Thread(target=other)
    thread.start()
    began.wait()
    with pytest.raises(RendererEnded):
        renderers.run(NORTH, SECONDS, end, *arguments)
    thread.join()
    assert ends == [49_999_995_000_000]
    assert renderers.run(NORTH, SECONDS, abs, -1) == 1


def test_errors_of_a_renderer_are_told_with_its_end_and_written_nowhere_else(renderers, capfd):
    for _ in range(3):
        with contextlib.suppress(RuntimeError):  # more than a pipe holds delays nothing
            renderers.run(NORTH, SECONDS, os.write, 2, b"broken\n" * 10_000)
    with pytest.raises(RendererEnded, match=r"(?s)with status -6\. broken\nbroken"):
        renderers.run(NORTH, SECONDS, os.abort)
    assert capfd.readouterr() == ("", "")


def test_a_renderer_that_is_idle_ends_and_is_replaced():
    renderers = Renderers(idle_seconds=1)
    pid = renderers.run(NORTH, SECONDS, os.getpid)
    until(lambda: not is_running(pid), "it ends")
    assert renderers.run(NORTH, SECONDS, os.getpid) != pid
    renderers.close()


def test_a_renderer_is_renewed_after_some_jobs_and_after_a_big_one(renderers):
    pids = [renderers.run(NORTH, SECONDS, os.getpid) for _ in range(renderer.MAX_JOBS + 1)]
    assert len(set(pids[:-1])) == 1
    assert pids[-1] != pids[0]
    renderers.run(NORTH, SECONDS, eval, f"setattr(__builtins__, 'kept', 'x' * {renderer.KEPT_BYTES})")
    assert renderers.run(NORTH, SECONDS, os.getpid) != pids[-1]


def test_renderers_end_with_their_worker_even_if_that_is_killed():
    code = (
        "import os, signal; from retainer.server.renderers import Renderers; r = Renderers(); r.run(1, 60, os.getpid)"
    )
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


def test_an_account_has_one_renderer_and_waits_for_it_only_so_long(renderers, tmp_path):
    renderers.wait_seconds = 0
    (file := tmp_path / "held").touch()
    with ThreadPoolExecutor(2) as pool:
        held = pool.submit(renderers.run, NORTH, SECONDS, *lasting(file))
        try:
            until(lambda: renderers.turns.all.free == COUNT - 1, "it runs")
            with pytest.raises(Refusal, match="as many documents as it can") as refused:
                renderers.run(NORTH, SECONDS, abs, -1)
            assert refused.value.headers == {"Retry-After": "5"}
            assert renderers.run(SOUTH, SECONDS, abs, -1) == 1
            assert not held.done()
        finally:
            file.unlink()
    assert renderers.run(NORTH, SECONDS, abs, -1) == 1


@pytest.mark.parametrize("hostile", [(NORTH, SOUTH), (NORTH, SOUTH, EAST, WEST)])
def test_accounts_whose_jobs_take_long_leave_a_renderer_to_all_others(renderers, hostile, monkeypatch, tmp_path):
    monkeypatch.setattr(logo_files, "MAX_SECONDS", 0.2)
    for account in hostile:
        with pytest.raises(Refusal) as refused:
            read_logo(account, BLURRED, renderers.run)
        assert "takes too much time" in refused.value.members["errors"]["logo"][0]
        assert renderers.turns.pause_of(account) > 0
        renderers.turns.pause(account, 60)  # however slow the machine is
    (held := tmp_path / "held").touch()
    with ThreadPoolExecutor(2 * len(hostile)) as pool:
        jobs = [pool.submit(renderers.run, account, SECONDS, *lasting(held)) for account in hostile * 2]
        try:
            until(lambda: renderers.turns.of_paused.waiting == len(jobs) - 1, "one runs, the others wait for it")
            for _ in range(3):
                made = renderers.run(VICTIM, pdf.MAX_SECONDS, render, document())
                assert made.startswith(b"%PDF")
            assert not any(job.done() for job in jobs)
            renderers.wait_seconds = 0
            with pytest.raises(Refusal, match="much processor time, so those of other accounts come first") as refused:
                renderers.run(SOUTH, SECONDS, abs, -1)
            assert 5 < int(refused.value.headers["Retry-After"]) <= 60
        finally:
            held.unlink()
        assert [job.result() for job in jobs] == [None] * len(jobs)


def test_a_job_that_waits_while_another_of_its_account_takes_long_waits_with_such(renderers, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for file in (first, second):
        file.touch()
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(renderers.run, NORTH, SECONDS, *lasting(first))]
        until(lambda: renderers.turns.all.free == COUNT - 1, "it runs")
        jobs.append(pool.submit(renderers.run, NORTH, SECONDS, abs, -1))
        until(lambda: renderers.turns.all.waiting == 1, "another job of the account waits")
        for account in (NORTH, SOUTH):
            renderers.turns.pause(account, 60)
        jobs.append(pool.submit(renderers.run, SOUTH, SECONDS, *lasting(second)))
        until(lambda: renderers.turns.of_paused.free == 0, "it runs, too")
        first.unlink()
        until(lambda: renderers.turns.of_paused.waiting == 1, "the other waits for the renderer of accounts that pause")
        assert renderers.run(VICTIM, SECONDS, abs, -1) == 1
        assert [job.done() for job in jobs] == [True, False, False]
        second.unlink()
        assert [job.result() for job in jobs] == [None, 1, None]


def test_an_account_whose_pause_is_over_is_like_any_other_and_nothing_is_kept_of_it():
    turns = PricedTurns()
    for account in range(100):
        turns.pause(account, 0)
    turns.pause(NORTH, 60)
    assert [*turns._pauses] == [NORTH]  # noqa: SLF001  # nothing else shows what is kept
    turns.pause(NORTH, 0)
    with turns.turn(NORTH, 0), turns.turn(SOUTH, 0):
        assert turns.of_paused.free == COUNT - 1


def test_documents_of_usual_length_earn_no_pause(renderers):
    renderers.run(NORTH, pdf.MAX_SECONDS, *burning(LONG_SECONDS / 2))
    assert renderers.turns.pause_of(NORTH) < 0
    renderers.run(NORTH, pdf.MAX_SECONDS, *burning(LONG_SECONDS * 1.1))
    assert renderers.turns.pause_of(NORTH) > 0
