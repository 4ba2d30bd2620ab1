"""Time entries know whether their rate was sent; of those that exist, a rate that the cascade does not give counts so.

What an entry was made with is not kept, and the rates that one could be derived from may have changed since. A rate
that stays when an entry moves is there to be seen, and `hourly_rate: null` takes it back; one that was agreed upon and
is derived again is lost. So a rate that may have been agreed upon stays; one that is what project, client, user or
account say today is derived again, as it was before this migration.
"""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import FLAG

revision = "0009"
down_revision = "0008"

SENT = """
UPDATE time_entries SET rate_is_sent = {true} WHERE hourly_rate <> coalesce(
    (SELECT projects.hourly_rate FROM projects
        WHERE projects.account_id = time_entries.account_id AND projects.id = time_entries.project_id
            AND projects.currency = time_entries.currency),
    (SELECT clients.hourly_rate FROM clients
        WHERE clients.account_id = time_entries.account_id AND clients.id = time_entries.client_id
            AND clients.currency = time_entries.currency),
    (SELECT coalesce(users.hourly_rate, accounts.hourly_rate) FROM accounts
        JOIN users ON users.account_id = accounts.id
        WHERE accounts.id = time_entries.account_id AND users.id = time_entries.user_id
            AND accounts.currency = time_entries.currency),
    -1)
"""


def upgrade() -> None:
    with op.batch_alter_table("time_entries", schema=None) as batch_op:
        batch_op.add_column(sa.Column("rate_is_sent", FLAG, server_default="0", nullable=False))
    op.execute(SENT.format(true="1" if op.get_bind().dialect.name == "sqlite" else "true"))
