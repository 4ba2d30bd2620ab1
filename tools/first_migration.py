"""Write the first migration from the tables: the statements that create them, for each kind of database.

Only until the first release: from then on, every change of the tables is a migration of its own.
"""

from typing import Any

from sqlalchemy import create_mock_engine

from retainer.schema import metadata
from retainer.schema.migrations import MIGRATIONS
from retainer.store.engines import Engine, Sqlite
from retainer.store.engines.postgresql import Postgresql


def write(engine: type[Engine]) -> None:
    """Write the statements for one kind of database."""
    statements: list[str] = []

    def note(statement: Any, *_: object, **__: object) -> None:
        lines = str(statement.compile(dialect=engine.dialect)).strip().splitlines()
        statements.append("\n".join(line.rstrip() for line in lines))

    dialect = engine.dialect
    metadata.create_all(create_mock_engine(f"{dialect.name}+{dialect.driver}://", note), checkfirst=False)
    path = MIGRATIONS / "versions" / f"0018_first.{dialect.name}.sql"
    path.write_text("\n\n".join(f"{statement};" for statement in statements) + "\n", encoding="utf-8")


for each in (Sqlite, Postgresql):
    write(each)
