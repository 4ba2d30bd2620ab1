"""The ids that AUTOINCREMENT has assigned in a SQLite file: none is assigned again, not even by a rebuilt table."""

from retainer.store.engines.base import DriverConnection

KEEP = "INSERT INTO sqlite_sequence (name, seq) SELECT ?, ? WHERE EXISTS (SELECT 1 FROM sqlite_master WHERE name = ?)"


def last_ids(connection: DriverConnection) -> dict[str, int]:
    """Return the last id that each table has assigned."""
    exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'").fetchone()
    return dict(connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall()) if exists else {}


def keep_last_ids(connection: DriverConnection, assigned: dict[str, int]) -> None:
    """Let tables assign ids that are higher than those that they had assigned."""
    rebuilt = last_ids(connection)
    for name, last in assigned.items():
        connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
        connection.execute(KEEP, (name, max(last, rebuilt.get(name, 0)), name))
