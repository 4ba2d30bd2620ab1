"""Rollups: sums of time by year, month and day, which writes maintain and reports read."""

from sqlalchemy import Table

from retainer.schema import columns as col


def summary(name: str, *keys: str, of: tuple[str, ...]) -> Table:
    """Declare a table of sums for each bucket, currency and `keys`; a key is 0 for rows without that reference."""
    columns = [col.integer(key) for key in keys]
    sums = [col.integer(column, server_default="0") for column in of]
    for column in sums:
        column.info["sum"] = True
    return col.keyed_table(
        name, col.text("bucket"), *columns, col.text("currency"), *sums, key=("bucket", *keys, "currency")
    )


project_sums = summary(
    "project_sums",
    "client_id",
    "project_id",
    of=(
        "tracked_minutes",
        "billable_minutes",
        "billable_value",
        "billed_value",
        "unpriced_minutes",
        "labour_cost",  # hourly rate in minor units x minutes: a sixtieth of it is the cost
        "missing_cost_rate_minutes",
    ),
)

user_sums = summary(
    "user_sums",
    "user_id",
    of=("tracked_minutes", "billable_minutes", "billable_value", "billed_value", "unpriced_minutes"),
)

SUMMARIES = (project_sums, user_sums)
