"""Jobs: whatever happens, each row is written once, and people see how far a job is and what it refused."""

import io
import multiprocessing
import random
import re

import time_machine
from testing.process import PATIENCE

from retainer.identity import closing
from retainer.identity.actors import absent_user
from retainer.jobs import jobs, loop
from retainer.jobs.daily import daily
from retainer.jobs.kinds import JobKind
from retainer.jobs.step import DUE, LEASE, MAX_ATTEMPTS
from retainer.outbound.leases import Places
from retainer.store.engines.base import DeadlineExceeded
from tests.databases import any_database, each_database
from tests.jobs import tagging
from tests.jobs.tagging import do, find, start

PROCESSES = multiprocessing.get_context("forkserver")
"""Starts processes as copies of one that has loaded the product once."""
PROCESSES.set_forkserver_preload(["tests.jobs.tagging"])
MONDAY = "2026-03-02T10:00:00+00:00"


def tags(api):
    return sorted(int(name.removeprefix("Tag ")) for (name,) in api.sql("SELECT name FROM tags"))


def one_row(tx, job, limit):
    return tagging.next_rows(tx, job, min(limit, 1))


def end_lease(api):
    """Let the lease of a process that was killed end."""
    api.sql("UPDATE jobs SET next_step_at = '2026-01-01T00:00:00.000000Z' WHERE next_step_at IS NOT NULL")


@each_database
def test_a_job_writes_each_row_once_and_says_so(api):
    job_id = start(api, last=450)
    assert do(api) == []
    job = find(api, job_id)
    assert (job.status, job.position, job.done, job.refused) == ("done", 450, 450, 0)
    assert (job.message, job.counts) == ("450 tags made.", {"letters": sum(len(f"Tag {n}") for n in range(1, 451))})
    assert tags(api) == [*range(1, 451)]


@each_database
def test_a_job_whose_process_is_killed_continues_exactly_where_it_was(api):
    job_id = start(api, last=100_000, seconds=0.02)  # more than it gets to
    url, kills, position, randomly = api.app.settings.database, 0, 0, random.Random(7)
    longest = 0.6
    while kills < 3 or position < 40:
        end_lease(api)
        has_begun = PROCESSES.Event()
        process = PROCESSES.Process(target=tagging.do_alone, args=(url, api.account_id, job_id, has_begun.set))
        process.start()
        assert has_begun.wait(PATIENCE)
        process.join(randomly.uniform(0.05, longest))
        process.kill()
        process.join()
        job, kills, before = find(api, job_id), kills + 1, position
        position = job.position
        assert tags(api) == [*range(1, position + 1)], "the rows and the progress are of the same transactions"
        assert job.done == position >= before
        longest = 0.6 if position > before else 1.5 * longest  # a busy machine needs longer for a step
    end_lease(api)
    api.sql("UPDATE jobs SET options = $1 WHERE id = $2", f'{{"last":{position + 20}}}', job_id)
    assert do(api) == []
    assert (find(api, job_id).status, tags(api)) == ("done", [*range(1, position + 21)])


@each_database
def test_a_refused_row_is_left_out_with_its_reason_and_all_others_are_written(api):
    job_id = start(api, last=230, refused=[1, 7, 8, 230])
    assert do(api) == []
    job = find(api, job_id)
    assert (job.status, job.done, job.refused) == ("done", 226, 4)
    assert job.counts == {"letters": sum(len(f"Tag {n}") for n in tags(api))}
    assert tags(api) == sorted({*range(1, 231)} - {1, 7, 8, 230})
    with api.operating() as tx:
        found = [tuple(row) for row in jobs.list_refusals(tx, job, 10)]
    assert found == [
        (number, row, f"Tag {row}", "name: Must be another.") for number, row in enumerate([1, 7, 8, 230], 1)
    ]


@each_database
def test_a_dry_run_counts_and_refuses_the_same_and_writes_nothing(api):
    job_id = start(api, last=230, refused=[7], is_dry_run=True)
    assert do(api) == []
    job = find(api, job_id)
    assert (job.status, job.done, job.refused) == ("done", 229, 1)
    assert tags(api) == []
    assert api.get("/events").json["data"] == []


@any_database
def test_a_stopped_job_writes_nothing_more_and_continues_after_its_last_row(api):
    job_id = start(api, last=3, breaks_at=2)
    with api.operating() as tx:
        jobs.stop(tx, find(api, job_id))
    do(api)
    assert (find(api, job_id).status, tags(api)) == ("stopped", [])
    with api.operating() as tx:
        jobs.resume(tx, find(api, job_id))
    ((_, error),) = do(api)
    assert isinstance(error, ValueError)
    job = find(api, job_id)
    assert (job.status, job.position, tags(api)) == ("failed", 0, [])
    assert "The log of the server says what" in job.message
    api.sql("UPDATE jobs SET options = '{\"last\":3}'")
    with api.operating() as tx:
        jobs.resume(tx, job)
    do(api)
    assert (find(api, job_id).status, tags(api)) == ("done", [1, 2, 3])


@any_database
def test_a_job_that_only_waits_for_its_turn_uses_no_attempt(api):
    """Hundreds of accounts can have jobs in the same minute: then leases end, and other processes take them."""
    job_id = start(api, last=3)
    for _ in range(MAX_ATTEMPTS + 1):
        assert DUE.claim(api.store, Places(1, ()), LEASE)
        end_lease(api)
    assert do(api) == []
    assert (find(api, job_id).status, tags(api)) == ("done", [1, 2, 3])


@any_database
def test_a_job_whose_step_never_succeeds_fails_visibly_and_can_continue(api):
    job_id, is_slow = start(api, last=3), [True]

    def write(tx, job, row):
        if row.position == 2 and is_slow:
            raise DeadlineExceeded("The transaction exceeded its time limit.")
        tagging.write(tx, job, row)

    kinds = tagging.KINDS | {"tagging": tagging.TAGGING._replace(write=write, next_rows=one_row)}
    for _ in range(1 + MAX_ATTEMPTS):  # the first one has written a row
        end_lease(api)
        assert [type(error) for _, error in do(api, kinds)] == [DeadlineExceeded]
        assert find(api, job_id).status == "running"
    end_lease(api)
    assert do(api, kinds) == []
    job = find(api, job_id)
    assert (job.status, job.position, tags(api)) == ("failed", 1, [1])
    assert "Continue it when the server is less busy" in job.message
    is_slow.clear()
    with api.operating() as tx:
        jobs.resume(tx, job)
    assert do(api, kinds) == []
    assert (find(api, job_id).status, tags(api)) == ("done", [1, 2, 3])


@each_database
def test_a_job_that_is_stopped_while_a_step_runs_elsewhere_stays_stopped(api):
    job_id = start(api, last=500)
    (work,) = loop.DUE.claim(api.store, Places(1, ()), loop.LEASE)
    assert loop.do_step(api.store, tagging.KINDS, work)
    with api.operating() as tx:
        jobs.stop(tx, find(api, job_id))
    assert not loop.do_step(api.store, tagging.KINDS, work)
    written = tags(api)  # of one step: at most 200, fewer where they take long
    assert (find(api, job_id).status, written) == ("stopped", [*range(1, len(written) + 1)])
    assert 0 < len(written) <= 200


@any_database
def test_a_job_acts_as_its_user_and_fails_once_the_user_is_no_longer_active(api):
    job_id = start(api, absent_user(api.store, api.member_id), last=1)
    do(api)
    (event,) = api.get("/events").json["data"]
    assert event["user_id"] == api.member_id
    job_id = start(api, absent_user(api.store, api.member_id), last=5, refused=[])
    api.set_user(api.member_id, {"is_active": False})
    do(api)
    assert find(api, job_id).status == "failed"
    assert "no longer active" in find(api, job_id).message


@any_database
def test_jobs_of_a_suspended_account_stand_still(api):
    job_id = start(api, last=1)
    with api.operating() as tx:
        closing.suspend(tx, "Unpaid")
    do(api)
    assert find(api, job_id).status == "waiting"


@each_database
def test_each_account_has_one_daily_job_that_starts_what_is_due_at_six_in_its_zone(api):
    due = ["Make tags"]
    kind = tagging.TAGGING._replace(is_due=lambda _: due[0], next_rows=lambda *_: [])
    kinds = {"daily": daily([kind]), "tagging": kind}
    with time_machine.travel(MONDAY, tick=False) as clock:
        do(api, kinds)
        do(api, kinds)
        rows = api.sql("SELECT account_id, next_step_at FROM jobs WHERE kind = 'daily' ORDER BY account_id")
        assert [at for _, at in rows] == ["2026-03-03T05:00:00.000000Z", rows[1][1]]
        assert len({account for account, _ in rows}) == 2
        started = "SELECT count(*) FROM jobs WHERE kind = 'tagging' AND account_id = $1"
        assert api.sql(started, api.account_id) == [(1,)]
        clock.move_to("2026-03-05T04:59:00+00:00")
        do(api, kinds)
        assert api.sql(started, api.account_id) == [(2,)], "once for the days that were missed"
        due[0] = None
        clock.move_to("2026-03-06T05:01:00+00:00")
        do(api, kinds)
        assert api.sql(started, api.account_id) == [(2,)]
        before = "SELECT id FROM jobs WHERE kind = 'daily' ORDER BY id"
        ids = api.sql(before)
        clock.move_to("2026-09-01T04:01:00+00:00")
        do(api, kinds)
        assert api.sql(before) == ids, "it is no old job, even after half a year without a server"


@any_database
def test_a_daily_job_that_fails_is_due_again_on_the_next_morning(api):
    def fail(_):
        raise ValueError("broken")

    kinds = {"daily": daily([JobKind("broken", lambda *_: [], lambda *_: None, is_due=fail)])}
    with time_machine.travel(MONDAY, tick=False):
        assert re.search("broken", str(do(api, kinds)))
        assert {at for (at,) in api.sql("SELECT next_step_at FROM jobs")} >= {"2026-03-03T05:00:00.000000Z"}


@any_database
def test_a_clock_that_was_ahead_delays_no_job(api):
    with time_machine.travel("2027-01-01T00:00:00+00:00", tick=False):
        start(api, last=1)
    with time_machine.travel(MONDAY, tick=False):
        do(api)
        do(api)
    assert tags(api) == [1]


@any_database
def test_a_job_is_deleted_with_its_refusals_and_input_90_days_after_its_end(api):
    with time_machine.travel(MONDAY, tick=False) as clock:
        start(api, last=2, refused=[2])
        do(api)
        clock.move_to("2026-06-01T10:00:00+00:00")
        loop.refresh(api.store)
        assert api.sql("SELECT count(*) FROM job_refusals") == [(0,)]
        assert api.sql("SELECT count(*) FROM jobs WHERE kind <> 'daily'") == [(0,)]


@each_database
def test_what_a_job_reads_is_stored_in_pieces_and_read_from_any_place(api, tmp_path):
    content = random.Random(1).randbytes(200_000)
    (tmp_path / "input").write_bytes(content)
    job_id = start(api, last=1)
    with (tmp_path / "input").open("rb") as file:
        pieces = jobs.pack(file)
    with api.operating() as tx:
        jobs.store_input(tx, job_id, pieces)
    job = find(api, job_id)
    with api.operating() as tx:
        for offset, size in ((0, 10), (65_530, 20), (70_000, 130_000), (199_990, 100), (250_000, 5)):
            assert jobs.read_input(tx, job, offset, size) == content[offset : offset + size]


@each_database
def test_what_a_job_reads_is_packed_and_given_to_another_as_it_is(api):
    job_id, other_id, old_id = (start(api, last=1) for _ in range(3))
    text = b"Nordwind,2026-03-02,1:00,Design\n" * 100_000
    with api.operating() as tx:
        jobs.store_input(tx, job_id, jobs.pack(io.BytesIO(text)))
        jobs.copy_input(tx, find(api, job_id), other_id)
        jobs.store_input(tx, old_id, [text[:65_536], text[65_536:65_600]])  # as a former version did
    ((stored,),) = api.sql(f"SELECT sum(length(content)) FROM job_pieces WHERE job_id = {other_id}")
    assert stored < len(text) / 20
    with api.operating() as tx:
        assert jobs.read_input(tx, find(api, other_id), 0, len(text)) == text
        assert jobs.read_input(tx, find(api, old_id), 65_500, 200) == text[65_500:65_600]
