"""The program of the guide keeps a copy equal to the database, although it and the server are killed."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from random import Random

import pytest
from testing.process import PATIENCE, opened, start, until, with_database

from retainer.api import ROUTES
from retainer.events.catalogue import RESOURCES
from retainer.reference.markdown import MARKDOWN
from retainer.reference.pages import pages_of
from retainer.store.outbox import resource_of
from tests.contract.test_events import SILENT
from tests.length import IS_FULL, by_turns, length

WRITES = length(900)
DELETABLE = {"/clients", "/tags", "/projects", "/tasks", "/time-entries", "/invoices", "/tickets", "/sites"}
WHOLE = {
    "quotes": ["/quotes?include=lines"],
    "invoices": ["/invoices?include=lines,payments,credit_notes"],
    "sites": ["/sites?include=plugins"],
}
"""Lists of records with the parts that they have alone."""
LINES = [{"description": "Design", "unit_price": "500"}]


@pytest.fixture(params=by_turns(["sqlite", "postgresql"]) if IS_FULL else ["sqlite"])
def settings(request):
    """The settings of a server with a database of its own."""
    if request.param == "sqlite":
        yield {}
        return
    databases = request.getfixturevalue("postgresql_databases")
    url = databases.copy(databases.prototype)
    yield {"RETAINER_DATABASE_URL": url}
    databases.discard(url)


def program():
    """The program as the guide prints it."""
    (code,) = (
        block.content
        for block in MARKDOWN.parse(pages_of(ROUTES)["/docs/sync"].text)
        if block.type == "fence" and block.info == "python"
    )
    return code


class Mirror:
    """The program, which a supervisor starts again when it has ended, and its file."""

    def __init__(self, folder, server, key):
        self.folder = folder
        variables = {"RETAINER_URL": f"http://127.0.0.1:{server.port}/api/public/v1", "RETAINER_KEY": key}
        self.environment = os.environ | variables
        self.kills, self._stopped = 0, threading.Event()
        self.errors = (folder / "mirror.txt").open("ab")
        self.process = self.begin()
        self._thread = threading.Thread(target=self.supervise, daemon=True)
        self._thread.start()

    def begin(self):
        return subprocess.Popen(
            [sys.executable, "-c", program()], cwd=self.folder, env=self.environment, stderr=self.errors
        )

    def supervise(self):
        while not self._stopped.wait(0.1):
            if self.process.poll() is not None:
                self.process = self.begin()

    def kill(self):
        self.process.kill()

    def stop(self):
        self._stopped.set()
        self._thread.join()
        self.kill()
        self.process.wait()
        self.errors.close()

    def rows(self, sql):
        with suppress(sqlite3.Error), closing(sqlite3.connect(self.folder / "mirror.db")) as file:
            return file.execute(sql).fetchall()
        return []

    @property
    def position(self):
        rows = self.rows("SELECT after FROM position")
        return rows[0][0] if rows else None

    def records(self):
        found = self.rows("SELECT type, id, data FROM records")
        return {(kind, record_id): own(kind, json.loads(data)) for kind, record_id, data in found}


def own(kind, record):
    """A record without the fields that change without an event; of time entries, the program follows their project."""
    silent = () if kind == "time_entry" else SILENT.get(kind, "").split()
    return {name: value for name, value in record.items() if name not in silent}


class Writer:
    """Writes at random; what is sent while the server is killed may be written or not."""

    def __init__(self, server, agency, number):
        self.random, self.server, self.agency = Random(number), server, agency
        self.client = server.client(agency["key"])
        self.ids = {}
        self.refused = []

    def send(self, method, path, body=None):
        with suppress(OSError):
            answer = self.client.insist(method, path, body)
            if answer.remaining < 10:  # of the requests that this minute has for a key
                self.client.close()
                self.client = self.server.client(self.server.new_key(self.agency))
            if answer.status == 201:
                self.ids.setdefault(path, []).append(answer.data["id"])
            elif answer.status >= 500 or answer.status == 429:
                self.refused.append(answer)

    def one(self, path):
        """The path of a record in a collection, which may be gone."""
        ids = self.ids.get(path)
        return f"{path}/{self.random.choice(ids)}" if ids else None

    def id_of(self, path):
        return self.random.choice(self.ids.get(path) or [None])

    def write(self, number):
        client, tag, project = self.id_of("/clients"), self.id_of("/tags"), self.id_of("/projects")
        tags = [tag] if tag else []
        choices = [
            ("POST", "/clients", {"name": f"Client {number}", "tag_ids": tags}),
            ("POST", "/tags", {"name": f"Tag {number}"}),
            ("POST", "/external-contacts", {"client_id": client, "last_name": "Lenz"}),
            ("POST", "/projects", {"name": "Shop", "client_id": client, "is_template": number % 5 == 0}),
            ("POST", "/tasks", {"title": "Write", "project_id": project, "tag_ids": tags}),
            ("POST", "/time-entries", {"client_id": client, "duration_minutes": 5}),
            ("POST", "/time-entries", {"project_id": project, "duration_minutes": 5, "hourly_rate": "60"}),
            ("POST", "/expenses", {"client_id": client, "amount": "12"}),
            ("POST", "/quotes", {"client_id": client, "lines": LINES}),
            (
                "POST",
                "/invoices",
                {"client_id": client, "lines": LINES, "status": self.random.choice(["draft", "sent"])},
            ),
            ("POST", "/tickets", {"subject": "Slow", "client_id": client}),
            ("POST", "/sites", {"url": f"https://shop{number}.example", "plugins": [{"slug": "woo"}]}),
        ]
        if project:
            choices.append(("POST", f"/projects/{project}/milestones", {"name": "Launch"}))
        for path, change in (
            ("/clients", {"notes": f"Called {number}"}),
            ("/clients", {"tag_ids": tags}),
            ("/projects", {"status": "on_hold", "client_id": client}),
            ("/projects", {"billing_type": "fixed_fee", "fixed_fee": "10"}),
            ("/projects", {"billing_type": "time_and_materials", "fixed_fee": None}),
            ("/tasks", {"status": "done"}),
            ("/invoices", {"record_payment": {"amount": "1"}}),
            ("/invoices", {"lines": LINES * 2}),
            ("/sites", {"plugins": [{"slug": "woo", "version": f"{number}"}]}),
            ("/tickets", {"status": self.random.choice(["resolved", "open"])}),
        ):
            if self.one(path):
                choices.append(("PATCH", self.one(path), change))
        if self.one("/tickets"):
            choices.append(("POST", f"{self.one('/tickets')}/replies", {"body": "Looking into it"}))
        deleted = [path for path in self.ids if path in DELETABLE and self.random.random() < 0.4]
        choices += [("DELETE", self.one(path), None) for path in deleted]
        self.send(*self.random.choice(choices))


def everything(client):
    """Every record of the account as the API returns it alone."""
    found = {}

    def pages(path):
        page = 1
        while page:
            answer = client.get(f"{path}{'&' if '?' in path else '?'}per_page=100&page={page}").json
            yield from answer["data"]
            page = page + 1 if answer["links"]["next"] else None

    for resource in RESOURCES:
        if resource.parent is not None:
            continue
        table, path = resource.table, resource.path
        parts = {"projects": ["/projects", "/projects?is_template=true"], **WHOLE}.get(table.name, [path])
        rows = [row for part in parts for row in pages(part)]
        if table.name == "projects":
            for row in rows:
                found |= {("milestone", each["id"]): each for each in pages(f"/projects/{row['id']}/milestones")}
                found |= {("task", each["id"]): each for each in pages(f"/tasks?project_id={row['id']}")}
        if table.name == "tickets":
            for row in rows:
                found |= {("ticket_reply", each["id"]): each for each in pages(f"/tickets/{row['id']}/replies")}
        found |= {(resource_of(table), row["id"]): row for row in rows}
    return {(kind, record_id): own(kind, record) for (kind, record_id), record in found.items()}


def assert_equal(mirror, client, what):
    """Wait until the mirror has read the newest event, and compare all records."""
    latest = client.get("/events?per_page=1").json["meta"]["latest"]
    seconds = PATIENCE + WRITES / 25  # the limit of its key lets it read 50 records a second
    until(lambda: (mirror.position or 0) >= latest, f"the mirror is at {latest}", seconds)
    copied, found = mirror.records(), everything(client)
    assert copied.keys() == found.keys(), what
    different = {key: (copied[key], found[key]) for key in found if copied[key] != found[key]}
    assert different == {}, what


def test_a_mirror_equals_the_database_although_both_are_killed(tmp_path, settings):
    folder = with_database(tmp_path / "served")
    server = start(folder, "--no-monitor", **settings)
    agency = server.agency("Agency", "enterprise")
    writer = Writer(server, agency, 7)
    mirror = Mirror(tmp_path, server, server.new_key(agency))
    try:
        for number in range(WRITES):
            if number % (WRITES // 6) == WRITES // 12:
                mirror.kill()
            if number % (WRITES // 3) == WRITES // 6:
                server.kill()
                server = start(folder, "--no-monitor", port=server.port, **settings)
                writer.client.close()
            writer.write(number)
        assert writer.refused == []
        with server.client(server.new_key(agency)) as client:
            assert_equal(mirror, client, "after random writes")
            mirror.stop()
            with closing(sqlite3.connect(tmp_path / "mirror.db")) as file, file:
                file.execute("INSERT INTO records VALUES ('tag', 987654, '{}')")
            for number in range(5):
                writer.write(WRITES + number)
            client.post("/tags", {"name": "The last"})
            with opened(server.database) as store:
                connection = store.engine.connection()
                store.engine.run(connection, "DELETE FROM events WHERE id < (SELECT max(id) FROM events)", [])
                store.engine.give_back(connection)
            mirror = Mirror(tmp_path, server, server.new_key(agency))
            assert_equal(mirror, client, "after its position was pruned, it has begun again")
    finally:
        mirror.stop()
        writer.client.close()
        server.kill()
