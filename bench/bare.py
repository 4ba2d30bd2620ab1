"""The yardstick: the same operations written by hand, with SQL text and nothing between it and WSGI.

Here are the server, the keys, the limits and the headers; the operations are in bare_clients.py and bare_time.py, the
transactions of both databases in bare_databases.py.
"""

import hashlib
import os
import random
import re
import sys
from collections.abc import Callable
from typing import Any

import msgspec
from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels

from bench.bare_clients import Clients
from bench.bare_databases import Postgresql, Sqlite, database_of
from bench.bare_time import TimeEntries
from retainer.kernel.limits import SlidingWindow
from retainer.values.exact import utcnow

RATE_LIMITS = {"agency": 600, "scale": 1200, "enterprise": 3000}
TRIAL_RATE_LIMIT = 600
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

KEY = (
    *("k.id", "k.account_id", "k.scopes", "k.expires_at", "k.revoked_at", "u.is_active", "a.plan", "a.trial_ends_at"),
    *("a.api_enabled", "a.currency", "a.payment_terms_days", "a.client_number_pattern", "k.user_id", "a.timezone"),
)
OF_KEY = """
SELECT {}
FROM api_keys k JOIN users u ON u.id = k.user_id JOIN accounts a ON a.id = k.account_id
WHERE k.hash = ?"""
COMMON_HEADERS = [
    ("content-type", "application/json; charset=utf-8"),
    ("cache-control", "private, no-cache"),
    ("vary", "Authorization, X-Api-Key, Accept-Encoding"),
    ("x-content-type-options", "nosniff"),
]
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
ONE_CLIENT = f"{Clients.path}/"
encode = msgspec.json.Encoder().encode
Key = tuple[Any, ...] | list[Any]


class Refused(Exception):
    """A status other than success, and the message of its body."""


class Bare:
    """The WSGI callable: one database, one limiter."""

    def __init__(self, database: Sqlite | Postgresql) -> None:
        self.database = database
        self.key = key_statement(database)
        self.clients = Clients(database)
        self.creates: dict[str, Clients | TimeEntries] = {
            Clients.path: self.clients,
            TimeEntries.path: TimeEntries(database),
        }
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
        of_key = [hashlib.sha256(credential(environ)).hexdigest()]
        key = self.database.lent(self.database.one, self.key, of_key)
        rate_limit = admit(key)
        allowance = self.window.hit(f"key:{key[0]}", rate_limit)
        headers += (
            ("x-ratelimit-limit", str(allowance.limit)),
            ("x-ratelimit-remaining", str(allowance.remaining)),
            ("x-ratelimit-reset", str(allowance.reset)),
        )
        if allowance.retry_after is not None:
            raise Refused(429, "Too many requests.")
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if method == "POST" and path in self.creates:
            resource = self.creates[path]
            require(key, f"{resource.scope}:write")
            made, data = self.create(key, resource, environ, request_id)
            place = f"{environ['wsgi.url_scheme']}://{environ['HTTP_HOST']}{path}/{made}"
            headers += (("etag", tag_of(data)), ("location", place))
            return 201, b'{"data":%b}' % data
        if method == "GET" and path == Clients.path and not environ["QUERY_STRING"]:
            require(key, "clients:read")
            return 200, self.database.lent(self.clients.page, key[1], environ)
        if method == "GET" and path.startswith(ONE_CLIENT) and path[len(ONE_CLIENT) :].isdecimal():
            require(key, "clients:read")
            client = self.database.lent(self.clients.read, key[1], int(path[len(ONE_CLIENT) :]))
            if client is not None:
                headers.append(("etag", tag_of(client)))
                return 200, b'{"data":%b}' % client
        raise Refused(404, "There is nothing here.")

    def create(
        self, key: Key, resource: Clients | TimeEntries, environ: dict[str, Any], request_id: str
    ) -> tuple[int, bytes]:
        """Insert a record in one durable transaction; return its id, and the record as it was written."""
        try:
            given: Any = resource.decode(environ["wsgi.input"].read())
            return self.database.write(key[1], lambda connection: resource.insert(connection, key, given, request_id))
        except (msgspec.MsgspecError, self.database.refused, ValueError) as error:
            raise Refused(422, str(error)) from None


def key_statement(database: Sqlite | Postgresql) -> str:
    """The statement that finds a key by its hash, with its user and its account."""
    return database.statement(OF_KEY.format(database.row(KEY)))


def create() -> Bare:
    """The application of a serving process."""
    return Bare(database_of(os.environ["BENCH_DATABASE"]))


def credential(environ: dict[str, Any]) -> bytes:
    scheme, _, value = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer":
        value = environ.get("HTTP_X_API_KEY", "")
    if not value:
        raise Refused(401, "Send an API key.")
    return value.strip().encode()


def admit(key: Key | None) -> int:
    """How many requests a minute the key may make; refuses one that may make none."""
    if key is None:
        raise Refused(401, "No such key exists.")
    _, _, _, expires_at, revoked_at, is_active, plan, trial_ends_at, api_enabled, *_ = key
    if revoked_at is not None or not is_active or (expires_at is not None and expires_at <= utcnow()):
        raise Refused(401, "This key is no longer valid.")
    rate_limit = RATE_LIMITS.get(plan)
    if rate_limit is None:
        if trial_ends_at is None or trial_ends_at <= utcnow():
            raise Refused(402, "The plan does not include the API.")
        rate_limit = TRIAL_RATE_LIMIT
    if not api_enabled:
        raise Refused(403, "The API is switched off.")
    return rate_limit


def tag_of(data: bytes) -> str:
    """The entity tag of a record."""
    return f'"{hashlib.sha256(data).hexdigest()[:32]}"'


def require(key: Key, scope: str) -> None:
    if scope not in key[2].split():
        raise Refused(403, f"This key lacks the scope {scope}.")


def main() -> None:
    """Serve the database of BENCH_DATABASE: python -m bench.bare THREADS PORT."""
    server = Granian(
        "bench.bare:create",
        factory=True,
        interface=Interfaces.WSGI,
        address="127.0.0.1",
        port=int(sys.argv[2]),
        workers=1,
        blocking_threads=int(sys.argv[1]),
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=10_000, max_buffer_size=64 * 1024),
        backlog=2048,
        websockets=False,
        log_level=LogLevels.warning,
    )
    server.serve()


if __name__ == "__main__":
    main()
