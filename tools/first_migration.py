"""Write the first migration from the tables: the statements that create them, for each kind of database.

Only until the first release: after it, each change of the tables is a new migration.
"""

from sqlalchemy.schema import CreateIndex, CreateTable, ExecutableDDLElement

from retainer.schema import metadata
from retainer.schema.migrations import MIGRATIONS
from retainer.store.engines import Engine, Sqlite
from retainer.store.engines.postgresql import Postgresql


def write(engine: type[Engine]) -> None:
    """Write the statements for one kind of database."""
    statements: list[str] = []

    def note(statement: ExecutableDDLElement) -> None:
        lines = str(statement.compile(dialect=engine.dialect)).strip().splitlines()
        statements.append("\n".join(line.rstrip() for line in lines))

    for table in metadata.sorted_tables:
        note(CreateTable(table))
        for index in sorted(table.indexes, key=lambda each: str(each.name)):
            note(CreateIndex(index))
    path = MIGRATIONS / "versions" / f"0018_first.{engine.dialect.name}.sql"
    path.write_text("\n\n".join(f"{statement};" for statement in statements) + "\n", encoding="utf-8")


for each in (Sqlite, Postgresql):
    write(each)
