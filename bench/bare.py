"""The yardstick: the same operations written by hand, with SQL text and nothing between it and WSGI.

Here are the server, the keys, the limits, the headers and the transactions; the operations are in bare_clients.py and
bare_time.py.
"""

import hashlib
import os
import random
import re
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import msgspec
from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from pysqlite3 import dbapi2

import bare_clients
import bare_time
from retainer.limits import SlidingWindow
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
FIXED = [
    ("content-type", "application/json; charset=utf-8"),
    ("cache-control", "private, no-cache"),
    ("vary", "Authorization, X-Api-Key, Accept-Encoding"),
    ("x-content-type-options", "nosniff"),
]
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
CREATES = {what.PATH: what for what in (bare_clients, bare_time)}
ONE_CLIENT = f"{bare_clients.PATH}/"
encode = msgspec.json.Encoder().encode


class Refused(Exception):
    """A status other than success, and the message of its body."""


class Bare:
    """The WSGI callable: a connection for each thread, one write lock, one limiter."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.local = threading.local()
        self.writing = threading.Lock()
        self.window = SlidingWindow()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        """Answer a request."""
        request_id = environ.get("HTTP_X_REQUEST_ID", "")
        if not REQUEST_ID.fullmatch(request_id):
            request_id = f"req_{random.getrandbits(96):024x}"
        headers = [*FIXED, ("x-request-id", request_id)]
        try:
            status, body = self.answer(environ, headers)
        except Refused as refusal:
            status, message = refusal.args
            body = encode({"message": message, "request_id": request_id})
        headers.append(("content-length", str(len(body))))
        start_response(STATUS[status], headers)
        return [body]

    def answer(self, environ: dict[str, Any], headers: list[tuple[str, str]]) -> tuple[int, bytes]:
        """The status and the body; adds the headers that tell of them."""
        connection = getattr(self.local, "connection", None) or self.connect()
        key = connection.execute(KEY, (hashlib.sha256(credential(environ)).hexdigest(),)).fetchone()
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
        if method == "POST" and path in CREATES:
            require(key, f"{CREATES[path].SCOPE}:write")
            made, data = self.create(connection, key, CREATES[path], environ)
            place = f"{environ['wsgi.url_scheme']}://{environ['HTTP_HOST']}{path}/{made}"
            headers += (("etag", tag_of(data)), ("location", place))
            return 201, b'{"data":%b}' % data
        if method == "GET" and path == bare_clients.PATH and not environ["QUERY_STRING"]:
            require(key, "clients:read")
            return 200, bare_clients.page(connection, key[1], environ)
        if method == "GET" and path.startswith(ONE_CLIENT) and path[len(ONE_CLIENT) :].isdecimal():
            require(key, "clients:read")
            client = bare_clients.read(connection, key[1], int(path[len(ONE_CLIENT) :]))
            if client is not None:
                headers.append(("etag", tag_of(client)))
                return 200, b'{"data":%b}' % client
        raise Refused(404, "There is nothing here.")

    def create(
        self, connection: Any, key: tuple[Any, ...], what: ModuleType, environ: dict[str, Any]
    ) -> tuple[int, bytes]:
        """Insert a record in one durable transaction; return its id, and the record as it was written."""
        try:
            given = what.decode(environ["wsgi.input"].read())
        except msgspec.MsgspecError as error:
            raise Refused(422, str(error)) from None
        with self.writing:
            connection.execute("BEGIN IMMEDIATE")
            try:
                written: tuple[int, bytes] = what.insert(connection, key, given)
                connection.execute("COMMIT")
            except BaseException as error:
                connection.execute("ROLLBACK")
                if isinstance(error, dbapi2.IntegrityError | ValueError):
                    raise Refused(422, str(error)) from None
                raise
        return written

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


def require(key: tuple[Any, ...], scope: str) -> None:
    if scope not in key[2].split():
        raise Refused(403, f"This key lacks the scope {scope}.")


def main() -> None:
    """Serve the database of BENCH_DATABASE: python bench/bare.py THREADS PORT."""
    server = Granian(
        "bare:create",
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
