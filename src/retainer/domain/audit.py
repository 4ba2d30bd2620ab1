"""The audit: what admins and operators did that no record shows; rows are only ever added."""

import json
from typing import Any

from sqlalchemy import Index

from retainer.store.columns import text
from retainer.store.tables import tenant_table
from retainer.store.tx import Tx

audit_entries = tenant_table(
    "audit_entries", text("action"), text("details"), Index(None, "account_id", "created_at", "id")
)


def note(tx: Tx, action: str, details: dict[str, Any]) -> None:
    """Add an entry in the transaction of what was done: `payment removed`, and all that was known of it."""
    tx.put(audit_entries, {"action": action, "details": json.dumps(details)})
