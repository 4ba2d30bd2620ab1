"""The pages of jobs: people see how far a job is, what it refused, and can stop and continue it."""

import re

import pytest

from retainer.identity.actors import absent_user
from retainer.jobs import loop
from retainer.outbound.leases import Places
from tests.jobs.tagging import KINDS, do, find, start


def begin(api, job_id):
    """Do the first step of a job that is due; return how many rows it wrote, which a slow machine limits."""
    (work,) = loop.DUE.claim(api.store, Places(1, ()), loop.LEASE)
    assert loop.do_step(api.store, KINDS, work)
    loop.release(api.store, work)
    done = find(api, job_id).done
    assert 0 < done <= 200
    return done


def refreshes(page):
    return [each for each in page.all("meta") if each["http-equiv"] == "refresh"]


def test_the_page_of_a_running_job_has_a_bar_and_refreshes_itself_until_it_ends(api, visitor):
    assert "No jobs yet." in visitor.get("/console/jobs").text
    job_id = start(api, last=350)
    path = f"/console/jobs/{job_id}"
    done = begin(api, job_id)
    page = visitor.get(path)
    (bar,) = page.all("progress")
    assert (bar["value"], bar["max"], len(refreshes(page))) == (str(done), "350", 1)
    assert f"{done} of 350" in page.text
    assert "Automatic" in page.text
    do(api)
    page = visitor.get(path)
    assert (page.all("progress"), refreshes(page)) == ([], [])
    assert "350 tags made." in page.text
    assert "Letters" in page.text
    assert "Make tags" in visitor.get("/console/jobs").text
    assert visitor.post(f"{path}/stop").status == 422


def test_a_job_is_stopped_and_continued_with_a_button(api, visitor):
    job_id = start(api, last=350)
    path = f"/console/jobs/{job_id}"
    done = begin(api, job_id)
    assert "What it has done stays." in visitor.follow(visitor.post(f"{path}/stop")).text
    do(api)
    page = visitor.get(path)
    assert "stopped" in page.text
    assert f"{done} of 350" in page.text
    visitor.post(f"{path}/continue")
    do(api)
    assert "350 of 350" in visitor.get(path).text


def test_the_page_of_a_job_of_a_newer_version_says_what_it_waits_for(api, visitor):
    path = f"/console/jobs/{start(api, last=3)}"
    assert "It waits for the next upgrade." in visitor.get(path).text
    visitor.post(f"{path}/stop")
    assert "It waits for the next upgrade." not in visitor.get(path).text


def test_refused_rows_are_shown_with_their_reason_and_can_be_downloaded(api, visitor):
    path = f"/console/jobs/{start(api, last=3, refused=[2])}"
    do(api)
    page = visitor.get(path)
    assert "Tag 2 Name: Must be another." in page.text
    assert f"{path}/refused" in page.links
    assert re.search(r"2.+Tag 2.+name: Must be another\.", visitor.get(f"{path}/refused").html)


def test_the_list_says_which_job_was_a_dry_run(api, visitor):
    start(api, last=1)
    start(api, last=1, is_dry_run=True)
    do(api)
    shown = [badge.text for badge in visitor.get("/console/jobs").all("span", "badge")]
    assert sorted(shown) == ["done", "done", "dry run"]


@pytest.mark.parametrize("path", ["/console/jobs", "/console"])
def test_lists_of_jobs_do_not_read_what_jobs_are_to_do(api, visitor, path):
    start(api, last=1)
    api.sql("UPDATE jobs SET options = 'megabytes', refused = 1, status = 'stopped' WHERE kind = 'tagging'")
    page = visitor.get(path)
    assert page.status == 200
    assert "Make tags" in page.text


def test_members_see_their_own_jobs_and_no_others(api, person):
    member = person("member")
    others = start(api, last=1)
    own = start(api, absent_user(api.store, member.user_id), last=1)
    assert f"/console/jobs/{own}" in member.get("/console/jobs").links
    assert f"/console/jobs/{others}" not in member.get("/console/jobs").links
    assert member.get(f"/console/jobs/{own}").status == 200
    for path in ("", "/refused"):
        assert member.get(f"/console/jobs/{others}{path}").status == 404
    assert member.post(f"/console/jobs/{others}/stop").status == 404


def test_the_daily_job_has_no_page(api, visitor):
    do(api)
    ((daily,),) = api.sql("SELECT id FROM jobs WHERE kind = 'daily' AND account_id = $1", api.account_id)
    assert visitor.get(f"/console/jobs/{daily}").status == 404
    assert "No jobs yet." in visitor.get("/console/jobs").text


def test_a_job_that_has_refused_rows_is_on_today_for_a_day(api, visitor):
    path = f"/console/jobs/{start(api, last=3, refused=[2])}"
    start(api, last=1, refused=[1], is_dry_run=True)
    assert "Jobs with refused rows" not in visitor.get("/console").text
    do(api)
    page = visitor.get("/console")
    assert "Jobs with refused rows View jobs Make tags 1 refused" in page.text
    assert path in page.links
    api.sql("UPDATE jobs SET created_at = '2026-01-01T00:00:00.000000Z'")
    assert path not in visitor.get("/console").links
