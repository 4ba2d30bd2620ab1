"""Measure the pages that people open: python -m bench.pages [--database postgresql] [--large FOLDER].

The console with every filter and order of its lists, and the reference, on the demo; then the pages that read the
request log when it holds a million requests; then the console on an account with a million time entries. Of each, the
slowest pages are printed: the first answer, and the fastest, the median and the slowest of those that follow, in
milliseconds. The FOLDER keeps the large account for the next run, because making it takes minutes.
"""

import argparse
import contextlib
import random
import re
import statistics
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

from sqlalchemy import select
from testing.console_pages import PAGES
from testing.process import Client, Server, opened, running, with_database

from bench import account
from bench.console_paths import console_paths
from bench.servers import Stage, add_option, stage
from retainer.demo import Access, fill
from retainer.identity.actors import OPERATORS, operator
from retainer.identity.people import passwords, users
from retainer.schema.identity import api_keys
from retainer.store.engines.base import Unavailable
from retainer.store.tx import Store
from retainer.traffic.answered import RequestLine
from retainer.traffic.recorder import RequestRecorder
from retainer.values.exact import as_instant

AT_MOST, AT_MOST_LARGE = 50, 150
"""Milliseconds of the median: on the demo, and on the account with many time entries."""
LOGGED = ("", "/keys", "/keys/1", "/requests", "/requests?span=30d", "/requests?status=5xx", "/records/clients/1")
ACCEPTED = re.compile(
    "/console/("
    # They read every time entry, to count what nearly all or nearly none have; an index for each would slow down
    # every write of time
    "records/time-entries[?](q|currency|has_rate|billable|sort=-?duration_minutes)"
    "|records/time-entries[?]billing_status=(billed|non_billable)$"
    "|records/(expenses|payments)[?]sort=-?(amount|category|created_at)"  # likewise, PostgreSQL sorts them all
    "|records/invoices[?](paid_date_to|status=paid$)"  # nearly every payment is that old, nearly every invoice paid
    "|reports/revenue-by-month"  # 24 months, of which each has the balance of every invoice at its end
    "|reports/profitability"  # two reports on 500 projects, and a table of them all
    ")"
)
"""Pages of the large account that may take longer, with the reasons."""
LINKS = re.compile(rb'href="(/docs[^"#]*)"')
FORM = {"Content_Type": "application/x-www-form-urlencoded", "Sec_Fetch_Site": "same-origin"}
LOGGED_AT_ONCE = 5000
OPERATIONS = ("listClients", "getClient", "listTimeEntries", "getInvoice", "createTimeEntry", "updateClient")
KEYS = select(api_keys.c.account_id, api_keys.c.id).order_by(api_keys.c.id)
PASSWORD = "seven quiet lanterns"


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
        assert answer.status in {200, 404, 422}, (path, answer)
    return found


def admin_of(database: Path) -> Access:
    """Give the first admin of the large account a password; return the access."""
    with opened(database) as store:
        with store.unscoped() as tx:
            (owner,) = tx.all(OPERATORS)
        with store.begin(operator(owner), write=True) as tx:
            admin = next(user for user in users.list_users(tx) if user["role"] == "admin")
            users.set_password(tx, admin["id"], admin["name"], passwords.hash_password(PASSWORD))
    return Access("", admin["email"], PASSWORD)


def measure(server: Server, access: Access, paths: Iterable[str], given: argparse.Namespace, at_most: int) -> list[str]:
    """Print what the slowest pages take, and the median of all; return those that take too long."""
    found: list[tuple[float, str, list[float]]] = []
    with server.client() as client:
        cookie = signed_in(client, access)
        for path in paths:
            times = taken(client, path, cookie, given.rounds + 1)
            found.append((statistics.median(times[1:]), path, times))
    for median, path, (first, *others) in sorted(found, reverse=True)[: given.slowest]:
        print(f"{path:<92}{first:>8.1f}{min(others):>8.1f}{median:>8.1f}{max(others):>8.1f}")
    print(f"{len(found)} pages, half of them in {statistics.median(median for median, _, _ in found):.1f}")
    return [path for median, path, _ in found if median > at_most and not ACCEPTED.match(path)]


def log_requests(store: Store, account_id: int, key_ids: list[int], count: int) -> None:
    """Log requests of an account's keys in the last 30 days: most are reads, few fail, and the last key only fails."""
    rng, recorder, now = random.Random(7), RequestRecorder(), datetime.now(UTC)

    def requested(number: int) -> RequestLine:
        key, operation, record = rng.choice(key_ids), rng.choice(OPERATIONS), f"/clients/{rng.randint(1, 20_000)}"
        writes = operation.startswith(("create", "update"))
        path = record if writes else f"/{rng.choice(('clients', 'tasks', 'invoices'))}/{rng.randint(1, 20_000)}"
        status = 429 if key == key_ids[-1] else rng.choices((200, 304, 404, 422, 500), (93, 3, 2, 1.9, 0.1))[0]
        moment = as_instant(now - timedelta(days=30) * (count - number) / count)
        request_id = f"req_{number:012x}{rng.getrandbits(48):012x}"  # ordered by time, as the server makes them
        what = (moment, request_id, "POST" if writes else "GET", path, status, 2.5, operation)
        return RequestLine(*what, account_id, 1, key, "rtn_abcd", "192.0.2.7", record if writes else None)

    for start in range(0, count, LOGGED_AT_ONCE):
        recorder.add([requested(start + number) for number in range(LOGGED_AT_ONCE)])
        with contextlib.suppress(Unavailable):  # while the disk stalls; the next write begins with what is left
            recorder.write(store)
    recorder.write(store)


def measure_demo(folder: Path, place: Stage, given: argparse.Namespace) -> list[str]:
    """Measure all pages of the demo, and those that read the request log when it is full."""
    database = with_database(folder) / "data" / "retainer.db"
    with opened(database) as store:
        access = fill(store)
    address = place.address(database)
    with running(folder, "--no-monitor", RETAINER_DATABASE_URL=address) as server:
        with server.client() as client:
            reference = sorted({path.decode() for path in LINKS.findall(client.send("GET", "/docs").body)})
        paths = [*PAGES.values(), *(path for path in console_paths() if path not in PAGES.values())]
        slow = measure(server, access, [*(f"/console{path}" for path in paths), *reference], given, AT_MOST)
    with opened(address) as store:
        with store.unscoped() as tx:
            keys = tx.all(KEYS)
        log_requests(store, keys[0][0], [key for account, key in keys if account == keys[0][0]], given.requests)
    print(f"\nwith {given.requests:,} requests in the log")
    with running(folder, "--no-monitor", RETAINER_DATABASE_URL=address) as server:
        return slow + measure(server, access, [f"/console{path}" for path in LOGGED], given, AT_MOST)


def measure_large(folder: Path, place: Stage, given: argparse.Namespace) -> list[str]:
    """Measure the console on the account with many time entries."""
    database = folder / "large" / "retainer.db"
    if not database.exists():
        account.fill(database, given.entries, billed=True)
    access = admin_of(database)
    print(f"\nwith {given.entries:,} time entries")
    with running(folder, "--no-monitor", RETAINER_DATABASE_URL=place.address(database)) as server:
        return measure(server, access, [f"/console{path}" for path in ("", *console_paths())], given, AT_MOST_LARGE)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--requests", type=int, default=1_000_000)
    options.add_argument("--entries", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--slowest", type=int, default=20, help="pages to print")
    options.add_argument("--large", type=Path, help="keeps the large account for the next run")
    add_option(options)
    given = options.parse_args()
    print(f"{'milliseconds':<92}{'first':>8}{'fastest':>8}{'median':>8}{'slowest':>8}")
    with stage(given.database, pinned=False) as place:
        slow = measure_demo(place.folder / "demo", place, given)
        slow += measure_large(given.large or place.folder, place, given)
    print(f"\nabove {AT_MOST} ms, or {AT_MOST_LARGE} ms on the large account: {', '.join(slow) or 'none'}")
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
