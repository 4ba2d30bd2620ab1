"""Unbilled work: what the next invoices would bill of a client, or of all clients, and what they would leave out."""

import json
from collections import defaultdict
from functools import cache
from typing import Annotated

import msgspec
from sqlalchemy import Select, bindparam, case, func, select

from retainer.billing import to_bill
from retainer.billing.invoices.unbilled import LeftOut
from retainer.kernel.resource import Resource
from retainer.rollups.summaries import Figures, Sums
from retainer.schema import expressions
from retainer.schema.crm import clients
from retainer.schema.work import projects, time_entries
from retainer.store.engines.sql import DAY, is_listed
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.kinds import Currency, Id, SignedMoney, Text191


class WorkToBill(msgspec.Struct):
    """What an invoice in a currency would bill of a client; amounts before tax."""

    client_id: Annotated[Id, "Client that would be billed."]
    client_name: Annotated[Text191, "Current name of the client."]
    currency: Annotated[Currency, "Currency of the invoice."]
    time: Annotated[SignedMoney, "Billable time until today with a rate; without time that a fee covers."]
    expenses: Annotated[SignedMoney, "Billable expenses until today."]
    milestones: Annotated[SignedMoney, "Completed milestones with an amount."]
    fees: Annotated[SignedMoney, "Months of retainers that have begun."]
    fixed_fees: Annotated[SignedMoney, "What is left of the fixed fees of completed projects."]
    to_bill: Annotated[SignedMoney, "Sum of these amounts: the `subtotal` of the invoice, before time is rounded."]
    left_out: Annotated[list[LeftOut], "One entry for each reason; empty if nothing is left out."]


class UnbilledWorkReport(msgspec.Struct):
    """What the next invoices would bill."""

    rows: Annotated[
        list[WorkToBill], "One for each client and currency in which there is work; by name, not paginated."
    ]


OF_CLIENTS = select(*clients.c["id", "name"]).where(is_listed(clients.c.id, "ids"))
NAMES = OF_CLIENTS.order_by(clients.c.name_sort, clients.c.id)
LAST = bindparam("last", type_=DAY)
REASON = case((expressions.is_covered(projects), "covered"), (expressions.is_unpriced(time_entries), "unpriced"))


@cache
def _left_out_time(*, is_limited: bool) -> Select[int, str, str, int, int, int]:
    """Select the unbilled time that an invoice leaves out: client, currency, reason, size, minutes and amount."""
    columns = time_entries.c
    reason = REASON.label("reason")
    sums = (func.count(), func.sum(columns.duration_minutes), func.coalesce(func.sum(columns.amount), 0))
    only = (columns.client_id == bindparam("client_id"),) if is_limited else ()
    return (
        select(*columns["client_id", "currency"], reason, *sums)
        .select_from(time_entries.outerjoin(projects, projects.c.id == columns.project_id))
        .where(expressions.is_unbilled(time_entries), columns.date <= LAST, reason.is_not(None), *only)
        .group_by(*columns["client_id", "currency"], reason)
    )


of_account = Resource("/unbilled-work", tag="Invoices", scope="invoices")
of_client = Resource("/clients/{client_id}/unbilled-work", tag="Clients", scope="invoices", parent=clients)


@of_account.get()
def get_unbilled_work_of_all(tx: Tx) -> UnbilledWorkReport:
    """Read what the next invoices would bill of all clients: a row for each client and currency.

    `POST /invoices` with `unbilled_work` bills a row.
    """
    tx.snapshot()
    return UnbilledWorkReport(load_work(tx, tx.today))


@of_client.get()
def get_unbilled_work_of_client(tx: Tx, client_id: Id) -> UnbilledWorkReport:
    """Read what the next invoices would bill of a client: a row for each currency."""
    tx.snapshot()
    return UnbilledWorkReport(load_work(tx, tx.today, client_id=client_id))


def load_work(tx: Tx, last: str, **only: int) -> list[WorkToBill]:
    """Return what is to bill of all clients, or of the one in `client_id`, by their names and currencies.

    Time, expenses and fees count until the last day; milestones and fixed fees, until now.
    """
    sums = to_bill.read(tx, ("client_id", "currency"), {"last": last, "until": to_bill.AFTER_ALL}, **only)
    left_out = load_left_out(tx, sums, last, **only)
    keys = sorted({*sums, *left_out}, key=lambda key: key[1])
    names: dict[int, str] = dict(iter(tx.all(NAMES, ids=json.dumps(sorted({client_id for client_id, _ in keys})))))
    order = {client_id: place for place, client_id in enumerate(names)}
    return [
        row_of(client_id, names[client_id], currency, sums.get((client_id, currency), Figures()), left_out)
        for client_id, currency in sorted(keys, key=lambda key: order[key[0]])
    ]


def load_left_out(tx: Tx, sums: Sums, last: str, **only: int) -> dict[tuple[int, str], list[LeftOut]]:
    """Return what an invoice for each client and currency leaves out: time, and fees of projects that go on."""
    left_out = defaultdict[tuple[int, str], list[LeftOut]](list)
    rows = tx.all(_left_out_time(is_limited=bool(only)), last=last, **only)
    for client_id, currency, reason, count, minutes, units in rows:
        amount = None if reason == "unpriced" else amount_of(units, currency)
        left_out[client_id, currency].append(LeftOut(reason, count, minutes, currency, amount))
    for (client_id, currency), figures in sums.items():
        if count := figures["open_fees_count"]:
            part = LeftOut("open_fee", count, 0, currency, amount_of(figures["open_fees"], currency))
            left_out[client_id, currency].append(part)
    return left_out


def row_of(
    client_id: int, name: str, currency: str, figures: Figures, left_out: dict[tuple[int, str], list[LeftOut]]
) -> WorkToBill:
    amounts = {
        part.removeprefix("unbilled_"): amount_of(figures[part], currency) for part in (*to_bill.PARTS, "to_bill")
    }
    parts = sorted(left_out.get((client_id, currency), ()), key=lambda part: part.reason)
    return WorkToBill(client_id, name, currency, **amounts, left_out=parts)
