"""Imports of clients, contacts and projects: the jobs that write the rows of a plan through the handlers of the API.

A record that exists is counted, and stays as it is. It is found by its `external_id`, else by its name or a contact by
its email address, at the client that the row names. Clients that a contact or a project names are created if need be.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, String, Table, bindparam, func, literal_column, or_, select

from retainer.crm.clients import Client, create_client
from retainer.crm.contacts import ExternalContact, create_external_contact
from retainer.errors import Unreadable, invalid
from retainer.exchange import plans
from retainer.exchange.record_files import Item, RecordRow, decode
from retainer.jobs import jobs
from retainer.jobs.kinds import Job, JobKind, JobRow
from retainer.kernel.body import RequestBody
from retainer.schema.crm import clients, external_contacts
from retainer.schema.identity import users
from retainer.schema.work import projects
from retainer.store.engines.sql import is_listed
from retainer.store.row_mapper import R
from retainer.store.tx import Tx
from retainer.values.collation import folded_text, sort_key
from retainer.work.project_types import Project
from retainer.work.projects import create_project

IMPORT_RECORDS = "import_records"
NAME, EMAIL = bindparam("name", type_=String()), bindparam("email", type_=String())
Key = tuple[str, int, str]
"""What a row means a record by: its table, the id of its client or 0, and its name or email address in one form."""


def _named(table: Table, *columns: ColumnElement[Any]) -> Select[Any]:
    """Return the records with one of these names or external ids, the oldest first."""
    is_meant = or_(*(is_listed(column, "names") for column in columns), is_listed(table.c.external_id, "ids"))
    client_id = literal_column("0") if table is clients else func.coalesce(table.c.client_id, 0)
    return select(table.c.id, table.c.external_id, client_id, *columns).where(is_meant).order_by(table.c.id)


NAMED = (
    (clients, _named(clients, clients.c.name_sort)),
    (
        external_contacts,
        _named(external_contacts, external_contacts.c.last_name_sort, external_contacts.c.email_folded),
    ),
    (projects, _named(projects, projects.c.name_sort).where(projects.c.is_template.is_(False))),
)
MANAGER = (
    select(users.c.id)
    .where(users.c.is_active.is_(True), or_(users.c.email_folded == EMAIL, users.c.name_sort == NAME))
    .order_by(users.c.id)
    .limit(1)
)


class MeantRecord(NamedTuple):
    """A record that rows can mean, and the transaction of the step that has made it; None: it was there before."""

    id: int
    external_id: str | None
    made_in: Tx | None = None

    def is_there(self, tx: Tx) -> bool:
        return self.made_in is None or self.made_in.is_seen_in(tx)


class MeantRecords:
    """The records that the rows of a step can mean: those that exist, and those that the step makes."""

    def __init__(self) -> None:
        self.by_id: dict[tuple[str, str], MeantRecord] = {}
        self.by_key: dict[Key, list[MeantRecord]] = {}

    def load(self, tx: Tx, items: Sequence[Item]) -> None:
        """Read the records that rows name, in one statement for each kind."""
        rows = [item for item in items if isinstance(item, RecordRow)]
        names = {sort_key(name) for item in items for name in (item.name, item.client or "")}
        names |= {email for row in rows for email in (_email_of(row), row.person.get("email", "").casefold())}
        names |= {_sort_of(fields) for row in rows for fields in (row.fields, row.person)}
        values = {"names": json.dumps([*names]), "ids": json.dumps([row.external_id for row in rows])}
        tables = {clients.name, *(row.table for row in rows)} | {external_contacts.name for row in rows if row.person}
        for table, statement in NAMED:
            for id_, external_id, client_id, *texts in tx.all(statement, **values) if table.name in tables else ():
                keys = ((table.name, client_id, text) for text in texts if text)
                self.add(table.name, MeantRecord(id_, external_id), *keys)

    def add(self, table: str, record: MeantRecord, *keys: Key) -> None:
        if record.external_id is not None:
            self.by_id[table, record.external_id] = record
        for key in keys:
            self.by_key.setdefault(key, []).append(record)

    def find(self, tx: Tx, key: Key, external_id: str | None = None) -> int | None:
        """Return the record that is meant: by its external id, else the first by name that has no other one."""
        found = [self.by_id.get((key[0], external_id))] if external_id else []
        found += [each for each in self.by_key.get(key, ()) if each.external_id is None or not external_id]
        return next((each.id for each in found if each is not None and each.is_there(tx)), None)


def _email_of(row: RecordRow) -> str:
    return str(row.fields.get("email", "")).casefold()


def _sort_of(fields: Mapping[str, object]) -> str:
    """Return the name of a contact as its table has it."""
    names = {name: str(fields.get(name, "")) for name in ("last_name", "first_name", "email")}
    return folded_text(names, [*names], sort_key) or ""


def next_rows(tx: Tx, job: Job, limit: int) -> list[JobRow]:
    """Return the next lines of the plan as rows, each with the records that exist."""
    lines = plans.next_lines(tx, job, limit)
    items, known = [decode(line.content) for line in lines], MeantRecords()
    known.load(tx, items)
    names = [f"Line {item.line}" if isinstance(item, RecordRow) else f"Client {item.name}" for item in items]
    found = zip(lines, names, items, strict=True)
    return [JobRow(line.position, name, (item, known)) for line, name, item in found]


def write(tx: Tx, job: Job, row: JobRow) -> None:
    """Write the record of a row, or a client that rows name, unless they exist. Raises all that refuses it."""
    item: Item
    item, known = row.value
    writer = RowWriter(tx, job, known)
    if not isinstance(item, RecordRow):
        if writer.find_client(item.name) is None:
            writer.create_client(item.name)
            job.count("clients")
    elif item.reason is not None:
        raise invalid({"": [item.reason]})
    elif not WRITERS[item.table](writer, item):
        job.count("already_there")


class RowWriter(NamedTuple):
    """What writes the rows of a step; each of its methods for a kind of row returns whether it has made a record."""

    tx: Tx
    job: Job
    known: MeantRecords

    def write_client(self, row: RecordRow) -> bool:
        client_id = self.find_client(row.name, row.external_id)
        is_new = client_id is None
        if client_id is None:
            client_id = self._create(row, create_client, Client, _client_key(row.name))
            self.job.count(row.table)
        if not row.person:
            return is_new
        contact = RecordRow(row.line, row.cells, external_contacts.name, fields={**row.person})
        return self._write_contact_at(contact, client_id) or is_new

    def write_contact(self, row: RecordRow) -> bool:
        return self._write_contact_at(row, self._client_of(row))

    def _write_contact_at(self, row: RecordRow, client_id: int | None) -> bool:
        email, name = _email_of(row), _sort_of(row.fields)
        keys = [(row.table, client_id or 0, text) for text in (email, name) if text]
        if self.known.find(self.tx, keys[0] if keys else (row.table, 0, ""), row.external_id) is not None:
            return False
        self._create(row, create_external_contact, ExternalContact, *keys, client_id=client_id)
        self.job.count(row.table)
        return True

    def write_project(self, row: RecordRow) -> bool:
        client_id = self._client_of(row)
        key = (row.table, client_id or 0, sort_key(row.name))
        if self.known.find(self.tx, key, row.external_id) is not None:
            return False
        manager_id = None if row.manager is None else _manager(self.tx, row.manager)
        self._create(row, create_project, Project, key, client_id=client_id, manager_id=manager_id)
        self.job.count(row.table)
        return True

    def find_client(self, name: str, external_id: str | None = None) -> int | None:
        return self.known.find(self.tx, _client_key(name), external_id)

    def create_client(self, name: str) -> int:
        row = RecordRow(0, [], clients.name, fields={"name": name})
        return self._create(row, create_client, Client, _client_key(name))

    def _client_of(self, row: RecordRow) -> int | None:
        """Return the client that a row names: in a dry run, none of the steps before has kept it."""
        found = None if row.client is None else self.find_client(row.client)
        return self.create_client(row.client) if row.client and found is None else found

    def _create(self, row: RecordRow, create: Callable[[Tx, R], R], model: type[R], *keys: Key, **more: object) -> int:
        """Create a record from the fields of a row, and more; return its id. Raises all errors of the row together."""
        unreadable = {name: Unreadable(message) for name, message in row.unreadable.items()}
        others = {name: value for name, value in more.items() if value is not None}
        record = create(self.tx, RequestBody({**row.fields, **unreadable, **others}, model, "Create").new(self.tx))
        self.tx.raise_errors()
        self.known.add(row.table, MeantRecord(record.id, row.external_id, self.tx), *keys)
        return jobs.note_record(self.tx, self.job, row.table, record.id)


def _client_key(name: str) -> Key:
    return clients.name, 0, sort_key(name)


def _manager(tx: Tx, name: str) -> int | Unreadable:
    """Return the active user with a name or an email address."""
    found: int | None = tx.value(MANAGER, name=sort_key(name), email=name.casefold())
    return Unreadable(f"No active user is called “{name}”. Add this person first.") if found is None else found


WRITERS = {
    "clients": RowWriter.write_client,
    "external_contacts": RowWriter.write_contact,
    "projects": RowWriter.write_project,
}


def finish(_: Tx, job: Job) -> str:
    """Return what people read."""
    made = [plans.counted(job, name.replace("_", " ")) for name in WRITERS if name in job.counts]
    done = "would be imported" if job.is_dry_run else "imported"
    return f"{' and '.join(made) or 'Nothing new'} {done} from {plans.options(job).file}."


IMPORT = JobKind(IMPORT_RECORDS, next_rows, write, finish, area="settings")
