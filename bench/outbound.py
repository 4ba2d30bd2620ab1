"""Measure what slow hosts of some accounts cost another account: python -m bench.outbound [--seconds S].

Webhooks and sites run as in `serve`, on a database file of its own. Name servers, receivers and sites are on loopback
addresses; some of them never answer, or only after 9.5 seconds.
"""

import argparse
import contextlib
import io
import json
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from dns.asyncresolver import Resolver
from testing.agencies import open_agency

from retainer.app import App
from retainer.crm.tags import create_tag
from retainer.demo.make import create, make
from retainer.events.sender.loop import Sender
from retainer.events.webhooks import Webhook, add_webhook
from retainer.identity.actors import operator_of
from retainer.outbound import names
from retainer.outbound.loop import BackgroundLoop
from retainer.schema.migrations import migrate
from retainer.settings import Settings
from retainer.sites.monitor.probe import Monitor
from retainer.sites.sites import create_site
from retainer.store.tx import Store

LOOPBACK = (ip_network("127.0.0.0/8"),)
SLOW_SECONDS = 9.5
EVENTS = 50


class Host:
    """A receiver or a site that answers after some seconds, and keeps when it was asked."""

    def __init__(self, seconds: float = 0) -> None:
        self.asked: list[float] = []
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                host.asked.append(time.monotonic())
                self.rfile.read(int(self.headers.get("content-length") or 0))
                time.sleep(seconds)
                with contextlib.suppress(OSError):
                    self.send_response(200)
                    self.send_header("content-length", "0")
                    self.end_headers()

            do_GET = do_POST  # noqa: N815  # of http.server

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_port}/"
        threading.Thread(target=server.serve_forever, daemon=True).start()


@contextmanager
def place(accounts: int) -> Iterator[tuple[Store, list[int]]]:
    """Yield a store with some accounts."""
    with tempfile.TemporaryDirectory() as folder:
        app = App(
            Settings(database_url=f"sqlite:///{Path(folder) / 'outbound.db'}", max_sites=("10000",)), io.BytesIO()
        )
        migrate(app.store.engine)
        made = [open_agency(app.store, f"Agency{number}", "agency")["account_id"] for number in range(accounts)]
        yield app.store, made
        app.store.engine.close()


@contextmanager
def running(loop: BackgroundLoop[Any]) -> Iterator[None]:
    loop.start()
    try:
        yield
    finally:
        loop.stop()


def add_hooks(store: Store, account_id: int, *urls: str) -> None:
    with store.begin(operator_of(store, account_id), write=True) as tx:
        for url in urls:
            add_webhook(tx, make(Webhook, url=url), "", LOOPBACK)


def add_tags(store: Store, account_id: int, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        with store.begin(operator_of(store, account_id), write=True) as tx:
            create(create_tag, tx, name=f"Tag {number}")


def add_sites(store: Store, account_id: int, *urls: str) -> None:
    with store.begin(operator_of(store, account_id), write=True) as tx:
        for url in urls:
            create(create_site, tx, url=url, check_interval_seconds=60)


def wait(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)


def silent_webhooks(seconds: float) -> dict[str, object]:
    """20 webhooks whose name server never answers, and 50 events of another account."""
    with place(2) as (store, (first, second)):
        add_hooks(store, first, *(f"http://silent-{number}.example/" for number in range(20)))
        add_tags(store, first, 30)
        host = Host()
        add_hooks(store, second, host.url)
        with running(Sender(store, LOOPBACK, "", print, print)):
            time.sleep(5)
            began = time.monotonic()
            add_tags(store, second, EVENTS)
            wait(lambda: len(host.asked) >= EVENTS, seconds)
        late = max(host.asked, default=began) - began
        return {"events of another account that arrived": f"{len(host.asked)} of {EVENTS}", "seconds": round(late, 2)}


def silent_sites(seconds: float, sites: int = 1500) -> dict[str, object]:
    """Sites with silent name servers that were due first, and the sites of another account."""
    with place(2) as (store, (first, second)):
        urls = [f"http://silent-{number}.example/" for number in range(sites)]
        for start in range(0, sites, 100):
            add_sites(store, first, *urls[start : start + 100])
        host = Host()
        with running(Monitor(store, LOOPBACK, print)):
            time.sleep(5)
            began = time.monotonic()
            add_sites(store, second, *(f"{host.url}{number}" for number in range(20)))
            wait(lambda: len(host.asked) >= 20, seconds)
        late = max(host.asked, default=began) - began
        return {"sites of another account that were checked": f"{len(host.asked)} of 20", "seconds": round(late, 2)}


def slow_receivers(seconds: float) -> dict[str, object]:
    """Two accounts whose receivers answer after 9.5 seconds, and a third that has an event each second."""
    with place(3) as (store, (first, second, third)):
        slow, host = Host(SLOW_SECONDS), Host()
        for account in (first, second):
            add_hooks(store, account, *(f"{slow.url}{number}" for number in range(20)))
            add_tags(store, account, 60)
        add_hooks(store, third, host.url)
        sent: list[float] = []
        with running(Sender(store, LOOPBACK, "", print, print)):
            time.sleep(5)
            for number in range(int(seconds)):
                sent.append(time.monotonic())
                add_tags(store, third, 1, number)
                time.sleep(1)
            wait(lambda: len(host.asked) >= len(sent), seconds)
        late = sorted(max(0, arrived - at) for at, arrived in zip(sent, host.asked, strict=False))
        return {
            "events of a third account that arrived": f"{len(host.asked)} of {len(sent)}",
            "p50": round(statistics.median(late), 2) if late else None,
            "max": round(late[-1], 2) if late else None,
        }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=40, help="the longest wait of each measurement")
    given = options.parse_args()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:  # it is never read
        silent.bind(("127.0.0.1", 0))
        resolver = Resolver(configure=False)
        resolver.nameservers, resolver.port = ["127.0.0.1"], silent.getsockname()[1]
        setattr(names, "Resolver", lambda *_, **__: resolver)  # noqa: B010  # its import is not for others
        for measure in (silent_webhooks, silent_sites, slow_receivers):
            print(f"{(measure.__doc__ or '').strip()} {json.dumps(measure(given.seconds))}", flush=True)


if __name__ == "__main__":
    main()
