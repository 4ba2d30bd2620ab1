"""The yardstick: the same three operations written by hand, with SQL text and nothing between it and WSGI."""

import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from pysqlite3 import dbapi2

from retainer.exact import DIGITS, decimal_text
from retainer.kernel.limits import Window

PATH = "/api/public/v1/clients"
PER_PAGE = 25
CEILINGS = {"agency": 600, "scale": 1200, "enterprise": 3000}
TRIAL_CEILING = 600
ZEROS = re.compile(r"\{(0+)\}")
STATUS = {
    200: "200 OK",
    201: "201 Created",
    401: "401 Unauthorized",
    402: "402 Payment Required",
    403: "403 Forbidden",
    404: "404 Not Found",
    422: "422 Unprocessable Entity",
    429: "429 Too Many Requests",
}
PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "trusted_schema=OFF",
    "cell_size_check=ON",
    "journal_size_limit=67108864",
    "cache_size=-16384",
    "mmap_size=268435456",
)


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
    notes: str | None = None
    external_id: str | None = None
    tag_ids: list[int] = []


COLUMNS = ["id", "created_at", "updated_at", *NewClient.__struct_fields__[:-1]]
CURRENCY, HOURLY_RATE, TAG_IDS = COLUMNS.index("currency"), COLUMNS.index("hourly_rate"), len(COLUMNS)
Client = msgspec.defstruct("Client", [*COLUMNS, "tag_ids", "contacts_count"], gc=False)

KEY = """
SELECT k.id, k.account_id, k.scopes, k.expires_at, k.revoked_at, u.is_active, a.plan, a.trial_ends_at, a.api_enabled,
       a.currency, a.payment_terms_days, a.client_number_pattern
FROM api_keys k JOIN users u ON u.id = k.user_id JOIN accounts a ON a.id = k.account_id
WHERE k.hash = ?"""
SELECT = f"""
SELECT {", ".join(COLUMNS)},
       (SELECT group_concat(tag_id) FROM clients_tags t WHERE t.account_id = c.account_id AND t.record_id = c.id),
       (SELECT count(*) FROM external_contacts e WHERE e.account_id = c.account_id AND e.client_id = c.id)
FROM clients c"""
READ = f"{SELECT} WHERE c.account_id = ? AND c.id = ?"
LIST = f"{SELECT} WHERE c.account_id = ? ORDER BY c.name_folded, c.id LIMIT {PER_PAGE}"
TOTAL = "SELECT count FROM totals WHERE account_id = ? AND name = 'clients'"
NUMBER = "UPDATE series SET last = last + 1 WHERE account_id = ? AND name = 'clients' RETURNING last"
FIRST_NUMBER = "INSERT INTO series (account_id, name, last) VALUES (?, 'clients', 1)"
TAKEN = "SELECT 1 FROM clients WHERE account_id = ? AND number = ?"
WRITTEN = [*COLUMNS[1:], "name_folded", "search", "account_id"]
INSERT = f"INSERT INTO clients ({', '.join(WRITTEN)}) VALUES ({', '.join('?' * len(WRITTEN))}) RETURNING id"
COUNT = """
INSERT INTO totals (account_id, name, count) VALUES (?, 'clients', 1)
ON CONFLICT (account_id, name) DO UPDATE SET count = count + 1"""
TAG = "INSERT INTO clients_tags (account_id, record_id, tag_id) VALUES (?, ?, ?)"

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(NewClient).decode


class Refused(Exception):
    """A status other than success, and the sentence of its body."""


class Bare:
    """The WSGI callable: a connection for each thread, one write lock, one limiter."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.local = threading.local()
        self.writing = threading.Lock()
        self.window = Window()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        """Answer a request."""
        limits: list[tuple[str, str]] = []
        try:
            status, body = self.answer(environ, limits)
        except Refused as refusal:
            status, sentence = refusal.args
            body = encode({"message": sentence})
        start_response(
            STATUS[status],
            [("content-type", "application/json; charset=utf-8"), ("content-length", str(len(body))), *limits],
        )
        return [body]

    def answer(self, environ: dict[str, Any], limits: list[tuple[str, str]]) -> tuple[int, bytes]:
        """The status and the body; notes the limiter's figures on the way."""
        connection = getattr(self.local, "connection", None) or self.connect()
        key = connection.execute(KEY, (hashlib.sha256(credential(environ)).hexdigest(),)).fetchone()
        ceiling = admit(key)
        allowance = self.window.take(f"key:{key[0]}", ceiling)
        limits += (
            ("x-ratelimit-limit", str(allowance.limit)),
            ("x-ratelimit-remaining", str(allowance.remaining)),
            ("x-ratelimit-reset", str(allowance.reset)),
        )
        if allowance.retry_after is not None:
            raise Refused(429, "Too many requests.")
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        scope = "clients:read" if method == "GET" else "clients:write"
        if scope not in key[2].split():
            raise Refused(403, f"This key lacks the scope {scope}.")
        if path == PATH:
            if method == "POST":
                return 201, b'{"data":%b}' % self.create(connection, key, environ)
            if method == "GET" and not environ["QUERY_STRING"]:
                return 200, page(connection, key[1], environ)
        elif method == "GET" and path.startswith(PATH + "/") and path[len(PATH) + 1 :].isdecimal():
            row = connection.execute(READ, (key[1], int(path[len(PATH) + 1 :]))).fetchone()
            if row is not None:
                return 200, b'{"data":%b}' % encode(record(row))
        raise Refused(404, "There is nothing here.")

    def create(self, connection: Any, key: tuple[Any, ...], environ: dict[str, Any]) -> bytes:
        """Insert a client in one durable transaction and answer it as it was written."""
        try:
            given = decode(environ["wsgi.input"].read())
        except msgspec.MsgspecError as error:
            raise Refused(422, str(error)) from None
        with self.writing:
            connection.execute("BEGIN IMMEDIATE")
            try:
                data = insert(connection, key, given)
                connection.execute("COMMIT")
            except BaseException as error:
                connection.execute("ROLLBACK")
                if isinstance(error, dbapi2.IntegrityError):
                    raise Refused(422, str(error)) from None
                raise
        return data

    def connect(self) -> Any:
        """This thread's connection, made at its first request."""
        self.local.connection = connect(self.path)
        return self.local.connection


def create() -> Bare:
    """The application of a serving process."""
    return Bare(os.environ["BENCH_DATABASE"])


def connect(path: str) -> Any:
    """A connection with the same promises as the product's."""
    connection = dbapi2.connect(
        path, timeout=5.0, isolation_level=None, check_same_thread=False, cached_statements=1024
    )
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    return connection


def credential(environ: dict[str, Any]) -> bytes:
    scheme, _, value = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer":
        value = environ.get("HTTP_X_API_KEY", "")
    if not value:
        raise Refused(401, "Send an API key.")
    return value.strip().encode()


def admit(key: tuple[Any, ...] | None) -> int:
    """How many requests a minute the key may make; refuses one that may make none."""
    if key is None:
        raise Refused(401, "No such key exists.")
    _, _, _, expires_at, revoked_at, is_active, plan, trial_ends_at, api_enabled, *_ = key
    if revoked_at is not None or not is_active or (expires_at is not None and expires_at <= utcnow()):
        raise Refused(401, "This key is no longer valid.")
    ceiling = CEILINGS.get(plan)
    if ceiling is None:
        if trial_ends_at is None or trial_ends_at <= utcnow():
            raise Refused(402, "The plan does not include the API.")
        ceiling = TRIAL_CEILING
    if not api_enabled:
        raise Refused(403, "The API is switched off.")
    return ceiling


def record(row: tuple[Any, ...]) -> Any:
    values = list(row)
    tags, units = values[TAG_IDS], values[HOURLY_RATE]
    values[TAG_IDS] = sorted(map(int, tags.split(","))) if tags else []
    if units is not None:
        values[HOURLY_RATE] = Decimal(units).scaleb(-DIGITS[values[CURRENCY]])
    return Client(*values)


def page(connection: Any, account: int, environ: dict[str, Any]) -> bytes:
    """The first page by name; the total and the rows are of one moment."""
    connection.execute("BEGIN")
    try:
        total = (connection.execute(TOTAL, (account,)).fetchone() or (0,))[0]
        rows = connection.execute(LIST, (account,)).fetchall()
    finally:
        connection.execute("COMMIT")
    url = f"{environ['wsgi.url_scheme']}://{environ['HTTP_HOST']}{PATH}"
    last = max(1, -(-total // PER_PAGE))
    return encode(
        {
            "data": [record(row) for row in rows],
            "links": {
                "first": f"{url}?page=1",
                "last": f"{url}?page={last}",
                "prev": None,
                "next": f"{url}?page=2" if last > 1 else None,
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


def insert(connection: Any, key: tuple[Any, ...], it: NewClient) -> bytes:
    """Write the row, its tags and the counter; read the row back."""
    account, (currency, terms, pattern) = key[1], key[9:]
    now = utcnow()
    it.currency = it.currency or currency
    if it.payment_terms_days is None:
        it.payment_terms_days = terms
    if it.number is None:
        it.number = next_number(connection, account, pattern)
    rate = None if it.hourly_rate is None else int(it.hourly_rate.scaleb(DIGITS[it.currency]))
    tax = None if it.tax_rate is None else decimal_text(it.tax_rate)
    search = "\n".join(filter(None, (it.name, it.number, it.email, it.notes))).casefold()
    values = [
        *(now, now, it.name, it.number, it.status, it.email, it.invoice_email, it.phone, it.website),
        *(it.address_line1, it.address_line2, it.city, it.region, it.postal_code, it.country, it.vat_number),
        *(it.registration_number, it.currency, rate, tax, it.payment_terms_days, it.notes, it.external_id),
        *(it.name.casefold(), search, account),
    ]
    made = connection.execute(INSERT, values).fetchone()[0]
    for tag in it.tag_ids:
        connection.execute(TAG, (account, made, tag))
    connection.execute(COUNT, (account,))
    return encode(record(connection.execute(READ, (account, made)).fetchone()))


def next_number(connection: Any, account: int, pattern: str) -> str:
    """The next number of the series that no client has."""
    while True:
        row = connection.execute(NUMBER, (account,)).fetchone()
        if row is None:
            connection.execute(FIRST_NUMBER, (account,))
        last = row[0] if row else 1
        number = ZEROS.sub(lambda zeros: str(last).zfill(len(zeros[1])), pattern)  # noqa: B023
        if connection.execute(TAKEN, (account, number)).fetchone() is None:
            return number


def utcnow() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def main() -> None:
    """Serve the database of BENCH_DATABASE: python bench/bare.py PORT THREADS."""
    server = Granian(
        "bare:create",
        factory=True,
        interface=Interfaces.WSGI,
        address="127.0.0.1",
        port=int(sys.argv[1]),
        workers=1,
        blocking_threads=int(sys.argv[2]),
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=10_000, max_buffer_size=64 * 1024),
        backlog=2048,
        websockets=False,
        log_level=LogLevels.warning,
    )
    server.serve()


if __name__ == "__main__":
    main()
