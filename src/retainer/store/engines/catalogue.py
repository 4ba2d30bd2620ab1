"""The catalogue of a database: its tables, columns, keys and indexes in one form, as it has them now.

One statement reads everything. Parts are texts of the database itself, which do not depend on the order of columns, and
are the same in all supported versions of PostgreSQL.
"""

import json
import re
from typing import NamedTuple

from sqlalchemy import Connection

from retainer.store.engines import Engine
from retainer.store.engines.base import Row
from retainer.store.engines.citus import HAS_CITUS, PLACED

VERSIONS = "alembic_version"
"""The table of the revision, which is no part of the schema."""
SQLITE = r"""
WITH own AS (
    SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
), parts (owner, part, detail) AS (
    SELECT own.name, 'table', rtrim(iif(strict, 'strict, ', '') || iif(wr, 'without rowid, ', '')
        || iif(own.sql LIKE '%AUTOINCREMENT%', 'autoincrement', ''), ', ')
    FROM own JOIN pragma_table_list AS listed ON listed.schema = 'main' AND listed.name = own.name
    UNION ALL
    SELECT own.name, 'column ' || found.name,
        type || iif("notnull", ' not null', '') || coalesce(' default ' || dflt_value, '') || iif(hidden, ' hidden', '')
    FROM own, pragma_table_xinfo(own.name) AS found
    UNION ALL
    SELECT own.name, 'PRIMARY KEY (' || group_concat(found.name, ', ' ORDER BY pk) || ')', ''
    FROM own, pragma_table_info(own.name) AS found WHERE pk GROUP BY own.name
    UNION ALL
    SELECT own.name, 'FOREIGN KEY (' || group_concat("from", ', ' ORDER BY seq) || ') REFERENCES '
        || "table" || '(' || group_concat("to", ', ' ORDER BY seq) || ')',
        iif(on_delete = 'NO ACTION', '', 'ON DELETE ' || on_delete)
    FROM own, pragma_foreign_key_list(own.name) GROUP BY own.name, id
    UNION ALL
    SELECT own.name, 'UNIQUE (' || (
        SELECT group_concat(name, ', ' ORDER BY seqno) FROM pragma_index_info(listed.name)) || ')', ''
    FROM own, pragma_index_list(own.name) AS listed WHERE origin = 'u'
    UNION ALL
    SELECT tbl_name, 'index ' || name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL
    UNION ALL
    SELECT name, 'declared', sql FROM own WHERE sql LIKE '%CHECK%'
)
SELECT json_group_array(json_array(owner, part, detail)) FROM parts
"""
POSTGRESQL = """
WITH own AS (
    SELECT oid, relname FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
        AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = oid AND deptype = 'e')
), parts (owner, part, detail) AS (
    SELECT relname, 'table', '' FROM own
    UNION ALL
    SELECT relname, 'column ' || attname, format_type(atttypid, atttypmod)
        || CASE WHEN attcollation <> typcollation THEN ' collate ' || collname ELSE '' END
        || CASE WHEN attnotnull THEN ' not null' ELSE '' END || coalesce(' default ' || pg_get_expr(adbin, adrelid), '')
        || CASE WHEN attidentity <> '' THEN ' identity' ELSE '' END
    FROM own JOIN pg_attribute ON attrelid = own.oid AND attnum > 0 AND NOT attisdropped
        JOIN pg_type ON pg_type.oid = atttypid
        LEFT JOIN pg_collation ON pg_collation.oid = attcollation
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    UNION ALL
    SELECT relname,
        CASE WHEN contype = 'c' THEN 'check ' || conname ELSE pg_get_constraintdef(pg_constraint.oid) END, ''
    FROM own JOIN pg_constraint ON conrelid = own.oid AND contype IN ('p', 'u', 'f', 'c', 'x')
    UNION ALL
    SELECT own.relname, 'index ' || named.relname,
        pg_get_indexdef(indexrelid) || CASE WHEN indisvalid THEN '' ELSE ' invalid' END
    FROM own JOIN pg_index ON indrelid = own.oid JOIN pg_class AS named ON named.oid = indexrelid
    WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u', 'x'))
)
SELECT json_agg(json_build_array(owner, part, detail))::TEXT FROM parts
"""
MARK = {
    "sqlite": "SELECT schema_version FROM pragma_schema_version",
    "postgresql": """
WITH own AS (SELECT oid, xmin FROM pg_class WHERE relnamespace = current_schema()::regnamespace)
SELECT md5(string_agg(line, ' ' ORDER BY line)) FROM (
    SELECT 'c' || oid || ' ' || xmin FROM own
    UNION ALL
    SELECT 'a' || attrelid || ' ' || attnum || ' ' || xmin FROM pg_attribute WHERE attrelid IN (SELECT oid FROM own)
    UNION ALL SELECT 'd' || oid || ' ' || xmin FROM pg_attrdef WHERE adrelid IN (SELECT oid FROM own)
    UNION ALL SELECT 'i' || indexrelid || ' ' || xmin FROM pg_index WHERE indrelid IN (SELECT oid FROM own)
    UNION ALL SELECT 'k' || oid || ' ' || xmin FROM pg_constraint WHERE conrelid IN (SELECT oid FROM own)
) AS lines (line)
""",
}
"""A value that changes with each change of the schema. It needs no locks, but the catalogue of PostgreSQL waits for a
migration that has locked a table."""
PARTS = {"sqlite": SQLITE, "postgresql": POSTGRESQL}
PLACES = f"SELECT json_agg(name)::TEXT FROM ({PLACED}) AS placed (name)"
INDEX = re.compile(r"^CREATE (UNIQUE )?INDEX \S+ ON (?:ONLY )?\S+ (?:USING btree )?")
CHECK = re.compile(r"CONSTRAINT (\w+) CHECK")

Parts = dict[tuple[str, str], str]
"""Details by the table and its part: `("clients", "column name")` is `TEXT not null`."""


class DatabaseCatalogue(NamedTuple):
    parts: Parts
    placed: frozenset[str]
    """The tables that Citus has distributed or copied to every node. They refer to no table of the coordinator."""
    stated: str | None
    """The revision that the database says it has; None without one."""

    @property
    def tables(self) -> set[str]:
        return {table for table, _ in self.parts}


def of_engine(engine: Engine) -> DatabaseCatalogue:
    kind = engine.dialect.name
    found = _parts(engine.one(PARTS[kind], []))
    stated = engine.one(_stated(kind), []) if _has_versions(found) else None
    return _catalogue(found, engine.one(PLACES, []) if engine.is_cluster else None, stated)


def of_connection(connection: Connection) -> DatabaseCatalogue:
    """Read the catalogue within a change of the schema."""

    def one(statement: str) -> Row | None:
        row = connection.exec_driver_sql(statement).first()
        return row and tuple(row)

    kind = connection.dialect.name
    found = _parts(one(PARTS[kind]))
    is_cluster = kind == "postgresql" and connection.exec_driver_sql(HAS_CITUS).scalar_one()
    return _catalogue(found, one(PLACES) if is_cluster else None, one(_stated(kind)) if _has_versions(found) else None)


def mark(engine: Engine) -> object:
    row = engine.one(MARK[engine.dialect.name], [])
    return row and row[0]


def _stated(kind: str) -> str:
    together = {"sqlite": "group_concat", "postgresql": "string_agg"}[kind]
    return f"SELECT {together}(version_num, ', ') FROM {VERSIONS}"


def _has_versions(found: Parts) -> bool:
    return (VERSIONS, "table") in found


def _catalogue(found: Parts, placed: Row | None, stated: Row | None) -> DatabaseCatalogue:
    own = {key: detail for key, detail in found.items() if key[0] != VERSIONS}
    places = json.loads(placed[0]) if placed and placed[0] else []
    return DatabaseCatalogue(own, frozenset(places), stated[0] if stated else None)


def _parts(row: Row | None) -> Parts:
    found: Parts = {}
    for table, part, detail in json.loads(row[0]) if row and row[0] else ():
        if part == "declared":
            found |= {(table, f"check {name}"): "" for name in CHECK.findall(detail)}
        elif part.startswith("index "):
            plain = " ".join(detail.replace('"', "").split())
            found[table, part] = INDEX.sub(lambda match: (match[1] or "").lower(), plain)
        else:
            found[table, part] = detail
    return found
