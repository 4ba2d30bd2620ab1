"""Damage of a PostgreSQL database, as far as its server sees it: checksums of pages, and the state of its indexes."""

from typing import Any

import psycopg

CHECKSUMS = """
SELECT 'The server found ' || checksum_failures || ' pages with wrong checksums.'
FROM pg_stat_database WHERE datname = current_database() AND checksum_failures > 0
"""
INVALID = """
SELECT 'The index ' || i.indexrelid::regclass || ' of ' || i.indrelid::regclass || ' is not valid. Run REINDEX INDEX.'
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE c.relnamespace = current_schema()::regnamespace AND NOT (i.indisvalid AND i.indisready)
"""
HAS_AMCHECK = "SELECT 1 FROM pg_extension WHERE extname = 'amcheck'"
ORDERED = """
SELECT i.indexrelid, i.indexrelid::regclass::TEXT
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
WHERE c.relnamespace = current_schema()::regnamespace AND a.amname = 'btree' AND i.indisvalid AND c.relkind = 'i'
ORDER BY 2
"""
DAMAGED = (psycopg.errors.IndexCorrupted, psycopg.errors.DataCorrupted)


def known_damage(driver: psycopg.Connection[Any], *, thorough: bool) -> list[str]:
    """Return what is damaged; `thorough` also reads every index with amcheck, if that extension was created."""
    found = [str(text) for statement in (CHECKSUMS, INVALID) for (text,) in driver.execute(statement).fetchall()]
    driver.commit()
    if not thorough or driver.execute(HAS_AMCHECK).fetchone() is None:
        return found
    for index, name in driver.execute(ORDERED).fetchall():
        try:
            driver.execute("SELECT bt_index_check(%s::OID)", [index])
        except DAMAGED as error:
            found.append(f"The index {name} is damaged: {error.diag.message_primary}. Run REINDEX INDEX.")
        driver.rollback()
    return found
