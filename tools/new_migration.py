"""Write a new migration with the difference between the tables and the existing migrations."""

import sys
import tempfile
import warnings
from pathlib import Path

from alembic import command

from retainer.schema import metadata
from retainer.schema.fingerprint import head
from retainer.schema.migrations import configuration, upgrade
from retainer.store.engines import Sqlite

NEXT = """\
Read it: what alembic cannot see on SQLite (conditions and expressions of indexes, renamed columns) is missing. Name the
locked tables in LOCKS, then:
  make format schemas
  .venv/bin/pytest -q tests/test_migrations.py tests/test_migration_locks.py
CONTRIBUTING.md has the rest under "Migrations"."""

if not sys.argv[1:] or not sys.argv[1].strip():
    sys.exit('Say what changes: make migration NAME="a colour for each tag"')
warnings.simplefilter("ignore")  # each index with an expression
with tempfile.TemporaryDirectory() as folder:
    engine = Sqlite(Path(folder) / "now.db")
    engine.create_storage()
    with engine.schema_change() as connection:
        upgrade(connection, head())
        config = configuration(connection)
        config.attributes["metadata"] = metadata
        command.revision(config, sys.argv[1].strip(), autogenerate=True, rev_id=f"{int(head()) + 1:04d}")
print(NEXT)
