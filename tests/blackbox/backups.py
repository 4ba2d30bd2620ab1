"""What the tests of backups share: an agency's database, a large one, and commands that are refused."""

import hashlib
from pathlib import Path
from typing import Any

from testing.agencies import open_agency
from testing.process import command, opened, with_database


def database(folder: Path) -> Path:
    return folder / "data" / "retainer.db"


def with_agency(folder: Path, *names: str) -> Path:
    """A folder with a database in which agencies are; more may be added."""
    with opened(database(folder if database(folder).exists() else with_database(folder))) as store:
        for name in names or ("North",):
            open_agency(store, name, "agency")
    return folder


BULK = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000),
pictures AS MATERIALIZED (SELECT randomblob(10000) AS content FROM n)
INSERT INTO logos (account_id, created_at, updated_at, content, sha256)
SELECT (SELECT min(id) FROM accounts), created_at, created_at, content, digest(content)
FROM pictures, (SELECT min(created_at) AS created_at FROM accounts)
"""


def bulky(folder: Path) -> None:
    """Make a database take a second to compress: it has logos that hardly get shorter."""
    with opened(database(folder)) as store:
        connection: Any = store.engine.connection()
        connection.create_function("digest", 1, lambda content: hashlib.sha256(content).hexdigest())
        connection.execute(BULK)
        store.engine.give_back(connection)


def refused(folder: Path, *arguments: Any) -> str:
    """Run a command that is refused in words, with nothing on standard output; return the words."""
    said = command(folder, *arguments)
    assert (said.status, said.out) == (1, ""), said
    assert "Traceback" not in said.err, said
    return said.err
