"""Unbilled hours to measure with: of clients, on 50 projects each."""

import itertools
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from retainer.crm import clients
from retainer.demo.make import make
from retainer.identity.actors import operator_of
from retainer.rollups import doctor
from retainer.store.tx import Store
from retainer.work import projects, time_entries
from retainer.work.project_types import Project
from retainer.work.time_rules import TimeEntry

PROJECTS = 50
COPY = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {times}) "
    "INSERT INTO time_entries ({names}) SELECT {names} FROM time_entries, n WHERE id = {id}"
)


def fill(store: Store, sizes: list[int], account: int = 1, user: int = 1) -> dict[int, int]:
    """Record hours for a client of each size, every project's on a day of its own; return the clients by size."""
    found = {}
    days = itertools.count()
    for size in sizes:
        with store.begin(replace(operator_of(store, account), user_id=user, role="admin"), write=True) as tx:
            client = make(clients.Client, name=f"Client of {size}", hourly_rate="90")
            found[size] = clients.create_client(tx, client).id
            columns = tx.connection.execute("SELECT name FROM pragma_table_info('time_entries')").fetchall()
            names = ", ".join(name for (name,) in columns if name != "id")
            for number in range(PROJECTS):
                project = make(Project, name=f"Project {number}", client_id=found[size])
                hour = {"project_id": projects.create_project(tx, project).id, "duration_minutes": 45}
                day = str(datetime.now(UTC).date() - timedelta(days=next(days)))
                entry = time_entries.record_time(tx, make(TimeEntry, **hour, date=day))
                tx.connection.execute(COPY.format(times=size // PROJECTS - 1, names=names, id=entry))
    doctor.inspect(store, repair=True)
    return found
