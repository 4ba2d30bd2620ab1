"""All tables, by the statements beside this file."""

from pathlib import Path

from alembic import op

revision = "0018"
down_revision = None


def upgrade() -> None:
    connection = op.get_bind()
    script = Path(__file__).with_name(f"0018_first.{connection.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in script.split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)
