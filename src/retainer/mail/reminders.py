"""Reminders of overdue invoices: each morning, the daily job queues those whose stage has come; each stage once.

If an invoice has reached several stages at once, only the latest is sent, and the earlier ones are skipped. A reminder
that cannot be sent, for example because the client has no address, becomes an entry of the job, and is tried again on
the next morning.

An invoice gets no two reminders in quick succession: after one that came late, because no server ran or the client had
no address, the next stage waits for as many days as lie between the two, at most a week. A reminder that still waits in
the queue is replaced by the next one, and is not sent if its invoice has changed.
"""

from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, func, or_, select, update

from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.invoices.types import Invoice
from retainer.billing.papers import load_paper, standing_of
from retainer.documents.facts import Standing
from retainer.errors import Refusal
from retainer.jobs.kinds import Job, JobKind, JobRow
from retainer.mail.queue import queue
from retainer.mail.send import NewMessage, compose, find_obstacle
from retainer.mail.stages import MAX_STAGES, Reminders, load_reminders, texts_of
from retainer.schema.billing import OPEN_INVOICES, invoices
from retainer.schema.columns import in_literals
from retainer.schema.crm import clients
from retainer.schema.mail import messages
from retainer.store.engines.sql import DAY, INSTANT, INTEGER, LIMIT
from retainer.store.tables import NOW
from retainer.store.tx import Tx
from retainer.values.exact import FIRST_DAY, LAST_DAY, day_after, day_start

MAX_DISTANCE = 7
"""Days that a stage waits at most after the one before it."""
REPLACED = "A later reminder of this invoice was queued before this one was sent."
GONE = "The invoice was deleted before this reminder was sent."
SETTLED = "The invoice was {} before this reminder was sent."
CHANGED = "The balance of the invoice changed before this reminder was sent."
MOVED = "The due date of the invoice was moved before this reminder was sent."
UNWANTED = "Reminders were turned off before this one was sent."
NUMBERS = range(1, MAX_STAGES + 1)


class Overdue(NamedTuple):
    """An invoice whose client is to be reminded."""

    id: int
    number: str
    client_name: str
    due_date: str


def _has_come(number: int) -> ColumnElement[bool]:
    """Return whether a stage is the latest that an invoice has reached, and is to be sent.

    It is not if it or a later one was sent, or an earlier one a few days ago.
    """
    quiet = bindparam(f"quiet_{number}", type_=INSTANT)
    sent = (
        select(messages.c.id)
        .where(messages.c.account_id == invoices.c.account_id, messages.c.record == "invoice")
        .where(messages.c.record_id == invoices.c.id)
        .where(or_(messages.c.stage >= number, and_(messages.c.stage.is_not(None), messages.c.created_at >= quiet)))
    )
    return and_(_is_between(f"first_{number}", f"last_{number}"), ~sent.exists())


def _is_between(first: str, last: str) -> ColumnElement[bool]:
    return invoices.c.due_date.between(bindparam(first, type_=DAY), bindparam(last, type_=DAY))


IS_DUE = and_(
    in_literals(invoices.c.status, OPEN_INVOICES),
    invoices.c.balance_due > 0,
    invoices.c.reminders.is_(True),
    clients.c.reminders.is_(True),
    _is_between("first", "last"),
    or_(*map(_has_come, NUMBERS)),
)
WITH_CLIENTS = invoices.join(clients, clients.c.id == invoices.c.client_id)
DUE = select(func.count()).select_from(WITH_CLIENTS).where(IS_DUE)
FOUND = (
    select(invoices.c.id, invoices.c.number, clients.c.name, invoices.c.due_date)
    .select_from(WITH_CLIENTS)
    .where(IS_DUE)
)
NEXT = FOUND.where(invoices.c.id > bindparam("after", type_=INTEGER)).order_by(invoices.c.id).suffix_with(LIMIT)
ONE = FOUND.where(invoices.c.id == bindparam("invoice", type_=INTEGER))
REPLACE = (
    update(messages)
    .where(messages.c.record == "invoice", messages.c.record_id == bindparam("invoice", type_=INTEGER))
    .where(messages.c.stage.is_not(None), messages.c.status == "queued")
    .values(status="cancelled", error=REPLACED, updated_at=NOW)
)
IS_WANTED = (
    select(invoices.c.id)
    .select_from(WITH_CLIENTS)
    .where(invoices.c.id == bindparam("invoice", type_=INTEGER))
    .where(invoices.c.reminders.is_(True), clients.c.reminders.is_(True))
)


def count_due(tx: Tx, reminders: Reminders, day: str) -> int:
    """Return how many invoices get a reminder on a day, if nothing changes until then."""
    days = due_days(reminders, day, tx.actor.timezone)
    return int(tx.value(DUE, **days)) if days else 0


def due_days(reminders: Reminders, day: str, timezone: str) -> dict[str, str]:
    """Return the range of due dates with which invoices have reached each stage last, on a day; empty without any.

    With each stage comes the instant since which an earlier one keeps it waiting.
    """
    since, stages = reminders.since, reminders.stages
    if since is None or not stages:
        return {}
    found = {f"{end}_{number}": out for number in NUMBERS for end, out in (("first", LAST_DAY), ("last", FIRST_DAY))}
    found |= {f"quiet_{number}": day_start(day, timezone) for number in NUMBERS}
    after_next = FIRST_DAY
    for number in range(len(stages), 0, -1):
        days = stages[number - 1].days_after_due
        found[f"last_{number}"] = day_after(day, -days)
        found[f"first_{number}"] = max(day_after(since, -days), after_next)
        after_next = day_after(day, 1 - days)
        distance = min(days - stages[number - 2].days_after_due, MAX_DISTANCE) if number > 1 else 1
        found[f"quiet_{number}"] = day_start(day_after(day, 1 - distance), timezone)
    last = len(stages)
    return {**found, "first": found[f"first_{last}"], "last": found["last_1"]}


def is_due(tx: Tx) -> str | None:
    if not tx.store.mail_from:
        return None
    return "Reminders" if count_due(tx, load_reminders(tx), tx.today) else None


def next_rows(tx: Tx, job: Job, limit: int) -> list[JobRow]:
    days = due_days(load_reminders(tx), tx.today, tx.actor.timezone)
    found = map(Overdue._make, tx.all(NEXT, **days, after=job.position, limit=limit) if days else ())
    return [JobRow(each.id, f"{each.number}, {each.client_name}", each) for each in found]


def write(tx: Tx, job: Job, row: JobRow) -> None:
    """Queue a reminder, if the invoice still needs one. Raises what refuses it."""
    reminders = load_reminders(tx)
    days = due_days(reminders, tx.today, tx.actor.timezone)
    found = tx.one(ONE, **days, invoice=row.value.id) if days else None
    if found is None:
        return
    overdue = Overdue(*found)
    number = max(each for each in NUMBERS if overdue.due_date <= days[f"last_{each}"])
    invoice = load_invoice(tx, overdue.id)
    if obstacle := find_obstacle(tx, invoice.client_id):
        raise Refusal("validation_failed", f"Not reminded. {obstacle} Or turn the client's reminders off.")
    texts = texts_of(reminders.stages[number - 1], number, load_paper(tx, invoice).language)
    body = NewMessage(subject=texts.subject, message=texts.text)
    letter, recipients = compose(tx, "invoice", invoice, body, lambda _: None)
    tx.run(REPLACE, invoice=invoice.id)
    queue(tx, letter._replace(kind="reminder", stage=number), recipients)
    job.count("reminders")


def find_change(tx: Tx, invoice_id: int, queued: Standing | None) -> str | None:
    """Return why a reminder that had to wait is not sent, given what it says of its invoice; None if it is."""
    invoice = tx.find(invoices, invoice_id, Invoice)
    if invoice is None:
        return GONE
    if invoice.status not in OPEN_INVOICES:
        return SETTLED.format(invoice.status.replace("_", " "))
    if invoice.due_date is not None and invoice.due_date >= tx.today:
        return MOVED
    if load_reminders(tx).since is None or tx.one(IS_WANTED, invoice=invoice_id) is None:
        return UNWANTED
    return CHANGED if standing_of(invoice) != queued else None


REMINDERS = JobKind("reminders", next_rows, write, is_due=is_due)
