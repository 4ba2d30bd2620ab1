"""Imports of time: the jobs that write the rows of a plan, through the handler of `POST /time-entries`.

An entry whose `external_id` exists is counted, and nothing is written: a second run adds nothing. What a job makes is
noted in `job_records`, which is what `undoing.py` removes.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import msgspec
from sqlalchemy import bindparam, case, func, literal_column, or_, select

from retainer.crm.clients import Client, create_client
from retainer.errors import invalid
from retainer.exchange import plans
from retainer.exchange.time_files import Booking, BookingPart, NamedRecord, decode
from retainer.identity.people.users import UserDetails, change_user, create_user, get_user
from retainer.jobs import jobs
from retainer.jobs.jobs import OF_JOB
from retainer.jobs.kinds import Job, JobKind, JobRow
from retainer.schema.crm import clients
from retainer.schema.identity import users
from retainer.schema.jobs import job_records
from retainer.schema.work import projects, tasks, time_entries
from retainer.store.engines.sql import INTEGER, LIMIT, is_listed
from retainer.store.tx import Tx
from retainer.values.collation import sort_key
from retainer.values.reading import read_record
from retainer.work.project_types import Project
from retainer.work.projects import create_project
from retainer.work.tasks import Task, create_task
from retainer.work.time_entries import create_time_entry
from retainer.work.time_rules import TimeEntry

IMPORT_TIME = "import_time"
UNKNOWN_ADDRESS = "person-{}@people.invalid"
"""The address of a person whose email is not in the file; no mail arrives there (RFC 2606)."""
S = TypeVar("S", bound=msgspec.Struct)
Key = tuple[str, ...]
"""What identifies a record among those of its kind in a file: its name, and the names of what it belongs to."""


class KnownRecords(NamedTuple):
    """What the database has of the records and entries that rows name."""

    records: dict[Key, int]
    asleep: set[int]
    """The deactivated people who never had a password, such as those whom an earlier import has added."""
    entries: set[str]
    """External ids."""
    made: dict[Key, tuple[int, Tx]]
    """What the step itself has made, with the transaction of each, which may have been rolled back."""


class PlannedLine(NamedTuple):
    """A line of a plan with what the database knew of it before the step."""

    content: NamedRecord | Booking
    known: KnownRecords


IS_ASLEEP = case((users.c.is_active.is_(False) & users.c.password_hash.is_(None), 1), else_=0)
USERS = (
    select(*users.c["id", "name_sort", "email_folded"], IS_ASLEEP)
    .where(or_(is_listed(users.c.name_sort, "names"), is_listed(users.c.email_folded, "names")))
    .order_by(users.c.is_active.desc(), users.c.id)
)
CLIENTS = select(*clients.c["id", "name_sort"]).where(is_listed(clients.c.name_sort, "names"))
CLIENTS = CLIENTS.order_by(clients.c.status == "archived", clients.c.id)
PROJECTS = (
    select(*projects.c["id", "name_sort", "client_id"])
    .where(is_listed(projects.c.name_sort, "names"), projects.c.is_template.is_(False))
    .order_by(projects.c.archived_at.is_not(None), projects.c.id)
)
PROJECTS_OF = PROJECTS.where(is_listed(projects.c.client_id, "clients"))
TASKS = select(*tasks.c["id", "title", "project_id"]).where(is_listed(tasks.c.project_id, "ids")).order_by(tasks.c.id)
ENTRIES = select(time_entries.c.external_id).where(is_listed(time_entries.c.external_id, "ids"))
PEOPLE = (
    select(*users.c["id", "name"])
    .select_from(job_records.join(users, users.c.id == job_records.c.record_id))
    .where(
        OF_JOB,
        job_records.c.record == literal_column("'users'"),
        users.c.is_active.is_(True),
        users.c.password_hash.is_(None),
    )
)
COUNT_PEOPLE = PEOPLE.with_only_columns(func.count())
NEXT_PEOPLE = PEOPLE.where(users.c.id > bindparam("after", type_=INTEGER)).order_by(users.c.id).suffix_with(LIMIT)
PLAN_END = 1 << 40
"""Above all positions in a plan; that of a person whom the job has added is this and the id."""


class AddedPerson(NamedTuple):
    """Somebody whom the job has added, without a password, and deactivates at its end."""

    id: int


def next_rows(tx: Tx, job: Job, limit: int) -> list[JobRow]:
    """Return the next lines of the plan as rows; after its end, the people whom the job has added."""
    lines = plans.next_lines(tx, job, limit)
    if not lines:
        people = tx.all(NEXT_PEOPLE, job=job.id, after=job.position - PLAN_END, limit=limit)
        return [JobRow(PLAN_END + user_id, f"Person {name}", AddedPerson(user_id)) for user_id, name in people]
    items = [decode(line.content) for line in lines]
    known = _load(tx, items)
    rows = []
    for line, item in zip(lines, items, strict=True):
        name = f"Line {item.line}" if isinstance(item, Booking) else f"{item.kind.capitalize()} {item.name}"
        rows.append(JobRow(line.position, name, PlannedLine(item, known)))
    return rows


def _load(tx: Tx, items: Iterable[NamedRecord | Booking]) -> KnownRecords:
    """Return what the database has of the records and entries that these lines name, read in five statements."""
    bookings = [item for item in items if isinstance(item, Booking)]
    named = {item for item in items if isinstance(item, NamedRecord)} | {
        each for item in bookings for each in item.named()
    }
    ids = json.dumps([part.external_id for booking in bookings for part in booking.parts])
    entries = {external_id for (external_id,) in tx.all(ENTRIES, ids=ids)}
    asleep: set[int] = set()
    return KnownRecords(_find(tx, named, asleep), asleep, entries, {})


def _find(tx: Tx, named: Iterable[NamedRecord], asleep: set[int]) -> dict[Key, int]:
    """Return the ids of the records that exist, by name; of several with one name, the first that is open.

    Those of people who are asleep are added to that set.
    """
    found: dict[Key, int] = {}
    wanted = [*named]
    if people := [each for each in wanted if each.kind == "person"]:
        names = json.dumps([text for each in people for text in (sort_key(each.name), each.detail) if text])
        for user_id, name, email, is_asleep in tx.all(USERS, names=names):
            asleep |= {user_id} if is_asleep else set()
            found.setdefault(("person", email), user_id)
            found.setdefault(("person", name), user_id)
    names = json.dumps([sort_key(each.client or each.name) for each in wanted])
    for client_id, name in tx.all(CLIENTS, names=names):
        found.setdefault(("client", name), client_id)
    by_id = {id_: name for (kind, name), id_ in found.items() if kind == "client"}
    names = json.dumps([sort_key(each.project or each.name) for each in wanted])
    of_project: dict[int, Key] = {}
    if all(each.client for each in wanted if each.kind in {"project", "task"}):
        rows = tx.all(PROJECTS_OF, names=names, clients=json.dumps([*by_id]))
    else:
        rows = tx.all(PROJECTS, names=names)
    for project_id, name, client_id in sorted(rows, key=lambda row: row[2] is not None):
        key = ("project", name, by_id.get(client_id or 0, ""))  # without a client in the file, that of any
        if found.setdefault(key, project_id) == project_id:
            of_project[project_id] = key
    if any(each.kind == "task" for each in wanted) and of_project:
        for task_id, title, project_id in tx.all(TASKS, ids=json.dumps([*of_project])):
            _, project, client = of_project[project_id]
            found.setdefault(("task", sort_key(title), project, client), task_id)
    return found


def key_of(named: NamedRecord) -> Key:
    if named.kind == "person":
        return "person", named.detail or sort_key(named.name)
    more = {"client": (), "project": (named.client,), "task": (named.project, named.client)}[named.kind]
    return (named.kind, sort_key(named.name), *(sort_key(name or "") for name in more))


def write(tx: Tx, job: Job, row: JobRow) -> None:
    """Write a line of a plan: a record that is new, or the entries of a row of the file. Raises what refuses it.

    Or deactivate a person whom the job has added, which is no row of the file.
    """
    if isinstance(row.value, AddedPerson):
        change_user(tx, row.value.id, {"is_active": False})
        job.done -= 1
        return
    content, known = row.value
    if isinstance(content, NamedRecord):
        if _find_one(tx, content, known) is None:
            _note_made(tx, content, _create(tx, job, content, known), known)
            job.count({"person": "people"}.get(content.kind, f"{content.kind}s"))
    elif content.reason is not None:
        raise invalid({"": [content.reason]})
    else:
        _write_booking(tx, job, content, known)


def _find_one(tx: Tx, named: NamedRecord, known: KnownRecords) -> int | None:
    """Return the id of a record that was there before the step, that the step has made, or that another import has.

    Tasks are not looked for again: that would read all those of the project for each. Two imports at the same time can
    make one twice.
    """
    keys = [key_of(named)]
    if named.kind == "person" and not named.is_namesake:
        keys.append(("person", sort_key(named.name)))
    for key in keys:
        if key in known.records:
            return known.records[key]
    made = (known.made[key] for key in keys if key in known.made)
    record_id = next((record_id for record_id, made_in in made if made_in.is_seen_in(tx)), None)
    if record_id is None and named.kind != "task":
        found = _find(tx, [named], known.asleep)
        record_id = next((found[key] for key in keys if key in found), None)
    return record_id


def _note_made(tx: Tx, named: NamedRecord, record_id: int, known: KnownRecords) -> int:
    """Let later rows of the step find a record, also by its name alone; return its id."""
    alone = msgspec.structs.replace(named, detail=None, client=None)
    for key in (key_of(named), key_of(alone)):
        earlier = known.made.get(key)
        if earlier is None or not earlier[1].is_seen_in(tx):
            known.made[key] = record_id, tx
    return record_id


def _ensure(tx: Tx, job: Job, named: NamedRecord, known: KnownRecords) -> int:
    """Return the id of a record that a new entry needs: in a dry run, none of the steps before has kept it.

    A person who is asleep is activated until the end of the job.
    """
    found = _find_one(tx, named, known)
    if found is None:
        return _note_made(tx, named, _create(tx, job, named, known), known)
    if named.kind == "person" and found in known.asleep and not get_user(tx, found)["is_active"]:
        change_user(tx, found, {"is_active": True})
        jobs.note_record(tx, job, "users", found)
    return found


def _create(tx: Tx, job: Job, named: NamedRecord, known: KnownRecords) -> int:
    if named.kind == "person":
        key = sort_key(named.name).encode().hex()[:40]
        person = read_record(UserDetails, {"name": named.name, "email": named.detail or UNKNOWN_ADDRESS.format(key)})
        return jobs.note_record(tx, job, "users", create_user(tx, person))
    if named.kind == "client":
        client = read_record(Client, {"name": named.name, **({"currency": named.detail} if named.detail else {})})
        return jobs.note_record(tx, job, "clients", create_client(tx, client).id)
    client_id = None
    if named.client:
        client_id = _ensure(tx, job, NamedRecord("client", named.client), known)
    if named.kind == "project":
        project = read_record(Project, {"name": named.name, "client_id": client_id})
        return jobs.note_record(tx, job, "projects", create_project(tx, project).id)
    project_id = _ensure(tx, job, NamedRecord("project", named.project or "", named.client), known)
    task = read_record(Task, {"title": named.name, "project_id": project_id})
    return jobs.note_record(tx, job, "tasks", create_task(tx, task).id)


def _write_booking(tx: Tx, job: Job, booking: Booking, known: KnownRecords) -> None:
    parts = [part for part in booking.parts if part.external_id not in known.entries]
    if len(parts) < len(booking.parts):
        job.count("already_there", len(booking.parts) - len(parts))
    if not parts:
        return
    fields: dict[str, object] = {
        f"{'user' if named.kind == 'person' else named.kind}_id": _ensure(tx, job, named, known)
        for named in booking.named()
    }
    fields |= {"description": booking.description, "is_settled": booking.is_settled}
    if booking.billable is not None:
        fields["billable"] = booking.billable
    if booking.hourly_rate is not None:
        fields["hourly_rate"] = str(booking.hourly_rate)
    for part in parts:
        _write_entry(tx, job, booking, part, fields)


def _write_entry(tx: Tx, job: Job, booking: Booking, part: BookingPart, fields: dict[str, object]) -> None:
    own: dict[str, object] = {"date": part.date, "duration_minutes": part.minutes, "external_id": part.external_id}
    if part.started_at is not None:
        own["started_at"] = part.started_at
    entry = create_time_entry(tx, read_record(TimeEntry, fields | own))
    if booking.hourly_rate is not None and booking.currency not in {None, entry.currency}:
        message = f"Is in {booking.currency}, and the client is billed in {entry.currency}. Correct one of them."
        raise invalid({"currency": [message]})
    jobs.note_record(tx, job, "time_entries", entry.id)
    job.count("time_entries")
    job.count("minutes", part.minutes)


def left_active(tx: Tx, job: Job) -> str:
    """Return what people read about those whom an import that was stopped or has failed leaves active; may be empty.

    They are deactivated once it is continued or undone.
    """
    has_ended_early = job.kind == IMPORT_TIME and job.status in {"stopped", "failed"}
    count = int(tx.value(COUNT_PEOPLE, job=job.id)) if has_ended_early else 0
    who = "1 person whom this import has added is" if count == 1 else f"{count} people whom this import has added are"
    return f"{who} active, without a password, until it ends." if count else ""


def finish(_: Tx, job: Job) -> str:
    """Return what people read."""
    done = "would be imported" if job.is_dry_run else "imported"
    return f"{plans.counted(job, 'time entries')} {done} from {plans.options(job).file}."


IMPORT = JobKind(IMPORT_TIME, next_rows, write, finish, area="settings")
