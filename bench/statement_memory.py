"""Measure the memory that lists keep when requests combine parameters at random: python -m bench.statement_memory.

As many connections as a server has slots send lists with filters, an order, a page size and a page; hardly any
combination comes twice. Each line shows by how much the server's resident memory has grown, in MB.
"""

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from threading import local
from typing import Any, get_args
from urllib.parse import urlencode

from bench.data import open_agency
from bench.databases import add_option, databases
from bench.servers import RETAINER, THREADS, Connection, Server, request, start, stop, wait
from retainer.app import ROUTES
from retainer.kernel.query import Parameter, parameters
from retainer.kernel.resource import Operation

LISTS = [operation for operation in ROUTES.operations if operation.paged and not operation.parameters]
KEYS, AT_MOST_MB = 40, 80  # enough keys for the limit of 3,000 a minute
TEXTS = ("1", "true", "2026-03-10", "2026-03-10T09:00:00Z", "EUR", "DE", "text", "a@b.example")


def words(hint: Any) -> Iterator[str]:
    """Yield the words of an enumeration within a type hint."""
    for part in get_args(hint):
        yield from [part] if isinstance(part, str) else words(part)


def text_for(parameter: Parameter) -> str:
    """Return a text that a parameter accepts."""
    for text in (*words(parameter.hint), *TEXTS):
        with contextlib.suppress(ValueError):
            parameter.read(text)
            return text
    raise LookupError(parameter.field)


def texts_for(operation: Operation) -> dict[str, str]:
    """Return texts that the parameters of a list accept, of those that need no other beside them."""
    declared = parameters(operation.query).items()
    return {name: text_for(parameter) for name, parameter in declared if name != "plugin_version_lt"}


def combination(operation: Operation, texts: dict[str, str], rng: Random) -> str:
    """Return the address of a list, with parameters drawn at random; ranges are in order."""
    names = rng.sample(sorted(texts), rng.randint(0, min(6, len(texts))))
    sorts = [name.lstrip("-") for name in operation.query.sorts]
    order = [rng.choice(("", "-")) + name for name in rng.sample(sorts, rng.randint(1, min(3, len(sorts))))]
    query = {name: texts[name] for name in names} | {"sort": ",".join(order), "per_page": str(rng.randint(1, 100))}
    return f"{operation.path}?{urlencode(query | ({'page': '2'} if rng.random() < 0.3 else {}))}"


def resident(server: Server) -> float:
    """Return the resident memory of a server's processes in MB, without the pages of mapped files."""
    kilobytes = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(folder.name)) == server.process.pid:
                status = (folder / "status").read_text(encoding="ascii")
                kilobytes += int(status.partition("RssAnon:")[2].split()[0])
    return kilobytes * 1024 / 1e6


def main() -> None:
    """Send the requests, and print a line for each tenth of them."""
    options = argparse.ArgumentParser(description=__doc__)
    add_option(options)
    options.add_argument("--combinations", type=int, default=100_000)
    chosen = options.parse_args()
    texts = {operation: texts_for(operation) for operation in LISTS}
    with tempfile.TemporaryDirectory() as folder, databases(chosen.database, None) as place:
        path = Path(folder) / "bench.db"
        keys = open_agency(path, KEYS).keys
        server = start("retainer", ["env", "RETAINER_REQUEST_LOG_DAYS=0", *RETAINER], path, None, place(path))
        own = local()

        def send(seed: int) -> None:
            rng = Random(seed)
            operation = LISTS[seed % len(LISTS)]
            if not hasattr(own, "connection"):
                own.connection = Connection(server.port)
            address = operation.path if seed < 0 else combination(operation, texts[operation], rng)
            own.connection.ask(request("GET", address, keys[seed % KEYS]))

        try:
            wait(server)
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(send, range(-6000, 0)))  # each list without parameters, on every connection
                began, before, step = time.monotonic(), resident(server), chosen.combinations // 10
                print(f"after 6000 requests: {before:.0f} MB; at most {AT_MOST_MB} MB more")
                for first in range(0, chosen.combinations, step):
                    list(pool.map(send, range(first, first + step)))
                    grown, seconds = resident(server) - before, time.monotonic() - began
                    print(f"{first + step:>7} combinations: {grown:+6.1f} MB, {seconds:.0f} s", flush=True)
        finally:
            stop(server)


if __name__ == "__main__":
    main()
