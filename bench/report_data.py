"""The databases of reports.py: time as in depth_data, and invoices, payments, credit notes and expenses beside it."""

import json
import math
import random
import sqlite3
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from bench import bare_databases
from bench.depth_data import DAYS, FAST, OLD, PROJECTS, STAMPS, USERS, client_of, put
from retainer.billing.invoices.types import ClientSnapshot
from retainer.identity.actors import OPERATORS, operator
from retainer.rollups import doctor
from retainer.store.engines import Sqlite
from retainer.store.tx import Store

LINES = 2  # of each invoice
INVOICE = (
    *(*STAMPS, "client_id", "project_id", "number", "status", "issue_date", "due_date", "currency", "subtotal"),
    *("tax_total", "total", "tax_breakdown", "amount_paid", "amount_credited", "balance_due", "sent_at"),
    *("search", "client_snapshot"),
)
SNAPSHOT = json.dumps(dict.fromkeys(ClientSnapshot.__struct_fields__) | {"name": "Client"})
LINE = (
    *(*STAMPS, "invoice_id", "description", "quantity", "unit_price", "discount_percent", "tax_rate", "project_id"),
    *("amount", "currency", "position", "kind"),
)
PAYMENT = (*STAMPS, "invoice_id", "client_id", "amount", "currency", "paid_date", "method")
NOTE = (
    *(*STAMPS, "invoice_id", "client_id", "number", "currency", "issue_date", "reason", "lines", "subtotal"),
    *("tax_total", "total", "tax_breakdown", "applied_amount", "refundable_amount", "number_folded", "number_sort"),
    "search",
)
SHARE = (*STAMPS, "credit_note_id", "project_id", "currency", "amount")
EXPENSE = (
    *(*STAMPS, "client_id", "project_id", "user_id", "date", "category", "amount", "currency", "tax_rate"),
    *("amount_includes_tax", "net_amount", "billable", "markup_percent", "billable_amount", "reimbursable"),
    "category_sort",
)
Row = tuple[Any, ...]


BILL_TIME = """
UPDATE time_entries SET invoice_line_id = 1 + id % ?1, invoice_id = 1 + id % ?1 / 2
WHERE billable AND amount IS NOT NULL AND date < ?2"""


def bill_time(path: Path, invoices: int) -> None:
    """Put billable time, except that of the last days, on the lines of invoices that `add_money` then adds."""
    connection: sqlite3.Connection = bare_databases.Sqlite(str(path)).connect()
    for pragma in FAST:
        connection.execute(f"PRAGMA {pragma}")
    old = datetime.now(UTC).date() - timedelta(days=OLD)
    connection.execute(BILL_TIME, (LINES * invoices, str(old)))
    connection.commit()
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()


def add_money(path: Path, count: int) -> None:
    """Add a number of invoices with their payments and credit notes, and expenses; then add up every month."""
    connection: sqlite3.Connection = bare_databases.Sqlite(str(path)).connect()
    for pragma in FAST:
        connection.execute(f"PRAGMA {pragma}")
    account = 1
    connection.execute("BEGIN")
    rates = [(account, user, "0001-01-01", 4000 + 50 * user) for user in range(1, USERS)]  # the last one has none
    connection.executemany("INSERT INTO cost_rates (account_id, user_id, from_date, amount) VALUES (?, ?, ?, ?)", rates)
    rows: dict[str, list[Row]] = {name: [] for name in ("invoices", "invoice_lines", "payments", "credit_notes")}
    rows["credit_note_shares"] = []
    for number, invoice in enumerate(invoices(random.Random(3), count), start=1):
        for name, invoice_rows in zip(rows, parts(random.Random(number), account, number, *invoice), strict=True):
            rows[name] += invoice_rows
    for (name, invoice_rows), columns in zip(rows.items(), (INVOICE, LINE, PAYMENT, NOTE, SHARE), strict=True):
        shares = enumerate(invoice_rows, start=1) if name == "credit_note_shares" else None
        put(
            connection,
            account,
            name,
            columns,
            invoice_rows if shares is None else [(*s[:3], n, *s[4:]) for n, s in shares],
        )
    put(connection, account, "expenses", EXPENSE, expenses(random.Random(4), account, count))
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    store = Store(Sqlite(path))
    with store.unscoped() as tx:
        (owner,) = tx.all(OPERATORS)
    with store.begin(operator(owner), write=True, seconds=math.inf) as tx:
        doctor.rebuild(tx)
    store.engine.close()


def invoices(rng: random.Random, count: int) -> Iterator[tuple[date, int, int]]:
    """When each was issued, for which project, and its net."""
    today = datetime.now(UTC).date()
    for n in range(count):
        day = today - timedelta(days=DAYS - 1 - n * DAYS // count)
        yield day, 1 + int(rng.random() * PROJECTS), 100 * rng.randint(100, 5000)


def parts(rng: random.Random, account: int, number: int, day: date, project: int, net: int) -> tuple[list[Row], ...]:
    """The rows of an invoice: itself, its lines, a payment or two, now and then a credit note."""
    age, stamp = (datetime.now(UTC).date() - day).days, f"{day}T09:00:00.{number % 10**6:06}Z"
    stamps, client, tax = (account, stamp, stamp), client_of(project), net * 19 // 100
    total, due = net + tax, day + timedelta(days=30)
    paid = total if rng.random() < (0.97 if age > OLD else 0.3 * age / OLD) else 0
    paid_date = min(day + timedelta(days=rng.randint(3, OLD)), day + timedelta(days=age))
    credited = net // 10 if paid and rng.random() < 0.03 else 0
    status, text = "paid" if paid else "sent", f"inv-{number:06}"
    taxes = f'[{{"tax_rate":"19","taxable_amount":"{net // 100}.{net % 100:02}","tax_amount":"{tax // 100}.00"}}]'
    back = credited * 19 // 100
    money = (net, tax, total, taxes, paid, credited + back, total - paid, stamp, text, SNAPSHOT)
    invoice = (*stamps, client, project, text.upper(), status, str(day), str(due), "EUR", *money)
    half = net // LINES
    terms = ("Work", "1", f"{half // 100}.{half % 100:02}", "0", "19", None, half, "EUR")
    lines = [(*stamps, number, *terms, place, "item") for place in range(1, LINES + 1)]
    payments = [
        (*stamps, number, client, part, "EUR", str(paid_date), "bank_transfer")
        for part in (paid // 2, paid - paid // 2)
    ]
    sums = (credited, back, credited + back, taxes, 0, credited + back, text, text, text)
    price = f"{credited // 100}.{credited % 100:02}"
    line = {"description": "Goodwill", "unit_price": price, "invoice_line_id": None, "quantity": "1"}
    line |= {"discount_percent": "0", "tax_rate": "19", "amount": price}
    credit = json.dumps([line])
    note = (*stamps, number, client, f"CN-{number:06}", "EUR", str(paid_date), "goodwill", credit, *sums)
    share = (*stamps, 0, project, "EUR", credited)
    return [invoice], lines, payments if paid else [], [note] if credited else [], [share] if credited else []


def expenses(rng: random.Random, account: int, count: int) -> Iterator[Row]:
    today = datetime.now(UTC).date()
    for n in range(count):
        day, project = today - timedelta(days=DAYS - 1 - n * DAYS // count), 1 + int(rng.random() * PROJECTS)
        net, billable = rng.randint(500, 50_000), rng.random() < 0.5
        stamp = f"{day}T18:00:00.{n % 10**6:06}Z"
        figures = (net, "EUR", "0", 0, net, billable, "0", net if billable else 0, 0, "travel")
        identity = (client_of(project), project, 1 + int(rng.random() * USERS), str(day), "travel")
        yield (account, stamp, stamp, *identity, *figures)
