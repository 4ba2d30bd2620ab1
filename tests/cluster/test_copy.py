"""Copies into a cluster and out of it: every row arrives, and the copy works."""

from contextlib import closing

import time_machine
from testing.agencies import open_app
from testing.process import tell

from retainer.rollups import doctor
from retainer.store.engines import connect
from retainer.transfer.copying import TABLES, summarize
from tests.contract.filler import NOW, Filler
from tests.contract_checker import NoChecks
from tests.factories import ApiClient


def summaries(url):
    """A summary of the rows of each table."""
    with closing(connect(url)) as engine, engine.read_snapshot() as connection:
        return {table.name: summarize(connection, table) for table in TABLES}


def test_an_installation_moves_into_a_cluster_and_back(cluster, sqlite_databases, tmp_path):
    source = sqlite_databases.fresh()
    agencies = sqlite_databases.agencies
    app = open_app(source)
    with time_machine.travel(NOW, tick=False) as clock:
        for agency in agencies.values():
            Filler(ApiClient(app, NoChecks(), agency), clock).fill(2, "moved")
    app.store.engine.close()
    target, back = cluster.create(), sqlite_databases.create()
    try:
        tell(tmp_path, "copy", "--from", source, "--to", target)
        moved = tell(tmp_path, "distribute", RETAINER_DATABASE_URL=target)
        assert moved["moved"] == moved["distributed"] + moved["on_every_node"]
        assert summaries(target) == summaries(source)
        tell(tmp_path, "copy", "--from", target, "--to", back)
        assert summaries(back) == summaries(source)
        app = open_app(target)
        api = ApiClient(app, NoChecks(), agencies["north"])
        assert api.make("/clients")["id"] > max(client["id"] for client in api.get("/clients").data[1:])
        assert doctor.inspect(app.store, repair=False) == []
        app.store.engine.close()
    finally:
        cluster.drop(target)
