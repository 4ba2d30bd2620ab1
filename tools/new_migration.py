"""Write a new migration from the difference between the tables and the migrations that exist."""

import sys
import tempfile
from pathlib import Path

from alembic import command
from alembic.config import Config

from retainer.schema import metadata
from retainer.schema.migrations import MIGRATIONS, head, migrate
from retainer.store.engines import Sqlite

with tempfile.TemporaryDirectory() as folder:
    engine = Sqlite(Path(folder) / "now.db")
    migrate(engine)
    configuration = Config()
    configuration.set_main_option("script_location", str(MIGRATIONS))
    configuration.attributes["metadata"] = metadata
    configuration.attributes["engine"] = engine.schema_engine()
    command.revision(configuration, sys.argv[1], autogenerate=True, rev_id=f"{int(head()) + 1:04d}")
