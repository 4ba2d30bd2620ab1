"""A request log to measure: the requests of an account's keys in 30 days."""

import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from retainer.store.engines.base import Unavailable
from retainer.store.tx import Store
from retainer.traffic.answered import RequestLine
from retainer.traffic.recorder import RequestRecorder
from retainer.values.exact import as_instant

DAYS, BATCH = 30, 5000
NOW = datetime.now(UTC)
OPERATIONS = (
    "listClients",
    "getClient",
    "listTimeEntries",
    "getInvoice",
    "createTimeEntry",
    "updateClient",
    "listTasks",
)


def requested(account_id: int, key_ids: list[int], place: int, count: int, rng: random.Random) -> RequestLine:
    """Return the request at a place: most are reads, few fail, and the last key has only failed."""
    key = rng.choice(key_ids)
    operation = rng.choice(OPERATIONS)
    writes = operation.startswith(("create", "update"))
    record = f"/clients/{rng.randint(1, 20_000)}" if writes else None
    status = 429 if key == key_ids[-1] else rng.choices((200, 304, 404, 422, 500), (93, 3, 2, 1.9, 0.1))[0]
    path = record or f"/{rng.choice(('clients', 'tasks', 'invoices'))}/{rng.randint(1, 20_000)}"
    method = "POST" if writes else "GET"
    moment = as_instant(NOW - timedelta(days=DAYS) * (count - place) / count)
    request_id = f"req_{place:012x}{rng.getrandbits(48):012x}"  # ordered by time, as the server makes them
    return RequestLine(
        *(moment, request_id, method, path, status, 2.5, operation),
        *(account_id, 1, key, "rtn_abcd", "192.0.2.7", record),
    )


def log_requests(store: Store, account_id: int, key_ids: list[int], count: int) -> None:
    """Write requests of an account's keys."""
    rng, recorder = random.Random(7), RequestRecorder()
    for start in range(0, count, BATCH):
        recorder.add([requested(account_id, key_ids, n, count, rng) for n in range(start, start + BATCH)])
        with suppress(Unavailable):  # while the disk stalls; the next write begins with what this one has not written
            recorder.write(store)
    recorder.write(store)
