"""SQLite's own tables about tables: the last assigned ids, and the statistics of the planner.

Nearly every index begins with `account_id`. Without statistics, the planner assumes that such an index leaves ten rows,
and reads all rows of the account instead of sorting or looking up a list of ids. Statistics of ANALYZE would follow the
data; fixed ones give every installation the plans that tests have checked
(https://sqlite.org/optoverview.html#manual_control_of_query_plans_using_sqlite_stat_tables).
"""

from retainer.store.engines.base import DriverConnection

SET_LAST_ID = "INSERT INTO sqlite_sequence (name, seq) SELECT name, ? FROM sqlite_master WHERE name = ?"
ROWS, ROWS_OF_ACCOUNT, ROWS_OF_VALUE = 1_000_000, 100_000, 100


def last_ids(connection: DriverConnection) -> dict[str, int]:
    exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'").fetchone()
    return dict(connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall()) if exists else {}


def raise_last_id(connection: DriverConnection, table: str, last_id: int) -> None:
    """Let a table, even if it was rebuilt or is empty, assign higher ids than this one."""
    highest = max(last_id, last_ids(connection).get(table, 0))
    connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
    connection.execute(SET_LAST_ID, (highest, table))


def write_statistics(connection: DriverConnection) -> None:
    """Describe each index that begins with `account_id`, within a change of the schema."""
    connection.execute("ANALYZE sqlite_schema")  # creates the table of statistics
    connection.execute("DELETE FROM sqlite_stat1")
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    for (table,) in tables:
        indexes = connection.execute("SELECT * FROM pragma_index_list(?)", (table,)).fetchall()
        for _, index, is_unique, _, is_partial in indexes:
            rows = connection.execute("SELECT name FROM pragma_index_info(?)", (index,)).fetchall()
            names = [name for (name,) in rows]
            if names[0] == "account_id":
                description = (table, index, describe(names, is_unique=bool(is_unique), is_partial=bool(is_partial)))
                connection.execute("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?, ?, ?)", description)


def describe(names: list[str], *, is_unique: bool, is_partial: bool) -> str:
    """Return the row counts of an index: in all, and on average for the same values of its first columns.

    A partial index has a tenth of the rows, or the order in which indexes were created would decide between it and one
    of all rows.
    """
    last = len(names) - 1
    counts = [ROWS // 10, ROWS_OF_ACCOUNT // 10] if is_partial else [ROWS, ROWS_OF_ACCOUNT]
    for place, name in enumerate(names[1:], start=1):
        is_single = counts[-1] == 1 or name == "id" or (is_unique and place == last)
        counts.append(1 if is_single else max(ROWS_OF_VALUE // 10 ** (place - 1), 2))
    return " ".join(map(str, counts))
