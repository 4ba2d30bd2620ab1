"""Billing runs: a draft for each client, which one form makes for some clients, and a job for more."""

from typing import NamedTuple

import msgspec
from sqlalchemy import bindparam, select

from retainer.batches.bulk import OPERATIONS
from retainer.billing.invoices.invoices import save_invoice
from retainer.billing.invoices.types import Invoice
from retainer.billing.invoices.unbilled import everything_until
from retainer.identity import audit
from retainer.identity.audit import Action, Target
from retainer.jobs import jobs
from retainer.jobs.kinds import Job, JobKind, JobRow, options_of
from retainer.kernel.body import Patch, RequestBody
from retainer.schema.billing import invoices
from retainer.store.engines.sql import INTEGER, TEXT
from retainer.store.tx import Tx

BILLING_RUN = "billing_run"
NEWEST_DRAFT = (
    select(invoices.c.id)
    .where(invoices.c.status == "draft", invoices.c.client_id == bindparam("client", type_=INTEGER))
    .where(invoices.c.currency == bindparam("currency", type_=TEXT))
    .order_by(invoices.c.id.desc())
    .limit(1)
)


class BilledClient(NamedTuple):
    """A client to bill in a currency, and what people call it."""

    id: int
    currency: str
    name: str


class RunOptions(msgspec.Struct):
    """The clients to bill, the last day of their work, and whether a client's newest draft takes it in."""

    last: str
    adds_to_drafts: bool
    clients: list[BilledClient]


def start(tx: Tx, options: RunOptions) -> int:
    """Start the job that makes the drafts; return its id."""
    size = len(options.clients)
    return jobs.start(tx, BILLING_RUN, f"Drafts for {size} clients", options, total=size)


def bill(tx: Tx, client: BilledClient, last: str, *, adds_to_drafts: bool) -> int:
    """Create the draft of a client, or add its work to the newest one; return its id. Raises what refuses it."""
    draft_id = tx.value(NEWEST_DRAFT, client=client.id, currency=client.currency) if adds_to_drafts else None
    body: dict[str, object] = {"unbilled_work": everything_until(last)}
    if draft_id is None:
        body |= {"client_id": client.id, "currency": client.currency}
        made: Invoice = save_invoice(tx, RequestBody(body, Invoice, "Create").new(tx), None).data
    else:
        made = OPERATIONS["invoices"].handler(tx, draft_id, Patch(tx, RequestBody(body, Invoice, "Update"))).data
    tx.raise_errors()
    action: Action = "record created" if draft_id is None else "record changed"
    audit.note(tx, action, Target("invoice", made.id, f"Draft for {client.name}"), after=body)
    return made.id


def next_rows(_: Tx, job: Job, limit: int) -> list[JobRow]:
    options: RunOptions = options_of(job, RunOptions)
    selected = options.clients[job.position : job.position + limit]
    return [JobRow(position, each.name, (options, each)) for position, each in enumerate(selected, job.position + 1)]


def write(tx: Tx, job: Job, row: JobRow) -> None:
    """Create the draft of a client, or add its work to the newest one. Raises what refuses it."""
    options, client = row.value
    jobs.note_record(tx, job, invoices.name, bill(tx, client, options.last, adds_to_drafts=options.adds_to_drafts))


def finish(_: Tx, job: Job) -> str | None:
    return f"Drafts ready: {job.done}. Check them, then issue them." if job.done else None


RUN = JobKind(BILLING_RUN, next_rows, write, finish, area="records")
