"""The yardstick: the same operations on SQLite written by hand, with SQL text and nothing between it and WSGI.

Here are the server, the database, the keys, the limits and the headers; the operations are in bare_clients.py.
"""

import hashlib
import os
import random
import re
import threading
from collections.abc import Callable
from http.client import responses
from typing import Any, TypeVar

import msgspec
from pysqlite3 import dbapi2

from bench import bare_clients
from retainer.kernel.limits import SlidingWindow
from retainer.values.exact import utcnow

Result = TypeVar("Result")
RATE_LIMITS = {"agency": 600, "scale": 1200, "enterprise": 3000}
STATUS = {code: f"{code} {responses[code]}" for code in (200, 201, 401, 402, 403, 404, 422, 429)}
COMMON_HEADERS = [
    ("content-type", "application/json; charset=utf-8"),
    ("cache-control", "private, no-cache"),
    ("vary", "Authorization, X-Api-Key, Accept-Encoding"),
    ("x-content-type-options", "nosniff"),
]
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "trusted_schema=OFF",
    "journal_size_limit=67108864",
    "cache_size=-16384",
    "mmap_size=268435456",
)
KEY = """
SELECT k.id, k.account_id, k.scopes, k.expires_at, k.revoked_at, u.is_active, a.plan, a.trial_ends_at, a.api_enabled,
       a.currency, a.payment_terms_days, a.client_number_pattern, k.user_id, a.timezone
FROM api_keys k JOIN users u ON u.id = k.user_id JOIN accounts a ON a.id = k.account_id
WHERE k.hash = ?"""
EVENT = """
INSERT INTO events (account_id, id, at, type, record_id, fields, user_id, key_id, request_id)
VALUES (?1, coalesce((SELECT id FROM events WHERE account_id = ?1 ORDER BY id DESC LIMIT 1), 0) + 1, ?2, ?3, ?4, '[]',
        ?5, ?6, ?7)"""
encode = msgspec.json.Encoder().encode


class Database:
    """A file: a connection for each thread, one writer at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.local = threading.local()
        self.writing = threading.Lock()

    def connect(self) -> Any:
        """A connection with the same promises as the product's."""
        connection = dbapi2.connect(
            self.path, timeout=5.0, isolation_level=None, check_same_thread=False, cached_statements=1024
        )
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    @property
    def connection(self) -> Any:
        """The connection of the thread."""
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = self.connect()
        return connection

    def write(self, work: Callable[[Any], Result]) -> Result:
        """Do this in one durable transaction."""
        with self.writing:
            connection = self.connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            return result


class Refused(Exception):
    """A status other than success, and the message of its body."""


class Bare:
    """The WSGI callable: one database, one limiter."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.window = SlidingWindow()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        """Answer a request."""
        request_id = environ.get("HTTP_X_REQUEST_ID", "")
        if not REQUEST_ID.fullmatch(request_id):
            request_id = f"req_{random.getrandbits(96):024x}"
        headers = [*COMMON_HEADERS, ("x-request-id", request_id)]
        try:
            status, body = self.answer(environ, headers, request_id)
        except Refused as refusal:
            status, message = refusal.args
            body = encode({"message": message, "request_id": request_id})
        headers.append(("content-length", str(len(body))))
        start_response(STATUS[status], headers)
        return [body]

    def answer(self, environ: dict[str, Any], headers: list[tuple[str, str]], request_id: str) -> tuple[int, bytes]:
        """The status and the body; adds the headers that tell of them."""
        hashed = hashlib.sha256(credential(environ)).hexdigest()
        key = self.database.connection.execute(KEY, (hashed,)).fetchone()
        allowance = self.window.hit(f"key:{key[0] if key else 0}", rate_limit(key))
        headers += (
            ("x-ratelimit-limit", str(allowance.limit)),
            ("x-ratelimit-remaining", str(allowance.remaining)),
            ("x-ratelimit-reset", str(allowance.reset)),
        )
        if allowance.retry_after is not None:
            raise Refused(429, "Too many requests.")
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        account, client = key[1], path.removeprefix(f"{bare_clients.PATH}/")
        require(key, "clients:write" if method == "POST" else "clients:read")
        if method == "POST" and path == bare_clients.PATH:
            made, data = self.create(key, environ, request_id)
            place = f"{environ['wsgi.url_scheme']}://{environ['HTTP_HOST']}{path}/{made}"
            headers += (("etag", tag_of(data)), ("location", place))
            return 201, b'{"data":%b}' % data
        if method == "GET" and path == bare_clients.PATH and not environ["QUERY_STRING"]:
            return 200, bare_clients.page(self.database.connection, account, environ)
        if method == "GET" and client.isdecimal():
            found = bare_clients.read(self.database.connection, account, int(client))
            if found is not None:
                headers.append(("etag", tag_of(found)))
                return 200, b'{"data":%b}' % found
        raise Refused(404, "There is nothing here.")

    def create(self, key: Any, environ: dict[str, Any], request_id: str) -> tuple[int, bytes]:
        """Insert a client in one durable transaction; return its id, and the client as it was written."""
        try:
            client = bare_clients.decode(environ["wsgi.input"].read())
            return self.database.write(lambda connection: insert(connection, key, client, request_id))
        except (msgspec.MsgspecError, dbapi2.IntegrityError, ValueError) as error:
            raise Refused(422, str(error)) from None


def insert(connection: Any, key: Any, client: bare_clients.NewClient, request_id: str) -> tuple[int, bytes]:
    """Insert a client and its event; return its id, and its JSON as it is read back."""
    account, now = key[1], utcnow()
    made = bare_clients.insert(connection, key, client, now)
    connection.execute(EVENT, (account, now, "client.created", made, key[12], key[0], request_id))
    return made, bare_clients.read(connection, account, made) or b""


def create() -> Bare:
    """The application of a serving process, on the file of BENCH_DATABASE."""
    return Bare(Database(os.environ["BENCH_DATABASE"]))


def credential(environ: dict[str, Any]) -> bytes:
    scheme, _, value = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer":
        value = environ.get("HTTP_X_API_KEY", "")
    if not value:
        raise Refused(401, "Send an API key.")
    return value.strip().encode()


def rate_limit(key: Any) -> int:
    """How many requests a minute the key may make; refuses one that may make none."""
    if key is None:
        raise Refused(401, "No such key exists.")
    _, _, _, expires_at, revoked_at, is_active, plan, trial_ends_at, api_enabled, *_ = key
    if revoked_at is not None or not is_active or (expires_at is not None and expires_at <= utcnow()):
        raise Refused(401, "This key is no longer valid.")
    if plan not in RATE_LIMITS and (trial_ends_at is None or trial_ends_at <= utcnow()):
        raise Refused(402, "The plan does not include the API.")
    if not api_enabled:
        raise Refused(403, "The API is switched off.")
    return RATE_LIMITS.get(plan, 600)


def tag_of(data: bytes) -> str:
    """The entity tag of a record."""
    return f'"{hashlib.sha256(data).hexdigest()[:32]}"'


def require(key: Any, scope: str) -> None:
    if scope not in key[2].split():
        raise Refused(403, f"This key lacks the scope {scope}.")
