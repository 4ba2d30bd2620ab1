"""Changes around a job: its user, its account or the version of the server is not what it was when the job began."""

import pytest

from retainer.errors import Refusal
from retainer.identity import closing
from retainer.identity.actors import absent_user
from retainer.jobs import jobs, loop
from retainer.outbound.leases import Places
from tests.databases import any_database, each_database
from tests.jobs import tagging
from tests.jobs.tagging import do, find, start


def lease(api):
    (work,) = loop.DUE.claim(api.store, Places(1, ()), loop.LEASE)
    return work


@each_database
def test_a_job_of_a_kind_that_only_a_newer_version_knows_waits_for_it(api):
    job_id = start(api, last=3)
    for _ in range(3):
        assert do(api, {"daily": tagging.KINDS["daily"]}) == []
    job = find(api, job_id)
    assert (job.status, job.attempts) == ("waiting", 0)
    with api.store.unscoped() as tx:
        assert loop.lateness(tx).total_seconds() > 0, "the operator is told"
    assert do(api) == []
    assert find(api, job_id).status == "done"


@any_database
def test_a_job_fails_once_the_role_of_its_user_does_not_include_it(api):
    kinds = tagging.KINDS | {"tagging": tagging.TAGGING._replace(area="records")}
    api.set_user(api.member_id, {"role": "manager"})
    job_id = start(api, absent_user(api.store, api.member_id), last=500)
    work = lease(api)
    assert loop.do_step(api.store, kinds, work)
    written = find(api, job_id).done
    api.set_user(api.member_id, {"role": "member"})
    assert not loop.do_step(api.store, kinds, work)
    job = find(api, job_id)
    assert (job.status, job.done, len(api.sql("SELECT id FROM tags"))) == ("failed", written, written)
    assert "no longer includes it" in job.message
    with api.store.begin(absent_user(api.store, api.admin_id), write=True) as tx:
        jobs.resume(tx, job)
    assert do(api, kinds) == []
    job = find(api, job_id)
    assert (job.status, job.done, job.user_id) == ("done", 500, api.admin_id)


@each_database
def test_a_suspension_stops_a_job_between_two_steps_and_it_continues_afterwards(api):
    job_id = start(api, last=500)
    work = lease(api)
    assert loop.do_step(api.store, tagging.KINDS, work)
    with api.operating() as tx:
        closing.suspend(tx, "Unpaid")
    written = find(api, job_id).done
    assert not loop.do_step(api.store, tagging.KINDS, work)
    assert find(api, job_id).done == written
    with pytest.raises(Refusal, match="Unpaid"):
        loop.run_to_end(api.store, tagging.KINDS, api.account_id, job_id, lambda _: None)
    with api.operating() as tx:
        closing.resume(tx)
    loop.release(api.store, work)
    assert do(api) == []
    assert (find(api, job_id).status, len(api.sql("SELECT id FROM tags"))) == ("done", 500)


@any_database
def test_a_job_whose_progress_cannot_be_read_fails_and_is_not_tried_without_end(api):
    job_id = start(api, last=3)
    api.sql("UPDATE jobs SET counts = '[]' WHERE kind = 'tagging'")
    assert len(do(api)) == 1
    api.sql("UPDATE jobs SET counts = '{}' WHERE kind = 'tagging'")
    assert find(api, job_id).status == "failed"
