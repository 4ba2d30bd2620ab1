"""Fingerprints: which revision the tables of a database really have, whatever the database says.

`migrations/known.*.tsv` has the parts of each revision that was delivered, for each kind of database; `make schemas`
writes it. A database is that of its revision if it has these parts and no others. Otherwise nothing is done with it:
statements would fail halfway, and sums go wrong.
"""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from retainer.store.engines import Engine
from retainer.store.engines.base import Unavailable
from retainer.store.engines.catalogue import DatabaseCatalogue, Parts, of_engine

MIGRATIONS = Path(__file__).parent / "migrations"
FIRST = "0018"
"""The first revision of the migrations. Earlier ones were never delivered."""
FORMER = "0018-8cdca1b"
"""A state that was delivered under the revision 0018, too, before that was final."""
OPEN = "-"
SHOWN = 5
"""Differences that a sentence names; it counts the others."""


class UnknownSchema(Unavailable):
    """The tables of a database are not those of a revision that this version knows. The message names differences."""


class KnownPart(NamedTuple):
    """A part of the schema, and the revisions that have it: from `since` on, before `until`."""

    since: str
    until: str
    table: str
    part: str
    detail: str


def revisions() -> list[str]:
    """Return all revisions that this version knows, the oldest first."""
    return [FORMER, *sorted(path.stem.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))]


def head() -> str:
    """Return the newest revision of this version."""
    return revisions()[-1]


def is_newer(revision: str) -> bool:
    return revision.isdigit() and revision > head()


def revision(engine: Engine) -> str | None:
    """Return the revision that a database has; None for one without tables.

    Raises UnknownSchema if its tables are those of no revision, or of another one than it says.
    """
    return identified(of_engine(engine), engine.dialect.name, engine.location)


def check(engine: Engine) -> None:
    """Raise UnknownSchema unless a database has the tables of the newest revision."""
    found = revision(engine)
    if found != head():
        advice = "Make a backup with the version that has served it, then run `retainer migrate`."
        raise UnknownSchema(f"{engine.location} has the schema {found or 'of no version'}, not {head()}. {advice}")


def identified(found: DatabaseCatalogue, kind: str, location: str) -> str | None:
    """Return the revision of a catalogue, as `revision` does."""
    stated = found.stated
    if stated is None:
        if not found.parts:
            return None
        raise UnknownSchema(_without_revision(found, kind, location))
    if is_newer(stated):
        raise UnknownSchema(
            f"The database {location} has revision {stated}, newer than {head()}: run the newer version."
        )
    if stated < FIRST:
        advice = "run the version that wrote it, or start with a new database."
        raise UnknownSchema(f"The database {location} has revision {stated}, from before the first release: {advice}")
    candidates = [FORMER, FIRST] if stated == FIRST else [stated]
    differing = {each: differences(found, expected(kind, each)) for each in candidates if each in revisions()}
    if not differing:
        raise UnknownSchema(f"The database {location} has revision {stated}, which this version does not know. {UNDO}")
    nearest = min(differing, key=lambda each: len(differing[each]))
    if differing[nearest]:
        sentence = f"The tables of {location} are not those of its revision {stated}: {_listed(differing[nearest])}."
        raise UnknownSchema(f"{sentence} {UNDO}")
    return nearest


UNDO = "Nothing was changed: undo what has changed its tables, or restore a backup."


def _without_revision(found: DatabaseCatalogue, kind: str, location: str) -> str:
    matching = [each for each in revisions() if not differences(found, expected(kind, each))]
    if matching:
        what = f"The database {location} has lost its revision (the table alembic_version); its tables are those of"
        return f"{what} {matching[0]}. Restore a backup, or write {matching[0][: len(FIRST)]} into that table."
    if not {"accounts", "time_entries"} <= found.tables:
        what = f"The database {location} has tables of another program: {_listed(sorted(found.tables))}"
        return f"{what}. Name a database of Retainer, or a new one."
    return f"The database {location} has tables without a revision (the table alembic_version). Restore a backup."


def differences(found: DatabaseCatalogue, expected: Parts) -> list[str]:
    """Return in words what a catalogue has other than expected, whole tables first."""
    there = {table for table, _ in expected}
    lines = [f"table {table} is missing" for table in sorted(there - found.tables)]
    lines += [f"table {table} is unknown" for table in sorted(found.tables - there)]
    for table, part in sorted(expected.keys() | found.parts.keys(), key=_columns_first):
        if table not in there or table not in found.tables:
            continue
        wanted, has = expected.get((table, part)), found.parts.get((table, part))
        if wanted == has or (has is None and _is_impossible(found, table, part)):
            continue
        if has is None:
            lines.append(f"{part} is missing" if part.startswith("index ") else f"table {table} lacks the {part}")
        elif wanted is None:
            lines.append(f"table {table} has the unknown {part}")
        else:
            lines.append(f"{part} of table {table} is {has or 'plain'} instead of {wanted or 'plain'}")
    return lines


def _columns_first(key: tuple[str, str]) -> tuple[bool, tuple[str, str]]:
    return not key[1].startswith("column "), key


def _is_impossible(found: DatabaseCatalogue, table: str, part: str) -> bool:
    """Return whether a cluster cannot have a reference: from a row on a node to one of the coordinator."""
    target = part.partition(" REFERENCES ")[2].partition("(")[0]
    return bool(target) and table in found.placed and target not in found.placed


def _listed(lines: list[str]) -> str:
    more = [f"{len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "; ".join([*lines[:SHOWN], *more])


def known_file(kind: str) -> Path:
    return MIGRATIONS / f"known.{kind}.tsv"


def read_known(kind: str) -> Iterator[KnownPart]:
    for line in known_file(kind).read_text(encoding="utf-8").splitlines():
        yield KnownPart(*line.split("\t"))


def order(revision: str) -> tuple[str, bool]:
    """Return the sort key of a revision: the former state of the first one comes before it."""
    return revision[: len(FIRST)], revision != FORMER


def expected(kind: str, revision: str) -> Parts:
    """Return the parts of a known revision."""
    place, found = order(revision), {}
    for each in read_known(kind):
        if order(each.since) <= place and (each.until == OPEN or place < order(each.until)):
            found[each.table, each.part] = each.detail
    return found


def digest(parts: Parts) -> str:
    """Return the fingerprint of parts, in short."""
    lines = sorted("\t".join((*key, detail)) for key, detail in parts.items())
    return sha256("\n".join(lines).encode()).hexdigest()[:16]
