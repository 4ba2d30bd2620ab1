"""The audit: actions of admins and operators that no record shows; rows are only ever added."""

import json
from typing import Any

from retainer.schema.identity import audit_entries
from retainer.store.tx import Tx


def note(tx: Tx, action: str, details: dict[str, Any]) -> None:
    """Add an entry in the transaction of the action: its name, like `payment removed`, and the whole record."""
    tx.put(audit_entries, {"action": action, "details": json.dumps(details)})
