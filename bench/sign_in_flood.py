"""Measure what a flood of sign-ins costs others: python -m bench.sign_in_flood [--seconds S] [--database KIND].

Twenty anonymous clients post sign-ins, each time with another email, from one address and then from twenty; before
that they ask for a page that does not exist, which shows what as many cheap requests cost on this machine. Prints how
many tries of an admin with the right password succeed meanwhile, p50 and p99 of another tenant's writes, the rows that
the flood leaves, and how it was answered. Slow figures do not fail: the exit status is 0.
"""

import argparse
import http.client
import itertools
import multiprocessing
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

from sqlalchemy import func, select

from bench.databases import add_option, databases
from bench.servers import RETAINER, start, stop, wait
from bench.slow_senders import measure, open_account, percentiles, writes
from retainer.identity.passwords import hash_password
from retainer.schema import metadata
from retainer.schema.identity import users
from retainer.schema.migrations import migrate
from retainer.store.engines import Sqlite, connect
from retainer.store.tx import Store

CLIENTS, TRIES = 20, 20
PASSWORD, ADMIN = "seven quiet lanterns", "203.0.113.9"
BEHIND_A_PROXY = ["env", "RETAINER_TRUSTED_PROXIES=127.0.0.1", *RETAINER]
FLOODS = [
    ("alone", "", 0),
    ("404, 19 addresses", "/nothing", CLIENTS - 1),
    ("one address", "/console/sign-in", 1),
    ("20 addresses", "/console/sign-in", CLIENTS),
]
OTHERS = {"tags", "sessions", "request_blocks", "request_terms", "request_hours", "operation_hours"}
"""Tables into which the other tenant, the admin and the request log write."""


def sign_in(
    connection: http.client.HTTPConnection, address: str, email: str, password: str, path: str = "/console/sign-in"
) -> int:
    """Post the form of a sign-in from an address; return the status."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    form = urlencode({"email": email, "password": password})
    connection.request("POST", path, form, headers | {"X-Forwarded-For": address})
    response = connection.getresponse()
    response.read()
    return response.status


def flood(
    port: int, path: str, addresses: int, seconds: float, answered: "multiprocessing.SimpleQueue[Counter[int]]"
) -> None:
    """Post sign-ins from so many addresses, in a process of its own; put how many were answered with each status."""
    end = time.monotonic() + seconds

    def client(number: int) -> Counter[int]:
        connection, found = http.client.HTTPConnection("127.0.0.1", port, timeout=60), Counter[int]()
        address = f"198.51.{addresses}.{number % addresses}"
        for turn in itertools.count():
            if time.monotonic() >= end:
                return found
            found[sign_in(connection, address, f"{number}.{turn}@flood.example", "a wrong password", path)] += 1
        return found

    with ThreadPoolExecutor(CLIENTS) as pool:
        answered.put(sum(pool.map(client, range(CLIENTS)), Counter[int]()))


def try_to_sign_in(port: int, seconds: float, answered: list[int]) -> None:
    """Sign the admin in again and again, from an address and a browser of which nothing is known."""
    for _ in range(TRIES):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        answered.append(sign_in(connection, ADMIN, "ana@agency.example", PASSWORD))
        connection.close()
        time.sleep(seconds / TRIES / 2)


def count_rows(address: str) -> int:
    """Return how many rows there are, but for those of the others."""
    engine = connect(address)
    with Store(engine).unscoped("rows of all accounts are counted") as tx:
        tx.snapshot()
        tables = [table for table in metadata.sorted_tables if table.name not in OTHERS]
        rows = sum(tx.value(select(func.count()).select_from(table)) for table in tables)
    engine.close()
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=12.0, help="how long each flood takes")
    add_option(options)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, databases(given.database, None) as place:
        file = Path(folder) / "retainer.db"
        engine = Sqlite(file)
        migrate(engine)
        open_account(Store(engine), "agency", 1)
        stream = writes(open_account(Store(engine), "other", 200))
        with Store(engine).unscoped("the admin has a password", write=True) as tx:
            tx.run(
                users.update()
                .where(users.c.email == "ana@agency.example")
                .values(password_hash=hash_password(PASSWORD))
            )
        engine.close()
        address = place(file)
        server = start("Retainer", BEHIND_A_PROXY, file, None, address)
        try:
            wait(server)
            measure(server.port, {"write": stream}, 1)
            print(f"{'':<20}{'signed in':>10}{'p50 ms':>9}{'p99 ms':>9}{'rows':>7}  answers to the flood")
            for name, path, addresses in FLOODS:
                before, tried = count_rows(address), list[int]()
                answers: multiprocessing.SimpleQueue[Counter[int]] = multiprocessing.SimpleQueue()
                attack = multiprocessing.Process(
                    target=flood, args=(server.port, path, addresses, given.seconds, answers)
                )
                admin = threading.Thread(target=try_to_sign_in, args=(server.port, given.seconds, tried))
                if addresses:
                    attack.start()
                    time.sleep(1)
                admin.start()
                median, slowest = percentiles(measure(server.port, {"write": stream}, given.seconds - 1)["write"])
                admin.join()
                found = answers.get() if addresses else Counter()
                rows = count_rows(address) - before - tried.count(303)  # a line of the audit for each
                print(f"{name:<20}{tried.count(303):>7}/{TRIES}{median:>9.1f}{slowest:>9.1f}{rows:>7}  {dict(found)}")
        finally:
            stop(server)


if __name__ == "__main__":
    main()
