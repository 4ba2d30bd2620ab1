"""The tables as they were when migrations began; a new database gets them from the schema itself."""

revision = "0018"
down_revision = None


def upgrade() -> None:
    """Do nothing: `migrate` creates a new database from the tables and stamps it."""
