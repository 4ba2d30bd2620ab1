"""Time entries by hand: create one on a client, a project, or both."""

from decimal import Decimal
from typing import Annotated, Any

import msgspec

from bench.bare_databases import Postgresql, Sqlite
from retainer.values.exact import DIGITS, local_day, utcnow


class NewEntry(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The body of a create: no task, no other user, no clock times."""

    duration_minutes: Annotated[int, msgspec.Meta(ge=1, le=1440)]
    client_id: int | None = None
    project_id: int | None = None
    billable: bool | None = None
    is_settled: bool = False
    date: str | None = None
    description: str | None = None
    hourly_rate: Decimal | None = None
    external_id: str | None = None


COLUMNS = [
    *("id", "created_at", "updated_at", "client_id", "project_id", "ticket_id", "task_id", "user_id", "date"),
    *("duration_minutes", "billable", "is_settled", "started_at", "ended_at", "description", "hourly_rate", "amount"),
    *("currency", "invoice_id", "invoice_line_id", "external_id"),
]
BILLABLE, SETTLED = map(COLUMNS.index, ("billable", "is_settled"))
HOURLY_RATE, AMOUNT, CURRENCY = map(COLUMNS.index, ("hourly_rate", "amount", "currency"))
LATER = ["billing_status", "invoice_id", "invoice_line_id", "is_locked", "external_id"]
Entry = msgspec.defstruct("Entry", [*COLUMNS[:-3], *LATER], gc=False)

COST_RATE = """
(SELECT amount FROM cost_rates r WHERE r.account_id = u.account_id AND r.user_id = u.id AND r.from_date <= ?
 ORDER BY r.from_date DESC LIMIT 1)"""
RELATED = (
    *("u.hourly_rate", "a.hourly_rate", "a.currency", "p.id", "p.client_id", "p.status", "p.is_template"),
    *("p.billing_type", "p.currency", "p.hourly_rate", "c.id", "c.status", "c.currency", "c.hourly_rate"),
    COST_RATE,
)
CONTEXT = """
SELECT {}
FROM users u JOIN accounts a ON a.id = u.account_id
LEFT JOIN projects p ON p.account_id = u.account_id AND p.id = ?
LEFT JOIN clients c ON c.account_id = u.account_id AND c.id = coalesce(p.client_id, ?)
WHERE u.account_id = ? AND u.id = ?"""
WRITTEN = [
    *("account_id", "created_at", "updated_at", "client_id", "project_id", "user_id", "date", "duration_minutes"),
    *("billable", "is_settled", "description", "hourly_rate", "amount", "currency", "external_id", "search"),
]
INSERT = f"INSERT INTO time_entries ({', '.join(WRITTEN)}) VALUES ({', '.join('?' * len(WRITTEN))}) RETURNING {{}}"
COUNT = """
INSERT INTO totals (account_id, name, count) VALUES (?, 'time_entries', 1)
ON CONFLICT (account_id, name) DO UPDATE SET count = totals.count + 1"""
COUNT_ON_PROJECT = """
UPDATE projects SET tracked_minutes = tracked_minutes + ?1, billable_minutes = billable_minutes + ?2,
       unbilled_minutes = unbilled_minutes + ?2,
       billable_amount = billable_amount + CASE WHEN currency = ?4 THEN ?3 ELSE 0 END,
       unbilled_amount = unbilled_amount + CASE WHEN currency = ?4 THEN ?3 ELSE 0 END
WHERE account_id = ?5 AND id = ?6"""
BUCKETS = (4, 7, 10)  # characters of a day that name its year, its month and the day itself
PROJECT_SUMS = ("tracked_minutes", "billable_minutes", "billable_value", "labour_cost", "missing_cost_rate_minutes")
USER_SUMS = PROJECT_SUMS[:3]


def sum_up(table: str, key: tuple[str, ...], sums: tuple[str, ...]) -> str:
    """Return the statement that adds to the sums of a year, a month and a day at once."""
    names = ("account_id", "bucket", *key, *sums)
    row = f"({', '.join('?' * len(names))})"
    grown = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in sums)
    return f"""
INSERT INTO {table} ({", ".join(names)}) VALUES {", ".join([row] * len(BUCKETS))}
ON CONFLICT (account_id, bucket, {", ".join(key)}) DO UPDATE SET {grown}"""


SUM_PROJECT = sum_up("project_sums", ("client_id", "project_id", "currency"), PROJECT_SUMS)
SUM_USER = sum_up("user_sums", ("user_id", "currency"), USER_SUMS)
READ = "SELECT {} FROM time_entries WHERE account_id = ? AND id = ?"

encode = msgspec.json.Encoder().encode


class TimeEntries:
    """The operation, in the words of one database."""

    path = "/api/public/v1/time-entries"
    scope = "time"
    decode = staticmethod(msgspec.json.Decoder(NewEntry).decode)

    def __init__(self, database: Sqlite | Postgresql) -> None:
        self.database = database
        self.context = database.statement(CONTEXT.format(database.row(RELATED)))
        insertion = INSERT.format(database.row(("id",)))
        self.insertion = database.combined(insertion, COUNT, SUM_PROJECT, SUM_USER)
        self.insertion_on_project = database.combined(insertion, COUNT, COUNT_ON_PROJECT, SUM_PROJECT, SUM_USER)
        self.select = database.statement(READ.format(database.row(COLUMNS)))

    def insert(self, connection: Any, key: Any, entry: NewEntry, request_id: str) -> tuple[int, bytes]:
        """Check what the entry refers to, price it, write row, counter, sums and an event; return its id and JSON."""
        account, (user, timezone) = key[1], key[12:]
        now = utcnow()
        date = entry.date or local_day(now, timezone)
        user_rate, account_rate, account_currency, *found, cost_rate = self.database.one(
            connection, self.context, (date, entry.project_id, entry.client_id, account, user)
        )
        project, project_client, project_status, is_template, billing_type, project_currency, project_rate = found[:7]
        client, client_status, client_currency, client_rate = found[7:]
        if entry.project_id is None and entry.client_id is None:
            raise ValueError("Give client_id or project_id.")
        if entry.project_id != project:
            raise ValueError("There is no such project.")
        if project is not None and entry.client_id not in {None, project_client}:
            raise ValueError("The project belongs to another client.")
        if entry.client_id is not None and client is None:
            raise ValueError("There is no such client.")
        if project_status == "archived" or is_template or client_status == "archived":
            raise ValueError("The project or the client takes nothing new.")
        if entry.billable and client is None:
            raise ValueError("Time without a client is not billable.")
        billable = entry.billable
        if billable is None:
            billable = client is not None and billing_type != "non_billable"
        currency = client_currency or account_currency
        if entry.hourly_rate is not None:
            rate = int(entry.hourly_rate.scaleb(DIGITS[currency]))
        else:
            rates = (
                (project_rate, project_currency),
                (client_rate, client_currency),
                (user_rate, account_currency),
                (account_rate, account_currency),
            )
            rate = next((rate for rate, rate_currency in rates if rate is not None and rate_currency == currency), None)
        amount = (2 * entry.duration_minutes * rate + 60) // 120 if billable and rate else 0
        search = entry.description.casefold() if entry.description else None
        values = (
            *(account, now, now, client, project, user, date, entry.duration_minutes),
            *(billable, entry.is_settled, entry.description, rate, amount, currency, entry.external_id, search),
        )
        minutes, buckets = entry.duration_minutes, [date[:length] for length in BUCKETS]
        of_user = (minutes, minutes if billable else 0, amount)
        of_project = (*of_user, minutes * (cost_rate or 0), minutes if cost_rate is None else 0)
        where = (client or 0, project or 0, currency)
        by_project = [value for bucket in buckets for value in (account, bucket, *where, *of_project)]
        by_user = [value for bucket in buckets for value in (account, bucket, user, currency, *of_user)]
        if project is None:
            written = self.database.run(connection, self.insertion, values, (account,), by_project, by_user)
        else:
            on_project = (*of_user, currency, account, project)
            parts = (values, (account,), on_project, by_project, by_user)
            written = self.database.run(connection, self.insertion_on_project, *parts)
        (made,) = self.database.first(written)
        self.database.announce(connection, (account, now, "time_entry.created", made, user, key[0], request_id))
        return made, encode(record(self.database.one(connection, self.select, (account, made))))


def record(row: tuple[Any, ...]) -> Any:
    *values, invoice, line, external_id = row
    digits = -DIGITS[values[CURRENCY]]
    values[BILLABLE], values[SETTLED] = bool(values[BILLABLE]), bool(values[SETTLED])
    values[AMOUNT] = Decimal(values[AMOUNT]).scaleb(digits)
    if values[HOURLY_RATE] is not None:
        values[HOURLY_RATE] = Decimal(values[HOURLY_RATE]).scaleb(digits)
    is_billed = line is not None or values[SETTLED]
    billing_status = "billed" if is_billed else "unbilled" if values[BILLABLE] else "non_billable"
    return Entry(*values, billing_status, invoice, line, line is not None, external_id)
