"""Background loops search all shards of a cluster less often than the database of one server."""

from contextlib import closing
from datetime import timedelta

from retainer.outbound.leases import LeasedRow
from retainer.outbound.loop import BackgroundLoop
from retainer.store.engines import connect
from retainer.store.tx import Store

TASK = LeasedRow("", 1, 1, "")


class Searching(BackgroundLoop):
    """A loop that stops in its third turn, and counts its searches as done."""

    name, task, places = "searching", "searching", 1
    lease = timedelta()
    found, turns = (), 0

    def refresh(self):
        pass

    @property
    def leases(self):
        return self

    def claim(self, *_):
        self.done += 1
        return self.found

    async def _turn(self, *values, **options):
        self.turns += 1
        if self.turns == 3:
            self.stopped.set()
        await super()._turn(*values, **options)

    async def serve(self, work):
        pass


def searches(url, *found):
    def fail(what, error):
        raise error

    with closing(connect(url)) as engine:
        loop = Searching(Store(engine), fail)
        loop.found = found
        loop.run()
        return loop.done


def test_a_loop_that_finds_nothing_waits_before_it_asks_all_shards_again(cluster, sqlite_databases, monkeypatch):
    monkeypatch.setattr("retainer.outbound.loop.CLUSTER_SECONDS", 1000)
    assert searches(cluster.shared) == 1
    assert searches(cluster.shared, TASK) == 3, "there may be more"
    assert searches(sqlite_databases.create()) == 3
