"""${message}."""

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import DAY, FLAG, INSTANT, INTEGER, TEXT

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
LOCKS: dict[str, str] = {}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
