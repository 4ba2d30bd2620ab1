"""Places: accounts share them, so that no account waits for the slow hosts of another."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from ipaddress import ip_network
from typing import NamedTuple

import pytest
from testing.agencies import open_agency
from testing.process import until

from retainer.events.sender import loop as sender_loop
from retainer.events.sender.loop import Sender
from retainer.outbound import loop, names
from retainer.outbound.leases import Places
from retainer.server.renderers import RendererPool
from retainer.sites.monitor import probe
from retainer.sites.monitor.probe import Monitor
from tests.contract_checker import NoChecks
from tests.databases import only_sqlite, slow_on_each
from tests.factories import ApiClient
from tests.length import length
from tests.monitor.test_probe import FakeSite, response
from tests.name_server import NameServer
from tests.webhooks.receiver import Hooked, Receiver

LOOPBACK = (ip_network("127.0.0.0/8"),)
FOREVER = 1000
HALF = 1 + Monitor.places // 2


class Work(NamedTuple):
    account_id: int
    id: int


def fill(places, waiting):
    """Lease work in its order, as the loops do; return it."""

    def find():
        return [each for each in waiting if str(each.account_id) not in places.accounts_at_limit[1:-1].split(",")][
            : places.total
        ]

    def lease(work):
        waiting.remove(work)
        return work

    return places.fill(find, lease)


def queue(*counts):
    """Return as much work of each account, that of the first account first."""
    return [Work(account, number) for account, count in enumerate(counts) for number in range(count)]


@pytest.mark.parametrize(
    ("waiting", "held"),
    [((500,), [51]), ((500, 1), [51, 1]), ((500, 500), [51, 26]), ((11, 500), [11, 46]), ((1,) * 150, [1] * 150)],
)
def test_an_account_gets_one_place_and_at_most_half_of_those_that_are_left(waiting, held):
    taken = fill(Places(100, ()), queue(*waiting))
    assert [sum(each.account_id == account for each in taken) for account in range(len(held))] == held
    assert len(taken) == sum(held)


def test_an_account_without_a_place_finds_one_whatever_others_have_done_before():
    drawn = random.Random("places")
    running, waiting = [], queue(*[300] * 8)
    for turn in range(length(200)):
        running = [each for each in running if drawn.random() < 0.9]
        running += fill(Places(50, [each.account_id for each in running]), waiting)
        new = Work(1000 + turn, 0)
        assert fill(Places(50, [each.account_id for each in running]), [*waiting, new])[-1] == new
    assert len(running) <= 50 + 8


def test_an_account_gets_its_one_place_when_all_others_are_taken():
    held = []
    for account_id in range(20):
        taken = fill(Places(10, held), [Work(account_id, number) for number in range(100)])
        held += [each.account_id for each in taken]
    assert (len(held), len(set(held))) == (10 + 20, 20)
    assert fill(Places(10, held), [Work(0, 0), Work(99, 0)]) == [Work(99, 0)]


def test_work_that_another_process_has_leased_takes_no_place():
    places = Places(100, ())
    assert places.fill(lambda: queue(100), lambda _: None) == []
    assert len(fill(places, queue(500))) == 51


@pytest.fixture
def third(api):
    """A client of a third agency on the same server."""
    return ApiClient(api.app, NoChecks(), open_agency(api.store, "Third", "agency"))


@pytest.fixture
def released(monkeypatch):
    """An event; slow hosts answer once it is set, and until then no time limit ends their requests."""
    monkeypatch.setattr(loop, "TICK_SECONDS", 0.05)
    monkeypatch.setattr(loop, "DRAIN_SECONDS", 0)
    for module, name in ((probe, "TOTAL_SECONDS"), (sender_loop, "TOTAL_SECONDS"), (names, "LIFETIME")):
        monkeypatch.setattr(module, name, FOREVER)
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def silent(monkeypatch):
    """A name server that never answers."""
    server = NameServer(monkeypatch, lambda *_: None)
    server.resolver.timeout = FOREVER
    yield server
    server.close()


@pytest.fixture
def running():
    """Start loops, and stop them after the test."""
    started = []

    def start(made):
        started.append(made)
        made.start()

    yield start
    for each in started:
        each.stop()


@slow_on_each
def test_sites_with_a_silent_name_server_hold_up_no_site_of_another_account(
    api, other_tenant, released, silent, running
):
    for number in range(Monitor.places + 20):
        api.make("/sites", url=f"http://silent-{number}.example/")
    running(Monitor(api.store, LOOPBACK, lambda *_: None))
    until(lambda: len({name for name, _ in silent.asked}) == HALF, "half of the places are taken")
    server = FakeSite()
    site = other_tenant.make("/sites", url=server.url)["id"]
    until(lambda: other_tenant.get(f"/sites/{site}").data["status"] == "up", "the other account's site is checked")
    server.close()
    assert len({name for name, _ in silent.asked}) == HALF, "the first account still holds its places"
    assert not released.is_set()


@slow_on_each
def test_webhooks_with_a_silent_name_server_hold_up_no_webhook_of_another_account(
    api, other_tenant, released, silent, running
):
    for number in range(20):
        api.make("/webhooks", url=f"http://silent-{number}.example/")
    api.make("/tags")
    hook = Hooked(other_tenant)
    running(Sender(api.store, LOOPBACK, "", lambda *_: None, lambda _: None))
    until(lambda: len({name for name, _ in silent.asked}) == 20, "all look their names up")
    events = [other_tenant.make("/tags")["id"] for _ in range(50)]
    until(lambda: len(hook.receiver.events) == len(events), "the events arrive")
    until(lambda: len(hook.deliveries(status="delivered")) == len(events), "their deliveries are saved")
    hook.receiver.close()
    assert not released.is_set()


@slow_on_each
def test_receivers_of_two_accounts_that_answer_slowly_hold_up_no_third(api, other_tenant, third, released, running):
    slow, hook, asked = Receiver(), Hooked(third), []
    slow.answer = lambda event: asked.append(event) or (released.wait() and 200)
    for tenant in (api, other_tenant):
        for number in range(20):
            tenant.make("/webhooks", url=f"{slow.url}/{number}")
        tenant.make("/tags")
    running(Sender(api.store, LOOPBACK, "", lambda *_: None, lambda _: None))
    until(lambda: len(asked) == 40, "all of them wait for the slow receivers")
    third.make("/tags")
    until(lambda: hook.receiver.events == [1], "the event arrives")
    assert not released.is_set()
    for each in (slow, hook.receiver):
        each.close()


@slow_on_each
def test_pages_that_take_long_to_search_hold_up_no_site_of_another_account(api, other_tenant, released, running):
    searching, most = [], []

    def search(account_id, _, __, keyword, *___):
        searching.append(account_id)
        most.append(len(searching))
        if account_id == api.account_id:
            released.wait(60)
        searching.remove(account_id)
        return None if keyword == "shop" else "The keyword is not on the page."

    server = FakeSite()
    for number in range(4):
        api.make("/sites", url=f"{server.url}{number}", keyword="slow")
    running(Monitor(api.store, LOOPBACK, lambda *_: None, search))
    until(lambda: len(server.asked) == 4 and searching, "the pages of the first account have come")
    sites = [other_tenant.make("/sites", url=server.url + name, keyword="shop")["id"] for name in "ab"]
    until(lambda: {other_tenant.get(f"/sites/{site}").data["status"] for site in sites} == {"up"}, "others are checked")
    server.close()
    assert searching == [api.account_id], "an account searches one page at a time"
    assert max(most) == 2


@only_sqlite
def test_a_site_whose_page_found_no_place_for_its_search_is_checked_again_soon(api, released, monkeypatch):
    monkeypatch.setattr(probe, "WAIT_SECONDS", 0.2)
    server, failures, searched = FakeSite(), [], []

    def search(_, __, ___, keyword, *____):
        searched.append(keyword)
        if searched == [keyword]:  # whichever page came first
            released.wait(60)

    sites = {name: api.make("/sites", url=f"{server.url}{name}", keyword=name)["id"] for name in ("books", "shop")}
    monitor = Monitor(api.store, LOOPBACK, lambda *failure: failures.append(failure), search)
    with ThreadPoolExecutor(1) as pool:
        checked = pool.submit(monitor.run_once)
        until(lambda: server.asked[2:], "the page that was not searched is asked for again")
        assert (len(searched), failures) == (1, [])
        (waiting,) = sites.keys() - set(searched)
        assert api.get(f"/sites/{sites[waiting]}").data["last_checked_at"] is None
        released.set()
        checked.result()
    statuses = lambda: {api.get(f"/sites/{each}").data["status"] for each in sites.values()}  # noqa: E731
    until(lambda: monitor.run_once() and statuses() == {"up"}, "both are checked")
    server.close()


@only_sqlite
def test_a_page_that_takes_too_long_to_search_is_a_failure_of_its_site(api, monkeypatch):
    monkeypatch.setattr(probe, "SEARCH_SECONDS", 0.001)
    server, failures = FakeSite(response(200, b"&amp;" * 200_000)), []
    site = api.make("/sites", url=server.url, keyword="shop")["id"]
    with closing(RendererPool()) as searches:
        Monitor(api.store, LOOPBACK, lambda *failure: failures.append(failure), searches.run).run_once()
    server.close()
    found = api.get(f"/sites/{site}").data
    error = "The page takes too much time or memory to search for the keyword."
    assert (found["last_status_code"], found["last_error"], failures) == (200, error, [])
