"""Write a new migration with the difference between the tables and the existing migrations."""

import sys
import tempfile
from pathlib import Path

from alembic import command

from retainer.schema import metadata
from retainer.schema.migrations import configuration, head, upgrade
from retainer.store.engines import Sqlite

with tempfile.TemporaryDirectory() as folder:
    engine = Sqlite(Path(folder) / "now.db")
    engine.create_storage()
    with engine.schema_change() as connection:
        upgrade(connection, head())
        config = configuration(connection)
        config.attributes["metadata"] = metadata
        command.revision(config, sys.argv[1], autogenerate=True, rev_id=f"{int(head()) + 1:04d}")
