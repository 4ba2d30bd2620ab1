"""Measure the pages that people open: python -m bench.pages [--requests N] [--entries N] [--rounds N].

All pages of the console and the reference on the demo; then those that read the request log when it holds a million
requests; then Today, the reports and lists of an account with a million time entries. Each line is the first answer,
and the fastest, the median and the slowest of those that follow, in milliseconds.
"""

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlencode

from testing.process import Client, Server, query, running, with_database
from tools.screenshots import PAGES

from bench.child_data import add_children
from bench.depth_data import fill as fill_with_time
from bench.report_data import add_money
from bench.request_log import log_requests
from retainer.demo import fill
from retainer.demo.administration import Access
from retainer.identity.admins import OPERATORS, operator
from retainer.identity.people import passwords, users
from retainer.store.engines import connect
from retainer.store.tx import Store

AT_MOST, AT_MOST_LARGE = 50, 150
"""Milliseconds of the median: on the demo, and on the account with many time entries."""
LOGGED = ("", "/keys", "/keys/1", "/requests", "/requests?span=30d", "/requests?status=5xx", "/records/clients/1")
LARGE = (
    *("", "/reports/overview", "/reports/revenue-by-month", "/reports/revenue-by-client", "/reports/utilisation"),
    *("/reports/profitability", "/records/time-entries", "/records/invoices", "/records/projects", "/records/tasks"),
    *("/records/clients/1", "/records/projects/1", "/reports/utilisation?client_id=1"),
)
LINKS = re.compile(rb'href="(/docs[^"#]*)"')
FORM = {"Content_Type": "application/x-www-form-urlencoded", "Sec_Fetch_Site": "same-origin"}


def signed_in(client: Client, access: Access) -> str:
    """Sign in; return the cookie of the session."""
    body = urlencode({"email": access.email, "password": access.password}).encode()
    answer = client.send("POST", "/console/sign-in", body, **FORM)
    return answer.headers["set-cookie"].partition(";")[0]


def taken(client: Client, path: str, cookie: str, rounds: int) -> list[float]:
    """Open a page a number of times; return the milliseconds of each."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter_ns()
        answer = client.send("GET", path, Cookie=cookie)
        found.append((time.perf_counter_ns() - began) / 1e6)
        assert answer.status in {200, 404}, (path, answer)
    return found


def large_account(folder: Path, count: int) -> Access:
    """Make an account with a number of time entries, a twentieth of that in invoices, and an admin with a password."""
    database = folder / "data" / "retainer.db"
    database.parent.mkdir(mode=0o700, parents=True)
    made = fill_with_time(database, count)
    add_children(database, count)
    add_money(database, count // 20)
    store = Store(connect(f"sqlite:///{database}"))
    with store.unscoped() as tx:
        (owner,) = tx.all(OPERATORS)
    password = "seven quiet lanterns"
    with store.begin(operator(owner), write=True) as tx:
        admin = next(user for user in users.list_users(tx) if user["role"] == "admin")
        users.set_password(tx, admin["id"], admin["name"], passwords.hash_password(password))
    store.engine.close()
    return Access(made.keys[0], admin["email"], password)


def measure(server: Server, access: Access, paths: Iterable[str], rounds: int, at_most: int = AT_MOST) -> list[str]:
    """Print what pages take; return those that take too long."""
    slow = []
    with server.client() as client:
        cookie = signed_in(client, access)
        for path in paths:
            first, *others = taken(client, path, cookie, rounds + 1)
            median = statistics.median(others)
            print(f"{path:<52}{first:>8.1f}{min(others):>8.1f}{median:>8.1f}{max(others):>8.1f}")
            slow += [path] * (median > at_most)
    return slow


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--requests", type=int, default=1_000_000)
    options.add_argument("--entries", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=15)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = with_database(Path(name))
        store = Store(connect(f"sqlite:///{folder / 'data' / 'retainer.db'}"))
        access = fill(store)
        print(f"{'milliseconds':<52}{'first':>8}{'fastest':>8}{'median':>8}{'slowest':>8}")
        with running(folder, "--no-monitor") as server:
            with server.client() as client:
                reference = sorted({path.decode() for path in LINKS.findall(client.send("GET", "/docs").body)})
            slow = measure(server, access, [*(f"/console{path}" for path in PAGES.values()), *reference], given.rounds)
        keys = query(server.database, "SELECT account_id, id FROM api_keys ORDER BY id")
        account_id = keys[0][0]
        log_requests(store, account_id, [key for account, key in keys if account == account_id], given.requests)
        print(f"\nwith {given.requests:,} requests in the log")
        with running(folder, "--no-monitor") as server:
            slow += measure(server, access, [f"/console{path}" for path in LOGGED], given.rounds)
    with tempfile.TemporaryDirectory() as name:
        access = large_account(Path(name), given.entries)
        print(f"\nwith {given.entries:,} time entries")
        with running(Path(name), "--no-monitor") as server:
            slow += measure(server, access, [f"/console{path}" for path in LARGE], given.rounds, AT_MOST_LARGE)
    print(f"\nabove {AT_MOST} ms, or {AT_MOST_LARGE} ms on the large account: {', '.join(slow) or 'none'}")
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
