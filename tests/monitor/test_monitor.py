"""The monitor: due sites are checked once, results are saved, and one site's failure affects no other."""

import asyncio
import threading
import time
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest
import time_machine
from testing.process import PATIENCE, until

from retainer.cli.accounts import resume
from retainer.identity import closing
from retainer.outbound import loop as background
from retainer.outbound import pause
from retainer.outbound.client import GuardedClient
from retainer.outbound.leases import Places
from retainer.sites import uptime
from retainer.sites.monitor import probe, schedule
from retainer.sites.monitor.probe import Monitor
from retainer.sites.monitor.schedule import CheckResult
from retainer.sites.uptime import Incident
from tests.monitor.test_probe import KB, UP, FakeSite, response, search_now

LOOPBACK = (ip_network("127.0.0.0/8"),)
DOWN = response(500)
CAUSE = "The site answered 500."
START = datetime.fromisoformat("2026-03-02T12:00:00.000000+00:00")
FIGURES = ("uptime_percent_24h", "uptime_percent_7d", "uptime_percent_30d")


class Watch:
    """Sites of an agency at a server whose answer can be changed, and monitors that check them."""

    def __init__(self, api):
        self.api = api
        self.server = FakeSite()
        self.failures = []

    def site(self, path="", **members):
        """Create a site at the server."""
        return self.api.make("/sites", url=self.server.url + path, **members)["id"]

    def monitor(self):
        return Monitor(self.api.store, LOOPBACK, lambda what, error: self.failures.append((what, str(error))))

    def check(self, answer=None):
        """Check the due sites in one go; return their number."""
        self.server.answer = answer or self.server.answer

        async def probed(taken):
            async with GuardedClient(LOOPBACK, "site") as client:
                return await asyncio.gather(*(probe.probe(client, due, search_now) for due in taken))

        taken = self.claim()
        found = asyncio.run(probed(taken))
        for due, result in zip(taken, found, strict=True):
            schedule.save_result(self.api.store, due, result)
        return len(taken)

    def claim(self):
        """Lease the due sites, which are of one account."""
        return schedule.DUE.claim(self.api.store, Places(200, ()), probe.Monitor.lease)

    def note(self, *, is_up):
        """Make every site due, and save this result for it."""
        self.due_again()
        for due in self.claim():
            schedule.save_result(self.api.store, due, CheckResult(is_up))

    def read(self, site):
        return self.api.get(f"/sites/{site}").data

    def due_again(self):
        """Make every site due."""
        self.api.sql("UPDATE sites SET next_check_at = '2020-01-01T00:00:00.000000Z'")

    def incidents(self, site):
        with self.api.operating() as tx:
            return uptime.list_incidents(tx, site, 10)

    def next_at(self, site):
        ((moment,),) = self.api.sql("SELECT next_check_at FROM sites WHERE id = $1", site)
        return datetime.fromisoformat(moment)

    def asked(self):
        """Return how often each path was requested."""
        return Counter(head.split(" ")[1].strip("/") for head in self.server.asked)


@pytest.fixture
def watch(api):
    watching = Watch(api)
    yield watching
    watching.server.close()


@pytest.fixture
def at():
    """Set the clock to a time after the start; it does not move."""
    with time_machine.travel(START, tick=False) as traveller:
        yield lambda **span: traveller.move_to(START + timedelta(**span))


def written(moment):
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"


def test_a_new_site_is_checked_immediately_and_shows_the_result(watch, at):
    site = watch.site()
    before = watch.read(site)
    assert (before["status"], before["last_checked_at"], before["uptime_percent_24h"]) == ("unknown", None, None)
    at(minutes=1)
    assert watch.check() == 1
    found = watch.read(site)
    assert (found["status"], found["last_status_code"], found["last_error"]) == ("up", 200, None)
    assert found["last_checked_at"] == written(START + timedelta(minutes=1))
    assert found["response_time_ms"] >= 0
    assert [found[name] for name in FIGURES] == [100, 100, 100]
    assert found["updated_at"] == before["updated_at"]
    assert watch.check() == 0, "the next check is due after the interval"
    assert watch.failures == []


def test_a_site_is_down_after_two_failures_in_a_row_and_up_after_one_success(watch, at):
    site = watch.site()
    readings = []
    for number, answer in enumerate([DOWN, UP, DOWN, UP, DOWN, DOWN, DOWN, UP]):
        at(minutes=5 * number)
        assert watch.check(answer) == 1
        readings.append(watch.read(site))
    status = ["unknown", "up", "up", "up", "up", "down", "down", "up"]
    assert [each["status"] for each in readings] == status
    assert [each["last_status_code"] for each in readings] == [500, 200, 500, 200, 500, 500, 500, 200]
    since = written(START + timedelta(minutes=20))  # the first failure of those in a row
    assert [each["down_since"] for each in readings if each["status"] == "down"] == [since, since]
    assert [readings[place]["down_since"] for place in (1, 3, 7)] == [None, None, None]
    assert readings[5]["last_error"] == "The site answered 500."
    assert readings[7]["uptime_percent_24h"] == 37.5  # 3 of 8


def test_an_incident_lasts_from_the_first_of_two_failures_to_the_next_success(watch, at):
    site, other = watch.site(), watch.site("other", monitoring_enabled=False)
    with watch.api.operating() as tx:
        uptime.begin_incident(tx, other, written(START), "Refused.")
    for number, answer in enumerate([DOWN, UP, DOWN, DOWN, DOWN, UP, UP, DOWN, DOWN]):
        at(minutes=5 * number)
        watch.check(answer)
    first = Incident(written(START + timedelta(minutes=10)), written(START + timedelta(minutes=25)), CAUSE)
    second = Incident(written(START + timedelta(minutes=35)), None, CAUSE)
    assert watch.incidents(site) == [second, first]
    assert watch.incidents(other) == [Incident(written(START), None, "Refused.")]
    at(days=90)
    watch.check(UP)
    assert watch.incidents(site) == [second._replace(ended_at=written(START + timedelta(minutes=40))), first]
    for minutes in (30, 35):
        at(days=90, minutes=minutes)
        watch.check(DOWN)
    third = Incident(written(START + timedelta(days=90, minutes=30)), None, CAUSE)
    assert [each.started_at for each in watch.incidents(site)] == [third.started_at, second.started_at], "90 days kept"


@contextmanager
def paused_site(watch, site):
    watch.api.patch(f"/sites/{site}", {"monitoring_enabled": False})
    yield
    watch.api.patch(f"/sites/{site}", {"monitoring_enabled": True})


@contextmanager
def maintained_site(watch, site):
    watch.api.patch(f"/sites/{site}", {"maintenance_until": written(datetime.now(UTC) + timedelta(days=5))})
    yield


@contextmanager
def paused_monitor(watch, _):
    pause.pause(watch.api.store, pause.MONITOR, "a rehearsal")
    yield
    pause.resume(watch.api.store, pause.MONITOR, uptime.suspend_all)


@contextmanager
def suspended_account(watch, _):
    with watch.api.operating() as tx:
        closing.suspend(tx, "an invoice is not paid")
    yield
    with watch.api.operating() as tx:
        resume(tx)


suspensions = pytest.mark.parametrize("suspension", [paused_site, maintained_site, paused_monitor, suspended_account])


@suspensions
def test_an_incident_ends_with_a_pause_or_maintenance_and_another_may_begin_after_it(watch, at, suspension):
    site = watch.site(check_interval_seconds=60)
    watch.check(DOWN)
    at(minutes=1)
    watch.check(DOWN)
    before = Incident(written(START), written(START + timedelta(minutes=1)), CAUSE)
    assert watch.read(site)["down_since"] == before.started_at
    with suspension(watch, site):
        at(days=3)
        watch.check(DOWN)
        if suspension not in {paused_monitor, suspended_account}:
            assert watch.read(site)["down_since"] is None
        at(days=5, minutes=2)
    assert watch.incidents(site) == [before]
    watch.check(DOWN)
    assert (watch.read(site)["status"], watch.read(site)["down_since"]) == ("unknown", None)
    at(days=5, minutes=3)
    watch.check(DOWN)
    since = written(START + timedelta(days=5, minutes=2))
    assert watch.incidents(site) == [Incident(since, None, CAUSE), before]
    assert (watch.read(site)["status"], watch.read(site)["down_since"]) == ("down", since)
    told = [event for event in watch.api.get("/events").data if event["type"] == "site.down"]
    assert len(told) == 2


@suspensions
def test_failures_before_and_after_a_pause_or_maintenance_are_not_two_in_a_row(watch, at, suspension):
    site = watch.site(check_interval_seconds=60)
    watch.check(UP)
    at(minutes=1)
    watch.check(DOWN)
    with suspension(watch, site):
        at(days=5, minutes=2)
    watch.check(DOWN)
    assert (watch.read(site)["status"], watch.incidents(site)) == ("up", [])


def test_a_time_without_checks_ends_what_was_going_on_with_the_last_check_before_it(watch, at):
    site = watch.site(check_interval_seconds=3600)
    watch.check(UP)
    at(hours=1)
    watch.check(DOWN)
    at(hours=9)
    watch.check(DOWN)
    assert (watch.read(site)["status"], watch.incidents(site)) == ("up", [])
    at(hours=11)
    watch.check(DOWN)
    assert watch.incidents(site) == [Incident(written(START + timedelta(hours=9)), None, CAUSE)]
    at(hours=20)
    watch.check(DOWN)
    ended = Incident(written(START + timedelta(hours=9)), written(START + timedelta(hours=11)), CAUSE)
    assert (watch.read(site)["status"], watch.incidents(site)) == ("unknown", [ended])
    at(hours=21)
    watch.check(DOWN)
    assert (watch.read(site)["status"], watch.read(site)["down_since"]) == (
        "down",
        written(START + timedelta(hours=20)),
    )


def test_an_event_names_down_since_when_a_pause_ends_it(watch, at):
    site = watch.site(check_interval_seconds=60)
    watch.check(DOWN)
    at(minutes=1)
    watch.check(DOWN)
    watch.api.patch(f"/sites/{site}", {"monitoring_enabled": False})
    (event,) = [each for each in watch.api.get("/events").data if each["type"] == "site.updated"]
    assert {"monitoring_enabled", "status", "down_since"} <= {*event["fields"]}


def test_a_check_follows_thirty_seconds_after_a_first_failure(watch, at):
    site = watch.site(check_interval_seconds=3600)
    watch.check(DOWN)
    at(seconds=29)
    assert watch.check() == 0
    at(seconds=30)
    assert watch.check(DOWN) == 1
    assert watch.read(site)["status"] == "down"
    assert watch.next_at(site) >= START + timedelta(hours=1), "from then on in its interval"


def test_maintenance_begins_no_incident(watch, at):
    site = watch.site(maintenance_until=written(START + timedelta(hours=1)))
    for minutes in (0, 5, 10):
        at(minutes=minutes)
        watch.check(DOWN)
    assert watch.incidents(site) == []


@pytest.mark.parametrize(
    ("checks", "percent"),
    [("ud", 50), ("uud", 66.667), ("udd", 33.333), ("uuuuuud", 85.714), ("d", 0), ("u", 100), ("u" * 7 + "d", 87.5)],
)
def test_uptime_is_the_share_of_checks_that_were_up_to_three_places(watch, at, checks, percent):
    site = watch.site(check_interval_seconds=60)
    for number, check in enumerate(checks):
        at(minutes=number)
        watch.note(is_up=check == "u")
    assert [watch.read(site)[name] for name in FIGURES] == [percent] * 3


def percent(checks, since):
    """A plain count, in thousandths rounded half up."""
    counted = [is_up for moment, is_up in checks if moment > since]
    return (sum(counted) * 200_000 + len(counted)) // (2 * len(counted)) / 1000


def test_uptime_of_a_day_week_and_month_counts_the_checks_within_them(watch, at):
    site = watch.site(check_interval_seconds=86400)
    now = START + timedelta(days=40)
    ages = [(days * 24 + hours, (days + hours) % 3 != 0) for days in range(40) for hours in (1, 5, 17)]
    checks = [(now - timedelta(hours=age, minutes=30), is_up) for age, is_up in ages]
    for moment, is_up in sorted(checks):
        at(seconds=(moment - START).total_seconds())
        watch.note(is_up=is_up)
    at(days=40)
    watch.note(is_up=True)
    checks.append((now, True))
    expected = [percent(checks, now - timedelta(days=days)) for days in (1, 7, 30)]
    assert len(set(expected)) == 3
    assert [watch.read(site)[name] for name in FIGURES] == expected
    ((kept,),) = watch.api.sql("SELECT count(*) FROM site_checks")
    ((hours,),) = watch.api.sql("SELECT count(*) FROM site_hours")
    assert (kept, hours) == (4, 121), "checks of a day: 3 and the last; hours of 90 days: 3 a day for 40, and the last"


def test_what_a_site_becomes_is_an_event(watch):
    site = watch.site()
    for is_up in (True, False, False, False, False, True):
        watch.note(is_up=is_up)
    told = [(event["type"], event["record_id"]) for event in watch.api.get("/events").data]
    assert told[-3:] == [("site.up", site), ("site.down", site), ("site.up", site)]


def test_checks_during_maintenance_do_not_count_and_bring_no_site_down(watch, at):
    site = watch.site(maintenance_until=written(START + timedelta(hours=1)))
    for minutes in (0, 5, 10):
        at(minutes=minutes)
        assert watch.check(DOWN) == 1
    found = watch.read(site)
    assert (found["status"], found["last_status_code"], found["down_since"]) == ("maintenance", 500, None)
    assert [found[name] for name in FIGURES] == [None] * 3
    at(hours=2)
    watch.check(UP)
    found = watch.read(site)
    assert (found["status"], found["uptime_percent_24h"]) == ("up", 100)


def test_a_paused_site_is_not_checked_and_keeps_its_figures(watch, at):
    site = watch.site()
    watch.check(UP)
    watch.api.patch(f"/sites/{site}", {"monitoring_enabled": False})
    at(hours=1)
    assert watch.check(DOWN) == 0
    found = watch.read(site)
    assert (found["status"], found["uptime_percent_24h"]) == ("paused", 100)
    watch.api.patch(f"/sites/{site}", {"monitoring_enabled": True})
    assert watch.check(UP) == 1, "due at once"
    assert watch.read(site)["status"] == "up"


def test_the_uptime_of_a_paused_site_ages(watch, at):
    site = watch.site()
    watch.check(UP)
    watch.api.patch(f"/sites/{site}", {"monitoring_enabled": False})
    readings = []
    for days in (0.5, 2, 8, 31):
        at(days=days)
        schedule.refresh(watch.api.store)
        readings.append([watch.read(site)[name] for name in FIGURES])
    assert readings == [[100, 100, 100], [None, 100, 100], [None, None, 100], [None, None, None]]


def test_the_loop_refreshes_the_uptime_of_paused_sites(watch, monkeypatch):
    monkeypatch.setattr(background, "TICK_SECONDS", 0.05)
    site = watch.site()
    watch.check(UP)
    watch.api.patch(f"/sites/{site}", {"monitoring_enabled": False})
    watch.api.sql("DELETE FROM site_checks")
    watch.api.sql("UPDATE sites SET uptime_at = '2020-01-01T00:00:00.000000Z'")
    running(watch, lambda: watch.read(site)["uptime_percent_24h"] is None)


def running(watch, condition):
    """Run a monitor in its thread until a condition holds."""
    monitor = watch.monitor()
    monitor.start()
    try:
        until(condition, "the monitor has done its work")
    finally:
        monitor.stop()
    return monitor


def test_the_next_check_keeps_its_rhythm_and_skips_missed_checks(watch, at):
    site = watch.site(check_interval_seconds=300)
    for seconds in (40, 310, 660):  # due at 0, 300 and 600, each seen to a little late
        at(seconds=seconds)
        assert watch.check() == 1
    assert watch.next_at(site) == START + timedelta(seconds=900)
    at(hours=5)
    assert watch.check() == 1, "one check, not sixty"
    assert START + timedelta(hours=5) < watch.next_at(site) <= START + timedelta(hours=5, seconds=300)


@pytest.mark.parametrize(
    ("members", "is_due"),
    [
        ({"expected_status": [500]}, True),
        ({"keyword": "ok"}, True),
        ({"check_interval_seconds": 60}, True),
        ({"name": "Shop"}, False),
        ({"wp_version": "6.9"}, False),
        ({"environment": "staging"}, False),
    ],
)
def test_a_change_of_how_a_site_is_checked_makes_it_due_immediately(watch, members, is_due):
    site = watch.site()
    assert watch.check() == 1
    watch.api.patch(f"/sites/{site}", members)
    assert watch.check() == int(is_due)
    assert watch.failures == []


def test_a_new_url_resets_a_site(watch):
    site = watch.site()
    for _ in range(2):
        watch.check(DOWN)
        watch.due_again()
    assert watch.read(site)["status"] == "down"
    found = watch.api.patch(f"/sites/{site}", {"url": watch.server.url + "new"}).data
    assert (found["status"], found["last_checked_at"], found["down_since"]) == ("unknown", None, None)
    assert (found["last_status_code"], found["last_error"], found["response_time_ms"]) == (None, None, None)
    assert watch.check(DOWN) == 1
    assert watch.read(site)["status"] == "unknown", "the first failure of the new address"


def test_a_page_without_the_keyword_is_down_and_an_expected_status_is_up(watch):
    keyword = watch.site("keyword", keyword="nothing of the sort")
    expected = watch.site("expected", expected_status=[200, 503])
    large = watch.site("large", keyword="ok")
    for answer in (response(503), response(503)):
        watch.check(answer)
        watch.due_again()
    assert watch.read(expected)["status"] == "up"
    for _ in range(2):
        watch.check(response(200, b"x" * 1024 * KB + b"ok"))
        watch.due_again()
    assert [watch.read(site)["status"] for site in (keyword, expected, large)] == ["down", "up", "down"]


def test_several_monitors_check_each_site_once_in_an_interval(watch):
    paths = [str(number) for number in range(130)]
    for path in paths:
        watch.site(path)
    for rounds in (1, 2, 3):
        monitors = [watch.monitor() for _ in range(3)]
        threads = [threading.Thread(target=monitor.run_once) for monitor in monitors]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=PATIENCE)
        assert sum(monitor.done for monitor in monitors) == len(paths)
        assert watch.asked() == dict.fromkeys(paths, rounds)
        watch.due_again()
    ((checks,),) = watch.api.sql("SELECT count(*) FROM site_checks")
    assert (checks, watch.failures) == (390, [])


REFUSE = {
    "SQLite": "CREATE TRIGGER planted BEFORE UPDATE OF last_checked_at ON sites WHEN new.id = {}"
    " BEGIN SELECT raise(ABORT, 'planted'); END",
    "PostgreSQL": "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql"
    " AS 'BEGIN RAISE check_violation USING message = ''planted''; END';"
    " CREATE TRIGGER planted BEFORE UPDATE OF last_checked_at ON sites FOR EACH ROW WHEN (new.id = {})"
    " EXECUTE FUNCTION planted()",
}
ALLOW = {"SQLite": "DROP TRIGGER planted", "PostgreSQL": "DROP FUNCTION planted CASCADE"}


def test_a_result_that_cannot_be_saved_stops_no_other(watch):
    sites = [watch.site(str(number)) for number in range(5)]
    watch.api.sql(REFUSE[watch.api.store.engine.name].format(sites[2]))
    try:
        assert watch.monitor().run_once() == 4
    finally:  # or it would stay for the tests after this one
        watch.api.sql(ALLOW[watch.api.store.engine.name])
    assert [watch.read(site)["status"] for site in sites] == ["up", "up", "unknown", "up", "up"]
    assert any(f"({sites[2]} of account" in what and "planted" in error for what, error in watch.failures)
    ((checks,),) = watch.api.sql("SELECT count(*) FROM site_checks")
    assert checks == 4, "nothing is left of the fifth"
    watch.due_again()
    assert watch.monitor().run_once() == 5
    assert watch.read(sites[2])["status"] == "up"


def meanwhile(watch, change):
    """Check the due sites, and change something during the check."""

    def answer(link, _):
        change()
        link.sendall(UP)

    return watch.check(answer)


def test_a_site_that_is_deleted_during_its_check_is_gone(watch):
    site, other = watch.site("a"), watch.site("b")
    once = iter([True])
    meanwhile(watch, lambda: next(once, False) and watch.api.delete(f"/sites/{site}"))
    assert watch.api.get(f"/sites/{site}").status == 404
    assert watch.read(other)["status"] == "up"
    assert watch.api.sql("SELECT count(*) FROM site_checks WHERE site_id = $1", site) == [(0,)]
    assert watch.failures == []


@pytest.mark.parametrize(
    "members", [{"monitoring_enabled": False}, {"url": "http://127.0.0.1:1/"}, {"keyword": "else"}]
)
def test_a_result_is_dropped_if_the_site_is_checked_differently_by_then(watch, members):
    site = watch.site()
    changed = iter([members])
    seen = []

    def change():
        for each in changed:
            watch.api.patch(f"/sites/{site}", each)
            watch.api.sql("UPDATE sites SET next_check_at = '9999-01-01T00:00:00.000000Z'")
        seen.append(True)

    meanwhile(watch, change)
    found = watch.read(site)
    assert seen == [True]
    assert (found["last_checked_at"], found["uptime_percent_24h"]) == (None, None)
    assert watch.api.sql("SELECT count(*) FROM site_checks") == [(0,)]


@pytest.mark.parametrize(
    ("members", "status"), [({"name": "Shop"}, "up"), ({"maintenance_until": "2099-01-01T00:00:00Z"}, "maintenance")]
)
def test_other_changes_during_a_check_stay_and_so_does_its_result(watch, members, status):
    site = watch.site()
    changed = []
    meanwhile(watch, lambda: changed.append(watch.api.patch(f"/sites/{site}", members).data))
    found = watch.read(site)
    assert (found["status"], found["last_status_code"]) == (status, 200)
    assert found["uptime_percent_24h"] == (None if status == "maintenance" else 100)
    assert found["updated_at"] == changed[0]["updated_at"]
    assert found["name"] == changed[0]["name"]


def test_a_result_after_the_lease_is_dropped_if_another_monitor_has_checked(watch):
    site = watch.site()
    second = []

    def change():
        if not second:
            second.append(True)
            watch.due_again()  # the lease is over
            watch.check()

    meanwhile(watch, change)
    assert watch.server.connections == 2
    assert watch.api.sql("SELECT count(*) FROM site_checks WHERE site_id = $1", site) == [(1,)]


def test_a_monitor_checks_the_sites_of_all_accounts_until_it_is_stopped(watch, other_tenant, monkeypatch):
    monkeypatch.setattr(background, "TICK_SECONDS", 0.05)
    site, other = watch.site(), other_tenant.make("/sites", url=watch.server.url)["id"]
    monitor = running(
        watch, lambda: other_tenant.get(f"/sites/{other}").data["status"] == watch.read(site)["status"] == "up"
    )
    assert monitor.done == watch.server.connections == 2
    assert watch.failures == []


def test_a_stopped_monitor_saves_its_running_checks(watch, monkeypatch):
    for name, seconds in (("TICK_SECONDS", 0.05), ("DRAIN_SECONDS", PATIENCE), ("STOP_SECONDS", 2 * PATIENCE)):
        monkeypatch.setattr(background, name, seconds)
    site, asked, monitor = watch.site(), threading.Event(), watch.monitor()

    def answer(link, _):
        asked.set()
        monitor.stopped.wait(PATIENCE)
        link.sendall(UP)

    watch.server.answer = answer
    monitor.start()
    assert asked.wait(PATIENCE)
    monitor.stop()
    assert (monitor.done, watch.read(site)["status"]) == (1, "up")


def test_a_stopped_monitor_does_not_wait_for_slow_sites(watch, monkeypatch):
    monkeypatch.setattr(background, "TICK_SECONDS", 0.05)
    monkeypatch.setattr(background, "DRAIN_SECONDS", 0.3)
    site, asked, released = watch.site(), threading.Event(), threading.Event()

    def answer(*_):
        asked.set()
        released.wait(PATIENCE)

    watch.server.answer = answer
    monitor = running(watch, asked.is_set)
    assert (monitor.done, watch.read(site)["status"]) == (0, "unknown")
    released.set()
    watch.due_again()
    assert watch.check(UP) == 1


def test_half_of_a_hundred_places_is_for_the_sites_of_one_account(watch):
    now, most, lock = [0], [0], threading.Lock()

    def answer(link, _):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.3)
        with lock:
            now[0] -= 1
        link.sendall(UP)

    for number in range(120):
        watch.site(str(number))
    watch.server.answer = answer
    assert watch.monitor().run_once() == 120
    assert 2 <= most[0] <= 51
