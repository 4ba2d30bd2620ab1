"""Jobs: work that a request causes and that outlives it, and work that the clock starts."""

from sqlalchemy import Index, literal_column

from retainer.schema import columns as col

OPEN = literal_column("next_step_at").is_not(None)

jobs = col.account_table(
    "jobs",
    col.text("kind"),
    col.text("title"),
    col.text("status"),
    *col.ref("user_id", "users", optional=True),  # without one, the clock or the operator started it
    col.embedded("options"),
    col.flag("is_dry_run"),
    *(col.integer(name, server_default="0") for name in ("position", "done", "refused")),
    col.integer("total", optional=True),
    col.embedded("counts"),
    col.text("message", optional=True),
    col.mark_maintained(col.instant("next_step_at", optional=True)),
    col.maintained("attempts"),
    *col.optional(col.instant, "ended_at"),
    Index("jobs_due", "next_step_at", sqlite_where=OPEN, postgresql_where=OPEN),
    col.index_where("jobs_daily", "kind", condition=literal_column("kind") == literal_column("'daily'"), unique=True),
    *col.indexes("created_at id"),
)
"""`next_step_at` is when the next step is due, or while a process works on it, when its lease ends; null: it has ended.
`attempts` is how many times a process has begun to work on it since its last progress.
`position` is the place of the last row that was written or refused, and means what the kind of job says."""

job_refusals = col.keyed_table(
    "job_refusals",
    *col.ref("job_id", "jobs", on_delete="cascade"),
    *(col.integer(name) for name in ("number", "position")),
    *map(col.text, ("name", "message")),
    key=("job_id", "number"),
)
"""The rows that a job has not written, each with what people call it and why."""

job_pieces = col.keyed_table(
    "job_pieces",
    *col.ref("job_id", "jobs", on_delete="cascade"),
    col.integer("number"),
    col.content("content"),
    key=("job_id", "number"),
)
"""What a job reads, such as an uploaded file, in pieces of `files.PIECE_BYTES`."""

job_records = col.keyed_table(
    "job_records",
    *col.ref("job_id", "jobs", on_delete="cascade"),
    col.text("record"),
    col.integer("record_id"),
    key=("job_id", "record", "record_id"),
)
"""What a job has made, by the name of its table, so that it can be undone."""
