"""Batches: up to 100 requests in one, each checked like a request of its own.

Each operation needs the scope of its own path, and counts against the rate limit like the batch itself. By default an
operation succeeds or fails by itself, and the response has a status for each. With `"atomic": true`, all are written in
one transaction, or none.

With an `Idempotency-Key`, a batch can be sent again safely: an operation that was performed answers as it did before.
The key is that of the batch: another batch, or another request, with it is refused. The stored response to an atomic
batch counts as one request. Operations run in the order of the list.
"""

from retainer.kernel.batch import Batch, BatchResults, Performer
from retainer.kernel.body import New
from retainer.kernel.resource import Resource

api = Resource("/batch", tag="Batches", scope=None)


@api.post(creates=False)
def run_batch(batch: New[Batch], perform: Performer) -> BatchResults:
    """Perform up to 100 requests in one.

    The batch returns 200 even if operations fail: check the `status` of each result. A batch that is not atomic stops
    after 20 seconds or 8 MiB of responses; the operations that were not performed have the status 503. The operations
    of an atomic batch bill at most 10,000 time entries, expenses and milestones together. On the embedded database, an
    atomic batch that takes more than 2 seconds is undone and gets a 503.
    """
    return BatchResults(perform(batch))
