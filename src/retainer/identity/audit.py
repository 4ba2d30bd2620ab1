"""The audit: what admins and operators did that no record shows; rows are only ever added."""

import json
from typing import Any

from retainer.schema.identity import audit_entries
from retainer.store.tx import Tx


def note(tx: Tx, action: str, details: dict[str, Any]) -> None:
    """Add an entry in the transaction of what was done: `payment removed`, and all that was known of it."""
    tx.put(audit_entries, {"action": action, "details": json.dumps(details)})
