"""Clients by hand: read one, the first page, create."""

import re
from base64 import urlsafe_b64encode
from decimal import Decimal
from typing import Any

import msgspec

from retainer.values.collation import number_key, printed_form, sort_key
from retainer.values.exact import DIGITS, decimal_text

PATH = "/api/public/v1/clients"
encode = msgspec.json.Encoder().encode


class NewClient(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The body of a create."""

    name: str
    number: str | None = None
    status: str = "active"
    email: str | None = None
    invoice_email: str | None = None
    phone: str | None = None
    website: str | None = None
    address_line1: str | None = None
    address_line2: str | None = None
    city: str | None = None
    region: str | None = None
    postal_code: str | None = None
    country: str | None = None
    vat_number: str | None = None
    registration_number: str | None = None
    currency: str | None = None
    hourly_rate: Decimal | None = None
    tax_rate: Decimal | None = None
    payment_terms_days: int | None = None
    early_payment_discount_percent: Decimal | None = None
    early_payment_discount_days: int | None = None
    language: str | None = None
    reminders: bool = True
    notes: str | None = None
    external_id: str | None = None
    tag_ids: list[int] = []


decode = msgspec.json.Decoder(NewClient).decode
COLUMNS = ["id", "created_at", "updated_at", *NewClient.__struct_fields__[:-1]]
CURRENCY, HOURLY_RATE, REMINDERS = map(COLUMNS.index, ("currency", "hourly_rate", "reminders"))
TAG_IDS = len(COLUMNS)
COUNTS = ("contacts_count", "projects_count", "sites_count")
Client = msgspec.defstruct("Client", [*COLUMNS, "tag_ids", *COUNTS], gc=False)
TAGS_OF = """
(SELECT group_concat(tag_id) FROM clients_tags t WHERE t.account_id = c.account_id AND t.record_id = c.id)"""
SELECTED = ", ".join([*COLUMNS, TAGS_OF, *COUNTS])
READ = f"SELECT {SELECTED} FROM clients c WHERE c.account_id = ?1 AND c.id = ?2"
PER_PAGE = 25
LIST = f"""
SELECT {SELECTED}, name_sort, (SELECT count FROM totals WHERE account_id = ?1 AND name = 'clients')
FROM clients c WHERE c.account_id = ?1 ORDER BY c.name_sort, c.id LIMIT {PER_PAGE}"""
UNFILTERED = "8ff62a33"
"""What the cursors of the whole list begin with, as a digest of its path and of no filters."""
ZEROS = re.compile(r"\{(0+)\}")
NUMBER = """
UPDATE series SET last = last + 1 WHERE account_id = ?1 AND name = 'clients'
RETURNING last, EXISTS (SELECT 1 FROM clients c WHERE c.account_id = ?1
                        AND c.number_folded = ?2 || printf('%0*d', ?3, last) || ?4)"""
FIRST_NUMBER = "INSERT INTO series (account_id, name, last) VALUES (?, 'clients', 1)"
FOLDED = ("number_folded", "number_sort", "name_sort", "email_folded", "invoice_email_folded")
WRITTEN = [*COLUMNS[1:], *FOLDED, "search", "account_id"]
INSERT = f"INSERT INTO clients ({', '.join(WRITTEN)}) VALUES ({', '.join('?' * len(WRITTEN))}) RETURNING id"
COUNT = """
INSERT INTO totals (account_id, name, count) VALUES (?, 'clients', 1)
ON CONFLICT (account_id, name) DO UPDATE SET count = totals.count + 1"""
TAG = "INSERT INTO clients_tags (account_id, record_id, tag_id) VALUES (?, ?, ?)"
USE = "UPDATE tags SET usage_count = usage_count + 1 WHERE account_id = ? AND id = ?"


def read(connection: Any, account: int, client: int) -> bytes | None:
    """A client, or None."""
    row = connection.execute(READ, (account, client)).fetchone()
    return None if row is None else encode(record(row))


def page(connection: Any, account: int, environ: dict[str, Any]) -> bytes:
    """The first page by name, with the total."""
    rows = connection.execute(LIST, (account,)).fetchall()
    total = rows[0][-1] if rows else 0
    url = f"{environ['wsgi.url_scheme']}://{environ['HTTP_HOST']}{PATH}"
    last = max(1, -(-total // PER_PAGE))
    cursor = cursor_after(rows[-1]) if last > 1 else ""
    return encode(
        {
            "data": [record(row[:-2]) for row in rows],
            "links": {
                "first": f"{url}?page=1",
                "last": f"{url}?page={last}",
                "prev": None,
                "next": f"{url}?page=2&cursor={cursor}" if last > 1 else None,
            },
            "meta": {
                "current_page": 1,
                "from": 1 if rows else None,
                "last_page": last,
                "path": url,
                "per_page": PER_PAGE,
                "to": len(rows) if rows else None,
                "total": total,
            },
        }
    )


def insert(connection: Any, key: Any, client: NewClient, now: str) -> int:
    """Write the row, its tags and the counter; return its id."""
    account, (currency, terms, pattern) = key[1], key[9:12]
    client.currency = client.currency or currency
    if client.payment_terms_days is None:
        client.payment_terms_days = terms
    if client.number is None:
        client.number = next_number(connection, account, pattern)
    rate = None if client.hourly_rate is None else int(client.hourly_rate.scaleb(DIGITS[client.currency]))
    tax, discount = (
        None if percent is None else decimal_text(percent)
        for percent in (client.tax_rate, client.early_payment_discount_percent)
    )
    search = "\n".join(filter(None, (client.name, client.number, client.email, client.notes))).casefold()
    values = [
        *(now, now, client.name, client.number, client.status, client.email, client.invoice_email, client.phone),
        *(client.website, client.address_line1, client.address_line2, client.city, client.region),
        *(client.postal_code, client.country, client.vat_number, client.registration_number, client.currency),
        *(rate, tax, client.payment_terms_days, discount, client.early_payment_discount_days),
        *(client.language, client.reminders, client.notes, client.external_id),
        *(printed_form(client.number), number_key(client.number), sort_key(client.name)),
        *(email and email.casefold() for email in (client.email, client.invoice_email)),
        *(search, account),
    ]
    (made,) = connection.execute(INSERT, values).fetchone()
    connection.execute(COUNT, (account,))
    for tag in client.tag_ids:
        connection.execute(TAG, (account, made, tag))
        connection.execute(USE, (account, tag))
    return int(made)


def next_number(connection: Any, account: int, pattern: str) -> str:
    """The next number of the series that no client has."""
    before, zeros, after = ZEROS.split(pattern)
    is_taken = True
    while is_taken:
        row = connection.execute(NUMBER, (account, before.casefold(), len(zeros), after.casefold())).fetchone()
        if row is None:
            connection.execute(FIRST_NUMBER, (account,))
        last, is_taken = row or (1, False)
    return f"{before}{last:0{len(zeros)}}{after}"


def cursor_after(row: tuple[Any, ...]) -> str:
    """The position after a row: the next page, the order, and the sort keys of the row."""
    return urlsafe_b64encode(encode([UNFILTERED, 2, ["name"], [row[-2], row[0]]])).decode().rstrip("=")


def record(row: tuple[Any, ...]) -> Any:
    values = list(row)
    values[REMINDERS] = bool(values[REMINDERS])
    tags, units = values[TAG_IDS], values[HOURLY_RATE]
    values[TAG_IDS] = sorted(map(int, tags.split(","))) if tags else []
    if units is not None:
        values[HOURLY_RATE] = Decimal(units).scaleb(-DIGITS[values[CURRENCY]])
    return Client(*values)
