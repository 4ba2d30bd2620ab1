"""Time entries: minutes of a person on a day."""

from retainer.console.kinds.display import Display
from retainer.console.values import Column
from retainer.rollups.list_sums import Sum

DISPLAY = Display(
    columns=(
        Column("date", "description"),
        "user_id",
        Column("project_id", "task_id"),
        "client_id",
        "duration_minutes",
        "amount",
        "billing_status",
    ),
    filters=("date_from", "date_to", "user_id", "project_id", "billing_status"),
    sums=(Sum("duration_minutes"), Sum("amount")),
    facts=("date", "duration_minutes", "user_id", "client_id", "project_id", "amount", "billing_status"),
    is_counted=False,
)
