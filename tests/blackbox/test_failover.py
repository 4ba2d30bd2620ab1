"""A standby takes over while callers read and write: the server finds it, and no acknowledged write is lost."""

import time
from urllib.parse import quote

from testing.process import Servers, running, until

from tests.blackbox import outages
from tests.length import only_full
from tests.postgresql_process import postgresql_process

WRITES = 300
"""Acknowledged writes before the primary is lost."""


@only_full
def test_a_promoted_standby_has_every_acknowledged_write_and_needs_no_restart(fast_path, tmp_path):
    with postgresql_process(fast_path) as primary, postgresql_process(fast_path, primary) as standby:
        primary.wait_for_standby()
        hosts = quote(f"{standby.socket_folder},{primary.socket_folder}", safe="/,")
        address = f"postgresql://postgres@/postgres?host={hosts}"
        with running(tmp_path, "--no-monitor", RETAINER_DATABASE_URL=address) as server:
            servers, book, processes = Servers(server), outages.Book(), server.processes()
            with outages.Load(servers, book) as load:
                until(lambda: len(book.acknowledged) >= WRITES or book.wrong, "callers have written")
                primary.kill()
                standby.promote()
                load.until_all_succeed(time.monotonic())
            outages.verify(servers, book)
            assert book.wrong == []
            assert server.processes() == processes, "no process was replaced"
