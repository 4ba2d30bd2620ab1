"""Idempotency-Key: a repeated write gets the stored response of the first one."""

import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import IOBase

from sqlalchemy import bindparam, delete, insert, select

from retainer.errors import Refusal
from retainer.kernel.http import Request, Response
from retainer.schema.requests import idempotency_keys
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.exact import as_instant
from retainer.values.strict_json import meaning

RETENTION = timedelta(hours=24)
KEY_PATTERN = re.compile(r"[!-~]{1,255}")


_same = (idempotency_keys.c.key_id == bindparam("key_id")) & (idempotency_keys.c.value == bindparam("value"))
FIND = select(*idempotency_keys.c["fingerprint", "status", "headers", "body"]).where(
    _same, idempotency_keys.c.created_at > bindparam("since")
)
DELETE_EXPIRED = delete(idempotency_keys).where(_same)
STORE = insert(idempotency_keys).values(
    account_id=ACCOUNT,
    **{name: bindparam(name) for name in idempotency_keys.c.keys() if name != "account_id"},  # noqa: SIM118
)


class KeysInUse:
    """The Idempotency-Keys that an application is using now; between processes, the transaction decides."""

    def __init__(self) -> None:
        self.names: set[tuple[int, str]] = set()
        self.lock = threading.Lock()


@dataclass
class Attempt:
    """A request with an Idempotency-Key; while its block runs, other requests with the key get 409."""

    running: KeysInUse
    key_id: int
    value: str
    fingerprint: str

    def __enter__(self) -> None:
        name = (self.key_id, self.value)
        with self.running.lock:
            if name in self.running.names:
                raise Refusal(
                    "idempotency_in_progress",
                    "The first request with this Idempotency-Key is still running. Wait a second and send it again.",
                    headers={"Retry-After": "1"},
                )
            self.running.names.add(name)

    def __exit__(self, *_: object) -> None:
        with self.running.lock:
            self.running.names.discard((self.key_id, self.value))

    def run_or_replay(self, tx: Tx, perform: Callable[[], Response]) -> Response:
        """Return the stored response, or perform the request and store its response in the same transaction."""
        stored = self.replay(tx)
        if stored is not None:
            return stored
        response, key = perform(), {"key_id": self.key_id, "value": self.value}
        tx.run(DELETE_EXPIRED, **key)
        kept = {"status": response.status, "headers": json.dumps(response.headers), "body": response.body}
        tx.run(STORE, fingerprint=self.fingerprint, created_at=tx.now, **kept, **key)
        return response

    def take(self, tx: Tx) -> Response:
        """Store that the key is taken: another request with it is refused, and the same one continues."""
        return self.run_or_replay(tx, lambda: Response(200, []))

    def replay(self, tx: Tx) -> Response | None:
        """Return the stored response; None without one. Raises `idempotency_key_reused`."""
        since = as_instant(datetime.fromisoformat(tx.now) - RETENTION)
        row = tx.one(FIND, since=since, key_id=self.key_id, value=self.value)
        if row is None:
            return None
        fingerprint, status, headers, body = row
        if fingerprint != self.fingerprint:
            message = "This Idempotency-Key was used for a different request. Send a new key with each new request."
            raise Refusal("idempotency_key_reused", message, errors={"Idempotency-Key": [message]})
        return Response(status, [*map(tuple, json.loads(headers)), ("idempotency-replayed", "true")], body)


def read_key(request: Request) -> str | None:
    """Return the request's Idempotency-Key, if it has one. Raises `bad_request` for a malformed key."""
    value = request.header("IDEMPOTENCY_KEY")
    if value is not None and not KEY_PATTERN.fullmatch(value):
        raise Refusal("bad_request", "Idempotency-Key must be 1 to 255 visible ASCII characters, like a UUID.")
    return value


def _plain(value: object) -> object:
    """Return a value as JSON has it: of a file, its digest."""
    if not isinstance(value, IOBase):
        return value
    value.seek(0)
    return hashlib.file_digest(value, "sha256").hexdigest()  # type: ignore[arg-type]


def read_attempt(request: Request, key_id: int, body: dict[str, object] | bytes, running: KeysInUse) -> Attempt | None:
    """Return the attempt for the request's Idempotency-Key, if it has one. Raises `bad_request` for a malformed key.

    Bodies with the same meaning count as the same; a body that is not JSON is compared byte by byte.
    """
    value = read_key(request)
    if value is None:
        return None
    meant = body if isinstance(body, bytes) else meaning({name: _plain(value) for name, value in body.items()})
    parts = (request.method.encode(), request.path.encode(), request.query.encode(), meant)
    digest = hashlib.sha256(b"".join(len(part).to_bytes(8) + part for part in parts))
    return Attempt(running, key_id, value + request.idempotency_suffix, digest.hexdigest())
