"""Measure what a flood of sign-ins costs other clients: python -m bench.sign_in_flood [--seconds S] [--database KIND].

Twenty anonymous clients post sign-ins, each time with another email, from one address and then from twenty; before that
they ask for a page that does not exist, which shows what as many cheap requests cost. Slow figures do not fail.
"""

import argparse
import http.client
import multiprocessing
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import func, select

from bench.databases import add_option, databases
from bench.servers import RETAINER, start, stop, wait
from bench.slow_senders import measure, open_account, percentiles, writes
from retainer.identity.people.passwords import hash_password
from retainer.schema import metadata
from retainer.schema.identity import users
from retainer.schema.migrations import migrate
from retainer.store.engines import Sqlite, connect
from retainer.store.tx import Store

CLIENTS = TRIES = 20
EMAIL, PASSWORD, SIGN_IN = "ana@agency.example", "seven quiet lanterns", "/console/sign-in"
BEHIND_A_PROXY = ["env", "RETAINER_TRUSTED_PROXIES=127.0.0.1", *RETAINER]
FLOODS = {"alone": ("", 0), "404": ("/nothing", 19), "1 address": (SIGN_IN, 1), "20 addresses": (SIGN_IN, 20)}
OTHERS = {"tags", "sessions", "requests", "request_hours", "operation_hours"}
"""Tables into which the other tenant, the admin and the request log write."""


def post(connection: http.client.HTTPConnection, path: str, address: str, email: str, password: str) -> int:
    """Post the form of a sign-in from an address; return the status."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    headers["X-Forwarded-For"] = address
    connection.request("POST", path, urlencode({"email": email, "password": password}), headers)
    with connection.getresponse() as response:
        response.read()
        return response.status


def flood(port: int, path: str, addresses: int, seconds: float, answered: Any) -> None:
    """Post sign-ins from a number of addresses in another process; put the number of responses by status."""
    end = time.monotonic() + seconds

    def client(number: int) -> Counter[int]:
        connection, found = http.client.HTTPConnection("127.0.0.1", port, timeout=60), Counter[int]()
        while time.monotonic() < end:
            email, address = f"{number}.{found.total()}@flood.example", f"198.51.{addresses}.{number % addresses}"
            found[post(connection, path, address, email, "a wrong password")] += 1
        return found

    with ThreadPoolExecutor(CLIENTS) as pool:
        answered.put(sum(pool.map(client, range(CLIENTS)), Counter[int]()))


def sign_in(port: int, seconds: float, answered: list[int]) -> None:
    """Sign the admin in again and again, from an address of which nothing is known."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for _ in range(TRIES):
        answered.append(post(link, SIGN_IN, "203.0.113.9", EMAIL, PASSWORD))
        time.sleep(seconds / TRIES / 2)


def count_rows(address: str) -> int:
    """Return the number of rows, except those of other processes."""
    engine = connect(address)
    with Store(engine).unscoped(write=True) as tx:
        counted = (table for name, table in metadata.tables.items() if name not in OTHERS)
        rows = sum(tx.value(select(func.count()).select_from(table)) for table in counted)
    engine.close()
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=12.0)
    add_option(options)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, databases(given.database, None) as place:
        file = Path(folder) / "retainer.db"
        store = Store(Sqlite(file))
        migrate(store.engine)
        open_account(store, "agency", 1)
        stream = writes(open_account(store, "other", 200))
        with store.unscoped(write=True) as tx:
            tx.run(users.update().where(users.c.email == EMAIL).values(password_hash=hash_password(PASSWORD)))
        store.engine.close()
        address = place(file)
        server = start("Retainer", BEHIND_A_PROXY, file, None, address)
        try:
            wait(server)
            print(f"{'':<20}{'signed in':>10}{'p50 ms':>9}{'p99 ms':>9}{'rows':>7}  answers to the flood")
            for name, (path, addresses) in FLOODS.items():
                before, tried, answers = count_rows(address), list[int](), multiprocessing.SimpleQueue()
                arguments = server.port, path, addresses, given.seconds, answers
                attack = multiprocessing.Process(target=flood, args=arguments)
                admin = threading.Thread(target=sign_in, args=(server.port, given.seconds, tried))
                if addresses:
                    attack.start()
                    time.sleep(1)
                admin.start()
                median, slowest = percentiles(measure(server.port, {"write": stream}, given.seconds - 1)["write"])
                admin.join()
                found, entered = dict(answers.get()) if addresses else {}, tried.count(303)
                rows = count_rows(address) - before - entered  # a line of the audit for each
                print(f"{name:<20}{entered:>7}/{TRIES}{median:>9.1f}{slowest:>9.1f}{rows:>7}  {found}")
        finally:
            stop(server)


if __name__ == "__main__":
    main()
