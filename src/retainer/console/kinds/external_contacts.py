"""Contacts: people at clients, and elsewhere."""

from retainer.console.kinds.display import Display
from retainer.console.values import Column

DISPLAY = Display(
    columns=(
        Column("name", "job_title", sort="last_name"),
        "client_id",
        "role",
        "is_primary",
        "email",
        "phone",
        "status",
    ),
    filters=("client_id", "role", "status"),
    facts=("client_id", "job_title", "role", "email", "phone", "mobile"),
)
